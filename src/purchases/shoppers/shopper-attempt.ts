import type { Authentication, DeclineReason } from '#gateway/gateway.ts';
import { nextRetryAt } from '#gateway/retry-times.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { derivedId } from '#platform/shared/derived-id.ts';
import type { Consent } from '#purchases/payments/payment-attempt.ts';

/**
 * One attempt of a shopper to pay payments of the plan, or to replace the card. It is `starting`
 * before the gateway is called, and `challenged` while the shopper's bank challenges them. Then it
 * ends: `charged` (the payments are collected), `verified` (the card is replaced) or `declined`
 * (nothing was charged or changed). An attempt that ran out of time, or that the shopper left for
 * another one, is `voiding` until the gateway has ended it, then `voided`. The gateway may answer
 * that it came too late: then the attempt is `charged` or `verified` after all.
 *
 * A unique index allows one attempt of a checkout that has not ended.
 */
export const shopperAttemptStatuses = [
  'starting',
  'challenged',
  'charged',
  'verified',
  'declined',
  'voiding',
  'voided',
] as const;
export type ShopperAttemptStatus = (typeof shopperAttemptStatuses)[number];

export const purposes = ['pay', 'replace_card'] as const;
export type Purpose = (typeof purposes)[number];

export type ShopperAttempt = {
  merchant_id: string;
  id: string;
  checkout_id: string;
  number: number;
  purpose: Purpose;
  status: ShopperAttemptStatus;
  /** The numbers of the payments that it covers. Empty: it replaces the card. */
  instalments: number[];
  amount: number;
  currency: string;
  sealed_card_token: Buffer | null;
  uses_stored_card: boolean;
  /** The card replaces the stored one once the attempt has succeeded. */
  keeps_card: boolean;
  consent: Consent | null;
  customer_ref: string;
  /** The gateway's payment, or its verification of the card. */
  payment_ref: string | null;
  challenge_url: string | null;
  /** The stored card that is charged, or the card that was stored. */
  card_ref: string | null;
  card_brand: string | null;
  card_last4: string | null;
  card_expires: string | null;
  /** How the bank authenticated the shopper; null if it was not asked. */
  authentication: Authentication | null;
  decline_reason: DeclineReason | null;
  may_retry: boolean | null;
  /** The codes of the gateway and of the card network. */
  decline_code: string | null;
  network_decline_code: string | null;
  created_at: Timestamp;
  /** When the request was last sent, on the real clock. Null if it never was. */
  asked_at: Timestamp | null;
  settled_at: Timestamp | null;
  due_at: Timestamp | null;
  tries: number;
  lease: string | null;
  leased_until: Timestamp | null;
};

/** The gateway knows the attempt by this id, also after a restore (decision 0049). */
export const shopperAttemptId = (checkout_id: string, number: number) =>
  derivedId('shopper attempt', checkout_id, number);

/** Binds a sealed card token to its attempt: it does not open for another. */
export const cardTokenContext = (attempt: { id: string }) => `shopper_attempts ${attempt.id}`;

export const isInFlight = ({ due_at }: Pick<ShopperAttempt, 'due_at'>) => due_at !== null;

/** A shopper has this long to pass the bank's challenge (decision 0085). */
const actMinutes = 15;

export const endsAt = ({ created_at }: Pick<ShopperAttempt, 'created_at'>) =>
  Temporal.Instant.from(created_at).add({ minutes: actMinutes });

/**
 * Whether the attempt is given up: it is no longer sent, and it is ended if the gateway knows it.
 */
export const isOver = (attempt: Pick<ShopperAttempt, 'created_at'>, now: Temporal.Instant) =>
  Temporal.Instant.compare(now, endsAt(attempt)) >= 0;

/** When we look up a challenge next: usually the shopper's browser returns first. */
export function nextChallengeLookUp(
  attempt: Pick<ShopperAttempt, 'created_at'>,
  now: Temporal.Instant,
  tries: number,
): Temporal.Instant {
  const lookUp = nextRetryAt(now, Math.min(tries + 2, 4));
  const end = endsAt(attempt);
  if (isOver(attempt, now)) return lookUp;
  return Temporal.Instant.compare(lookUp, end) < 0 ? lookUp : end;
}
