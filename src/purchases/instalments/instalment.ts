import { amountRefused } from '#gateway/amount-refused.ts';
import type { Decline, DeclineReason, SchemeData } from '#gateway/gateway.ts';
import type { GatewayName } from '#gateway/gateway-name.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { derivedId } from '#platform/shared/derived-id.ts';

/**
 * One payment of a successful checkout. The first is `authorised` (held) on the page and
 * `collected` by its capture. The others are `scheduled` until they are `collected`. If the hold
 * lapses, the first payment becomes `scheduled` and is charged like the others. A payment that
 * could not be collected is `overdue`. A payment that a refund took entirely before it was
 * collected is `cancelled`.
 *
 * The payments of a checkout sum to its amount. `reduced` is what refunds took before the payment
 * was collected, so `amount - reduced` is collected.
 */
export const instalmentStatuses = [
  'authorised',
  'scheduled',
  'collected',
  'overdue',
  'cancelled',
] as const;
export type InstalmentStatus = (typeof instalmentStatuses)[number];

export type Instalment = {
  merchant_id: string;
  checkout_id: string;
  gateway: GatewayName;
  number: number;
  amount: number;
  currency: string;
  /** A local date in the merchant's territory. */
  due_on: string;
  status: InstalmentStatus;
  reduced: number;
  payment_ref: string | null;
  collected_at: Timestamp | null;
  declines: number;
  due_at: Timestamp | null;
  /**
   * Whether collecting is paused: a refund is in progress, a dispute or a block holds up the
   * checkout, or the shopper is paying with the attempt `shopper_attempt`. A refund and an attempt
   * are never in progress at the same time.
   */
  paused: boolean;
  shopper_attempt: string | null;
  attempts: number;
  lease: string | null;
  leased_until: Timestamp | null;
};

/**
 * One request to the gateway for one payment. A shopper who pays several at once makes one request,
 * which has a row for each payment. A row is `open` before the gateway is called and until its
 * outcome is known: `collected`, `declined`, the hold has `lapsed`, or the request never arrived
 * (`lost`). Unique indexes allow one open and one collected row per payment.
 */
export const collectionStatuses = ['open', 'collected', 'declined', 'lapsed', 'lost'] as const;
export type CollectionStatus = (typeof collectionStatuses)[number];

/**
 * The source of the money: the hold, the stored card without the shopper, or a payment that the
 * shopper makes on the plan page.
 */
export const collectionKinds = ['capture', 'charge', 'shopper'] as const;
export type CollectionKind = (typeof collectionKinds)[number];

export type Collection = {
  merchant_id: string;
  id: string;
  checkout_id: string;
  instalment: number;
  number: number;
  kind: CollectionKind;
  status: CollectionStatus;
  amount: number;
  currency: string;
  /**
   * The stored card that the request was opened with. Null for a capture, for a shopper's payment
   * with another card, for a charge that a restored database had lost, and if no card was stored.
   */
  card_ref: string | null;
  customer_ref: string | null;
  /** Recognises a card that is entered again. Null for a capture, or if the key is not known. */
  card_key: string | null;
  payment_ref: string | null;
  decline_reason: DeclineReason | null;
  may_retry: boolean | null;
  /** The codes of the gateway and of the card network. */
  decline_code: string | null;
  network_decline_code: string | null;
  /** How many hours the card network asked to wait after a decline; null if it did not ask. */
  wait_hours: number | null;
  /**
   * The card network's ids of a collected charge, if the gateway returned any. Null for the other
   * kinds: the shopper's attempt has the ids.
   */
  scheme: SchemeData | null;
  created_at: Timestamp;
  /** When the request was last sent, on the real clock. */
  asked_at: Timestamp;
  settled_at: Timestamp | null;
};

/**
 * The id under which the gateway knows the request. It is derived and not random, so that a service
 * whose database was restored can recognise requests that it has lost (decision 0049).
 */
export const collectionId = (checkout_id: string, instalment: number, number: number) =>
  derivedId('collection', checkout_id, instalment, number);

