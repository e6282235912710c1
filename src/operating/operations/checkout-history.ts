import { findMerchant } from '#merchants/merchant.sql.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Scope } from '#operating/search/scope.sql.ts';
import { findRowById } from '#operating/search/search.sql.ts';
import type { Database } from '#platform/database/database.ts';
import { snapshot } from '#platform/database/transaction.ts';
import type { Clock, Timestamp } from '#platform/shared/clock.ts';
import { showMoney } from '#platform/shared/money.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { findCheckoutCallback } from '#purchases/callbacks/callback.sql.ts';
import type { Callback, CallbackAttempt } from '#purchases/callbacks/callback.ts';
import { findCheckout, findMove } from '#purchases/checkouts/checkout.sql.ts';
import type { Checkout, CheckoutStatus } from '#purchases/checkouts/checkout.ts';
import type { Dispute } from '#purchases/disputes/dispute.ts';
import { findStoredCardFace, listInstalments } from '#purchases/instalments/instalment.sql.ts';
import type { Collection, Instalment } from '#purchases/instalments/instalment.ts';
import type { Message, MessageKind } from '#purchases/messages/message.ts';
import {
  isFirstPayment,
  isOnPlan,
  type PaymentAttempt,
} from '#purchases/payments/payment-attempt.ts';
import type { RefundPart, RefundRequest } from '#purchases/refunds/refund.ts';
import { listOperatorActions, type OperatorAction } from '#record/actions/operator-action.sql.ts';
import { listPersonNames } from '#record/actions/person-names.sql.ts';
import { balancesOf, movementKinds, type Posting } from '#record/ledger/posting.ts';
import type { Note } from '#record/notes/note.sql.ts';
import { withoutStaff } from './callbacks.ts';
import { withAuthors } from './checkout-pages.ts';
import { countCheckoutRefunds, type HistoryTable, listNewest, sumPostings } from './history.sql.ts';
import { listPartsOf } from './refunds.sql.ts';
import { peopleOf, withNames } from './refunds.ts';

/** The rows that belong to one checkout. */
export type CheckoutHistory = {
  merchant: Merchant;
  checkout: Checkout;
  move: { to_status: CheckoutStatus; at: Timestamp } | null;
  /** The first payments. */
  attempts: PaymentAttempt[];
  callback: Callback | null;
  callback_attempts: CallbackAttempt[];
  instalments: Instalment[];
  collections: Collection[];
  /** The shopper's attempts on the plan, after paying. */
  planAttempts: PaymentAttempt[];
  refunds: RefundRequest[];
  /** How many refunds came before those. */
  earlier_refunds: number;
  parts: RefundPart[];
  postings: Posting[];
  /** The sums of all postings by account. */
  balances: ReturnType<typeof balancesOf>;
  messages: Message[];
  card: { brand: string | null; last4: string | null } | null;
  /** Operators' actions on the checkout and its refunds, the oldest first, on the real clock. */
  actions: OperatorAction[];
  notes: Note[];
  disputes: Dispute[];
  /** The names of the people who acted, by their ids. */
  names: Map<string, string>;
  /** The kinds of rows that were cut to the newest. */
  cut: HistoryTable[];
};

const noLimits = { rows: 1_000_000_000, notes: 1_000_000_000 };

/**
 * Reads a checkout and its rows in one snapshot: the newest up to the limits, or all. Null if there
 * is no such checkout.
 */
