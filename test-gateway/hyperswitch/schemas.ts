import Type from 'typebox';
import {
  cardNetwork,
  currency,
  metadata,
  nullable,
  object,
  oneOf,
  optional,
  text,
  time,
} from './shapes.ts';

// The part of Hyperswitch's published OpenAPI document (version 1) that the service uses, rewritten
// by hand. Like the real server, the gateway refuses a request with a member that is not here. In
// an answer, such a member is a bug.

const ownId = Type.String({ minLength: 30, maxLength: 30 });
const customerId = Type.String({ minLength: 1, maxLength: 64 });
const amount = Type.Integer({ minimum: 0 });
const captureMethod = oneOf('automatic', 'manual');
const authenticationType = oneOf('three_ds', 'no_three_ds');
const futureUsage = oneOf('off_session', 'on_session');
const mitCategory = oneOf('installment', 'unscheduled', 'recurring', 'resubmission');

const customerAcceptance = object({
  acceptance_type: oneOf('online', 'offline'),
  accepted_at: optional(text()),
  online: optional(object({ ip_address: text(), user_agent: text() })),
});

const card = object({
  card_number: text(),
  card_exp_month: text(),
  card_exp_year: text(),
  card_holder_name: text(),
  card_cvc: text(),
  card_network: optional(cardNetwork),
});

const browserInfo = object({
  color_depth: optional(Type.Integer()),
  java_enabled: optional(Type.Boolean()),
  java_script_enabled: optional(Type.Boolean()),
  language: optional(text()),
  screen_height: optional(Type.Integer()),
  screen_width: optional(Type.Integer()),
  time_zone: optional(Type.Integer()),
  ip_address: optional(text()),
  accept_header: optional(text()),
  user_agent: optional(text()),
});

const billingDescriptor = object({
  name: optional(text()),
  city: optional(text()),
  phone: optional(text()),
  statement_descriptor: optional(text()),
  statement_descriptor_suffix: optional(text()),
  reference: optional(text()),
});

/** Members of a payment that may be given when it is created and changed until it is confirmed. */
const paymentMembers = {
  capture_method: optional(captureMethod),
  authentication_type: optional(authenticationType),
  customer_id: optional(customerId),
  description: optional(text()),
  return_url: optional(text(2048)),
  setup_future_usage: optional(futureUsage),
  metadata: optional(metadata),
  session_expiry: optional(Type.Integer({ minimum: 0 })),
  billing_descriptor: optional(billingDescriptor),
  allowed_payment_method_types: optional(Type.Array(oneOf('credit', 'debit'))),
  payment_type: optional(oneOf('normal', 'new_mandate', 'setup_mandate', 'recurring_mandate')),
};

export const createPayment = object({
  amount,
  currency,
  payment_id: optional(ownId),
  confirm: optional(Type.Boolean()),
  off_session: optional(Type.Boolean()),
  mit_category: optional(mitCategory),
  recurring_details: optional(object({ type: Type.Literal('payment_method_id'), data: text() })),
  mandate_data: optional(
    object({
      customer_acceptance: optional(customerAcceptance),
      mandate_type: optional(
        object({ multi_use: nullable(object({ amount: Type.Integer(), currency })) }),
      ),
    }),
  ),
  ...paymentMembers,
});

export const updatePayment = object({
  amount: optional(amount),
  currency: optional(currency),
  ...paymentMembers,
});

export const confirmPayment = object({
  client_secret: optional(text()),
  return_url: optional(text(2048)),
  payment_method: optional(oneOf('card')),
  payment_method_type: optional(oneOf('credit', 'debit')),
  payment_method_data: optional(object({ card })),
  payment_type: paymentMembers.payment_type,
  customer_acceptance: optional(customerAcceptance),
  browser_info: optional(browserInfo),
  // The page sends neither of the two. The server stores the metadata and ignores the description.
  metadata: optional(metadata),
  description: optional(text()),
});

export const capturePayment = object({ amount_to_capture: optional(Type.Integer()) });
export const cancelPayment = object({ cancellation_reason: optional(text()) });

export const createCustomer = object({
  customer_id: optional(customerId),
  name: optional(text(255)),
  email: optional(text(255)),
  phone: optional(text(255)),
  description: optional(text(255)),
  metadata: optional(metadata),
});

