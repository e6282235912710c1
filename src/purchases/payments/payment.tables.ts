import type { Generated, JSONColumnType } from 'kysely';
import type { Authentication, DeclineReason } from '#gateway/gateway.ts';
import type { Fixed } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { AttemptStatus, Consent } from './payment-attempt.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    payment_attempts: {
      merchant_id: Fixed<string>;
      id: Fixed<string>;
      checkout_id: Fixed<string>;
      number: Fixed<number>;
      status: AttemptStatus;
      number_of_payments: Fixed<number>;
      amount: Fixed<number>;
      currency: Fixed<string>;
      sealed_card_token: Buffer | null;
      consent: JSONColumnType<Consent | null, string | null, never>;
      customer_ref: string | null;
      payment_ref: string | null;
      challenge_url: string | null;
      card_ref: string | null;
      card_brand: string | null;
      card_last4: string | null;
      card_expires: string | null;
      authentication: JSONColumnType<Authentication | null, string | null, string | null>;
      capture_before: Timestamp | null;
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
      written_id: Fixed<string | null>;
    };
    checkout_opens: {
      merchant_id: Fixed<string>;
      checkout_id: Fixed<string>;
      id: Fixed<string>;
      at: Fixed<Timestamp>;
    };
  }
}
