import type { DeclineReason } from '../gateway/gateway.ts';
import type { Timestamp } from '../shared/clock.ts';

/**
 * One payment of a successful checkout. The first is `authorised` (held) on the page and
 * `collected` by its capture; the others are `scheduled` until they are `collected`. A hold that
 * lapsed is `scheduled` again, to be charged like the others. A payment that could not be
 * collected is `overdue`; one that a refund took whole before it was collected is `cancelled`.
 *
 * The payments of a checkout sum to its amount. `reduced` is what refunds took of one before it
 * was collected, so that `amount - reduced` is what is asked for.
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
  number: number;
  amount: number;
  currency: string;
  /** A local date of the merchant's territory. */
  due_on: string;
  status: InstalmentStatus;
  reduced: number;
  payment_ref: string | null;
  collected_at: Timestamp | null;
  declines: number;
  due_at: Timestamp | null;
  /** A refund of the checkout is in progress: nothing of it is collected. */
  paused: boolean;
  tries: number;
  lease: string | null;
  leased_until: Timestamp | null;
};

/**
 * One request to the gateway for one payment: `open` from before the gateway hears of it until it
 * is known to have `collected`, been `declined`, found the hold `lapsed`, or never have arrived
 * (`lost`). At most one of a payment is open and at most one collected: unique indexes say so.
 */
export const collectionStatuses = ['open', 'collected', 'declined', 'lapsed', 'lost'] as const;
export type CollectionStatus = (typeof collectionStatuses)[number];

export const collectionKinds = ['capture', 'charge'] as const;
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
  payment_ref: string | null;
  decline_reason: DeclineReason | null;
  may_retry: boolean | null;
  created_at: Timestamp;
  /** When the gateway was asked last, on the real clock. */
  asked_at: Timestamp;
  settled_at: Timestamp | null;
};

/** What an operator calls a payment: its checkout and its number. */
export const instalmentId = (one: Pick<Instalment, 'checkout_id' | 'number'>) =>
  `${one.checkout_id}:${one.number}`;

/** One payment of a plan: what is taken, and on which local date. */
export type PlannedPayment = { number: number; amount: number; due_on: string };

/**
 * Splits an amount into monthly payments (D22). Cents that do not divide go to the first. Each
 * date is counted from the purchase date, not from the date before it, so that a purchase on the
 * 31st comes back to the 31st after a shorter month.
 */
export function planPayments(
  amount: number,
  number_of_payments: number,
  purchaseDate: Temporal.PlainDate,
): PlannedPayment[] {
  const each = Math.floor(amount / number_of_payments);
  const first = amount - each * (number_of_payments - 1);
  return Array.from({ length: number_of_payments }, (_, index) => ({
    number: index + 1,
    amount: index === 0 ? first : each,
    due_on: purchaseDate.add({ months: index }).toString(),
  }));
}

// When a payment is taken: local times of the merchant's territory (D23).

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

/** A declined payment is tried again so many days after its due date. */
export const retryDays = [1, 3, 7];

/**
 * When a payment is tried again after so many declines, or null when that was the last. If its day
 * has passed meanwhile, as many days from now as there would have been between the two tries: an
 * outage of ours, or a hold that lapsed first, does not make them bunch up.
 */
export function retriesAt(
  due_on: string,
  declines: number,
  now: Temporal.Instant,
  timeZone: string,
): Temporal.Instant | null {
  const days = retryDays[declines - 1];
  if (days === undefined) return null;
  const planned = Temporal.PlainDate.from(due_on).add({ days });
  const today = now.toZonedDateTimeISO(timeZone).toPlainDate();
  const isPast = Temporal.PlainDate.compare(planned, today) <= 0;
  const pause = days - (retryDays[declines - 2] ?? 0);
  return collectsAt((isPast ? today.add({ days: pause }) : planned).toString(), timeZone);
}
