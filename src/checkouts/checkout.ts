import type { Timestamp } from '../shared/clock.ts';

/**
 * A checkout is `received` until it reaches one outcome and never leaves it again. Only the
 * guarded moves of checkout.sql.ts change a status: no row moved means that another actor won.
 */
export const checkoutStatuses = ['received', 'successful', 'cancelled', 'invalid_payload'] as const;
export type CheckoutStatus = (typeof checkoutStatuses)[number];

export type Customer = {
  email: string;
  first_name?: string;
  last_name?: string;
  phone_number?: string;
  billing_address?: string;
};

export type LineItem = { name: string; amount: number; quantity: number };

export type Checkout = {
  merchant_id: string;
  id: string;
  number: number;
  integration_id: string;
  status: CheckoutStatus;
  amount: number;
  currency: string;
  client_reference_id: string;
  notify_url: string;
  success_url: string;
  cancel_url: string;
  customer: Customer;
  line_items: LineItem[];
  /** The band's terms at creation: a later change of the rules never touches them (D20). */
  terms: number[];
  number_of_payments: number | null;
  signed: boolean;
  created_at: Timestamp;
  expires_at: Timestamp;
  /** When it became `successful` or `cancelled`. */
  completed_at: Timestamp | null;
  /** What its v1 callback proves itself by; null when it came by v2 (D32). */
  sealed_verify: Buffer | null;
};

/** What a `transaction_verify` is sealed for: it opens for no other checkout. */
export const verifyContext = (merchant_id: string, checkout_id: string) =>
  `transaction_verify ${merchant_id} ${checkout_id}`;

/** The hosted page can be opened for this long (D17). */
export const paymentUrlMinutes = 30;
