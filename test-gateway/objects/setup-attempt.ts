import type Stripe from 'stripe';
import type { Kept } from '../store.ts';
import { type Authentication, threeDSecure } from './charge.ts';

/** The confirmation of a setup, before the bank was asked. */
export function makeSetupAttempt(
  intent: Stripe.SetupIntent,
  { object: method }: Kept<'payment_method'>,
): Stripe.SetupAttempt {
  const { card } = method;
  return {
    id: String(intent.latest_attempt),
    object: 'setup_attempt',
    application: null,
    created: intent.created,
    customer: intent.customer,
    customer_account: null,
    flow_directions: null,
    livemode: false,
    on_behalf_of: null,
    payment_method: method.id,
    payment_method_details: {
      card: {
        brand: card?.brand ?? null,
        checks: card?.checks ?? null,
        country: card?.country ?? null,
        exp_month: card?.exp_month ?? null,
        exp_year: card?.exp_year ?? null,
        fingerprint: card?.fingerprint ?? null,
        funding: card?.funding ?? null,
        last4: card?.last4 ?? null,
        network: card?.brand ?? null,
        three_d_secure: null,
        wallet: null,
      },
      type: 'card',
    },
    setup_error: null,
    setup_intent: intent.id,
    status: 'requires_action',
    usage: intent.usage,
  };
}

/** Records how the bank authenticated the shopper. `failed` means that the shopper did not pass. */
export function authenticateAttempt(
  attempt: Stripe.SetupAttempt,
  authentication: Authentication | 'failed',
): void {
  const { card } = attempt.payment_method_details;
  if (!card) return;
  if (authentication === 'failed') {
    const tried = setupSecure('challenge', card.brand);
    card.three_d_secure = {
      ...tried,
      electronic_commerce_indicator: '07',
      result: 'failed',
      result_reason: 'rejected',
    };
    return;
  }
  card.three_d_secure = setupSecure(authentication, card.brand);
}

/** A setup has the same members as a charge, without the exemption. */
function setupSecure(
  authentication: Authentication,
  brand: string | null,
): Stripe.SetupAttempt.PaymentMethodDetails.Card.ThreeDSecure {
  const { exemption_indicator: _, ...secure } = threeDSecure(authentication, brand ?? 'visa');
  return secure;
}
