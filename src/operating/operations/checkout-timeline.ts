import { brandName } from '#platform/shared/card-names.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { showMoney } from '#platform/shared/money.ts';
import { plural } from '#platform/shared/plural.ts';
import { writeDate } from '#platform/shared/words/write-date.ts';
import type { Dispute } from '#purchases/disputes/dispute.ts';
import type { Collection, Instalment } from '#purchases/instalments/instalment.ts';
import type { Message, MessageKind } from '#purchases/messages/message.ts';
import type { PaymentAttempt } from '#purchases/payments/payment-attempt.ts';
import type { RefundPart, RefundRequest } from '#purchases/refunds/refund.ts';
import type { Posting } from '#record/ledger/posting.ts';
import type { CheckoutHistory } from './checkout-history.ts';

export type TimelineEntry = {
  at: Timestamp;
  description: string;
  kind:
    | 'checkout'
    | 'attempt'
    | 'callback'
    | 'collection'
    | 'refund'
    | 'dispute'
    | 'message'
    | 'note'
    | 'conversation';
  by: string | null;
  tone: 'neutral' | 'good' | 'bad' | 'waiting';
  message_id?: string;
};

const tones: Record<string, TimelineEntry['tone']> = {
  successful: 'good',
  authorised: 'good',
  delivered: 'good',
  exhausted: 'bad',
  collected: 'good',
  charged: 'good',
  verified: 'good',
  done: 'good',
  sent: 'good',
  cancelled: 'neutral',
  invalid_payload: 'bad',
  declined: 'bad',
  refused: 'bad',
  failed: 'bad',
  lapsed: 'bad',
  lost: 'bad',
  starting: 'waiting',
  challenged: 'waiting',
  voiding: 'waiting',
  open: 'waiting',
  unknown: 'waiting',
  pending: 'waiting',
};
const toneOf = (status: string) => tones[status] ?? 'neutral';

const subjects: Record<MessageKind, string> = {
  receipt: 'receipt with the plan',
  charge_soon: 'payment is due soon',
  charged: 'payment was charged',
  declined: 'payment did not go through',
  card_expires: 'card expires',
  card_replaced: 'card was replaced',
  refunded: 'refund is done',
  plan_finished: 'plan is finished',
  sign_in_link: 'link to the plan',
  answer: 'answer to the shopper',
  evidence_asked: 'request to the merchant for evidence',
  payment_link: 'link to pay',
};

const entryOf = (
  kind: TimelineEntry['kind'],
  at: Timestamp,
  description: string,
  tone: TimelineEntry['tone'] = 'neutral',
  by: string | null = null,
): TimelineEntry => ({ at, description, kind, by, tone });

export const presentMessage = (message: Message): TimelineEntry => {
  const { id, kind, about, status, settled_at, planned_at } = message;
  const again = about.includes('#') ? ' again' : '';
  const how = status === 'pending' ? 'to send' : status;
  const text = `message ${how}${again}: ${subjects[kind]}`;
  return {
    ...entryOf('message', settled_at ?? planned_at, text, toneOf(status)),
    message_id: id,
  };
};

/**
 * Whether a message is a reminder of a payment that a refund has cancelled. The worker skips it
 * when it falls due, which may be years from now.
 */
const isObsolete = ({ kind, status, facts }: Message, instalments: Instalment[]) =>
  kind === 'charge_soon' &&
  status === 'pending' &&
  instalments.some((one) => one.number === facts.instalment && one.status === 'cancelled');

/**
 * Entries for messages to the shopper, the shopper's questions and operators' notes. The command
 * line does not show them.
 */
export function extrasOf({
  messages,
  instalments,
  notes,
  conversation,
  show,
}: CheckoutHistory): TimelineEntry[] {
  return [
    ...messages.filter((message) => !isObsolete(message, instalments)).map(presentMessage),
    ...notes.map(({ at, name, text }) => entryOf('note', at, text, 'neutral', name)),
    ...conversation.map(({ at, person_id, name, text }) => {
      if (name === null) return entryOf('conversation', at, text, 'waiting', 'the shopper');
      const by = `${show(person_id, name).name}, to the shopper`;
      return entryOf('conversation', at, text, 'neutral', by);
    }),
  ];
}

/**
 * Lists the events of a checkout in chronological order, on the merchant's clock. Times within
 * sentences are in the zone of the page that shows them.
 */