export async function readCheckoutHistory(
  deps: { database: Database; clock: Clock },
  scope: Scope,
  id: string,
  limits = noLimits,
): Promise<CheckoutHistory | null> {
  return await snapshot(deps, async (db) => {
    const row = isUuid(id) ? await findRowById(db, scope, 'checkouts', id) : null;
    const merchant = row && (await findMerchant(db, deps.clock, row.merchant_id));
    const checkout = merchant && (await findCheckout(db, merchant.id, id));
    if (!checkout) return null;
    const key = { merchant_id: merchant.id, checkout_id: checkout.id };
    const of = [key.merchant_id, key.checkout_id] as const;
    const cut: HistoryTable[] = [];
    const newest = async <Table extends HistoryTable>(
      table: Table,
      owner: { merchant_id: string } & Record<string, string> = key,
      limit = limits.rows,
    ) => {
      const rows = await listNewest(db, table, owner, limit + 1);
      if (rows.length > limit) cut.push(table);
      return rows.slice(-limit);
    };
    const attempts: PaymentAttempt[] = await newest('payment_attempts');
    const callback = await findCheckoutCallback(db, ...of);
    const sent = callback && { merchant_id: merchant.id, callback_id: callback.id };
    const refunds: RefundRequest[] = await newest('refund_requests');
    const disputes: Dispute[] = await newest('disputes');
    const subject_ids = [checkout.id, ...[...refunds, ...disputes].map((one) => one.id)];
    if (callback) subject_ids.push(callback.id);
    const actionsMax = Math.min(limits.rows, 1_000);
    const actions = (await listOperatorActions(db, { subject_ids }, actionsMax)).reverse();
    const notes = await newest('notes', key, limits.notes);
    const acted = actions.map(({ person_id }) => person_id);
    const names = await listPersonNames(db, [...peopleOf(refunds), ...acted]);
    const refundCount = cut.includes('refund_requests')
      ? await countCheckoutRefunds(db, ...of)
      : refunds.length;
    return {
      merchant,
      checkout,
      move: await findMove(db, ...of),
      attempts: attempts.filter(isFirstPayment),
      callback,
      callback_attempts: sent
        ? withoutStaff({ scope }, await newest('callback_attempts', sent))
        : [],
      instalments: await listInstalments(db, key),
      collections: await newest('collections'),
      planAttempts: attempts.filter(isOnPlan),
      refunds: refunds.map((refund) => withNames(refund, names)),
      earlier_refunds: refundCount - refunds.length,
      parts: await listPartsOf(db, refunds),
      postings: (await newest('postings')).sort(byCause),
      balances: balancesOf(await sumPostings(db, ...of)),
      messages: await newest('messages'),
      card: await findStoredCardFace(db, key),
      actions,
      notes: await withAuthors(db, notes),
      disputes,
      names,
      cut,
    };
  });
}

/** Orders the postings of one transaction, whose ids share a millisecond, causes first. */
function byCause(one: Posting, other: Posting): number {
  const keyOf = ({ at, id, kind }: Posting) =>
    `${at} ${id.slice(0, 13)} ${String(movementKinds.indexOf(kind)).padStart(2, '0')}`;
  return keyOf(one) < keyOf(other) ? -1 : 1;
}

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
    | 'note';
  /** The person who did it. */
  by: string | null;
  tone: 'neutral' | 'good' | 'bad' | 'waiting';
};

const tones: Record<string, TimelineEntry['tone']> = {
  successful: 'good',
  authorised: 'good',
  delivered: 'good',
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
  charged: 'payment was taken',
  declined: 'payment was declined',
  card_expires: 'card expires',
  card_replaced: 'card was replaced',
  refunded: 'refund is done',
  plan_finished: 'plan is finished',
  sign_in_link: 'link to the plan',
};

const entryOf = (
  kind: TimelineEntry['kind'],
  at: Timestamp,
  description: string,
  tone: TimelineEntry['tone'] = 'neutral',
  by: string | null = null,
): TimelineEntry => ({ at, description, kind, by, tone });

export const presentMessage = ({ kind, status, settled_at, planned_at }: Message): TimelineEntry =>
  entryOf(
    'message',
    settled_at ?? planned_at,
    `message ${status === 'pending' ? 'to send' : status}: ${subjects[kind]}`,
    toneOf(status),
  );

/** Messages to the shopper and notes of operators, which the command line does not show. */
export function extrasOf({ messages, notes }: CheckoutHistory): TimelineEntry[] {
  return [
    ...messages.map(presentMessage),
    ...notes.map(({ at, name, text }) => entryOf('note', at, text, 'neutral', name)),
  ];
}

/** Lists the events of a checkout in order of time, on the merchant's clock. */
export function timelineOf(history: CheckoutHistory): TimelineEntry[] {
  const { merchant, checkout, move } = history;
  const money = (cents: number) => showMoney(cents, { ...merchant.territory, ...checkout });
  const { number_of_payments } = checkout;
  const term = number_of_payments === null ? '' : `, ${countOf(number_of_payments, 'payment')}`;
  const settled = <
    Row extends { settled_at: Timestamp | null; created_at: Timestamp; status: string },
  >(
    kind: TimelineEntry['kind'],
    rows: Row[],
    describe: (row: Row, money: Money) => string,
  ) =>
    rows.map((row) =>
      entryOf(kind, row.settled_at ?? row.created_at, describe(row, money), toneOf(row.status)),
    );
  return inOrder([
    entryOf('checkout', checkout.created_at, `created, ${money(checkout.amount)}`),
    ...settled('attempt', history.attempts, describeAttempt),
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
    ...settled('collection', history.collections, describeCollection),
    ...settled('attempt', history.planAttempts, describePlanAttempt),
    ...history.disputes.flatMap((dispute) => disputeEntries(dispute, money)),
    ...history.refunds.flatMap((refund, index) =>
      refundEntries(history, refund, `refund ${history.earlier_refunds + index + 1}`, money),
    ),
  ]);
}

