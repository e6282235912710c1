import Stripe from 'stripe';
import { amountRefused } from '#gateway/amount-refused.ts';
import { cardKeyOf, type Decline, type DeclineReason } from '#gateway/gateway.ts';
import { waitOf } from '#gateway/network-advice.ts';
import { describeCard } from './card.ts';
import { isDataRefused, isTokenRefused } from './errors.ts';

// Why a bank or the gateway declines a card, and whether a retry may help.

export type CardRefusal = {
  code?: string;
  decline_code?: string;
  advice_code?: string;
  network_advice_code?: string;
  network_decline_code?: string;
  payment_method?: Stripe.PaymentMethod;
};

const reasons: Record<string, DeclineReason> = {
  insufficient_funds: 'insufficient_funds',
  lost_card: 'lost_card',
  stolen_card: 'stolen_card',
  card_velocity_exceeded: 'velocity_exceeded',
  withdrawal_count_limit_exceeded: 'velocity_exceeded',
  expired_card: 'expired_card',
  incorrect_cvc: 'incorrect_cvc',
  invalid_cvc: 'incorrect_cvc',
  incorrect_number: 'incorrect_number',
  invalid_number: 'incorrect_number',
  invalid_expiry_month: 'expired_card',
  invalid_expiry_year: 'expired_card',
  processing_error: 'processing_error',
  issuer_not_available: 'processing_error',
  try_again_later: 'processing_error',
  authentication_required: 'authentication_required',
  payment_intent_authentication_failure: 'authentication_failed',
  setup_intent_authentication_failure: 'authentication_failed',
};

/** After these reasons a retry with the same card is pointless, whatever the network advises. */
const final: ReadonlySet<DeclineReason> = new Set<DeclineReason>([
  'lost_card',
  'stolen_card',
  'expired_card',
  'incorrect_number',
  'authentication_required',
]);

/** With these codes the issuer forbids a retry, even if its advice does not say so. */
const finalCodes: ReadonlySet<string> = new Set([
  'fraudulent',
  'invalid_account',
  'merchant_blacklist',
  'pickup_card',
  'restricted_card',
  'revocation_of_all_authorizations',
  'revocation_of_authorization',
  'security_violation',
  'stop_payment_order',
]);

export const cardToEnterAgain: Decline = { reason: 'processing_error', may_retry: true };

export function declineOf(refusal: CardRefusal): Decline {
  const { code, decline_code, advice_code, network_decline_code, payment_method } = refusal;
  const reason = reasons[decline_code ?? ''] ?? reasons[code ?? ''] ?? 'generic';
  const isForbidden = advice_code === 'do_not_try_again' || finalCodes.has(decline_code ?? '');
  return {
    reason,
    may_retry: !isForbidden && !final.has(reason),
    code: decline_code ?? code ?? null,
    network_code: network_decline_code ?? null,
    ...waitOf(refusal.network_advice_code),
    ...(payment_method?.card && { card_key: cardKeyOf(describeCard(payment_method.card)) }),
  };
}

type Declined = { outcome: 'declined'; payment_ref: string | null; decline: Decline };

/** The decline of a payment by the shopper's bank; null if the error is something else. */
export function declinedByBank(error: unknown): Declined | null {
  if (!(error instanceof Stripe.errors.StripeCardError)) return null;
  const payment_ref = error.payment_intent?.id ?? null;
  return { outcome: 'declined', payment_ref, decline: declineOf(error as CardRefusal) };
}

/**
 * The decline of a payment whose card token the gateway refuses; null for any other error. The
 * shopper can enter the card again, which gives a new token.
 */
export function declinedToken(error: unknown): Declined | null {
  if (!isTokenRefused(error)) return null;
  return { outcome: 'declined', payment_ref: null, decline: cardToEnterAgain };
}

/**
 * The decline of a charge that can never succeed: the stored card is gone, or the gateway refuses
 * the amount. Null for any other error.
 */
export function declinedForGood(error: unknown): Declined | null {
  const isCardGone =
    error instanceof Stripe.errors.StripeInvalidRequestError && error.param === 'payment_method';
  if (!isCardGone && !isDataRefused(error)) return null;
  const gone = { reason: 'processing_error', may_retry: false, card_key: null } as const;
  return { outcome: 'declined', payment_ref: null, decline: isCardGone ? gone : amountRefused };
}
