import type {
  Authentication,
  CardVerification,
  Decline,
  HeldCard,
  PaymentState,
  SchemeData,
} from '#gateway/gateway.ts';
import { cardKeyOf, OutcomeUnknown } from '#gateway/gateway.ts';
import { StatusUnknown } from '#gateway/status-unknown.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Payment } from './answers.ts';
import { cardOf } from './card.ts';
import { declineOf } from './declines.ts';
import { holdDays } from './settings.ts';

// Translates the gateway's payments into the port's words.

export const timeOf = (time: string) => timestamp(Temporal.Instant.from(time));

export function paymentState(payment: Payment, now: Timestamp): PaymentState {
  const { payment_id: payment_ref } = payment;
  switch (payment.status) {
    case 'requires_capture':
      if (lacksCard(payment)) return { outcome: 'processing', payment_ref };
      return {
        outcome: 'authorised',
        payment_ref,
        card: heldCard(payment),
        capture_before: captureBefore(payment),
        authentication: authenticationOf(payment),
        scheme: schemeOf(payment),
      };
    case 'succeeded':
    case 'partially_captured':
      // Wait until the server has stored the card, but only for a time: money that was taken must
      // be recorded even if the card is never stored.
      if (lacksCard(payment) && mayGoOn(payment, now)) {
        return { outcome: 'processing', payment_ref };
      }
      return {
        outcome: 'captured',
        payment_ref,
        amount: payment.amount_received ?? 0,
        card: heldCard(payment),
        authentication: authenticationOf(payment),
        scheme: schemeOf(payment),
      };
    case 'failed':
      return failedState(payment, now);
    case 'cancelled':
    case 'expired':
      return { outcome: 'voided', payment_ref };
    default:
      return undecided(payment);
  }
}

/** `failed` does not always mean that nothing was taken or held. */
function failedState(payment: Payment, now: Timestamp): PaymentState {
  const { payment_id: payment_ref, cancellation_reason } = payment;
  const unheard = isUnheard(payment) ? unheardStatus : null;
  const unknown_status = unheard ?? (cancellation_reason ? 'failed when it was voided' : null);
  if (unknown_status === null) {
    return { outcome: 'declined', payment_ref, decline: declineOf(payment) };
  }
  return hasLapsed(payment, now)
    ? { outcome: 'voided', payment_ref }
    : { outcome: 'processing', payment_ref, unknown_status };
}

/** Whether a hold would have ended by now, even if the acquirer has done nothing about it. */
export const hasLapsed = (payment: Payment, now: Timestamp): boolean =>
  payment.capture_method === 'manual' && Temporal.Instant.compare(captureBefore(payment), now) <= 0;

/** How long a bank may take over a challenge that began in the last second of the session. */
const challengeMinutes = 15;

/**
 * Whether the bank may still approve a challenge. The server begins no challenge after the session,
 * but does not know when one that has begun will end.
 */
export function mayBeApproved(payment: Payment, now: Timestamp): boolean {
  if (payment.status !== 'requires_customer_action') return false;
  if (!payment.expires_on) throw new OutcomeUnknown('a challenge has no end');
  return mayGoOn(payment, now);
}

/** Whether the session of a payment, or a challenge that began in it, may still be in progress. */
function mayGoOn({ expires_on }: Payment, now: Timestamp): boolean {
  if (!expires_on) return false;
  const end = Temporal.Instant.from(expires_on).add({ minutes: challengeMinutes });
  return Temporal.Instant.compare(now, end) < 0;
}

/**
 * The state of a payment that has not ended: the shopper has not entered a card, the bank asks for
 * a challenge, or the gateway is still processing.
 */
function undecided(payment: Payment) {
  const { payment_id: payment_ref, next_action, client_secret } = payment;
  const url = next_action?.redirect_to_url;
  const isBegun = ['requires_payment_method', 'requires_confirmation'].includes(payment.status);
  if (isBegun && client_secret) {
    return { outcome: 'begun', payment_ref, session: { client_secret } } as const;
  }
  // Without a URL, the card form itself shows the bank's challenge.
  const isChallenged = payment.status === 'requires_customer_action';
  if (isChallenged && url) return { outcome: 'challenge', payment_ref, url } as const;
  const asks = isBegun || isChallenged ? ({ asks_shopper: true } as const) : {};
  return { outcome: 'processing', payment_ref, ...unknownOf(payment.status), ...asks } as const;
}

/** The message with which the server ends a payment after its last question to the acquirer. */
const gaveUp = 'This Payment has been moved to failed as there is no response from the connector';

/**
 * Whether the acquirer never answered, so that it may have the money. Hyperswitch keeps asking the
 * acquirer for half an hour. Then it marks the payment as failed. The code is usually empty;
 * otherwise it is that of a timeout, of the acquirer's 5xx, or of a status request that failed. A
 * payment of zero takes nothing.
 */