/** The sort is stable: entries of the same moment keep their order, causes first. */
export const inOrder = (entries: TimelineEntry[]) =>
  entries.sort((one, other) => (one.at < other.at ? -1 : one.at > other.at ? 1 : 0));

type Money = (cents: number) => string;

const countOf = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;

function describeAttempt(attempt: PaymentAttempt, money: Money): string {
  const { number, amount, number_of_payments, card_brand, card_last4, decline_reason } = attempt;
  const card = card_last4 === null ? '' : ` on ${card_brand ?? 'card'} ${card_last4}`;
  const why = decline_reason === null ? '' : `: ${decline_reason}`;
  return `attempt ${number} to pay ${money(amount)} of ${countOf(number_of_payments, 'payment')}${card}, ${attempt.status}${why}`;
}

function describePlanAttempt(attempt: PaymentAttempt, money: Money): string {
  const { number, purpose, instalments, amount, card_brand, card_last4, decline_reason } = attempt;
  const card = card_last4 === null ? '' : ` with ${card_brand ?? 'card'} ${card_last4}`;
  const why = decline_reason === null ? '' : `: ${decline_reason}`;
  const what =
    purpose === 'plan_payment'
      ? `pay ${money(amount)} (${instalments.length === 1 ? 'payment' : 'payments'} ${instalments.join(', ')})`
      : 'replace the card';
  return `the shopper's attempt ${number} to ${what}${card}, ${attempt.status}${why}`;
}

function describeCollection(collection: Collection, money: Money): string {
  const { instalment, status, decline_reason } = collection;
  const kind = collection.kind === 'shopper' ? 'payment by the shopper' : collection.kind;
  const why = decline_reason === null ? '' : `: ${decline_reason}`;
  const outcome = status === 'open' ? 'outcome not known yet' : status;
  return `payment ${instalment}, ${kind} of ${money(collection.amount)}, ${outcome}${why}`;
}

/** The history of one dispute. */
function disputeEntries(dispute: Dispute, money: Money): TimelineEntry[] {
  const { instalment, status, amount, reason, submitted_at, closed_at } = dispute;
  const entry = (at: Timestamp, text: string, tone: TimelineEntry['tone']) =>
    entryOf('dispute', at, `payment ${instalment}, dispute of ${money(amount)} ${text}`, tone);
  return [
    entry(dispute.created_at, `opened: ${reason.replaceAll('_', ' ')}`, 'bad'),
    ...(submitted_at === null ? [] : [entry(submitted_at, 'answered with evidence', 'waiting')]),
    ...(closed_at === null ? [] : [entry(closed_at, status, status === 'lost' ? 'bad' : 'good')]),
  ];
}

type RefundEvents = {
  refund: RefundRequest;
  /** The people or operators who took an action on the refund, in order of time. */
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
 * The history of one refund. Its row holds only the latest state. The postings hold the earlier
 * ones: every round reserves the amount when it begins and releases it when it ends.
 */
function refundEntries(
  { postings, parts, actions, names }: CheckoutHistory,
  refund: RefundRequest,
  name: string,
  money: Money,
): TimelineEntry[] {
  const events: RefundEvents = {
    refund,
    actorsOf: (action) =>
      actions
        .filter((one) => one.subject_id === refund.id && one.action === action)
        .map(({ operator, person_id }) => names.get(person_id ?? '') ?? operator),
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

/** The request, its approvals and its retries. */
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

/** A part, and its return by the card network. */
function partEntries({ booked, entry, money }: RefundEvents, part: RefundPart): TimelineEntry[] {
  const { instalment, settled_at, keyed_at } = part;
  const at = settled_at ?? keyed_at;
  const ofPart = booked.filter((one) => one.instalment === instalment);
  const isReturned = ofPart.some(({ kind, at }) => kind === 'returned' && at === settled_at);
  if (!isReturned) return [entry(at, describePart(part, money), toneOf(part.status))];
  const text = `has ${money(part.amount)} of payment ${instalment} returned by the card network`;
  // The part was done before the card network returned it. The row holds only the return.
  const done = ofPart.find(({ kind, at }) => kind === 'refunded' && at >= keyed_at);
  const isDone = describePart({ ...part, status: 'done' }, money);
  return [...(done ? [entry(done.at, isDone, 'good')] : []), entry(at, text, 'bad')];
}

/** The end of each round. */
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
    cancel: `${money(amount)} less of payment ${instalment}`,
    hold: `${money(amount)} less of the hold of payment ${instalment}`,
    card: `${money(amount)} of payment ${instalment} back to the card`,
  }[kind];
  const how = { open: ', in flight', done: '', failed: ', refused', put_back: ', put back' }[
    status
  ];
  return `takes ${what}${how}`;
}