export function timelineOf(
  history: CheckoutHistory,
  zone = history.merchant.territory.time_zone,
): TimelineEntry[] {
  const { merchant, checkout, move } = history;
  const money = (cents: number) => showMoney(cents, { ...merchant.territory, ...checkout });
  const { number_of_payments } = checkout;
  const term = number_of_payments === null ? '' : `, ${plural(number_of_payments, 'payment')}`;
  const noAnswer = (one: PaymentAttempt | Collection) => explainNoAnswer(history, one, zone);
  const settled = <
    Row extends { settled_at: Timestamp | null; created_at: Timestamp; status: string },
  >(
    kind: TimelineEntry['kind'],
    rows: Row[],
    describe: (row: Row) => string,
  ) =>
    rows.map((row) =>
      entryOf(kind, row.settled_at ?? row.created_at, describe(row), toneOf(row.status)),
    );
  return inOrder([
    entryOf('checkout', checkout.created_at, `created, ${money(checkout.amount)}`),
    ...settled('attempt', history.attempts, (one) => describeAttempt(one, money, noAnswer(one))),
    ...(move
      ? [
          entryOf(
            'checkout',
            move.at,
            `${move.to_status.replace('_', ' ')}${term}`,
            toneOf(move.to_status),
          ),
        ]
      : []),
    ...history.callback_attempts.map(({ number, outcome, reason, operator, started_at }) => {
      const by = operator === null ? '' : ` by ${operator}`;
      const why = reason === null ? '' : `: ${reason}`;
      const text = `callback, attempt ${number}${by}, ${outcome}${why}`;
      return entryOf('callback', started_at, text, toneOf(outcome), operator);
    }),
    ...history.events.map(({ event, sequence, status, attempts, created_at, delivered_at }) => {
      const after = attempts > 1 ? ` after ${plural(attempts, 'attempt')}` : '';
      const text = `event ${sequence}, ${event}, ${status}${after}`;
      return entryOf('callback', delivered_at ?? created_at, text, toneOf(status));
    }),
    ...settled('collection', history.collections, (one) =>
      describeCollection(one, money, noAnswer(one)),
    ),
    ...settled('attempt', history.planAttempts, (one) =>
      describePlanAttempt(one, money, noAnswer(one)),
    ),
    ...history.disputes.flatMap((dispute) => disputeEntries(dispute, money, zone)),
    ...history.refunds.flatMap((refund, index) =>
      refundEntries(history, refund, `refund ${history.earlier_refunds + index + 1}`, money),
    ),
  ]);
}

/** The sort is stable: entries at the same moment keep their order, with causes first. */
export const inOrder = (entries: TimelineEntry[]) =>
  entries.sort((one, other) => (one.at < other.at ? -1 : one.at > other.at ? 1 : 0));

/**
 * The sentence about a request that the gateway has not answered; null if the answer is known or no
 * request was sent. The service asks again when the row is due.
 */
function explainNoAnswer(
  { instalments }: CheckoutHistory,
  one: PaymentAttempt | Collection,
  zone: string,
): string | null {
  if ((one.status !== 'starting' && one.status !== 'open') || one.asked_at === null) return null;
  const { due_at = null } =
    'due_at' in one ? one : (instalments.find(({ number }) => number === one.instalment) ?? {});
  const timeOf = (at: Timestamp) =>
    Temporal.Instant.from(at).toZonedDateTimeISO(zone).toPlainTime().toString().slice(0, 5);
  const first = timeOf(one.created_at);
  const again =
    due_at === null || timeOf(due_at) === first ? 'in a moment' : `at ${timeOf(due_at)}`;
  return `The bank was asked at ${first} and has not answered yet. It will be asked again ${again}. You need not do anything.`;
}

/**
 * The sentence about the newest request of a checkout that the gateway has not answered, or null.
 */
export function explainWaiting(history: CheckoutHistory): string | null {
  const { attempts, planAttempts, collections, merchant } = history;
  const asked = [...attempts, ...planAttempts, ...collections];
  const said = asked.map((one) => explainNoAnswer(history, one, merchant.territory.time_zone));
  return said.findLast((one) => one !== null) ?? null;
}

type Money = (cents: number) => string;

const describeCard = (brand: string | null, last4: string) =>
  `${brandName(brand) || 'card'} ending ${last4}`;

