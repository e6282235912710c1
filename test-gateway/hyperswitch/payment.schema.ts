import Type from 'typebox';
import { cardNetwork, currency, metadata, nullable, object, oneOf, text, time } from './shapes.ts';

// The answer about a payment, with the members of the published document that the gateway fills.

export const intentStatuses = [
  'succeeded',
  'failed',
  'cancelled',
  'processing',
  'requires_customer_action',
  'requires_payment_method',
  'requires_capture',
  'partially_captured',
  'expired',
] as const;

export const standardisedCodes = [
  'authentication_failed',
  'authentication_required',
  'card_lost_or_stolen',
  'do_not_honor',
  'downstream_technical_issue',
  'generic_unknown_error',
  'insufficient_funds',
  'invalid_cvv',
  'invalid_expiry_date',
  'velocity_limit_exceeded',
] as const;

export const recommendedActions = [
  'do_not_retry',
  'retry_after_1_hour',
  'retry_after_24_hours',
  'retry_after_2_days',
  'retry_after_4_days',
  'retry_after_6_days',
  'retry_after_8_days',
  'retry_after_10_days',
  'retry_later',
  'retry_with_different_payment_method_data',
  'stop_recurring',
] as const;

const cardResponse = object({
  last4: nullable(text()),
  card_type: nullable(text()),
  card_network: nullable(cardNetwork),
  card_issuer: nullable(text()),
  card_issuing_country: nullable(text()),
  card_isin: nullable(text()),
  card_extended_bin: nullable(text()),
  card_exp_month: nullable(text()),
  card_exp_year: nullable(text()),
  card_holder_name: nullable(text()),
  payment_checks: Type.Null(),
  authentication_data: Type.Null(),
});

const errorDetails = object({
  unified_details: object({
    category: oneOf('UE_1000', 'UE_2000', 'UE_3000', 'UE_4000', 'UE_9000'),
    message: nullable(text()),
    standardised_code: nullable(oneOf(...standardisedCodes)),
    description: nullable(text()),
    user_guidance_message: nullable(text()),
    recommended_action: nullable(oneOf(...recommendedActions)),
  }),
  issuer_details: nullable(
    object({
      code: nullable(text()),
      message: nullable(text()),
      network_details: nullable(
        object({
          name: nullable(cardNetwork),
          advice_code: nullable(text()),
          advice_message: nullable(text()),
        }),
      ),
    }),
  ),
  connector_details: object({
    code: nullable(text()),
    message: nullable(text()),
    reason: nullable(text()),
  }),
});

const externalAuthentication = object({
  authentication_flow: nullable(oneOf('challenge', 'frictionless')),
  electronic_commerce_indicator: nullable(text()),
  status: oneOf('started', 'pending', 'success', 'failed'),
  ds_transaction_id: nullable(text()),
  version: nullable(text()),
  error_code: nullable(text()),
  error_message: nullable(text()),
});

const tokenizationDetails = object({
  payment_method_id: text(),
  payment_method_status: nullable(oneOf('active', 'inactive')),
  psp_tokenization: Type.Boolean(),
  network_tokenization: Type.Boolean(),
  network_transaction_id: nullable(text()),
  network_transaction_link_id: nullable(text()),
  is_eligible_for_mit_payment: Type.Boolean(),
});

export const payment = object({
  payment_id: text(),
  merchant_id: text(255),
  status: oneOf(...intentStatuses),
  amount: Type.Integer(),
  net_amount: Type.Integer(),
  amount_capturable: Type.Integer(),
  amount_received: nullable(Type.Integer()),
  processor_merchant_id: text(255),
  connector: nullable(text()),
  connector_transaction_id: nullable(text()),
  client_secret: nullable(text()),
  created: nullable(time),
  modified_at: nullable(time),
  currency: currency,
  customer_id: nullable(text(64)),
  description: nullable(text()),
  mandate_id: nullable(text(255)),
  setup_future_usage: nullable(oneOf('off_session', 'on_session')),
  off_session: nullable(Type.Boolean()),
  capture_method: nullable(oneOf('automatic', 'manual')),
  payment_method: nullable(oneOf('card')),
  payment_method_data: nullable(object({ card: cardResponse, billing: Type.Null() })),
  return_url: nullable(text()),
  authentication_type: nullable(oneOf('three_ds', 'no_three_ds')),
  next_action: nullable(object({ type: Type.Literal('redirect_to_url'), redirect_to_url: text() })),
  cancellation_reason: nullable(text()),
  error_code: nullable(text()),
  error_message: nullable(text()),
  unified_code: nullable(text()),
  unified_message: nullable(text()),
  error_details: nullable(errorDetails),
  metadata: nullable(metadata),
  attempt_count: Type.Integer(),
  external_authentication_details: nullable(externalAuthentication),
  expires_on: nullable(time),
  fingerprint: nullable(text()),
  payment_method_id: nullable(text()),
  payment_method_status: nullable(oneOf('active', 'inactive')),
  payment_method_tokenization_details: nullable(tokenizationDetails),
  network_transaction_id: nullable(text()),
  network_transaction_link_id: nullable(text()),
  capture_before: nullable(time),
  issuer_error_code: nullable(text()),
  issuer_error_message: nullable(text()),
  mit_category: nullable(oneOf('installment', 'unscheduled', 'recurring', 'resubmission')),
  billing_descriptor: nullable(object({ statement_descriptor_suffix: nullable(text()) })),
});

/** The document describes an array of such lists, but the real server sends a single list. */
export const paymentList = object({
  size: Type.Integer({ minimum: 0 }),
  data: Type.Array(payment),
});
