import type Stripe from 'stripe';
import type { Refusal } from '../cards.ts';
import type { Kept } from '../store.ts';
import { noBillingDetails } from './card.ts';
import { type Made, newId } from './made.ts';
import { holdSeconds } from './payment-intent.ts';

export function makeCharge(
  { merchant, now }: Made,
  intent: Stripe.PaymentIntent,
  method: Kept<'payment_method'>,
  refusal: Refusal | null,
  given: { authentication: Authentication | null; descriptorPrefix: string },
): Kept<'charge'> {
  const { card } = method.object;
  const manual = intent.capture_method === 'manual';
  const suffix = intent.statement_descriptor_suffix;
  const three_d_secure =
    given.authentication && threeDSecure(given.authentication, card?.brand ?? 'visa');
  const captured = refusal === null && !manual;
  return {
    object: {
      id: newId('ch'),
      object: 'charge',
      amount: intent.amount,
      amount_captured: captured ? intent.amount : 0,
      amount_refunded: 0,
      application: null,
      application_fee: null,
      application_fee_amount: null,
      balance_transaction: null,
      billing_details: noBillingDetails,
      calculated_statement_descriptor: completeDescriptor(given.descriptorPrefix, suffix),
      captured,
      created: now,
      currency: intent.currency,
      customer: intent.customer,
      description: intent.description,
      disputed: false,
      failure_balance_transaction: null,
      failure_code: refusal?.code ?? null,
      failure_message: refusal?.message ?? null,
      fraud_details: {},
      livemode: false,
      metadata: intent.metadata,
      on_behalf_of: null,
      outcome: outcomeOf(refusal),
      paid: refusal === null,
      payment_intent: intent.id,
      payment_method: method.object.id,
      payment_method_details: {
        card: cardDetails(now, intent, method, refusal, three_d_secure),
        type: 'card',
      },
      radar_options: {},
      receipt_email: intent.receipt_email,
      receipt_number: null,
      receipt_url: null,
      refunded: false,
      review: null,
      shipping: null,
      source: null,
      source_transfer: null,
      statement_descriptor: null,
      statement_descriptor_suffix: suffix,
      status: refusal === null ? 'succeeded' : 'failed',
      transfer_data: null,
      transfer_group: null,
    },
    hidden: {},
    merchant,
  };
}

const outcomeOf = (refusal: Refusal | null): Stripe.Charge.Outcome => ({
  advice_code: refusal?.advice_code ?? null,
  network_advice_code: null,
  network_decline_code: refusal?.network_decline_code ?? null,
  network_status: refusal === null ? 'approved_by_network' : 'declined_by_network',
  reason: refusal?.decline_code ?? null,
  risk_level: 'normal',
  seller_message: refusal === null ? 'Payment complete.' : refusal.message,
  type: refusal === null ? 'authorized' : 'issuer_declined',
});

function cardDetails(
  now: number,
  intent: Stripe.PaymentIntent,
  method: Kept<'payment_method'>,
  refusal: Refusal | null,
  three_d_secure: ThreeDSecure | null,
): Stripe.Charge.PaymentMethodDetails.Card {
  const { card } = method.object;
  const isHold = refusal === null && intent.capture_method === 'manual';
  return {
    amount_authorized: refusal === null ? intent.amount : null,
    authorization_code: refusal === null ? '123456' : null,
    brand: card?.brand ?? null,
    ...(isHold && { capture_before: now + holdSeconds }),
    checks: card?.checks ?? null,
    country: card?.country ?? null,
    electronic_commerce_indicator: three_d_secure?.electronic_commerce_indicator ?? null,
    exp_month: card?.exp_month ?? 0,
    exp_year: card?.exp_year ?? 0,
    fingerprint: card?.fingerprint ?? null,
    funding: card?.funding ?? null,
    installments: null,
    last4: card?.last4 ?? null,
    mandate: null,
    network: card?.brand ?? null,
    network_transaction_id: refusal === null ? newId('ntx') : null,
    regulated_status: 'unregulated',
    three_d_secure,
    // Only Mastercard has such an id.
    transaction_link_id: refusal === null && card?.brand === 'mastercard' ? newId('tlid') : null,
    wallet: null,
  };
}

/** How the shopper was authenticated. */
export type Authentication = 'challenge' | 'frictionless' | 'not_supported';

type ThreeDSecure = Stripe.Charge.PaymentMethodDetails.Card.ThreeDSecure;

export function threeDSecure(authentication: Authentication, brand: string): ThreeDSecure {
  const isMastercard = brand === 'mastercard';
  if (authentication === 'not_supported') {
    return {
      authentication_flow: null,
      electronic_commerce_indicator: null,
      exemption_indicator: null,
      result: 'not_supported',
      result_reason: 'network_not_supported',
      transaction_id: null,
      version: null,
    };
  }
  const done = {
    authentication_flow: authentication,
    exemption_indicator: null,
    result_reason: null,
    transaction_id: newId('tds'),
    version: '2.2.0',
  };
  // If the bank did not challenge the shopper, it only acknowledges the attempt to authenticate.
  return authentication === 'challenge'
    ? {
        ...done,
        electronic_commerce_indicator: isMastercard ? '02' : '05',
        result: 'authenticated',
      }
    : {
        ...done,
        electronic_commerce_indicator: isMastercard ? '01' : '06',
        result: 'attempt_acknowledged',
      };
}

/** The text on the cardholder's statement. */
export function completeDescriptor(prefix: string, suffix: string | null): string {
  return suffix === null ? prefix : `${prefix}* ${suffix}`;
}
