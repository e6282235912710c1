import type { Selectable } from 'kysely';
import type { Tables } from '#platform/database/tables.ts';

/**
 * A checkout is `received` until it reaches its only outcome, which never changes. Only the guarded
 * moves in checkout.sql.ts change a status. If no row moved, another actor won.
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

export type Checkout = Selectable<Tables['checkouts']>;

/**
 * People write e-mail addresses in upper or lower case, and with spaces around them. Neither makes
 * a difference.
 */
export const normaliseEmail = (email: string) => email.normalize('NFC').trim().toLowerCase();

/** How long the hosted page can be opened (decision 0011). */
export const paymentUrlMinutes = 30;
