import type {
  Authentication,
  CardSession,
  Decline,
  DeclineReason,
  HeldCard,
  RefusedData,
  SchemeData,
  Undecided,
} from '#gateway/gateway.ts';
import { isKeyRemembered, nextRetryAt } from '#gateway/retry-times.ts';
import { released } from '#platform/database/due-work.sql.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { CheckoutStatus } from '#purchases/checkouts/checkout.ts';
import {
  type AttemptChanges,
  type AttemptPurpose,
  type AttemptStatus,
  endsAt,
  isFirstPayment,
  isOver,
  nextShopperLookUp,
  type PaymentAttempt,
  waitsForShopper,
} from './payment-attempt.ts';

// The choices of the attempt machine. They are pure: `ask-gateway.ts` and `record-outcome.ts` carry
// them out.

/** The gateway's answer about an attempt, given at once or when it was asked later. */
export type Answer =
  /** The shopper enters the card in this session. */
  | { outcome: 'begun'; payment_ref: string; session: CardSession }
  /** The amount is held or taken, or the card is verified and stored. */
  | {
      outcome: 'done';
      payment_ref: string;
      card: HeldCard;
      /** Null if the bank was not asked to authenticate. */
      authentication: Authentication | null;
      /** Null if the card network or the gateway gave none. */
      scheme: SchemeData | null;
      /** When the hold lapses; null if nothing is held. */
      capture_before: Timestamp | null;
    }
  | { outcome: 'challenge'; payment_ref: string; url: string }
  | { outcome: 'declined'; payment_ref: string | null; decline: Decline }
  | RefusedData
  | ({ outcome: 'processing'; payment_ref: string } & Undecided)
  | { outcome: 'voided'; payment_ref: string };

/** The answer in the form that is recorded. */
export type Outcome =
  | Exclude<Answer, { outcome: 'begun' }>
  | { outcome: 'begun'; payment_ref: string; sealed_session: Buffer };

/**
 * Whether the gateway declined a card. If the answer has no reference, the gateway may not have
 * been asked at all.
 */
export const isCardDeclined = (answer: Outcome) =>
  answer.outcome === 'declined' && answer.payment_ref !== null;

type Times = { expires_at: Timestamp };

/**
 * The request to the gateway about a claimed attempt.
 *
 * `send`: sends the request itself. The key is always the same, because an earlier request may have
 * arrived.
 *
 * `find`: looks up by the attempt's id whether an earlier request arrived. Nothing is sent
 * (decision 0023).
 *
 * `look_up`: looks up the state of a payment whose reference we have.
 *
 * `end`: voids the payment. The gateway may answer that this came too late.
 */
export type GatewayRequest = 'send' | 'find' | 'look_up' | 'end';

export function chooseRequest(
  attempt: PaymentAttempt,
  checkout: Times,
  now: Temporal.Instant,
): GatewayRequest {
  const { status, payment_ref, created_at } = attempt;
  if (payment_ref !== null) return status === 'voiding' ? 'end' : 'look_up';
  const isYoung = isKeyRemembered(created_at, timestamp(now)) && !isOver(attempt, checkout, now);
  return status === 'starting' && isYoung ? 'send' : 'find';
}

/** An answer after which the gateway may still have something to void. */
export type Live = Extract<Answer, { outcome: 'begun' | 'done' | 'challenge' | 'processing' }>;

/**
 * Whether to void what the gateway has just reported: the attempt is over or being voided, and the
 * bank must not be able to approve the payment later. A hold can be voided too; a charge and a
 * stored card cannot.
 */
export function mustEnd(
  attempt: PaymentAttempt,
  checkout: Times,
  answer: Answer,
  now: Temporal.Instant,
): answer is Live {
  const { outcome } = answer;
  const isLive =
    outcome === 'begun' ||
    outcome === 'challenge' ||
    outcome === 'processing' ||
    (outcome === 'done' && isFirstPayment(attempt));
  return isLive && (attempt.status === 'voiding' || isOver(attempt, checkout, now));
}

/**
 * The new state of an attempt, and its effect on other tables. `succeed` means that the checkout is
 * paid, the payments are collected, or the card is replaced. `fail` releases the payments that the
 * attempt covered. `refuse` makes the checkout invalid.
 */
export type Move = { to: AttemptChanges; effect: 'nothing' | 'succeed' | 'fail' | 'refuse' };

const successes: Record<AttemptPurpose, AttemptStatus> = {
  first_payment: 'authorised',
  plan_payment: 'charged',
  new_card: 'verified',
};

