import { randomBytes } from 'node:crypto';
import type Stripe from 'stripe';
import { type CardBehaviour, cardNamed, type Refusal } from './cards.ts';
import type { Kept } from './store.ts';

// Objects are built as the SDK's own types, so that the compiler checks their shape, and they age
// when they are read: a hold lapses and a refund moves on because the merchant's time has passed.

const day = 24 * 60 * 60;
export const holdSeconds = 7 * day;
const refundPendingSeconds = 60 * 60;
const refundFailsAfterSeconds = 3 * day;

export function newId(prefix: string): string {
  const letters = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  const random = [...randomBytes(24)].map((byte) => letters[byte % letters.length]).join('');
  return `${prefix}_${random}`;
}

type Made = { merchant: string; now: number };

export function makeCustomer(
  { merchant, now }: Made,
  given: {
    email: string | null;
    name: string | null;
    phone: string | null;
    description: string | null;
    metadata: Record<string, string>;
  },
): Kept<'customer'> {
  return {
    object: {
      id: newId('cus'),
      object: 'customer',
      address: null,
      balance: 0,
      created: now,
      currency: null,
      default_source: null,
      delinquent: false,
      description: given.description,
      discount: null,
      email: given.email,
      invoice_prefix: randomBytes(4).toString('hex').toUpperCase(),
      invoice_settings: {
        custom_fields: null,
        default_payment_method: null,
        footer: null,
        rendering_options: null,
      },
      livemode: false,
      metadata: given.metadata,
      name: given.name,
      next_invoice_sequence: 1,
      phone: given.phone,
      preferred_locales: [],
      shipping: null,
      tax_exempt: 'none',
      test_clock: null,
    },
    hidden: {},
    merchant,
  };
}

