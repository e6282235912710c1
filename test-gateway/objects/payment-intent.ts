import type { Kept } from '../store.ts';
import { daySeconds, type Made, newId } from './made.ts';

export const holdSeconds = 7 * daySeconds;

type Given = {
  /** The caller's own id, if the API lets callers choose ids. */
  id?: string;
  amount: number;
  currency: string;
  customer: string | null;
  capture_method: 'automatic_async' | 'manual';
  setup_future_usage: 'off_session' | 'on_session' | null;
  card_options: {
    stored_credential_usage?: string | undefined;
    setup_credential_usage?: string | undefined;
    request_three_d_secure?: string | undefined;
  };
  statement_descriptor_suffix: string | null;
  description: string | null;
  receipt_email: string | null;
  metadata: Record<string, string>;
  /** Null if the card is entered later. */
  payment_method: string | null;
  return_url: string | null;
};

export function makePaymentIntent({ merchant, now }: Made, given: Given): Kept<'payment_intent'> {
  const id = given.id ?? newId('pi');
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
      payment_method_options: { card: cardOptions(given.card_options) },
      payment_method_types: ['card'],
      payment_record: null,
      processing: null,
      receipt_email: given.receipt_email,
      review: null,
      setup_future_usage: given.setup_future_usage,
      shipping: null,
      source: null,
      statement_descriptor: null,
      statement_descriptor_suffix: given.statement_descriptor_suffix,
      status: given.payment_method === null ? 'requires_payment_method' : 'requires_confirmation',
      transfer_data: null,
      transfer_group: null,
    },
    hidden: { challenge: null, return_url: given.return_url, capture_before: null },
    merchant,
  };
}

const cardOptions = (given: Given['card_options']) => ({
  installments: null,
  mandate_options: null,
  network: null,
  request_three_d_secure: given.request_three_d_secure ?? 'automatic',
  ...(given.stored_credential_usage && {
    stored_credential_usage: given.stored_credential_usage,
  }),
  ...(given.setup_credential_usage && {
    setup_credential_usage: given.setup_credential_usage,
  }),
});

/** The gateway cancels a hold that was not captured in time. */
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
