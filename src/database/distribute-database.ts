import type pg from 'pg';
import type { Database } from './database.ts';
import { advisoryLock } from './migrate.ts';

/**
 * Where each table's rows live on Citus, in an order that foreign keys allow: what is referenced
 * comes before what refers to it.
 *
 * A table is either on every node (`reference`: small, shared, read with everything) or spread by
 * one column. The rows of one merchant are together on one node, so a transaction of one merchant
 * stays on it. A test holds this list against the schema: whoever adds a table decides here.
 */
export const distribution = [
  { table: 'schema_migrations', by: null },
  { table: 'installation', by: null },
  { table: 'territories', by: null },
  { table: 'merchants', by: null },
  { table: 'integrations', by: null },
  { table: 'managed_merchants', by: null },
  { table: 'integration_limits', by: null },
  { table: 'client_secrets', by: null },
  { table: 'signing_keys', by: null },
  { table: 'operator_actions', by: null },
  { table: 'alerts', by: null },
  { table: 'list_totals', by: 'merchant_id', beside: null },
  { table: 'checkouts', by: 'merchant_id', beside: 'list_totals' },
  { table: 'refund_requests', by: 'merchant_id', beside: 'list_totals' },
  { table: 'idempotency_keys', by: 'integration_id', beside: null },
  { table: 'rate_limits', by: 'key', beside: null },
] as const satisfies Placement[];

type Placement = { table: string; by: null } | { table: string; by: string; beside: string | null };

class NoCitus extends Error {
  constructor() {
    super(
      'This database does not have the Citus extension. To spread Tranche over several machines, ' +
        'run `create extension citus` in it first (its servers need it in shared_preload_libraries). ' +
        'One PostgreSQL server needs none of this.',
    );
  }
}

/** Copying the rows of a large table takes long; the pool's usual limit is for requests. */
const patienceMilliseconds = 24 * 3600 * 1000;

/**
 * Turns the migrated tables into Citus tables and returns those that it turned. Each is a
 * transaction of its own and those already done are skipped, so it can be interrupted and run
 * again. Meant for a service that is stopped: Citus locks each table while it copies it.
 *
 * Verified by tests: the refusal without the extension, and the list above. The statements
 * themselves follow the documentation of Citus 11 to 13; no test runs them, because the embedded
 * PostgreSQL does not have the extension.
 */
export async function distributeDatabase(
  database: Database,
  onTable: (table: string, index: number, count: number) => void = () => {},
): Promise<string[]> {
  const client = await database.pool.connect();
  const run = (text: string, values: unknown[] = []) =>
    client.query({ text, values, query_timeout: patienceMilliseconds } as pg.QueryConfig);
  try {
    const { rowCount } = await run(`select from pg_extension where extname = 'citus'`);
    if (rowCount === 0) throw new NoCitus();
    await run('set lock_timeout = 0');
    // The lock of the migrations: neither two of these at once, nor one beside a migration.
    await run('select pg_advisory_lock($1)', [advisoryLock]);
    const done: string[] = [];
    for (const [index, placement] of distribution.entries()) {
      onTable(placement.table, index, distribution.length);
      const found = await run(
        `select partmethod, repmodel from pg_dist_partition where logicalrelid = $1::regclass`,
        [placement.table],
      );
      if (isPlaced(placement, found.rows[0])) continue;
      await run(...placingStatement(placement));
      done.push(placement.table);
    }
    return done;
  } finally {
    // Ending the connection gives the lock and the settings of the session back.
    client.release(true);
  }
}

/**
 * Citus itself registers a local table that refers to a reference table (method `n`, model other
 * than `t`); that one has still to be placed.
 */
function isPlaced(
  { table, by }: Placement,
  found: { partmethod: string; repmodel: string } | undefined,
): boolean {
  if (!found) return false;
  const isReference = found.partmethod === 'n' && found.repmodel === 't';
  const isSpread = found.partmethod !== 'n';
  if ((by === null && isSpread) || (by !== null && isReference)) {
    throw new Error(`${table} is ${isSpread ? 'distributed' : 'a reference table'} already.`);
  }
  return isReference || isSpread;
}

function placingStatement(placement: Placement): [text: string, values: string[]] {
  const { table, by } = placement;
  if (by === null) return ['select create_reference_table($1)', [table]];
  return [
    'select create_distributed_table($1, $2, colocate_with => $3)',
    [table, by, placement.beside ?? 'none'],
  ];
}
