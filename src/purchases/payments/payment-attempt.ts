import type { Authentication, DeclineReason } from '#gateway/gateway.ts';
import { nextRetryAt } from '#gateway/retry-times.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { derivedId } from '#platform/shared/derived-id.ts';
import type { PlannedPayment } from '#purchases/instalments/instalment.ts';

/**
 * One attempt to pay a checkout. It is `starting` before the gateway is called, `challenged` while
 * the shopper's bank challenges them, and then ends: `authorised` (it is the checkout's outcome),
 * `declined` (nothing is held), or `refused` (the gateway will never accept this checkout). A hold
 * that is not the outcome is `voiding` until the gateway has voided it, then `voided`.
 *
 * Unique indexes allow one attempt of a checkout that is `starting` or `challenged`, and one that
 * is `authorised`.
 */
export const attemptStatuses = [
  'starting',
  'challenged',
  'authorised',
  'declined',
  'refused',
  'voiding',
  'voided',
] as const;
export type AttemptStatus = (typeof attemptStatuses)[number];

/** The shopper's consent to later payments: its wording, the amounts and the dates. */
export type Consent = { version: string; payments: PlannedPayment[] };

export type PaymentAttempt = {
  merchant_id: string;
  id: string;
  checkout_id: string;
  number: number;
  status: AttemptStatus;
  number_of_payments: number;
  amount: number;
  currency: string;
  sealed_card_token: Buffer | null;
  consent: Consent | null;
  customer_ref: string | null;
  payment_ref: string | null;
  challenge_url: string | null;
  card_ref: string | null;
  card_brand: string | null;
  card_last4: string | null;
  /** The last month in which the card works, `2027-03`. */
  card_expires: string | null;
  /** How the bank authenticated the shopper; null if it was not asked. */
  authentication: Authentication | null;
  capture_before: Timestamp | null;
  decline_reason: DeclineReason | null;
  may_retry: boolean | null;
  /** The codes of the gateway and of the card network. */
  decline_code: string | null;
  network_decline_code: string | null;
  created_at: Timestamp;
  /** When the request to hold the amount was last sent, on the real clock. Null if it never was. */
  asked_at: Timestamp | null;
  settled_at: Timestamp | null;
  due_at: Timestamp | null;
  tries: number;
  lease: string | null;
  leased_until: Timestamp | null;
  /** Ascends with the time of writing; null for attempts of earlier versions. */
  written_id: string | null;
};

/** The gateway knows the attempt by this id, also after a restore (decision 0049). */
export const attemptId = (checkout_id: string, number: number) =>
  derivedId('payment attempt', checkout_id, number);

export function isInFlight(attempt: { status: AttemptStatus }): boolean {
  return attempt.status === 'starting' || attempt.status === 'challenged';
}

/** A payment that began within the half hour may take this much longer (decision 0011). */
export const finishMinutes = 15;

export function mayFinishUntil(expires_at: Timestamp): Temporal.Instant {
  return Temporal.Instant.from(expires_at).add({ minutes: finishMinutes });
}

/** Whether a hold comes too late to be the outcome. */
export function isPastDeadline(
  checkout: { expires_at: Timestamp },
  now: Temporal.Instant,
): boolean {
  return Temporal.Instant.compare(now, mayFinishUntil(checkout.expires_at)) > 0;
}

/** We look once more this long before the deadline, to find what the bank approved in time. */
const lastLookUpSeconds = 5;

/**
 * When we look up a challenge next. Usually the shopper's browser returns first; if it does not,
 * the merchant waits for about a minute. We look once more shortly before the deadline, and right
 * after it to void the hold.
 */
export function nextChallengeLookUp(
  now: Temporal.Instant,
  tries: number,
  end: Temporal.Instant,
): Temporal.Instant {
  const earlier = (a: Temporal.Instant, b: Temporal.Instant) =>
    Temporal.Instant.compare(a, b) < 0 ? a : b;
  const lookUp = nextRetryAt(now, Math.min(tries + 2, 4));
  const last = end.subtract({ seconds: lastLookUpSeconds });
  if (Temporal.Instant.compare(now, last) < 0) return earlier(lookUp, last);
  const over = end.add({ milliseconds: 1 });
  return Temporal.Instant.compare(now, over) < 0 ? earlier(lookUp, over) : lookUp;
}
