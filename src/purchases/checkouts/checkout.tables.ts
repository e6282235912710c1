import type { JSONColumnType } from 'kysely';
import type { GatewayName } from '#gateway/gateway-name.ts';
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
      /** Null if the checkout makes no callback, which only a payment link allows. */
      notify_url: Fixed<string | null>;
      /** Null if the shopper stays on our page, which only a payment link allows. */
      success_url: Fixed<string | null>;
      cancel_url: Fixed<string>;
      customer: JSONColumnType<Customer, string, never>;
      line_items: JSONColumnType<LineItem[], string, never>;
      /**
       * The band's terms at creation.
       * A later change of the rules does not affect them (decision 0011).
       */
      terms: Fixed<number[]>;
      number_of_payments: number | null;
      signed: Fixed<boolean>;
      created_at: Fixed<Timestamp>;
      expires_at: Fixed<Timestamp>;
      /** When the checkout became `successful` or `cancelled`. */
      completed_at: Timestamp | null;
      /**
       * Authenticates the v1 callback; null for a checkout that was created through v2 (decision
       * 0040).
       */
      sealed_verify: Fixed<Buffer | null>;
      /** The shopper's language. Null until the shopper has chosen one or begun to pay. */
      language: Language | null;
      /** When the shopper's data was erased (decision 0070). */
      erased_at: Timestamp | null;
      payment_link_id: Fixed<string | null>;
      /** The gateway of the checkout's payments. Only `give-to-gateway.ts` changes it. */
      gateway: GatewayName;
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
