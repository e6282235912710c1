import type { Generated } from 'kysely';
import type { Fixed, JsonValue } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Customer } from '#purchases/checkouts/checkout.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    payment_links: {
      merchant_id: Fixed<string>;
      id: Fixed<string>;
      number: Fixed<number>;
      /** Its checkouts belong to this integration, whose key signs their callbacks. */
      integration_id: Fixed<string>;
      /** Null if the shopper types the amount. */
      amount: Fixed<number | null>;
      currency: Fixed<string>;
      client_reference_id: Fixed<string>;
      /** Null if no callback is made for its checkouts. */
      notify_url: Fixed<string | null>;
      /** If it is null, the shopper stays on our page after paying. */
      success_url: Fixed<string | null>;
      /** If it is null, the shopper returns to the page of the link. */
      cancel_url: Fixed<string | null>;
      /** Null if the shopper types the e-mail address, or if the data was erased. */
      customer: JsonValue<Customer | null>;
      reusable: Fixed<boolean>;
      /** Whether the request that created it was signed. */
      signed: Fixed<boolean>;
      created_at: Fixed<Timestamp>;
      /** Null if the link does not expire. */
      expires_at: Fixed<Timestamp | null>;
      cancelled_at: Timestamp | null;
      /** How many checkouts the link has made. */
      checkouts: Generated<number>;
      /** The newest checkout that the link has made. */
      checkout_id: string | null;
      /** The browser's id of the request that made it. Null if the API made it. */
      request_id: Generated<string | null>;
    };
  }
}
