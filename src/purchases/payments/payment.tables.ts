import type { Generated, JSONColumnType } from 'kysely';
import type { Authentication, DeclineReason, SchemeData } from '#gateway/gateway.ts';
import type { GatewayName } from '#gateway/gateway-name.ts';
import type { Fixed } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type {
  AttemptPurpose as AttemptPurposeName,
  AttemptStatus,
  Consent,
} from './payment-attempt.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    payment_attempts: {
      merchant_id: Fixed<string>;
      id: Fixed<string>;
      checkout_id: Fixed<string>;
      gateway: Fixed<GatewayName>;
      purpose: Fixed<AttemptPurposeName>;
      number: Fixed<number>;
      instalments: Fixed<number[]>;
      number_of_payments: Fixed<number>;
      amount: Fixed<number>;
      currency: Fixed<string>;
      uses_stored_card: Fixed<boolean>;
      consent: JSONColumnType<Consent | null, string | null | undefined, never>;
      created_at: Fixed<Timestamp>;
      written_id: Fixed<string>;
      status: AttemptStatus;
      sealed_card_token: Buffer | null;
      sealed_network: Buffer | null;
      customer_ref: string | null;
      payment_ref: string | null;
      challenge_url: string | null;
      card_ref: string | null;
      card_brand: string | null;
      card_last4: string | null;
      card_expires: string | null;
      authentication: JSONColumnType<
        Authentication | null,
        string | null | undefined,
        string | null
      >;
      scheme: JSONColumnType<SchemeData | null, string | null | undefined, string | null>;
      capture_before: Timestamp | null;
      decline_reason: DeclineReason | null;
      may_retry: boolean | null;
      decline_code: string | null;
      network_decline_code: string | null;
      card_key: string | null;
      asked_at: Timestamp | null;
      settled_at: Timestamp | null;
      due_at: Timestamp | null;
      attempts: Generated<number>;
      lease: string | null;
      leased_until: Timestamp | null;
    };
  }
}