/** How operators name a payment: its checkout and its number. */
export const instalmentId = (one: Pick<Instalment, 'checkout_id' | 'number'>) =>
  `${one.checkout_id}:${one.number}`;

/** One payment of a plan: its amount and its local date. */
export type PlannedPayment = { number: number; amount: number; due_on: string };

/**
 * Splits an amount into monthly payments (decision 0027). Cents that do not divide go to the first.
 * Each date is counted from the purchase date and not from the date before it, so that a purchase
 * on the 31st returns to the 31st after a shorter month.
 */
export function planPayments(
  amount: number,
  number_of_payments: number,
  purchaseDate: Temporal.PlainDate,
): PlannedPayment[] {
  const each = Math.floor(amount / number_of_payments);
  const first = amount - each * (number_of_payments - 1);
  const days = sameDays(purchaseDate, number_of_payments);
  return Array.from({ length: number_of_payments }, (_, index) => ({
    number: index + 1,
    amount: index === 0 ? first : each,
    due_on: days[index] as string,
  }));
}

/**
 * The due dates for the most recent purchase date. They are kept because most sales are made today,
 * and a page shows many plans.
 */
let lastDays: { date: Temporal.PlainDate; days: string[] } | null = null;

/** The date and the same day of the following months: at least `months` dates in all. */
function sameDays(date: Temporal.PlainDate, months: number): string[] {
  if (!lastDays?.date.equals(date)) lastDays = { date, days: [] };
  const { days } = lastDays;
  while (days.length < months) days.push(date.add({ months: days.length }).toString());
  return days;
}

/** A payment with this many declines in the last 24 hours is not charged to a stored card. */
export const declinesPerDayMax = 4;

/**
 * After these declines the same card may still be charged: the card network renews an expired card,
 * and the shopper can authenticate a payment on the plan page.
 */
const curableDeclines: ReadonlySet<string> = new Set(['expired_card', 'authentication_required']);

export type CardDecline = Pick<
  Collection,
  | 'checkout_id'
  | 'instalment'
  | 'card_ref'
  | 'card_key'
  | 'decline_reason'
  | 'decline_code'
  | 'may_retry'
  | 'wait_hours'
  | 'created_at'
  | 'settled_at'
>;

type Card = Pick<CardDecline, 'checkout_id' | 'card_ref' | 'card_key'>;

/** The code of a decline that is recorded without asking the bank. */
export const notAsked = 'not_asked';

/**
 * The `card_key` to store with a request: the one that the decline reports, or else the one that
 * the request was opened with.
 */
export const declinedKey = (
  { card_key }: Pick<Collection, 'card_key'>,
  decline: Pick<Decline, 'card_key'> | null,
): string | null => (decline?.card_key === undefined ? card_key : decline.card_key);

export const forbidsCard = ({
  decline_reason,
  decline_code,
  may_retry,
}: Pick<CardDecline, 'decline_reason' | 'decline_code' | 'may_retry'>): boolean =>
  may_retry === false &&
  !curableDeclines.has(decline_reason ?? '') &&
  decline_code !== amountRefused.code;

/**
 * The declines of a card for its checkout. A card that was entered again has the same key, and at
 * some gateways another reference.
 */
const declinesOf = (declines: CardDecline[], { checkout_id, card_ref, card_key }: Card) =>
  declines.filter(
    (one) =>
      one.checkout_id === checkout_id &&
      ((card_ref !== null && one.card_ref === card_ref) ||
        (card_key !== null && one.card_key === card_key)),
  );

/** The decline of a checkout that forbids every further charge of a card, or null. */
export const findForbiddingForGood = (declines: CardDecline[], card: Card): CardDecline | null =>
  declinesOf(declines, card).find(forbidsCard) ?? null;

/**
 * The decline that forbids charging a stored card for payments of its checkout now, or null. It
 * either forbids every further charge of the card (`isForGood`), or is the oldest of at least
 * `declinesPerDayMax` declines of one payment in the last 24 hours, with any card. The card schemes
 * fine merchants that retry anyway (decision 0027).
 */
