import type pg from 'pg';
import type { Backend } from './stalled-connections.ts';

// The settings of every connection, whatever DATABASE_URL, the role or the server say. A statement
// sets them on each new connection. The startup message could not: `?options=…` in DATABASE_URL
// replaces its settings, and a connection pooler may drop them.

/**
 * - The driver's parsers expect `TimeZone`, `DateStyle` and `bytea_output` as they are here.
 * - A role's default of `serializable` or of deferred commits would change what a transaction
 *   means.
 * - Only Citus reads the last setting. It allows one connection to each node: with several, a
 *   statement over many merchants takes its locks in no order, and later statements of the same
 *   transaction may not touch the tables that are on every node.
 */
const settings = {
  TimeZone: 'UTC',
  DateStyle: 'ISO, MDY',
  bytea_output: 'hex',
  default_transaction_isolation: 'read committed',
  lock_timeout: '10s',
  idle_in_transaction_session_timeout: '30s',
  'citus.multi_shard_modify_mode': 'sequential',
};

/**
 * The settings that a role needs when its connections go through a pooler: those above but the one
 * for Citus, and a timeout of statements.
 */
const { 'citus.multi_shard_modify_mode': _, ...roleSettings } = {
  ...settings,
  statement_timeout: '25s',
};

/** The server takes no writes: a standby, or a primary that was demoted. */
export class ServerReadOnly extends Error {
  /** PostgreSQL's own code for a write in a read-only transaction: callers retry. */
  readonly code = '25006';

  constructor() {
    super('the database server is read only');
  }
}

/** The connection does not keep the settings that it was given. */
export class SettingsRefused extends Error {
  constructor(names: string[]) {
    super(
      `The database connection does not keep ${names.join(', ')}. Tranche sets these on each new ` +
        'connection. Check the role and the connection pooler that DATABASE_URL names.',
    );
  }
}

/**
 * A pooler may run each transaction on another server process, so the role must carry the settings.
 */
export class PoolerNeedsSettings extends Error {
  constructor(names: string[], role: string) {
    const needed = {
      ...roleSettings,
      ...(names.includes('synchronous_commit') && { synchronous_commit: 'on' }),
    };
    const statements = Object.entries(needed).map(
      ([name, value]) => `  alter role ${role} set ${name} = '${value}';`,
    );
    super(
      'DATABASE_URL goes through a connection pooler, and Tranche needs other values for ' +
        `${names.join(', ')}. Run these statements on the server, then make the pooler ` +
        `reconnect (PgBouncer: RECONNECT):\n${statements.join('\n')}`,
    );
  }
}

/** The pooler does not know prepared statements. */
export class PoolerTooOld extends Error {
  constructor(cause: unknown) {
    super(
      'DATABASE_URL goes through a connection pooler that loses prepared statements between ' +
        'transactions. PgBouncer needs version 1.21 or newer and max_prepared_statements above 0. ' +
        'With an older one use pool_mode = session, or connect to the server directly.',
      { cause },
    );
  }
}

/**
 * Prepares a new connection, in one round trip. Throws if the server is read only, so that the pool
 * drops the connection and the caller retries, perhaps on a server that takes writes.
 *
 * If the process that answers is not the one that greeted us, a pooler is in between and may run
 * each transaction on another server process. Settings would reach the wrong clients, so none are
 * changed: `verifyPooler` says what the role needs.
 */
export async function prepareSession(
  client: pg.ClientBase,
  {
    statementMilliseconds,
    firstMilliseconds,
  }: {
    statementMilliseconds: number;
    /** How long a server may take to answer a connection's first statement. */
    firstMilliseconds: number;
  },
): Promise<Backend & { isDistributed: boolean }> {
  const wanted = { ...settings, statement_timeout: `${statementMilliseconds}ms` };
  const { processID } = client as unknown as { processID: number };
  const { rows } = await client.query<{
    read_only: string;
    pid: number;
    started_at: string;
    is_distributed: boolean;
  }>({
    // Nothing watches the connection yet, and the pool's timeout may be a day.
    query_timeout: firstMilliseconds,
    text: `select current_setting('transaction_read_only') as read_only, pg_backend_pid() as pid,
       pg_postmaster_start_time()::text as started_at,
       current_setting('citus.shard_count', true) is not null as is_distributed,
       (select count(set_config(name, value, false))
        from unnest($1::text[], $2::text[]) as s (name, value)
        where pg_backend_pid() = $3),
       -- 'off' would acknowledge commits that a crash can lose. Stricter values stay.
       case current_setting('synchronous_commit')
         when 'off' then set_config('synchronous_commit', 'on', pg_backend_pid() <> $3) end`,
    values: [Object.keys(wanted), Object.values(wanted), processID],
  } as pg.QueryConfig);
  const [row] = rows;
  if (row?.read_only !== 'off') throw new ServerReadOnly();
  const { pid, started_at: startedAt, is_distributed: isDistributed } = row;
  return { pid: pid === processID ? pid : null, startedAt, isDistributed };
}

/** Refuses a connection that lost its settings between two statements. */
export async function verifySession(client: pg.ClientBase): Promise<void> {
  const names = await listDifferent(client, settings);
  if (names.length > 0) throw new SettingsRefused(names);
}

async function listDifferent(
  client: pg.ClientBase,
  wanted: Record<string, string>,
): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select name from unnest($1::text[], $2::text[]) as s (name, value)
     where current_setting(name, true) is distinct from value
     union all
     select 'synchronous_commit' where current_setting('synchronous_commit') = 'off'`,
    [Object.keys(wanted), Object.values(wanted)],
  );
  return rows.map(({ name }) => name);
}

/** PostgreSQL's codes for a prepared statement that does not exist, or exists twice. */
const preparedCodes = ['26000', '42P05'];

/**
 * Refuses a pooler that does not work with Tranche. A statement prepared for `client` has to run on
 * another server process while `other` holds the process that prepared it.
 */
export async function verifyPooler(client: pg.ClientBase, other: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ role: string }>('select quote_ident(current_user) as role');
  const names = await listDifferent(client, roleSettings);
  if (names.length > 0) throw new PoolerNeedsSettings(names, rows[0]?.role ?? '');
  const prepared = { name: 'pooler-check', text: 'select pg_backend_pid() as pid' };
  try {
    for (let round = 0; round < 5; round += 1) {
      const first = await client.query<{ pid: number }>(prepared);
      await other.query('begin');
      try {
        const held = await other.query<{ pid: number }>('select pg_backend_pid() as pid');
        const second = await client.query<{ pid: number }>(prepared);
        const isHeld = held.rows[0]?.pid === first.rows[0]?.pid;
        if (isHeld && second.rows[0]?.pid !== first.rows[0]?.pid) return;
      } finally {
        await other.query('rollback');
      }
    }
  } catch (error) {
    const code = (error as { code?: string }).code ?? '';
    throw preparedCodes.includes(code) ? new PoolerTooOld(error) : error;
  }
}