export const isUnheard = (payment: Payment): boolean =>
  payment.status === 'failed' &&
  payment.amount > 0 &&
  !payment.connector_transaction_id &&
  (payment.error_message === gaveUp || /^(TIMEOUT|5(0\d|1[01]))?$/.test(payment.error_code ?? ''));

const unheardStatus = 'failed without an answer from the acquirer';

/** Statuses of a payment that the gateway has not decided yet. */
const undecidedStatuses = new Set([
  'conflicted',
  'partially_authorized_and_requires_capture',
  'partially_captured_and_capturable',
  'partially_captured_and_processing',
  'processing',
  'requires_confirmation',
  'requires_customer_action',
  'requires_merchant_action',
  'requires_payment_method',
  'review',
]);

const decidedStatuses = new Set([
  'cancelled',
  'expired',
  'failed',
  'partially_captured',
  'requires_capture',
  'succeeded',
]);

const unknownOf = (status: string) =>
  undecidedStatuses.has(status) ? {} : { unknown_status: status.slice(0, 50) };

/** The error for a payment that should have ended by now. */
export function undecidedError(what: string, payment: Payment): OutcomeUnknown {
  const status = isUnheard(payment) ? unheardStatus : payment.status;
  return decidedStatuses.has(status) || undecidedStatuses.has(status)
    ? new OutcomeUnknown(`${what} is ${status}`)
    : new StatusUnknown(what, status);
}

/**
 * The state of a payment that stores a card. Its amount is zero, or that of a small hold that is
 * voided once the card is verified.
 */
export function verificationState(payment: Payment, now: Timestamp): CardVerification {
  const { payment_ref: _, ...state } = paymentState(payment, now);
  const { payment_id: verification_ref, cancellation_reason } = payment;
  if (state.outcome === 'captured' && payment.amount > 0) {
    throw new OutcomeUnknown('a verification of a card took money');
  }
  if (state.outcome === 'captured' || cancellation_reason === verifiedReason) {
    const { card_ref, ...card } = heldCard(payment);
    if (card_ref === null && isChargeable(payment) && mayGoOn(payment, now)) {
      throw new OutcomeUnknown('a verified card has no reference');
    }
    // A card that the server has not stored by then will never be stored.
    if (card_ref === null) {
      return { outcome: 'declined', verification_ref, decline: unchargeable(payment) };
    }
    const facts = { authentication: authenticationOf(payment), scheme: schemeOf(payment) };
    return { outcome: 'verified', verification_ref, card: { card_ref, ...card }, ...facts };
  }
  if (state.outcome === 'authorised') {
    throw new OutcomeUnknown('a verification of a card still holds money');
  }
  return { ...state, verification_ref } as CardVerification;
}

/** The reason with which the hold of a verified card is voided. The gateway stores it. */
export const verifiedReason = 'the card is verified';

/**
 * Whether the acquirer can charge the stored card without the shopper. If the acquirer has no
 * agreements for later charges, the server changes `setup_future_usage`.
 */
const isChargeable = ({
  setup_future_usage,
  payment_method_tokenization_details: details,
}: Payment) =>
  setup_future_usage === 'off_session' && details?.is_eligible_for_mit_payment !== false;

/**
 * Whether the card of this payment is still to be stored. The server does that shortly after it has
 * answered.
 */
const lacksCard = (payment: Payment) => isChargeable(payment) && !payment.payment_method_id;

const unchargeable = (payment: Payment): Decline => ({
  reason: 'generic',
  may_retry: false,
  code: 'not_eligible_for_mit_payment',
  card_key: cardKeyOf(cardOf(payment)),
});

function heldCard(payment: Payment): HeldCard {
  const card_ref = isChargeable(payment) ? (payment.payment_method_id ?? null) : null;
  return { card_ref, ...cardOf(payment) };
}

const results: Record<string, string> = { success: 'authenticated', failed: 'failed' };

/**
 * Null if nothing was authenticated, or if the acquirer itself authenticated the shopper, about
 * which the gateway reports nothing.
 */
function authenticationOf({
  external_authentication_details: details,
}: Payment): Authentication | null {
  if (!details) return null;
  return {
    flow: details.authentication_flow ?? null,
    result: results[details.status] ?? details.status,
    eci: details.electronic_commerce_indicator ?? null,
    version: details.version ?? null,
    transaction_id: details.ds_transaction_id ?? null,
  };
}

function schemeOf(payment: Payment): SchemeData | null {
  const { network_transaction_id = null, network_transaction_link_id = null } = payment;
  return network_transaction_id === null && network_transaction_link_id === null
    ? null
    : { network_transaction_id, transaction_link_id: network_transaction_link_id };
}

function captureBefore({ capture_before, created }: Payment): string {
  if (capture_before) return timeOf(capture_before);
  if (!created) throw new OutcomeUnknown('a held payment has no date');
  return timestamp(Temporal.Instant.from(created).add({ hours: holdDays * 24 }));
}
