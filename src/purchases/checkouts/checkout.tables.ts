import type { JSONColumnType } from 'kysely';
import type { Fixed } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Language } from '#platform/shared/language.ts';
import type { CheckoutStatus, Customer, LineItem } from './checkout.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    checkouts: {
      merchant_id: Fixed<string>;
      id: Fixed<string>;
      number: Fixed<number>;
      integration_id: Fixed<string>;
      status: CheckoutStatus;
      amount: Fixed<number>;
      currency: Fixed<string>;
      client_reference_id: Fixed<string>;
      notify_url: Fixed<string>;
      success_url: Fixed<string>;
      cancel_url: Fixed<string>;
      customer: JSONColumnType<Customer, string, never>;
      line_items: JSONColumnType<LineItem[], string, never>;
      terms: Fixed<number[]>;
      number_of_payments: number | null;
      signed: Fixed<boolean>;
      created_at: Fixed<Timestamp>;
      expires_at: Fixed<Timestamp>;
      completed_at: Timestamp | null;
      sealed_verify: Fixed<Buffer | null>;
      language: Language | null;
      erased_at: Timestamp | null;
    };
    checkout_moves: {
      merchant_id: Fixed<string>;
      checkout_id: Fixed<string>;
      from_status: Fixed<'received'>;
      to_status: Fixed<Exclude<CheckoutStatus, 'received'>>;
      at: Fixed<Timestamp>;
    };
  }
}
