import type pg from 'pg';
import { dropGuards } from './append-only.ts';
import type { Database } from './database.ts';

/**
 * The number of the advisory lock that is held while migrating or distributing. It is arbitrary;
 * other programs are unlikely to use it.
 */
export const schemaLock = 7_266_243_001;

/**
 * Where each table's rows live on Citus, in an order that foreign keys allow: a table comes after
 * those that it refers to.
 *
 * A table is on every node (`by: null`: small, shared, joined with everything) or spread by one
 * column. All rows of a merchant are on one node, so a transaction of one merchant stays on that
 * node. A test compares this list with the schema, so a new table needs an entry here.
 *
 * Rate limit counts and the list of nodes stay on the coordinator, where counting a request does
 * not wait for a disk. If they were spread, each count would be a two-phase commit with a flush on
 * every node involved. The rows of a reconciliation's run stay there too: one process writes them,
 * and most are deleted when the run ends.
 */
export const distribution = [
  { table: 'schema_migrations', by: null },
  { table: 'installation', by: null },
  { table: 'territories', by: null },
  { table: 'holidays', by: null },
  { table: 'merchants', by: null },
  { table: 'integrations', by: null },
  { table: 'managed_merchants', by: null },
  { table: 'integration_limits', by: null },
  { table: 'client_secrets', by: null },
  { table: 'signing_keys', by: null },
  { table: 'refused_requests', by: null },
  { table: 'legacy_credentials', by: null },
  { table: 'operator_actions', by: null },
  { table: 'action_texts', by: null },
  { table: 'operator_chain', by: null },
  { table: 'published_ends', by: null },
  { table: 'people', by: null },
  { table: 'downloads', by: null },
  { table: 'person_links', by: null },
  { table: 'person_mails', by: null },
  { table: 'alert_mails', by: null },
  { table: 'passkeys', by: null },
  { table: 'console_sessions', by: null },
  { table: 'console_challenges', by: null },
  { table: 'alerts', by: null },
  { table: 'audit', by: null },
  { table: 'reconciliation', by: null },
  { table: 'gateway_heartbeat', by: null },
  { table: 'gateway_heartbeats', by: null },
  { table: 'gateway_account_fees', by: null },
  { table: 'dispute_poll', by: null },
  { table: 'rollups', by: null },
  { table: 'bulk_actions', by: null },
  { table: 'list_totals', by: 'merchant_id', beside: null },
  { table: 'checkouts', by: 'merchant_id', beside: 'list_totals' },
  { table: 'payment_links', by: 'merchant_id', beside: 'list_totals' },
  { table: 'refund_requests', by: 'merchant_id', beside: 'list_totals' },
  { table: 'payment_attempts', by: 'merchant_id', beside: 'list_totals' },
  { table: 'instalments', by: 'merchant_id', beside: 'list_totals' },
  { table: 'collections', by: 'merchant_id', beside: 'list_totals' },
  { table: 'refund_parts', by: 'merchant_id', beside: 'list_totals' },
  { table: 'postings', by: 'merchant_id', beside: 'list_totals' },
  { table: 'settlement_terms', by: 'merchant_id', beside: 'list_totals' },
  { table: 'payouts', by: 'merchant_id', beside: 'list_totals' },
  { table: 'settlement_entries', by: 'merchant_id', beside: 'list_totals' },
  { table: 'disputes', by: 'merchant_id', beside: 'list_totals' },
  { table: 'dispute_files', by: 'merchant_id', beside: 'list_totals' },
  { table: 'gateway_blocks', by: 'merchant_id', beside: 'list_totals' },
  { table: 'gateway_fees', by: 'merchant_id', beside: 'list_totals' },
  { table: 'payout_sums', by: 'merchant_id', beside: 'list_totals' },
  { table: 'payout_days', by: 'merchant_id', beside: 'list_totals' },
  { table: 'statement_months', by: 'merchant_id', beside: 'list_totals' },
  { table: 'monthly_statements', by: 'merchant_id', beside: 'list_totals' },
  { table: 'bank_accounts', by: 'merchant_id', beside: 'list_totals' },
  { table: 'statement_addresses', by: 'merchant_id', beside: 'list_totals' },
  { table: 'statement_mails', by: 'merchant_id', beside: 'list_totals' },
  { table: 'stored_cards', by: 'merchant_id', beside: 'list_totals' },
  { table: 'replaced_cards', by: 'merchant_id', beside: 'list_totals' },
  { table: 'callbacks', by: 'merchant_id', beside: 'list_totals' },
  { table: 'callback_attempts', by: 'merchant_id', beside: 'list_totals' },
  { table: 'destinations', by: 'merchant_id', beside: 'list_totals' },
  { table: 'destination_days', by: 'merchant_id', beside: 'list_totals' },
  { table: 'destination_states', by: 'merchant_id', beside: 'list_totals' },
  { table: 'notes', by: 'merchant_id', beside: 'list_totals' },
  { table: 'checkout_opens', by: 'merchant_id', beside: 'list_totals' },
  { table: 'merchant_days', by: 'merchant_id', beside: 'list_totals' },
  { table: 'merchant_declines', by: 'merchant_id', beside: 'list_totals' },
  { table: 'merchant_dues', by: 'merchant_id', beside: 'list_totals' },
  { table: 'merchant_entries', by: 'merchant_id', beside: 'list_totals' },
  { table: 'merchant_overdue', by: 'merchant_id', beside: 'list_totals' },
  { table: 'checkout_moves', by: 'merchant_id', beside: 'list_totals' },
  { table: 'retention_dates', by: 'merchant_id', beside: 'list_totals' },
  { table: 'erasures', by: 'merchant_id', beside: 'list_totals' },
  { table: 'deleted_customers', by: 'merchant_id', beside: 'list_totals' },
  { table: 'plan_links', by: 'merchant_id', beside: 'list_totals' },
  { table: 'late_links', by: 'merchant_id', beside: 'list_totals' },
  { table: 'plan_sessions', by: 'merchant_id', beside: 'list_totals' },
  { table: 'conversations', by: 'merchant_id', beside: 'list_totals' },
  { table: 'conversation_entries', by: 'merchant_id', beside: 'list_totals' },
  { table: 'messages', by: 'merchant_id', beside: 'list_totals' },
  { table: 'message_attempts', by: 'merchant_id', beside: 'list_totals' },
  { table: 'archived_messages', by: 'merchant_id', beside: 'list_totals' },
  { table: 'mailbox', by: 'merchant_id', beside: 'list_totals' },
  { table: 'idempotency_keys', by: 'integration_id', beside: null },
  { table: 'legacy_tokens', by: 'token_hash', beside: null },
  { table: 'legacy_usage', by: 'integration_id', beside: null },
  { table: 'rate_limits', by: null, stays: true },
  { table: 'nodes', by: null, stays: true },
  { table: 'reconciliation_runs', by: null, stays: true },
  { table: 'reconciliation_seen', by: null, stays: true },
  { table: 'reconciliation_differences', by: null, stays: true },
] as const satisfies Placement[];

