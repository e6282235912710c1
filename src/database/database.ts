import { Socket } from 'node:net';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import type { Logger } from '../shared/logger.ts';
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
// A local date has no time and no zone to shift it by.
jsTypes.setTypeParser(date, (text) => text);
// The session's zone is UTC, so `2026-11-15 08:00:00.5+00` only needs respelling.
jsTypes.setTypeParser(timestamptz, (text) => {
  const fraction = text.slice(20, -3).padEnd(3, '0');
  return `${text.slice(0, 10)}T${text.slice(11, 19)}.${fraction}Z`;
});

/**
 * The last one is for Citus, and elsewhere nobody reads it: one connection to each node. With
 * several a statement over many merchants takes its locks in no order, and what comes after it in
 * the transaction may not touch the tables that are on every node.
 */
const sessionSettings = {
  timezone: 'UTC',
  lock_timeout: '10s',
  idle_in_transaction_session_timeout: '30s',
  'citus.multi_shard_modify_mode': 'sequential',
};

/**
 * Sends what one turn of the event loop has to say in one piece. A pipeline of statements would
 * otherwise be as many writes, each of which wakes the server, and on few cores takes ours away.
 */
class GatheringSocket extends Socket {
  #isGathering = false;

  override cork(): void {
    if (this.#isGathering) return;
    this.#isGathering = true;
    super.cork();
    process.nextTick(() => {
      this.#isGathering = false;
      super.uncork();
    });
  }

  /** The end of the turn decides. */
  override uncork(): void {}

  override write(...message: [Uint8Array | string, ...unknown[]]): boolean {
    this.cork();
    return super.write(...(message as Parameters<Socket['write']>));
  }
}

export function openDatabase(
  url: string,
  options: { log: Logger; maxConnections: number; queryTimeoutMilliseconds?: number },
): Database {
  const pool = new pg.Pool({
    connectionString: url,
    max: options.maxConnections,
    types: jsTypes,
    pipeline: true,
    stream: () => new GatheringSocket(),
    application_name: 'tranche',
    options: Object.entries(sessionSettings)
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(' '),
    connectionTimeoutMillis: 5_000,
    // A network that swallows packets must not hold a request for ever.
    query_timeout: options.queryTimeoutMilliseconds ?? 30_000,
    keepAlive: true,
  } as pg.PoolConfig);
  // One that dies while it is lent out fails the statements on it. Its event has to be heard all
  // the same: one that nobody hears would end the process.
  pool.on('connect', (client) => client.on('error', () => {}));
  // An idle connection that dies (the server restarted) is replaced at the next use.
  pool.on('error', (error) => options.log.warn({ err: error }, 'a database connection was lost'));
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
  return {
    db,
    pool,
    async close() {
      await db.destroy();
      // A handle that was never used does not end the pool that it was given.
      if (!pool.ending) await pool.end();
    },
  };
}
