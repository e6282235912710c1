import type { Authentication, DeclineReason, SchemeData } from '#gateway/gateway.ts';
import type { GatewayName } from '#gateway/gateway-name.ts';
import { nextRetryAt } from '#gateway/retry-times.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { derivedId } from '#platform/shared/derived-id.ts';
import type { PlannedPayment } from '#purchases/instalments/instalment.ts';

/**
 * The purpose of a shopper's attempt.
 *
 * `first_payment`: pays a checkout. The gateway holds the first payment, and stores the card if
 * others follow. A hold that comes too late is voided.
 *
 * `plan_payment`: pays payments of the plan that are late, or pays them before their dates. The
 * gateway takes the amount at once, so nothing can be voided afterwards.
 *
 * `new_card`: replaces the stored card. The gateway verifies the card and takes nothing.
 */
export const attemptPurposes = ['first_payment', 'plan_payment', 'new_card'] as const;
export type AttemptPurpose = (typeof attemptPurposes)[number];

/**
 * The status of an attempt. Only `record-outcome.ts` ends an attempt.
 *
 * `starting`: committed before the gateway is called. The request may have been sent.
 *
 * `begun`: the gateway knows the attempt, and the shopper enters the card in its session.
 *
 * `challenged`: the shopper's bank challenges them. The gateway reports how the challenge ends.
 *
 * `authorised`: the end of a first payment that is the checkout's outcome.
 *
 * `charged`: the end of a `plan_payment` that succeeded. The payments that it covers are collected.
 *
 * `verified`: the end of an attempt with a new card, which is now the stored card.
 *
 * `declined`: the end of an attempt for which the gateway took nothing and holds nothing. An
 * attempt that was voiding also ends so if its card had been declined before.
 *
 * `refused`: the end of a first payment whose checkout the gateway will never accept.
 *
 * `voiding`: the attempt ran out of time, the shopper left it for another one or cancelled, or the
 * gateway refused the request. Nothing more is sent, and the gateway is asked to end what was sent.
 * The gateway may answer that it has already taken a payment of the plan or verified a card: then
 * the attempt is `charged` or `verified` after all.
 *
 * `voided`: any other end. The attempt was voiding, or the gateway reports that its payment is
 * voided.
 */
export const attemptStatuses = [
  'starting',
  'begun',
  'challenged',
  'authorised',
  'charged',
  'verified',
  'declined',
  'refused',
  'voiding',
  'voided',
] as const;
export type AttemptStatus = (typeof attemptStatuses)[number];

/** The statuses of an attempt that has neither ended nor begun to be voided. */
export const live = ['starting', 'begun', 'challenged'] as const;

/** The statuses that a worker still has to move. */
export const unsettled = [...live, 'voiding'] as const;

/** Whether the shopper has to enter the card in a session, or to pass their bank's challenge. */
export const waitsForShopper = (attempt: Pick<PaymentAttempt, 'status'> | null | undefined) =>
  attempt?.status === 'begun' || attempt?.status === 'challenged';

/** The shopper's consent to later payments: its wording, the amounts and the dates. */
export type Consent = { version: string; payments: PlannedPayment[] };

/** The columns up to `written_id` are written once, when the attempt is opened. */
export type PaymentAttempt = {
  merchant_id: string;
  id: string;
  checkout_id: string;
  gateway: GatewayName;
  purpose: AttemptPurpose;
  /** Counts the first payments of a checkout. The attempts on its plan are counted separately. */
  number: number;
  /** The numbers of the payments that the attempt pays; empty for a new card. */
  instalments: number[];
  /** The term of the checkout, or for a first payment the term that the shopper chose. */
  number_of_payments: number;
  amount: number;
  currency: string;
  uses_stored_card: boolean;
  /** If set, the card is stored once the attempt has succeeded, and replaces any earlier one. */
  consent: Consent | null;
  created_at: Timestamp;
  /** Ids in this column ascend in the order of writing. */
  written_id: string;

  status: AttemptStatus;
  /** The card's token until no request needs it, or the secret of the session while it is open. */
  sealed_card_token: Buffer | null;
  /** The IP network of the shopper who began the attempt. Null once the attempt has ended. */
  sealed_network: Buffer | null;
  /**
   * The gateway's reference for the shopper. It is null until an attempt of the checkout is first
   * sent, and is then written together with `asked_at`. Later attempts have it from the start.
   */
  customer_ref: string | null;
  /** The gateway's payment, or its verification of the card. */
  payment_ref: string | null;
  /** The URL of the bank's challenge, if there was one, until the attempt has ended. */
  challenge_url: string | null;
  /** The stored card that is charged, or the card that was stored. */
  card_ref: string | null;
  card_brand: string | null;
  card_last4: string | null;
  /** The last month in which the card works, `2027-03`. */
  card_expires: string | null;
  /**
   * How the bank authenticated the shopper. Null if the bank was not asked, or if the attempt has
   * not succeeded.
   */
  authentication: Authentication | null;
  /** The card network's ids of the payment. */
  scheme: SchemeData | null;
  /** When the hold of a first payment lapses. */
  capture_before: Timestamp | null;
  decline_reason: DeclineReason | null;
  may_retry: boolean | null;
  /** The codes of the gateway and of the card network. */
  decline_code: string | null;
  network_decline_code: string | null;
  /** The key of the card that was declined (`cardKeyOf`). */
  card_key: string | null;
  /** When the request was last sent, on the real clock; null if it never was. */
  asked_at: Timestamp | null;
  settled_at: Timestamp | null;
  due_at: Timestamp | null;
  attempts: number;
  lease: string | null;
  leased_until: Timestamp | null;
};