export function findForbidding(
  declines: CardDecline[],
  card: Card,
  numbers: number[],
  now: Temporal.Instant,
): { decline: CardDecline; isForGood: boolean } | null {
  const forGood = findForbiddingForGood(declines, card);
  if (forGood) return { decline: forGood, isForGood: true };
  const since = now.subtract({ hours: 24 });
  for (const number of numbers) {
    const ofToday = declines.filter(
      ({ checkout_id, instalment, created_at }) =>
        checkout_id === card.checkout_id &&
        instalment === number &&
        Temporal.Instant.compare(Temporal.Instant.from(created_at), since) > 0,
    );
    const [first] = ofToday;
    if (first && ofToday.length >= declinesPerDayMax) return { decline: first, isForGood: false };
  }
  return null;
}

/**
 * The time until which the card network asked not to charge this card again; null if that time has
 * passed, if the network did not ask, or if the card is forbidden for good.
 */
export function waitsUntil(
  declines: CardDecline[],
  card: Card,
  now: Temporal.Instant,
): Temporal.Instant | null {
  if (findForbiddingForGood(declines, card)) return null;
  const until = declinesOf(declines, card)
    .flatMap(({ settled_at, wait_hours }) =>
      settled_at === null || wait_hours === null
        ? []
        : [Temporal.Instant.from(settled_at).add({ hours: wait_hours })],
    )
    .sort(Temporal.Instant.compare)
    .at(-1);
  return until && Temporal.Instant.compare(now, until) < 0 ? until : null;
}

// When payments are collected, in the local time of the merchant's territory (decision 0027).

export const captureTime = Temporal.PlainTime.from('02:00');
export const collectionTime = Temporal.PlainTime.from('08:00');

/** The hold is captured in the night after the purchase. */
export function capturesAt(due_on: string, timeZone: string): Temporal.Instant {
  const day = Temporal.PlainDate.from(due_on).add({ days: 1 });
  return day.toZonedDateTime({ timeZone, plainTime: captureTime }).toInstant();
}

export function collectsAt(due_on: string, timeZone: string): Temporal.Instant {
  const day = Temporal.PlainDate.from(due_on);
  return day.toZonedDateTime({ timeZone, plainTime: collectionTime }).toInstant();
}

/** The next local 08:00 after an instant. */
export function nextCollectionTime(now: Temporal.Instant, timeZone: string): Temporal.Instant {
  const today = now.toZonedDateTimeISO(timeZone).toPlainDate();
  const at = collectsAt(today.toString(), timeZone);
  if (Temporal.Instant.compare(at, now) > 0) return at;
  return collectsAt(today.add({ days: 1 }).toString(), timeZone);
}

/** A declined payment is retried this many days after its due date. */
export const retryDays = [1, 3, 7];

/**
 * When a payment is retried after this many declines (`retryDays`), or null after the last retry.
 * If the planned day has come or passed, the retry keeps the planned number of days between the two
 * attempts, counted from now, so that retries do not accumulate after an outage of ours or a lapsed
 * hold. A retry is never earlier than the card network asks for. If the card network's time is the
 * later one, the retry comes exactly then: a decline at 08:00 is recorded a moment later, so the
 * first 08:00 that is 24 hours later would be almost two days away.
 */
export function retriesAt(
  due_on: string,
  declines: number,
  now: Temporal.Instant,
  timeZone: string,
  waitHours = 0,
): Temporal.Instant | null {
  const days = retryDays[declines - 1];
  if (days === undefined) return null;
  const planned = Temporal.PlainDate.from(due_on).add({ days });
  const today = now.toZonedDateTimeISO(timeZone).toPlainDate();
  const isPast = Temporal.PlainDate.compare(planned, today) <= 0;
  const pause = days - (retryDays[declines - 2] ?? 0);
  const ours = collectsAt((isPast ? today.add({ days: pause }) : planned).toString(), timeZone);
  const allowed = now.add({ hours: waitHours });
  return Temporal.Instant.compare(allowed, ours) <= 0 ? ours : allowed;
}
