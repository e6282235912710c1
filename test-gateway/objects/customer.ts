import { randomBytes } from 'node:crypto';
import type { Kept } from '../store.ts';
import { type Made, newId } from './made.ts';

export function makeCustomer(
  { merchant, now }: Made,
  given: {
    /** The caller's own id, if the API lets callers choose ids. */
    id?: string;
    email: string | null;
    name: string | null;
    phone: string | null;
    description: string | null;
    metadata: Record<string, string>;
  },
): Kept<'customer'> {
  return {
    object: {
      id: given.id ?? newId('cus'),
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