const whyDeclined = (reason: string | null) =>
  reason === null ? '' : `: ${reason.replaceAll('_', ' ')}`;

function describeAttempt(attempt: PaymentAttempt, money: Money, noAnswer: string | null): string {
  const { number, amount, number_of_payments, card_brand, card_last4, decline_reason } = attempt;
  const place = number_of_payments === 1 ? '' : `, the first of ${number_of_payments} payments`;
  const card = card_last4 === null ? '' : `, with ${describeCard(card_brand, card_last4)}`;
  const what = `attempt ${number} to pay ${money(amount)}${place}${card}`;
  const why = whyDeclined(decline_reason);
  return noAnswer === null ? `${what}, ${attempt.status}${why}` : `${what}. ${noAnswer}`;
}

function describePlanAttempt(
  attempt: PaymentAttempt,
  money: Money,
  noAnswer: string | null,
): string {
  const { number, purpose, instalments, amount, card_brand, card_last4, decline_reason } = attempt;
  const card = card_last4 === null ? '' : ` with ${describeCard(card_brand, card_last4)}`;
  const why = whyDeclined(decline_reason);
  const what =
    purpose === 'plan_payment'
      ? `pay ${money(amount)} (${instalments.length === 1 ? 'payment' : 'payments'} ${instalments.join(', ')})`
      : 'replace the card';
  const said = `the shopper's attempt ${number} to ${what}${card}`;
  return noAnswer === null ? `${said}, ${attempt.status}${why}` : `${said}. ${noAnswer}`;
}

function describeCollection(collection: Collection, money: Money, noAnswer: string | null): string {
  const { instalment, status, decline_reason } = collection;
  const kind = collection.kind === 'shopper' ? 'payment by the shopper' : collection.kind;
  const why = `${whyDeclined(decline_reason)}${describeWait(collection)}`;
  const what = `payment ${instalment}, ${kind} of ${money(collection.amount)}`;
  return noAnswer === null ? `${what}, ${status}${why}` : `${what}. ${noAnswer}`;
}

/**
 * The sentence about how long the card network wants us to wait before a retry. Empty if the
 * network names no time, or forbids a retry.
 */
function describeWait({ wait_hours, may_retry }: Collection): string {
  if (wait_hours === null || may_retry === false) return '';
  const isDays = wait_hours % 24 === 0;
  const count = isDays ? wait_hours / 24 : wait_hours;
  const unit = isDays ? 'day' : 'hour';
  return `. The card network asks us to wait ${plural(count, unit)} before a retry`;
}

function disputeEntries(dispute: Dispute, money: Money, zone: string): TimelineEntry[] {
  const { instalment, status, amount, reason, submitted_at, closed_at } = dispute;
  const { asked_at, asked_until, supplied_at } = dispute;
  const day = (at: Timestamp) =>
    writeDate(Temporal.Instant.from(at).toZonedDateTimeISO(zone).toPlainDate().toString(), 'en');
  const entry = (at: Timestamp, text: string, tone: TimelineEntry['tone']) =>
    entryOf('dispute', at, `payment ${instalment}, dispute of ${money(amount)} ${text}`, tone);
  return [
    entry(dispute.created_at, `opened: ${reason.replaceAll('_', ' ')}`, 'bad'),
    ...(asked_at === null || asked_until === null
      ? []
      : [entry(asked_at, `sent to the merchant, evidence due by ${day(asked_until)}`, 'waiting')]),
    ...(supplied_at === null
      ? []
      : [entry(supplied_at, 'has evidence from the merchant', 'neutral')]),
    ...(submitted_at === null ? [] : [entry(submitted_at, 'answered with evidence', 'waiting')]),
    ...(closed_at === null ? [] : [entry(closed_at, status, status === 'lost' ? 'bad' : 'good')]),
  ];
}

type RefundEvents = {
  refund: RefundRequest;
  /** The people or operators who took this action on the refund, in chronological order. */
  actorsOf(action: string): string[];
  entry(
    at: Timestamp,
    text: string,
    tone?: TimelineEntry['tone'],
    by?: string | null,
  ): TimelineEntry;
  money: Money;
  booked: Posting[];
};

/**
 * The history of one refund. Its row holds only the latest state, but the postings show the earlier
 * ones. Each retry begins a new round. A round reserves the amount when the round begins, and
 * releases the amount when the round ends.
 */
