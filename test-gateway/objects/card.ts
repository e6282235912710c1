import type Stripe from 'stripe';
import { type CardBehaviour, cardNamed } from '../cards.ts';
import type { Kept } from '../store.ts';
import { daySeconds, type Made, newId } from './made.ts';

export const noBillingDetails: Stripe.PaymentMethod.BillingDetails = {
  address: { city: null, country: null, line1: null, line2: null, postal_code: null, state: null },
  email: null,
  name: null,
  phone: null,
  tax_id: null,
};

type Expiry = { exp_month: number; exp_year: number };

function cardDetails(card: CardBehaviour, expiry: Expiry): Stripe.PaymentMethod.Card {
  return {
    brand: card.brand,
    checks: { address_line1_check: null, address_postal_code_check: null, cvc_check: 'pass' },
    country: 'ZA',
    display_brand: card.brand === 'amex' ? 'american_express' : card.brand,
    exp_month: expiry.exp_month,
    exp_year: expiry.exp_year,
    // The fingerprint of a card is always the same, as with a real card, and does not reveal the
    // number.
    fingerprint: `test${card.name.replaceAll('_', '')}`.padEnd(16, '0').slice(0, 16),
    funding: 'credit',
    generated_from: null,
    last4: card.number.slice(-4),
    networks: { available: [card.brand], preferred: null },
    regulated_status: 'unregulated',
    three_d_secure_usage: { supported: true },
    wallet: null,
  };
}

export function makeConfirmationToken(
  { merchant, now }: Made,
  given: {
    card: CardBehaviour;
    expiry: Expiry;
    return_url: string | null;
    setup_future_usage: string | null;
  },
): Kept<'confirmation_token'> {
  return {
    object: {
      id: newId('ctoken'),
      object: 'confirmation_token',
      created: now,
      expires_at: now + daySeconds / 2,
      livemode: false,
      metadata: null,
      payment_intent: null,
      payment_method_options: { card: { cvc_token: null } },
      payment_method_preview: {
        allow_redisplay: 'unspecified',
        billing_details: noBillingDetails,
        card: cardDetails(given.card, given.expiry),
        customer: null,
        customer_account: null,
        type: 'card',
      },
      return_url: given.return_url,
      setup_future_usage: given.setup_future_usage,
      setup_intent: null,
      shipping: null,
      use_stripe_sdk: false,
    },
    hidden: { card: given.card.name, ...given.expiry, used: false },
    merchant,
  };
}

export function makePaymentMethod(
  { merchant, now }: Made,
  { card, exp_month, exp_year }: { card: string } & Expiry,
): Kept<'payment_method'> {
  return {
    object: {
      id: newId('pm'),
      object: 'payment_method',
      allow_redisplay: 'unspecified',
      billing_details: noBillingDetails,
      card: cardDetails(cardNamed(card), { exp_month, exp_year }),
      created: now,
      customer: null,
      customer_account: null,
      livemode: false,
      metadata: {},
      type: 'card',
    },
    hidden: { card, authenticated: false },
    merchant,
  };
}
