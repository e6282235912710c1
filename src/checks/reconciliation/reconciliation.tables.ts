import type { ColumnType, Generated, JSONColumnType } from 'kysely';
import type { GatewayName } from '#gateway/gateway-name.ts';
import type { Fixed } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

declare module '#platform/database/tables.ts' {
  interface Tables {
    reconciliation: {
      gateway: Fixed<GatewayName>;
      due_at: Timestamp;
      leased_until: Timestamp | null;
    };
    gateway_heartbeat: {
      only_row: ColumnType<boolean, never, never>;
      id: string | null;
      stopped_at: Timestamp | null;
      stopped_reason: string | null;
      access_stopped_at: Timestamp | null;
      access_server: string | null;
      access_at: Timestamp | null;
    };
    gateway_heartbeats: {
      gateway: Fixed<GatewayName>;
      heartbeat: Generated<number>;
      heartbeat_at: Timestamp | null;
      server: string | null;
      due_at: Timestamp | null;
    };
    reconciliation_runs: {
      id: Fixed<string>;
      gateway: Fixed<GatewayName>;
      from_at: Fixed<Timestamp | null>;
      to_at: Fixed<Timestamp | null>;
      records_lost: Fixed<boolean>;
      kind: string | null;
      after: string | null;
      checked: Generated<number>;
      began_at: Fixed<Timestamp>;
      ended_at: Timestamp | null;
    };
    reconciliation_seen: {
      run_id: Fixed<string>;
      reference: Fixed<string>;
    };
    reconciliation_differences: {
      run_id: Fixed<string>;
      record_kind: Fixed<string>;
      reference: Fixed<string>;
      kind: string;
      of_merchant: string | null;
      checkout_id: string | null;
      record: JSONColumnType<object | null, string | null, null>;
      created_at: Timestamp | null;
      alert_id: string | null;
      outcome: 'recorded' | 'blocked' | 'reported' | null;
    };
  }
}
