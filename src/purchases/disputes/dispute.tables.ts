import type { ColumnType, Generated, JSONColumnType } from 'kysely';
import type { Evidence } from '#gateway/gateway.ts';
import type { Fixed } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { DisputeStatus } from './dispute.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    disputes: {
      merchant_id: Fixed<string>;
      id: Fixed<string>;
      dispute_ref: Fixed<string>;
      checkout_id: Fixed<string>;
      instalment: Fixed<number>;
      payment_ref: Fixed<string>;
      amount: number;
      currency: Fixed<string>;
      reason: string;
      network_reason_code: string | null;
      status: DisputeStatus;
      created_at: Fixed<Timestamp>;
      due_by: Timestamp | null;
      withdrawn: number;
      fee: number;
      is_pausing: boolean;
      warned_at: Timestamp | null;
      staged_at: Timestamp | null;
      staged_evidence: JSONColumnType<Evidence | null, string | null, string | null>;
      staged_hash: string | null;
      submitting_at: Timestamp | null;
      submitting_until: Timestamp | null;
      submitted_at: Timestamp | null;
      closed_at: Timestamp | null;
      due_at: Timestamp | null;
      attempts: Generated<number>;
      lease: string | null;
      leased_until: Timestamp | null;
    };
    dispute_poll: {
      only_row: ColumnType<boolean, never, never>;
      reached: string | null;
    };
  }
}
