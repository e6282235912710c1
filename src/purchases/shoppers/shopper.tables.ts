import type { Generated, JSONColumnType } from 'kysely';
import type { Authentication, DeclineReason } from '#gateway/gateway.ts';
import type { Fixed } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Consent } from '#purchases/payments/payment-attempt.ts';
import type { Purpose as PurposeName, ShopperAttemptStatus } from './shopper-attempt.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    shopper_attempts: {
      merchant_id: Fixed<string>;
      id: Fixed<string>;
      checkout_id: Fixed<string>;
      number: Fixed<number>;
      purpose: Fixed<PurposeName>;
      status: ShopperAttemptStatus;
      instalments: Fixed<number[]>;
      amount: Fixed<number>;
      currency: Fixed<string>;
      sealed_card_token: Buffer | null;
      uses_stored_card: Fixed<boolean>;
      keeps_card: Fixed<boolean>;
      consent: JSONColumnType<Consent | null, string | null, never>;
      customer_ref: Fixed<string>;
      payment_ref: string | null;
      challenge_url: string | null;
      card_ref: string | null;
      card_brand: string | null;
      card_last4: string | null;
      card_expires: string | null;
      authentication: JSONColumnType<Authentication | null, string | null, string | null>;
      decline_reason: DeclineReason | null;
      may_retry: boolean | null;
      decline_code: string | null;
      network_decline_code: string | null;
      created_at: Fixed<Timestamp>;
      asked_at: Timestamp | null;
      settled_at: Timestamp | null;
      due_at: Timestamp | null;
      tries: Generated<number>;
      lease: string | null;
      leased_until: Timestamp | null;
    };
    retention_dates: {
      merchant_id: Fixed<string>;
      number: number;
      due_at: Timestamp;
      tries: Generated<number>;
      lease: string | null;
      leased_until: Timestamp | null;
    };
    erasures: {
      merchant_id: Fixed<string>;
      checkout_id: Fixed<string>;
      due_at: Timestamp;
      tries: Generated<number>;
      lease: string | null;
      leased_until: Timestamp | null;
    };
    deleted_customers: {
      merchant_id: Fixed<string>;
      checkout_id: Fixed<string>;
      customer_ref: Fixed<string>;
      due_at: Timestamp | null;
      deleted_at: Timestamp | null;
      tries: Generated<number>;
      lease: string | null;
      leased_until: Timestamp | null;
    };
    plan_links: {
      merchant_id: Fixed<string>;
      checkout_id: Fixed<string>;
      token_hash: Fixed<Buffer>;
      created_at: Fixed<Timestamp>;
      expires_at: Fixed<Timestamp>;
      used_at: Timestamp | null;
    };
    plan_sessions: {
      merchant_id: Fixed<string>;
      checkout_id: Fixed<string>;
      session_hash: Fixed<Buffer>;
      created_at: Fixed<Timestamp>;
      expires_at: Fixed<Timestamp>;
    };
  }
}