/** The caller holds the lock of the checkout, so the outcome is decided only once. */
export function chooseMove(
  attempt: PaymentAttempt,
  checkout: Times & { status: CheckoutStatus },
  answer: Outcome,
  now: Temporal.Instant,
): Move {
  const at = timestamp(now);
  const isVoiding = attempt.status === 'voiding';
  const ended = {
    ...released,
    ...{ sealed_card_token: null, sealed_network: null, challenge_url: null, settled_at: at },
  };
  switch (answer.outcome) {
    case 'done': {
      const isLate = isVoiding || checkout.status !== 'received' || isOver(attempt, checkout, now);
      if (isFirstPayment(attempt) && isLate) return voidLater(answer.payment_ref, at);
      return { to: { ...ended, due_at: null, ...succeeded(attempt, answer) }, effect: 'succeed' };
    }
    case 'begun':
      return isVoiding
        ? voidLater(answer.payment_ref, at)
        : waitForShopper(attempt, checkout, answer, now);
    case 'challenge': {
      const isLeft = (isVoiding && isFirstPayment(attempt)) || isOver(attempt, checkout, now);
      return isLeft
        ? voidAgain(attempt, answer.payment_ref, now)
        : waitForShopper(attempt, checkout, answer, now);
    }
    case 'processing': {
      const { payment_ref, asks_shopper } = answer;
      const isSent = waitsForShopper(attempt);
      if (isSent && asks_shopper && isOver(attempt, checkout, now)) {
        return voidAgain(attempt, payment_ref, now);
      }
      if (isSent && asks_shopper) {
        const attempts = attempt.attempts + 1;
        const due_at = timestamp(nextShopperLookUp(now, attempts, endsAt(attempt, checkout)));
        return { to: { ...released, payment_ref, due_at, attempts }, effect: 'nothing' };
      }
      // Once the shopper has finished, look-ups are frequent again: those made while the shopper
      // was busy do not count as attempts.
      const attempts = isSent ? 0 : attempt.attempts;
      const due_at = timestamp(nextRetryAt(now, attempts));
      const to = { ...released, payment_ref, due_at, attempts: attempts + 1 };
      return { to: { ...to, ...(isSent && sent) }, effect: 'nothing' };
    }
    case 'declined':
    case 'voided': {
      const decline = answer.outcome === 'declined' ? answer.decline : null;
      const payment_ref = answer.payment_ref ?? attempt.payment_ref;
      // While an attempt is voided, a decline without a reference only means that no request was
      // found.
      const isDeclined = isVoiding ? isCardDeclined(answer) : decline !== null;
      const status = isDeclined ? 'declined' : 'voided';
      const why = decline ? codesOf(decline) : reasonOf(attempt);
      return { to: { ...ended, due_at: null, status, payment_ref, ...why }, effect: 'fail' };
    }
    case 'refused': {
      const status = isVoiding ? 'voided' : 'refused';
      return { to: { ...ended, due_at: null, status }, effect: isVoiding ? 'fail' : 'refuse' };
    }
  }
}

/**
 * The shopper has entered the card, or passed their bank's challenge. Until the outcome is known,
 * the page must not ask for either again.
 */
const sent = { status: 'starting', sealed_card_token: null } as const;

/**
 * The shopper has to enter the card, or to pass their bank's challenge. Their browser reports when
 * they have done so, or a look-up finds out.
 */
function waitForShopper(
  attempt: PaymentAttempt,
  checkout: Times,
  answer: Extract<Outcome, { outcome: 'begun' | 'challenge' }>,
  now: Temporal.Instant,
): Move {
  const waits =
    answer.outcome === 'begun'
      ? { status: 'begun' as const, sealed_card_token: answer.sealed_session }
      : { status: 'challenged' as const, sealed_card_token: null, challenge_url: answer.url };
  const attempts = attempt.status === waits.status ? attempt.attempts + 1 : 0;
  const due_at = timestamp(nextShopperLookUp(now, attempts, endsAt(attempt, checkout)));
  const { payment_ref } = answer;
  return { to: { ...released, ...waits, payment_ref, due_at, attempts }, effect: 'nothing' };
}

/** The gateway has a session, a challenge or a hold that must not stay. The next claim voids it. */
function voidLater(payment_ref: string, due_at: Timestamp): Move {
  const known = { ...released, payment_ref, sealed_card_token: null };
  return { to: { ...known, status: 'voiding', due_at, attempts: 0 }, effect: 'nothing' };
}

/**
 * The shopper has left a challenge that the gateway cannot end, so the bank may still approve it.
 * An attempt on the plan comes here only when its time is over: until then nothing else can be
 * paid, and the shopper can still pass the challenge.
 */
function voidAgain(attempt: PaymentAttempt, payment_ref: string, now: Temporal.Instant): Move {
  const attempts = attempt.status === 'voiding' ? attempt.attempts : 0;
  const { to, effect } = voidLater(payment_ref, timestamp(nextRetryAt(now, attempts)));
  return { to: { ...to, attempts: attempts + 1 }, effect };
}

function succeeded(
  attempt: PaymentAttempt,
  answer: Extract<Outcome, { outcome: 'done' }>,
): AttemptChanges {
  const { payment_ref, card, authentication, scheme, capture_before } = answer;
  return {
    status: successes[attempt.purpose],
    payment_ref,
    card_ref: card.card_ref ?? attempt.card_ref,
    card_brand: card.brand,
    card_last4: card.last4,
    card_expires: card.expires,
    authentication,
    scheme,
    capture_before,
    decline_reason: null,
    may_retry: null,
  };
}

const codesOf = ({ reason, may_retry, code, network_code, card_key }: Decline) => ({
  decline_reason: reason,
  may_retry,
  decline_code: code ?? null,
  network_decline_code: network_code ?? null,
  card_key: card_key ?? null,
});

/** Why an attempt was voided, for a shopper who began it on the plan page. */
function reasonOf(attempt: PaymentAttempt): AttemptChanges {
  if (isFirstPayment(attempt)) return {};
  const unanswered: DeclineReason =
    attempt.challenge_url === null ? 'processing_error' : 'authentication_failed';
  return { decline_reason: attempt.decline_reason ?? unanswered, may_retry: true };
}
