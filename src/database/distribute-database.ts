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
  { table: 'legacy_credentials', by: null },
  { table: 'operator_actions', by: null },
  { table: 'alerts', by: null },
  { table: 'audit', by: null },
  { table: 'list_totals', by: 'merchant_id', beside: null },
  { table: 'checkouts', by: 'merchant_id', beside: 'list_totals' },
  { table: 'refund_requests', by: 'merchant_id', beside: 'list_totals' },
  { table: 'payment_attempts', by: 'merchant_id', beside: 'list_totals' },
  { table: 'instalments', by: 'merchant_id', beside: 'list_totals' },
  { table: 'collections', by: 'merchant_id', beside: 'list_totals' },
  { table: 'refund_parts', by: 'merchant_id', beside: 'list_totals' },
  { table: 'postings', by: 'merchant_id', beside: 'list_totals' },
  { table: 'stored_cards', by: 'merchant_id', beside: 'list_totals' },
  { table: 'callbacks', by: 'merchant_id', beside: 'list_totals' },
  { table: 'callback_attempts', by: 'merchant_id', beside: 'list_totals' },
  { table: 'destinations', by: 'merchant_id', beside: 'list_totals' },
  { table: 'checkout_moves', by: 'merchant_id', beside: 'list_totals' },
  { table: 'idempotency_keys', by: 'integration_id', beside: null },
  { table: 'rate_limits', by: 'key', beside: null },
  { table: 'legacy_tokens', by: 'token_hash', beside: null },
  { table: 'legacy_usage', by: 'integration_id', beside: null },
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
 * Turns the migrated tables into Citus tables and returns those that it turned: all of them in one
 * transaction, or none. Those that are Citus tables already are left alone. Meant for a service
 * that is stopped, because every table stays locked until the end.
 *
 * Foreign keys are taken off and put back at the end. Citus would make a local table that refers
 * to a reference table one of its own, and then refuse to distribute `checkouts` while such a
 * table refers to it.
 *
 * Verified by tests: the refusal without the extension; that the list above suits the schema; and,
 * with a stand-in for the two functions of Citus, what they are asked and that every foreign key
 * is back. Not verified: Citus itself, which the embedded PostgreSQL does not have.
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
    await run('begin');
    await run('set local lock_timeout = 0');
    // One connection to each node: a second one would not see what this transaction made there.
    await run(`set local citus.multi_shard_modify_mode = 'sequential'`);
    // The lock of the migrations: neither two of these at once, nor one beside a migration.
    await run('select pg_advisory_xact_lock($1)', [advisoryLock]);
    const found = await run(
      'select logicalrelid::regclass::text as name, partmethod, repmodel from pg_dist_partition',
    );
    const pending = distribution.filter(
      (placement) =>
        !isPlaced(
          placement,
          found.rows.find(({ name }) => name === placement.table),
        ),
    );
    const tables = pending.map(({ table }) => table);
    const foreignKeys = await run(
      `select conrelid::regclass::text as name, quote_ident(conname) as key,
         pg_get_constraintdef(oid) as definition
       from pg_constraint
       where contype = 'f' and (conrelid::regclass::text = any ($1) or confrelid::regclass::text = any ($1))`,
      [tables],
    );
    for (const { name, key } of foreignKeys.rows) {
      await run(`alter table ${name} drop constraint ${key}`);
    }
    for (const [index, placement] of pending.entries()) {
      onTable(placement.table, index, pending.length);
      await run(...placingStatement(placement));
    }
    for (const { name, key, definition } of foreignKeys.rows) {
      await run(`alter table ${name} add constraint ${key} ${definition}`);
    }
    await run('commit');
    return tables;
  } finally {
    // Ending the connection ends whatever is still open on it.
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
