// The members of Hyperswitch's answers that the adapter reads. It ignores all others.

export type Payment = {
  payment_id: string;
  /** Unknown statuses count as processing. */
  status: string;
  amount: number;
  currency: string;
  amount_received?: number | null;
  cancellation_reason?: string | null;
  capture_method?: string | null;
  client_secret?: string | null;
  /** The acquirer's name for the payment; null if the acquirer did not answer. */
  connector_transaction_id?: string | null;
  created?: string | null;
  customer_id?: string | null;
  description?: string | null;
  setup_future_usage?: string | null;
  next_action?: { type: string; redirect_to_url?: string } | null;
  payment_method_id?: string | null;
  payment_method_tokenization_details?: { is_eligible_for_mit_payment?: boolean } | null;
  payment_method_data?: { card?: Card } | null;
  fingerprint?: string | null;
  capture_before?: string | null;
  expires_on?: string | null;
  network_transaction_id?: string | null;
  network_transaction_link_id?: string | null;
  external_authentication_details?: Authenticated | null;
  error_code?: string | null;
  error_message?: string | null;
  issuer_error_code?: string | null;
  error_details?: ErrorDetails | null;
};

export type Card = {
  last4?: string | null;
  card_network?: string | null;
  card_exp_month?: string | null;
  card_exp_year?: string | null;
};

export type Authenticated = {
  authentication_flow?: string | null;
  electronic_commerce_indicator?: string | null;
  status: string;
  ds_transaction_id?: string | null;
  version?: string | null;
};

export type ErrorDetails = {
  unified_details?: {
    standardised_code?: string | null;
    recommended_action?: string | null;
  } | null;
  issuer_details?: {
    code?: string | null;
    network_details?: { advice_code?: string | null } | null;
  } | null;
  connector_details?: { code?: string | null } | null;
};

export type Refund = {
  refund_id: string;
  payment_id: string;
  amount: number;
  currency: string;
  status: string;
  metadata?: Record<string, unknown> | null;
  created_at?: string | null;
};

export type Dispute = {
  dispute_id: string;
  payment_id: string;
  /** The amount in cents, as a string. */
  amount: string;
  currency: string;
  dispute_stage: string;
  dispute_status: string;
  connector_reason?: string | null;
  connector_reason_code?: string | null;
  challenge_required_by?: string | null;
  created_at: string;
};

export type Customer = { customer_id: string; metadata?: Record<string, unknown> | null };
