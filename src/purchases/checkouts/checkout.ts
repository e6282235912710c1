import type { Timestamp } from '#platform/shared/clock.ts';
import type { Language } from '#platform/shared/language.ts';

/**
 * A checkout is `received` until it reaches its one outcome, which never changes again. Only the
 * guarded moves in checkout.sql.ts change a status. If no row moved, another actor won.
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
  /** The band's terms at creation. A later change of the rules does not affect them (decision 0011). */
  terms: number[];
  number_of_payments: number | null;
  signed: boolean;
  created_at: Timestamp;
  expires_at: Timestamp;
  /** When it became `successful` or `cancelled`. */
  completed_at: Timestamp | null;
  /** Authenticates its v1 callback; null for a checkout that was created by v2 (decision 0040). */
  sealed_verify: Buffer | null;
  /** The shopper's language; null until the shopper has chosen one or paid. */
  language: Language | null;
  /** When the shopper's data was erased (decision 0070). */
  erased_at: Timestamp | null;
};

/** How long the hosted page can be opened (decision 0011). */
export const paymentUrlMinutes = 30;