type Placement =
  | { table: string; by: null; stays?: true }
  | { table: string; by: string; beside: string | null };

class NoCitus extends Error {
  constructor() {
    super(
      'This database does not have the Citus extension. To spread Tranche over several machines, ' +
        'run `create extension citus` in it first (its servers need it in shared_preload_libraries). ' +
        'One PostgreSQL server needs none of this.',
    );
  }
}

/** Copying a large table takes a long time. The pool's own timeout is meant for requests. */
const statementMilliseconds = 24 * 3600 * 1000;

/**
 * Turns the migrated tables into Citus tables and returns their names. One transaction converts all
 * of them or none; tables that Citus already manages stay as they are. Stop the service first,
 * because every table is locked until the end.
 */
export async function distributeDatabase(
  database: Database,
  onTable: (table: string, index: number, count: number) => void = () => {},
): Promise<string[]> {
  const client = await database.pool.connect();
  try {
    if (!(await hasCitus(client))) throw new NoCitus();
    await client.query('begin');
    await client.query('set local lock_timeout = 0');
    await client.query('set local statement_timeout = 0');
    // Two distributions must not run at once, nor one beside a migration.
    await client.query('select pg_advisory_xact_lock($1)', [schemaLock]);
    const tables = await placeTables(client, onTable);
    await emptyLocalTables(client);
    await client.query('commit');
    return tables;
  } finally {
    // Closing the connection rolls back what is still open on it.
    client.release(true);
  }
}

