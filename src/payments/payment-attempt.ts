import type { DeclineReason } from '../gateway/gateway.ts';
import { nextLook } from '../gateway/patience.ts';
import type { PlannedPayment } from '../instalments/instalment.ts';
import type { Timestamp } from '../shared/clock.ts';

/**
 * One try to pay a checkout. It is `starting` from before the gateway hears of it, `challenged`
 * while the shopper's bank asks them, and then ends: `authorised` (it is the checkout's outcome),
 * `declined` (nothing is held), or `refused` (the gateway will never take this checkout). A hold
 * that is not the outcome is `voiding` until the gateway has let it go, then `voided`.
 *
 * At most one attempt of a checkout is `starting` or `challenged`, and at most one ever is
 * `authorised`: unique indexes say so.
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

/** What a shopper agreed to for later payments: the wording, the amounts, the dates. */
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
  capture_before: Timestamp | null;
  decline_reason: DeclineReason | null;
  may_retry: boolean | null;
  created_at: Timestamp;
  settled_at: Timestamp | null;
  due_at: Timestamp | null;
  tries: number;
  lease: string | null;
  leased_until: Timestamp | null;
};

export function isInFlight(attempt: { status: AttemptStatus }): boolean {
  return attempt.status === 'starting' || attempt.status === 'challenged';
}

/** Beyond the half hour in which a payment may begin, it may take this long to finish (D17). */
export const finishMinutes = 15;

export function mayFinishUntil(expires_at: Timestamp): Temporal.Instant {
  return Temporal.Instant.from(expires_at).add({ minutes: finishMinutes });
}

/** Before the end of the time to finish, so that what the bank approved in time is found in time. */
const lastLookSeconds = 5;

/**
 * When we ask what became of a challenge. The browser usually tells us first; a merchant whose
 * shopper's did not waits for about a minute. Once more shortly before the end, and when time is
 * up, to let go of it.
 */
export function nextChallengeLook(
  now: Temporal.Instant,
  tries: number,
  end: Temporal.Instant,
): Temporal.Instant {
  const earlier = (a: Temporal.Instant, b: Temporal.Instant) =>
    Temporal.Instant.compare(a, b) < 0 ? a : b;
  const look = nextLook(now, Math.min(tries + 2, 4));
  const last = end.subtract({ seconds: lastLookSeconds });
  if (Temporal.Instant.compare(now, last) < 0) return earlier(look, last);
  const over = end.add({ milliseconds: 1 });
  return Temporal.Instant.compare(now, over) < 0 ? earlier(look, over) : look;
}
