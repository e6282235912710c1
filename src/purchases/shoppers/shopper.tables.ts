import type { Generated } from 'kysely';
import type { GatewayName } from '#gateway/gateway-name.ts';
import type { Fixed } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    checkout_opens: {
      merchant_id: Fixed<string>;
      checkout_id: Fixed<string>;
      id: Fixed<string>;
      at: Fixed<Timestamp>;
    };
    retention_dates: {
      merchant_id: Fixed<string>;
      number: number;
      due_at: Timestamp;
      attempts: Generated<number>;
      lease: string | null;
      leased_until: Timestamp | null;
    };
    erasures: {
      merchant_id: Fixed<string>;
      checkout_id: Fixed<string>;
      due_at: Timestamp;
      attempts: Generated<number>;
      lease: string | null;
      leased_until: Timestamp | null;
    };
    deleted_customers: {
      merchant_id: Fixed<string>;
      checkout_id: Fixed<string>;
      gateway: Fixed<GatewayName>;
      customer_ref: Fixed<string>;
      due_at: Timestamp | null;
      deleted_at: Timestamp | null;
      attempts: Generated<number>;
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
    late_links: {
      merchant_id: Fixed<string>;
      checkout_id: Fixed<string>;
      token_hash: Buffer;
      created_at: Timestamp;
      expires_at: Timestamp;
    };
    plan_sessions: {
      merchant_id: Fixed<string>;
      checkout_id: Fixed<string>;
      session_hash: Fixed<Buffer>;
      scope: Fixed<'plan' | 'late'>;
      created_at: Fixed<Timestamp>;
      expires_at: Fixed<Timestamp>;
    };
  }
}