async function hasCitus(client: Pick<pg.ClientBase, 'query'>): Promise<boolean> {
  const { rowCount } = await client.query(`select from pg_extension where extname = 'citus'`);
  return rowCount !== 0;
}

export async function isDistributed(client: Pick<pg.ClientBase, 'query'>): Promise<boolean> {
  if (!(await hasCitus(client))) return false;
  const { rowCount } = await client.query(
    `select from pg_dist_partition where logicalrelid = to_regclass('checkouts')`,
  );
  return rowCount !== 0;
}

/**
 * Distributes every table that is not in its place yet, in the caller's transaction.
 *
 * It drops the foreign keys first and adds them again at the end. Citus takes over a local table
 * that refers to a reference table, and then refuses to distribute `checkouts` while such a table
 * refers to it.
 */
export async function placeTables(
  client: pg.ClientBase,
  onTable: (table: string, index: number, count: number) => void = () => {},
): Promise<string[]> {
  const run = (text: string, values: unknown[] = []) =>
    client.query({ text, values, query_timeout: statementMilliseconds } as pg.QueryConfig);
  const found = await run(
    `select name, p.partmethod, p.repmodel
     from unnest($1::text[]) as name
     left join pg_dist_partition p on p.logicalrelid = to_regclass(name)
     where to_regclass(name) is not null`,
    [distribution.map(({ table }) => table)],
  );
  const pending = distribution.filter((placement) => {
    const table = found.rows.find(({ name }) => name === placement.table);
    return table && !('stays' in placement) && !isPlaced(placement, table);
  });
  const tables = pending.map(({ table }) => table);
  const foreignKeys = await run(
    `select conrelid::regclass::text as name, quote_ident(conname) as key,
       pg_get_constraintdef(oid) as definition
     from pg_constraint
     where contype = 'f' and (conrelid::regclass::text = any ($1) or confrelid::regclass::text = any ($1))`,
    [tables],
  );
  await dropGuards(client);
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
  return tables;
}

/**
 * Citus leaves the rows that it has copied to the nodes in the coordinator's own tables, and hides
 * them. Those rows would take up the disk, and nothing would ever erase the shoppers in them.
 */
async function emptyLocalTables(client: pg.ClientBase): Promise<void> {
  const placed = distribution.filter((placement) => !('stays' in placement));
  const text = `select truncate_local_data_after_distributing_table(name::regclass)
    from unnest($1::text[]) as name where pg_relation_size(to_regclass(name)) > 0`;
  const values = [placed.map(({ table }) => table)];
  await client.query({ text, values, query_timeout: statementMilliseconds } as pg.QueryConfig);
}

/**
 * Citus registers a local table that refers to a reference table (method `n`, model other than
 * `t`). Such a table still has to be placed.
 */
function isPlaced(
  { table, by }: Placement,
  { partmethod, repmodel }: { partmethod: string | null; repmodel: string | null },
): boolean {
  if (partmethod === null) return false;
  const isReference = partmethod === 'n' && repmodel === 't';
  const isSpread = partmethod !== 'n';
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
