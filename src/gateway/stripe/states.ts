import type Stripe from 'stripe';
import {
  type Authentication,
  type CardVerification,
  type HeldCard,
  OutcomeUnknown,
  type PaymentState,
  type RefundState,
  type SchemeData,
} from '#gateway/gateway.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { describeCard } from './card.ts';
import { cardToEnterAgain, declineOf } from './declines.ts';
import { holdDays } from './settings.ts';

// Translates the gateway's objects into the types of the gateway port.

export const expanded = ['latest_charge', 'payment_method'] as const;
export const expandedSetup = ['latest_attempt', 'payment_method'] as const;

export function paymentState(intent: Stripe.PaymentIntent): PaymentState {
  const payment_ref = intent.id;
  switch (intent.status) {
    case 'requires_capture':
      return {
        outcome: 'authorised',
        payment_ref,
        card: heldCard(intent),
        capture_before: captureBefore(intent),
        authentication: authenticationOf(intent),
        scheme: schemeOf(intent),
      };
    case 'requires_action': {
      const url = intent.next_action?.redirect_to_url?.url;
      return url
        ? { outcome: 'challenge', payment_ref, url }
        : { outcome: 'processing', payment_ref };
    }
    case 'requires_payment_method':
      return {
        outcome: 'declined',
        payment_ref,
        decline: declineOf(intent.last_payment_error ?? {}),
      };
    case 'succeeded':
      return {
        outcome: 'captured',
        payment_ref,
        amount: intent.amount_received,
        card: heldCard(intent),
        authentication: authenticationOf(intent),
        scheme: schemeOf(intent),
      };
    case 'canceled':
      return { outcome: 'voided', payment_ref };
    default:
      return { outcome: 'processing', payment_ref };
  }
}

/**
 * The state of a payment that was just confirmed. It must be held or taken (`wanted`), declined, or
 * waiting for the bank's challenge.
 */
export function takenState(
  intent: Stripe.PaymentIntent,
  wanted: 'authorised' | 'captured',
): PaymentState {
  const state = paymentState(intent);
  switch (state.outcome) {
    case wanted:
    case 'challenge':
    case 'declined':
      return state;
    case 'voided':
      // The payment was voided after a failed answer, before we knew of it. Nothing is held.
      return { outcome: 'declined', payment_ref: state.payment_ref, decline: cardToEnterAgain };
    default:
      throw new OutcomeUnknown(`a payment that begins is ${intent.status}`);
  }
}

export function verification(setup: Stripe.SetupIntent): CardVerification {
  const verification_ref = setup.id;
  switch (setup.status) {
    case 'succeeded': {
      const method = typeof setup.payment_method === 'object' ? setup.payment_method : null;
      if (method === null) throw new OutcomeUnknown('a verified card has no reference');
      const attempt = typeof setup.latest_attempt === 'object' ? setup.latest_attempt : null;
      const authentication = readSecure(attempt?.payment_method_details.card?.three_d_secure);
      // The gateway reports no id of the card network before the card is charged.
      const facts = { card: cardOf(method), authentication, scheme: null };
      return { outcome: 'verified', verification_ref, ...facts };
    }
    case 'requires_action': {
      const url = setup.next_action?.redirect_to_url?.url;
      return url
        ? { outcome: 'challenge', verification_ref, url }
        : { outcome: 'processing', verification_ref };
    }
    case 'requires_payment_method': {
      const decline = declineOf(setup.last_setup_error ?? {});
      return { outcome: 'declined', verification_ref, decline };
    }
    case 'canceled':
      return { outcome: 'voided', verification_ref };
    default:
      return { outcome: 'processing', verification_ref };
  }
}

const cardOf = ({ id, card }: Stripe.PaymentMethod) => ({ card_ref: id, ...describeCard(card) });

export const isStored = (intent: Stripe.PaymentIntent) =>
  intent.setup_future_usage === 'off_session';

function heldCard(intent: Stripe.PaymentIntent): HeldCard {
  const method = typeof intent.payment_method === 'object' ? intent.payment_method : null;
  const card_ref = isStored(intent) ? (method?.id ?? null) : null;
  return { card_ref, ...describeCard(method?.card) };
}

const chargeOf = ({ latest_charge }: Stripe.PaymentIntent) =>
  typeof latest_charge === 'object' ? latest_charge : null;

const authenticationOf = (intent: Stripe.PaymentIntent) =>
  readSecure(chargeOf(intent)?.payment_method_details?.card?.three_d_secure);

export function schemeOf(intent: Stripe.PaymentIntent): SchemeData | null {
  const card = chargeOf(intent)?.payment_method_details?.card;
  const { network_transaction_id = null, transaction_link_id = null } = card ?? {};
  return network_transaction_id === null && transaction_link_id === null
    ? null
    : { network_transaction_id, transaction_link_id };
}

/**
 * Reads how the bank authenticated the shopper. Charges and attempts of a setup have the same
 * members.
 */
function readSecure(
  secure:
    | Stripe.Charge.PaymentMethodDetails.Card.ThreeDSecure
    | Stripe.SetupAttempt.PaymentMethodDetails.Card.ThreeDSecure
    | null
    | undefined,
): Authentication | null {
  if (!secure) return null;
  return {
    flow: secure.authentication_flow,
    result: secure.result,
    eci: secure.electronic_commerce_indicator,
    version: secure.version,
    transaction_id: secure.transaction_id,
  };
}

/** The gateway's times are in seconds. */
export const timeOf = (seconds: number) =>
  timestamp(Temporal.Instant.fromEpochMilliseconds(seconds * 1000));

/** The charge says when the hold ends, unless it lasts as long as most holds. */
function captureBefore(intent: Stripe.PaymentIntent): string {
  const card = chargeOf(intent)?.payment_method_details?.card;
  const seconds = card?.capture_before ?? intent.created + holdDays * 24 * 60 * 60;
  return timeOf(seconds);
}

export function refundState(refund: Stripe.Refund): RefundState {
  const refund_ref = refund.id;
  if (refund.status === 'succeeded') return { refund_ref, status: 'succeeded' };
  if (refund.status === 'failed' || refund.status === 'canceled') {
    return { refund_ref, status: 'failed' };
  }
  return { refund_ref, status: 'pending' };
}
