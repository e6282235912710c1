import type { Duplex } from 'node:stream';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import type { Logger } from '../shared/logger.ts';
import { gatherWrites } from './gather-writes.ts';
import type { Tables } from './tables.ts';

export type Database = {
  /** For typed statements. */
  db: Kysely<Tables>;
  /** The same connections, for the few statements that are pipelined by hand. */
  pool: pg.Pool;
  close(): Promise<void>;
};

/** A handle that reads and writes: the database, or a transaction in it. */
export type Handle = Kysely<Tables>;

const int8 = 20;
const timestamptz = 1184;
const date = 1082;
const jsTypes = new pg.TypeOverrides();
// Amounts and numbers stay far below 2^53; a string in their place would break every sum.
jsTypes.setTypeParser(int8, Number);
// A date has neither a time nor a zone that could shift it.
jsTypes.setTypeParser(date, (text) => text);
// The session's zone is UTC, so `2026-11-15 08:00:00.5+00` is only spelled differently.
jsTypes.setTypeParser(timestamptz, (text) => {
  const fraction = text.slice(20, -3).padEnd(3, '0');
  return `${text.slice(0, 10)}T${text.slice(11, 19)}.${fraction}Z`;
});

/**
 * Only Citus reads the last setting. It allows one connection to each node: with several, a
 * statement over many merchants takes its locks in no order, and later statements of the same
 * transaction may not touch the tables that are on every node.
 */
const sessionSettings = {
  timezone: 'UTC',
  lock_timeout: '10s',
  idle_in_transaction_session_timeout: '30s',
  'citus.multi_shard_modify_mode': 'sequential',
};

export function openDatabase(
  url: string,
  options: { log: Logger; maxConnections: number; queryTimeoutMilliseconds?: number },
): Database {
  const pool = new pg.Pool({
    connectionString: url,
    max: options.maxConnections,
    types: jsTypes,
    pipeline: true,
    application_name: 'tranche',
    options: Object.entries(sessionSettings)
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(' '),
    connectionTimeoutMillis: 5_000,
    // A network that drops packets must not hold a request for ever.
    query_timeout: options.queryTimeoutMilliseconds ?? 30_000,
    keepAlive: true,
  } as pg.PoolConfig);
  pool.on('connect', (client) => {
    gatherWrites((client as unknown as { connection: { stream: Duplex } }).connection.stream);
    // A connection that dies while it is in use fails the statements on it. Its error event needs
    // a listener all the same: without one it would end the process.
    client.on('error', () => {});
  });
  // The pool replaces an idle connection that died (the server restarted) at the next use.
  pool.on('error', (error) => options.log.warn({ err: error }, 'a database connection was lost'));
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
  return {
    db,
    pool,
    async close() {
      await db.destroy();
      // Kysely does not end the pool of a handle that was never used.
      if (!pool.ending) await pool.end();
    },
  };
}
