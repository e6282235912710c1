import type { Generated, JSONColumnType } from 'kysely';
import type { Evidence, EvidenceFileKind } from '#gateway/evidence.ts';
import type { GatewayName } from '#gateway/gateway-name.ts';
import type { Fixed } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { FileTypeName } from '#platform/shared/file-type.ts';
import type { DisputeStatus } from './dispute.ts';
import type { Supplied } from './supplied.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    disputes: {
      merchant_id: Fixed<string>;
      id: Fixed<string>;
      dispute_ref: Fixed<string>;
      gateway: Fixed<GatewayName>;
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
      reads: Generated<number>;
      is_pausing: boolean;
      warned_at: Timestamp | null;
      supplied: JSONColumnType<Supplied | null, string | null, string | null>;
      supplied_at: Timestamp | null;
      asked_at: Timestamp | null;
      asked_until: Timestamp | null;
      staged_at: Timestamp | null;
      staged_evidence: JSONColumnType<Evidence | null, string | null, string | null>;
      staged_files: string[] | null;
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
    dispute_files: {
      merchant_id: Fixed<string>;
      id: Fixed<string>;
      dispute_id: Fixed<string>;
      checkout_id: Fixed<string>;
      kind: Fixed<EvidenceFileKind>;
      name: Fixed<string>;
      media_type: Fixed<FileTypeName>;
      sha256: Fixed<string>;
      content: Fixed<Buffer>;
      added_at: Fixed<Timestamp>;
      removed_at: Timestamp | null;
      file_ref: string | null;
    };
    dispute_poll: {
      gateway: Fixed<GatewayName>;
      reached: string | null;
    };
  }
}
