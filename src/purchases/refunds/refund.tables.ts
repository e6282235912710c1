import type { Generated } from 'kysely';
import type { GatewayName } from '#gateway/gateway-name.ts';
import type { Fixed } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { InstalmentStatus } from '#purchases/instalments/instalment.ts';
import type { RefundPartKind, RefundPartStatus, RefundStatus } from './refund.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    refund_requests: {
      merchant_id: Fixed<string>;
      id: Fixed<string>;
      number: Fixed<number>;
      checkout_id: Fixed<string>;
      gateway: Fixed<GatewayName>;
      integration_id: Fixed<string>;
      status: RefundStatus;
      amount: Fixed<number>;
      currency: Fixed<string>;
      signed: Fixed<boolean>;
      uncollected_only: Fixed<boolean>;
      created_at: Fixed<Timestamp>;
      approved_at: Timestamp | null;
      completed_at: Timestamp | null;
      reason: string | null;
      kept: Generated<number>;
      due_at: Timestamp | null;
      attempts: Generated<number>;
      lease: string | null;
      leased_until: Timestamp | null;
      requested_by: Fixed<string | null>;
      requested_by_name: Fixed<string | null>;
      request_reason: string | null;
      first_approved_by: string | null;
      first_approved_by_name: string | null;
      first_approved_at: Timestamp | null;
      approved_by: string | null;
      approved_by_name: string | null;
    };
    refund_parts: {
      merchant_id: Fixed<string>;
      id: Fixed<string>;
      checkout_id: Fixed<string>;
      refund_id: Fixed<string>;
      round: Fixed<number>;
      number: Fixed<number>;
      instalment: Fixed<number>;
      kind: Fixed<RefundPartKind>;
      status: RefundPartStatus;
      amount: Fixed<number>;
      from_status: Fixed<InstalmentStatus>;
      payment_ref: Fixed<string | null>;
      key_number: Generated<number>;
      keyed_at: Timestamp;
      asked_at: Timestamp | null;
      refund_ref: string | null;
      settled_at: Timestamp | null;
    };
  }
}