function refundEntries(
  { postings, parts, actions, show }: CheckoutHistory,
  refund: RefundRequest,
  name: string,
  money: Money,
): TimelineEntry[] {
  const events: RefundEvents = {
    refund,
    actorsOf: (action) =>
      actions
        .filter((one) => one.subject_id === refund.id && one.action === action)
        .map(({ operator, person_id }) => show(person_id, operator).name),
    entry: (at, text, tone, by) => entryOf('refund', at, `${name} ${text}`, tone, by),
    money,
    booked: postings.filter(({ refund_id }) => refund_id === refund.id),
  };
  const own = parts.filter(({ refund_id }) => refund_id === refund.id);
  return [
    ...reviewEntries(events),
    ...own.flatMap((part) => partEntries(events, part)),
    ...endEntries(events),
  ];
}

const retriesOf = ({ booked }: RefundEvents) =>
  booked.filter(({ kind }) => kind === 'reserved').slice(1);

function reviewEntries(events: RefundEvents): TimelineEntry[] {
  const { refund, actorsOf, entry, money } = events;
  const requester = refund.requested_by_name;
  const entries = [
    entry(refund.created_at, `requested, ${money(refund.amount)}`, 'neutral', requester),
  ];
  if (refund.first_approved_at !== null) {
    const by = refund.first_approved_by_name;
    entries.push(entry(refund.first_approved_at, `approved first by ${by}`, 'neutral', by));
  }
  if (refund.approved_at !== null) {
    const operator = actorsOf('refunds approve').at(-1) ?? requester;
    const how = operator === null ? 'automatically' : `by ${operator}`;
    entries.push(entry(refund.approved_at, `approved ${how}`, 'neutral', operator));
  }
  for (const [index, { at }] of retriesOf(events).entries()) {
    const by = actorsOf('refunds retry')[index] ?? 'an operator';
    entries.push(entry(at, `retried by ${by}`, 'neutral', by));
  }
  return entries;
}

/** The entries for one part, and for its return by the card network. */
function partEntries({ booked, entry, money }: RefundEvents, part: RefundPart): TimelineEntry[] {
  const { instalment, settled_at, keyed_at } = part;
  const at = settled_at ?? keyed_at;
  const ofPart = booked.filter((one) => one.instalment === instalment);
  const isReturned = ofPart.some(({ kind, at }) => kind === 'returned' && at === settled_at);
  if (!isReturned) return [entry(at, describePart(part, money), toneOf(part.status))];
  const text = `has ${money(part.amount)} of payment ${instalment} returned by the card network`;
  // The card network returned this part after it was refunded, and its row shows only the return.
  const done = ofPart.find(({ kind, at }) => kind === 'refunded' && at >= keyed_at);
  const isDone = describePart({ ...part, status: 'done' }, money);
  return [...(done ? [entry(done.at, isDone, 'good')] : []), entry(at, text, 'bad')];
}

function endEntries(events: RefundEvents): TimelineEntry[] {
  const { refund, actorsOf, entry, booked } = events;
  const retries = retriesOf(events);
  const returns = booked.filter(({ kind }) => kind === 'returned');
  const ends = booked.filter(({ kind }) => kind === 'released');
  return ends.flatMap(({ at }, index) => {
    const until = retries[index]?.at;
    const isLast = until === undefined;
    const returned = returns.find((one) => one.at >= at && (isLast || one.at < until));
    const reason = isLast && refund.reason !== null ? `: ${refund.reason}` : '';
    if (returned || (isLast && refund.status === 'complete')) {
      const failed = returned ? [entry(returned.at, `failed${reason}`, 'bad')] : [];
      return [entry(at, 'complete', 'good'), ...failed];
    }
    const [operator = null] = actorsOf('refunds decline');
    const how = operator === null ? 'failed' : `declined by ${operator}`;
    return [entry(at, `${how}${reason}`, 'bad', operator)];
  });
}

function describePart({ kind, status, instalment, amount }: RefundPart, money: Money): string {
  const what = {
    cancel: `${money(amount)} off payment ${instalment}`,
    hold: `${money(amount)} off the hold for payment ${instalment}`,
    card: `${money(amount)} of payment ${instalment} back to the card`,
  }[kind];
  const how = { open: ', in flight', done: '', failed: ', refused', put_back: ', put back' }[
    status
  ];
  return `takes ${what}${how}`;
}