const nobody: Stripe.PaymentMethod.BillingDetails = {
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
    // The same for the same card, as a real one is, and no way back to the number.
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
      expires_at: now + day / 2,
      livemode: false,
      metadata: null,
      payment_intent: null,
      payment_method_options: { card: { cvc_token: null } },
      payment_method_preview: {
        allow_redisplay: 'unspecified',
        billing_details: nobody,
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
  token: Kept<'confirmation_token'>,
): Kept<'payment_method'> {
  const { card, exp_month, exp_year } = token.hidden;
  return {
    object: {
      id: newId('pm'),
      object: 'payment_method',
      allow_redisplay: 'unspecified',
      billing_details: nobody,
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

export function makePaymentIntent(
  { merchant, now }: Made,
  given: {
    amount: number;
    currency: string;
    customer: string | null;
    capture_method: 'automatic_async' | 'manual';
    setup_future_usage: 'off_session' | 'on_session' | null;
    stored_credential_usage: string | null;
    description: string | null;
    receipt_email: string | null;
    metadata: Record<string, string>;
    payment_method: string;
    return_url: string | null;
  },
): Kept<'payment_intent'> {
  const id = newId('pi');
  return {
    object: {
      id,
      object: 'payment_intent',
      allowed_payment_method_types: ['card'],
      amount: given.amount,
      amount_capturable: 0,
      amount_details: { tip: {} },
      amount_received: 0,
      application: null,
      application_fee_amount: null,
      automatic_payment_methods: null,
      canceled_at: null,
      cancellation_reason: null,
      capture_method: given.capture_method,
      client_secret: `${id}_${newId('secret')}`,
      confirmation_method: 'automatic',
      created: now,
      currency: given.currency,
      customer: given.customer,
      customer_account: null,
      description: given.description,
      excluded_payment_method_types: null,
      last_payment_error: null,
      latest_charge: null,
      livemode: false,
      managed_payments: null,
      metadata: given.metadata,
      next_action: null,
      on_behalf_of: null,
      payment_method: given.payment_method,
      payment_method_configuration_details: null,
      payment_method_options: {
        card: {
          installments: null,
          mandate_options: null,
          network: null,
          request_three_d_secure: 'automatic',
          ...(given.stored_credential_usage && {
            stored_credential_usage: given.stored_credential_usage,
          }),
        },
      },
      payment_method_types: ['card'],
      payment_record: null,
      processing: null,
      receipt_email: given.receipt_email,
      review: null,
      setup_future_usage: given.setup_future_usage,
      shipping: null,
      source: null,
      statement_descriptor: null,
      statement_descriptor_suffix: null,
      status: 'requires_confirmation',
      transfer_data: null,
      transfer_group: null,
    },
    hidden: { challenge: null, return_url: given.return_url, capture_before: null },
    merchant,
  };
}

export function makeCharge(
  { merchant, now }: Made,
  intent: Stripe.PaymentIntent,
  method: Kept<'payment_method'>,
  refusal: Refusal | null,
): Kept<'charge'> {
  const { card } = method.object;
  const manual = intent.capture_method === 'manual';
  const authenticated = method.hidden.authenticated;
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
      billing_details: nobody,
      calculated_statement_descriptor: 'TRANCHE TEST',
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
      outcome: {
        advice_code: refusal?.advice_code ?? null,
        network_advice_code: null,
        network_decline_code: null,
        network_status: refusal === null ? 'approved_by_network' : 'declined_by_network',
        reason: refusal?.decline_code ?? null,
        risk_level: 'normal',
        seller_message: refusal === null ? 'Payment complete.' : refusal.message,
        type: refusal === null ? 'authorized' : 'issuer_declined',
      },
      paid: refusal === null,
      payment_intent: intent.id,
      payment_method: method.object.id,
      payment_method_details: {
        card: {
          amount_authorized: refusal === null ? intent.amount : null,
          authorization_code: refusal === null ? '123456' : null,
          brand: card?.brand ?? null,
          ...(refusal === null && manual && { capture_before: now + holdSeconds }),
          checks: card?.checks ?? null,
          country: card?.country ?? null,
          electronic_commerce_indicator: authenticated ? '05' : null,
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
          three_d_secure: authenticated
            ? {
                authentication_flow: 'challenge',
                electronic_commerce_indicator: '05',
                exemption_indicator: null,
                result: 'authenticated',
                result_reason: null,
                transaction_id: newId('tds'),
                version: '2.2.0',
              }
            : null,
          transaction_link_id: null,
          wallet: null,
        },
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
      statement_descriptor_suffix: null,
      status: refusal === null ? 'succeeded' : 'failed',
      transfer_data: null,
      transfer_group: null,
    },
    hidden: {},
    merchant,
  };
}

export function makeRefund(
  { merchant, now }: Made,
  charge: Stripe.Charge,
  card: CardBehaviour,
  given: {
    amount: number;
    reason: string | null;
    metadata: Record<string, string>;
    /** The card's bank does not take it back. */
    declined: boolean;
  },
): Kept<'refund'> {
  const pending = card.refund === 'pending_then_succeeded';
  const failed = given.declined && !pending;
  return {
    object: {
      id: newId('re'),
      object: 'refund',
      amount: given.amount,
      balance_transaction: null,
      charge: charge.id,
      created: now,
      currency: charge.currency,
      customer: charge.customer,
      customer_account: null,
      destination_details: {
        card: {
          reference_status: 'pending',
          reference_type: 'acquirer_reference_number',
          type: 'refund',
        },
        type: 'card',
      },
      metadata: given.metadata,
      payment_intent: charge.payment_intent,
      payment_method: charge.payment_method,
      ...(pending && { pending_reason: 'processing' }),
      ...(failed && { failure_reason: 'declined' }),
      reason: given.reason,
      receipt_number: null,
      source_transfer_reversal: null,
      status: pending ? 'pending' : failed ? 'failed' : 'succeeded',
      transfer_reversal: null,
    },
    hidden:
      card.refund === undefined || failed
        ? { becomes: null, at: 0 }
        : pending
          ? { becomes: given.declined ? 'failed' : 'succeeded', at: now + refundPendingSeconds }
          : { becomes: 'failed', at: now + refundFailsAfterSeconds },
    merchant,
  };
}

/** A hold that nobody captured in time is let go. */
export function agedIntent(kept: Kept<'payment_intent'>, now: number): Kept<'payment_intent'> {
  const { capture_before } = kept.hidden;
  if (kept.object.status !== 'requires_capture' || capture_before === null) return kept;
  if (now < capture_before) return kept;
  return {
    ...kept,
    object: {
      ...kept.object,
      amount_capturable: 0,
      canceled_at: capture_before,
      cancellation_reason: 'automatic',
      status: 'canceled',
    },
  };
}

export function agedRefund(kept: Kept<'refund'>, now: number): Kept<'refund'> {
  const { becomes, at } = kept.hidden;
  if (becomes === null || now < at) return kept;
  const { pending_reason: _, ...object } = kept.object;
  return {
    ...kept,
    object: {
      ...object,
      status: becomes,
      ...(becomes === 'failed' && { failure_reason: 'expired_or_canceled_card' }),
    },
  };
}