/** The columns that may change after the attempt was opened. */
export type AttemptChanges = Partial<
  Omit<
    PaymentAttempt,
    | 'merchant_id'
    | 'id'
    | 'checkout_id'
    | 'gateway'
    | 'purpose'
    | 'number'
    | 'instalments'
    | 'number_of_payments'
    | 'amount'
    | 'currency'
    | 'uses_stored_card'
    | 'consent'
    | 'created_at'
    | 'written_id'
  >
>;

type Named = Pick<PaymentAttempt, 'purpose' | 'checkout_id' | 'number'>;

/** The gateway knows the attempt by this id, even after a restore (decision 0049). */
export const attemptId = ({ purpose, checkout_id, number }: Named) =>
  derivedId(
    purpose === 'first_payment' ? 'payment attempt' : 'shopper attempt',
    checkout_id,
    number,
  );

/** The key of the attempt's request. An attempt always uses the same key (decision 0049). */
export const requestKey = ({ purpose, checkout_id, number }: Named) =>
  `${checkout_id}:${purpose === 'first_payment' ? 'p' : 's'}${number}`;

/** Binds a sealed card token to its attempt, so that it opens for no other attempt. */
export const cardTokenContext = (attempt: { id: string }) => `payment_attempts ${attempt.id}`;

/** Binds a sealed network to its attempt. */
export const networkContext = (attempt: { id: string }) => `${cardTokenContext(attempt)} network`;

export const isFirstPayment = ({ purpose }: Pick<PaymentAttempt, 'purpose'>) =>
  purpose === 'first_payment';

export const isOnPlan = ({ purpose }: Pick<PaymentAttempt, 'purpose'>) =>
  purpose !== 'first_payment';

/**
 * Whether the attempt may still succeed. A unique index allows one such attempt per checkout. A
 * first payment that is being voided cannot succeed: the shopper may begin another one at once.
 */
export const isInFlight = ({ purpose, status }: Pick<PaymentAttempt, 'purpose' | 'status'>) =>
  (live as readonly string[]).includes(status) ||
  (status === 'voiding' && purpose !== 'first_payment');

/**
 * A first payment that began before its checkout expired may take this much longer (decision 0011).
 * On the plan page a shopper has this long to finish an attempt (decision 0085).
 */
export const finishMinutes = 15;

/**
 * After this time the attempt is not sent. If the gateway already has it, whatever can be voided is
 * voided.
 */
export function endsAt(
  attempt: Pick<PaymentAttempt, 'purpose' | 'created_at'>,
  checkout: { expires_at: Timestamp },
): Temporal.Instant {
  const begin = isFirstPayment(attempt) ? checkout.expires_at : attempt.created_at;
  return Temporal.Instant.from(begin).add({ minutes: finishMinutes });
}

export const isOver = (
  attempt: Pick<PaymentAttempt, 'purpose' | 'created_at'>,
  checkout: { expires_at: Timestamp },
  now: Temporal.Instant,
) => Temporal.Instant.compare(now, endsAt(attempt, checkout)) > 0;

/**
 * We look up the attempt once more this long before its end, to find what the bank approved in
 * time.
 */
const lastLookUpSeconds = 5;

/**
 * When to look up a session or a challenge next. Usually the shopper's browser returns first. If it
 * does not return, a look-up finds the outcome about a minute later. We look once more shortly
 * before the attempt's end, and again right after it to void what is left.
 */
export function nextShopperLookUp(
  now: Temporal.Instant,
  attempts: number,
  end: Temporal.Instant,
): Temporal.Instant {
  const earlier = (a: Temporal.Instant, b: Temporal.Instant) =>
    Temporal.Instant.compare(a, b) < 0 ? a : b;
  const lookUp = nextRetryAt(now, Math.min(attempts + 2, 4));
  const last = end.subtract({ seconds: lastLookUpSeconds });
  if (Temporal.Instant.compare(now, last) < 0) return earlier(lookUp, last);
  const over = end.add({ milliseconds: 1 });
  return Temporal.Instant.compare(now, over) < 0 ? earlier(lookUp, over) : lookUp;
}
