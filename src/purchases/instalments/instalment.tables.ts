import type { Generated, JSONColumnType } from 'kysely';
import type { DeclineReason, SchemeData } from '#gateway/gateway.ts';
import type { GatewayName } from '#gateway/gateway-name.ts';
import type { Fixed } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Consent } from '#purchases/payments/payment-attempt.ts';
import type { CollectionKind, CollectionStatus, InstalmentStatus } from './instalment.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    gateway_blocks: {
      merchant_id: Fixed<string>;
      checkout_id: Fixed<string>;
      reference: Fixed<string>;
      alert_id: string;
      created_at: Fixed<Timestamp>;
      cleared_at: Timestamp | null;
    };
    instalments: {
      merchant_id: Fixed<string>;
      checkout_id: Fixed<string>;
      gateway: Fixed<GatewayName>;
      number: Fixed<number>;
      amount: Fixed<number>;
      currency: Fixed<string>;
      due_on: Fixed<string>;
      status: InstalmentStatus;
      reduced: Generated<number>;
      payment_ref: string | null;
      collected_at: Timestamp | null;
      declines: Generated<number>;
      due_at: Timestamp | null;
      paused: Generated<boolean>;
      shopper_attempt: string | null;
      attempts: Generated<number>;
      lease: string | null;
      leased_until: Timestamp | null;
    };
    collections: {
      merchant_id: Fixed<string>;
      id: Fixed<string>;
      checkout_id: Fixed<string>;
      instalment: Fixed<number>;
      number: Fixed<number>;
      kind: Fixed<CollectionKind>;
      status: CollectionStatus;
      amount: Fixed<number>;
      currency: Fixed<string>;
      card_ref: Fixed<string | null>;
      customer_ref: Fixed<string | null>;
      card_key: string | null;
      payment_ref: string | null;
      decline_reason: DeclineReason | null;
      may_retry: boolean | null;
      decline_code: string | null;
      network_decline_code: string | null;
      wait_hours: number | null;
      scheme: JSONColumnType<SchemeData | null, string | null | undefined, string | null>;
      created_at: Fixed<Timestamp>;
      asked_at: Timestamp;
      settled_at: Timestamp | null;
    };
    stored_cards: {
      merchant_id: Fixed<string>;
      checkout_id: Fixed<string>;
      customer_ref: Fixed<string>;
      card_ref: Fixed<string>;
      brand: Fixed<string | null>;
      last4: Fixed<string | null>;
      expires: Fixed<string | null>;
      card_key: Fixed<string | null>;
      consent: JSONColumnType<Consent, string, never>;
      created_at: Fixed<Timestamp>;
    };
    replaced_cards: {
      merchant_id: Fixed<string>;
      checkout_id: Fixed<string>;
      gateway: Fixed<GatewayName>;
      card_ref: Fixed<string>;
      customer_ref: Fixed<string>;
      brand: Fixed<string | null>;
      last4: Fixed<string | null>;
      expires: Fixed<string | null>;
      card_key: Fixed<string | null>;
      consent: JSONColumnType<Consent, string, never>;
      created_at: Fixed<Timestamp>;
      replaced_at: Fixed<Timestamp>;
      detached_at: Timestamp | null;
      due_at: Timestamp | null;
      attempts: Generated<number>;
      lease: string | null;
      leased_until: Timestamp | null;
    };
  }
}
