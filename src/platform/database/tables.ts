import type { ColumnType } from 'kysely';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Environment } from '#platform/shared/environment.ts';

/** Written once, never updated. */
export type Fixed<T> = ColumnType<T, T, never>;

/** A JSON value that need not be an object. It is written as text. */
export type JsonValue<T> = ColumnType<T, string | null, string | null>;

/**
 * The tables that the migrations make, as types. A test compares the two. This file has the tables
 * of this folder. Each slice adds its own in a `*.tables.ts` file, and only that slice writes them
 * (decision 0065).
 */
export interface Tables {
  schema_migrations: {
    version: Fixed<number>;
    name: Fixed<string>;
    hash: Fixed<string>;
    applied_at: Fixed<Timestamp>;
    oldest_program: Fixed<number | null>;
  };
  installation: {
    only_row: ColumnType<boolean, never, never>;
    environment: Fixed<Environment>;
    created_at: Fixed<Timestamp>;
    key_check: Buffer | null;
  };
  territories: {
    code: Fixed<string>;
    currency: Fixed<string>;
    time_zone: Fixed<string>;
    locale: Fixed<string>;
    payment_min: ColumnType<number, never, never>;
  };
  list_totals: {
    merchant_id: Fixed<string>;
    list: Fixed<'checkouts' | 'payment_links' | 'refund_requests' | 'payouts'>;
    total: number;
    last_created_at: Timestamp;
  };
  nodes: {
    id: Fixed<string>;
    host: Fixed<string>;
    process_id: Fixed<number>;
    program_version: Fixed<number>;
    started_at: Fixed<Timestamp>;
    seen_at: Timestamp;
  };
}