export const updateCustomer = object({
  name: optional(text(255)),
  email: optional(text(255)),
  phone: optional(text(255)),
  description: optional(text(255)),
  metadata: optional(metadata),
});

export const createRefund = object({
  payment_id: ownId,
  refund_id: optional(ownId),
  amount: optional(Type.Integer({ minimum: 100 })),
  reason: optional(text(255)),
  refund_type: optional(oneOf('scheduled', 'instant')),
  metadata: optional(metadata),
});

export const listRefunds = object({
  payment_id: optional(text()),
  refund_id: optional(text()),
  limit: optional(Type.Integer({ minimum: 1, maximum: 100 })),
  offset: optional(Type.Integer({ minimum: 0, maximum: 20_000 })),
  start_time: optional(text()),
  end_time: optional(text()),
});

/** The texts of evidence. Members that name uploaded files are not modelled. */
export const evidenceTexts = [
  'access_activity_log',
  'billing_address',
  'cancellation_policy_disclosure',
  'cancellation_rebuttal',
  'customer_email_address',
  'customer_name',
  'customer_purchase_ip',
  'product_description',
  'refund_policy_disclosure',
  'refund_refusal_explanation',
  'service_date',
  'shipping_address',
  'shipping_carrier',
  'shipping_date',
  'shipping_tracking_number',
  'uncategorized_text',
] as const;

export const submitEvidence = object({
  dispute_id: text(),
  ...Object.fromEntries(evidenceTexts.map((name) => [name, optional(text())])),
});

// Schemas of answers.

export const customer = object({
  customer_id: customerId,
  name: nullable(text(255)),
  email: nullable(text(255)),
  phone: nullable(text(255)),
  phone_country_code: nullable(text(255)),
  description: nullable(text(255)),
  address: Type.Null(),
  created_at: time,
  metadata: nullable(metadata),
  default_payment_method_id: nullable(text(64)),
});

export const deletedCustomer = object({
  customer_id: text(255),
  customer_deleted: Type.Boolean(),
  address_deleted: Type.Boolean(),
  payment_methods_deleted: Type.Boolean(),
});

const refundStatus = oneOf('succeeded', 'failed', 'pending', 'review');

export const refund = object({
  refund_id: text(),
  payment_id: text(),
  amount: Type.Integer({ minimum: 100 }),
  currency: text(),
  status: refundStatus,
  reason: nullable(text()),
  metadata: nullable(metadata),
  error_message: nullable(text()),
  error_code: nullable(text()),
  unified_code: nullable(text()),
  unified_message: nullable(text()),
  created_at: nullable(time),
  updated_at: nullable(time),
  connector: text(),
  profile_id: nullable(text()),
  merchant_connector_id: nullable(text()),
});

export const refundList = object({
  count: Type.Integer({ minimum: 0 }),
  total_count: Type.Integer(),
  data: Type.Array(refund),
});

export const dispute = object({
  dispute_id: text(),
  payment_id: text(),
  attempt_id: text(),
  amount: Type.String({ pattern: '^\\d+$' }),
  currency,
  dispute_stage: oneOf('pre_dispute', 'dispute', 'pre_arbitration', 'arbitration'),
  dispute_status: oneOf(
    'dispute_opened',
    'dispute_expired',
    'dispute_accepted',
    'dispute_cancelled',
    'dispute_challenged',
    'dispute_won',
    'dispute_lost',
  ),
  connector: text(),
  connector_status: text(),
  connector_dispute_id: text(),
  connector_reason: nullable(text()),
  connector_reason_code: nullable(text()),
  challenge_required_by: nullable(time),
  connector_created_at: nullable(time),
  connector_updated_at: nullable(time),
  created_at: time,
  profile_id: nullable(text()),
  merchant_connector_id: nullable(text()),
  is_already_refunded: Type.Boolean(),
});

export const disputeList = Type.Array(dispute);

export const paymentMethod = object({
  merchant_id: text(),
  customer_id: nullable(text(64)),
  payment_method_id: text(),
  payment_method: oneOf('card'),
  recurring_enabled: Type.Boolean(),
});

export const deletedPaymentMethod = object({ payment_method_id: text(), deleted: Type.Boolean() });
