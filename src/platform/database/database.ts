import type { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import { promisify } from 'node:util';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import type { Logger } from '#platform/shared/logger.ts';
import { traceStatements } from '#platform/tracing/trace-statements.ts';
import { sendDirectly } from './compile-once.ts';
import { gatherWrites } from './gather-writes.ts';
import { queryByName } from './name-statements.ts';
import { rememberColumns } from './remember-columns.ts';
import { chooseServers, connectMillisecondsOf, type Servers, serversOf } from './servers.ts';
import { prepareSession, verifyPooler, verifySession } from './session.ts';
import { watchForStalls } from './stalled-connections.ts';
import type { Tables } from './tables.ts';

export type Database = {
  /** For typed statements. */
  db: Kysely<Tables>;
  /** The pool of `db`, for the few statements that are pipelined by hand. */
  pool: pg.Pool;
  close(): Promise<void>;
};

/** A handle that reads and writes: the database, or a transaction in it. */
export type Handle = Kysely<Tables>;

const int8 = 20;
const timestamptz = 1184;
const date = 1082;
const jsTypes = new pg.TypeOverrides();
// Amounts and numbers stay far below 2^53; as strings they would break every sum.
jsTypes.setTypeParser(int8, Number);
// A date has neither a time nor a zone that could shift it.
jsTypes.setTypeParser(date, (text) => text);
// The session's zone is UTC, so `2026-11-15 08:00:00.5+00` needs only another notation.
jsTypes.setTypeParser(timestamptz, (text) => {
  const fraction = text.slice(20, -3).padEnd(3, '0');
  return `${text.slice(0, 10)}T${text.slice(11, 19)}.${fraction}Z`;
});

/**
 * The server's statement timeout is this much shorter than the client's, so a server that answers
 * ends the statement itself.
 */
const graceMilliseconds = 5_000;

/** A longer-lived connection could stay on a server that a load balancer or DNS no longer names. */
const lifetimeSeconds = 1_800;

/**
 * Work that runs once a minute finds its connections again. With the driver's default of ten
 * seconds, an idle process would open several new ones each minute, which cost more than their
 * statements.
 */
const idleMilliseconds = 90_000;

export function openDatabase(
  url: string,
  options: {
    log: Logger;
    maxConnections: number;
    queryTimeoutMilliseconds?: number;
    /** Whether a span is recorded for each statement. */
    isTraced?: boolean;
    /** A statement that gets no answer for this long may be on a dead connection. */
    stallMilliseconds?: number;
  },
): Database {
  // A network that drops packets must not hold a request for ever.
  const queryMilliseconds = options.queryTimeoutMilliseconds ?? 30_000;
  const connectMilliseconds = connectMillisecondsOf(url);
  const servers = chooseServers(serversOf(url) ?? [url]);
  const watch = watchForStalls(
    (server, pids) => askServer(servers.Client, server, pids),
    cut,
    options.stallMilliseconds ?? 4_000,
  );
  const pool = new pg.Pool({
    Client: servers.Client,
    max: options.maxConnections,
    maxLifetimeSeconds: lifetimeSeconds,
    idleTimeoutMillis: idleMilliseconds,
    types: jsTypes,
    pipeline: true,
    application_name: 'tranche',
    connectionTimeoutMillis: connectMilliseconds,
    query_timeout: queryMilliseconds,
    keepAlive: true,
    async onConnect(client: pg.ClientBase) {
      gatherWrites(connectionOf(client).stream);
      watchForFaults(client);
      try {
        const { isDistributed, ...backend } = await prepareSession(client, {
          statementMilliseconds: queryMilliseconds - graceMilliseconds,
          firstMilliseconds: connectMilliseconds,
        });
        watch.add(client, { ...backend, server: servers.of(client) });
        if (backend.pid === null) pooled.add(client);
        else rememberColumns(client);
        if (!isDistributed) undistributed.add(client);
        if (options.isTraced) traceStatements(client);
      } catch (error) {
        servers.skip(client);
        // The pool would send the server a message to end the connection, but a frozen server does
        // not answer.
        if (isQueryTimeout(error)) cut(client);
        throw error;
      }
    },
  } as pg.PoolConfig);
  pool.on('remove', watch.remove);
  // The pool replaces an idle connection that died (the server restarted) at the next use.
  pool.on('error', (error) => options.log.warn({ err: error }, 'a database connection was lost'));
  if (options.isTraced) traceStatements(pool);
  const db = handleOver(dropsFaulty(pool));
  return {
    db,
    pool,
    async close() {
      watch.stop();
      await db.destroy();
      // Kysely does not end the pool of a handle that was never used.
      if (!pool.ending) await pool.end();
    },
  };
}

/** Typed statements on connections of a pool. */
function handleOver(pool: pg.Pool): Handle {
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
  sendDirectly(db, async (text, values) => {
    const connection = await pool.connect();
    try {
      return await connection.query(text, values);
    } finally {
      connection.release();
    }
  });
  return db;
}

/** How long a server may take to say which of its processes are at work. */
const askMilliseconds = 2_000;

async function askServer(
  Client: Servers['Client'],
  server: number,
  pids: number[],
): Promise<{ startedAt: string; active: Set<number> } | null> {
  const config = {
    application_name: 'tranche',
    connectionTimeoutMillis: askMilliseconds,
    query_timeout: askMilliseconds,
  };
  const client = new Client(config, server);
  client.on('error', () => {});
  try {
    await promisify(client.connect.bind(client) as (callback: (error: Error) => void) => void)();
    const { rows } = await client.query<{ started_at: string; pids: number[] }>(
      `select pg_postmaster_start_time()::text as started_at,
         array(select pid from pg_stat_activity
               where pid = any($1) and coalesce(state, '') not like 'idle%') as pids`,
      [pids],
    );
    return { startedAt: rows[0]?.started_at ?? '', active: new Set(rows[0]?.pids) };
  } catch (error) {
    // The server refuses the connection, so it is running. Perhaps it has too many connections.
    const isThere = error instanceof pg.DatabaseError && !/^(08|57P)/.test(error.code ?? '');
    if (isThere) return null;
    throw error;
  } finally {
    cut(client);
  }
}

/**
 * Refuses a database whose connections lose their settings, and a pooler that does not work with
 * Tranche. Needs two connections. Returns whether there is a pooler.
 */
export async function verifyConnection(database: Database): Promise<{ isPooled: boolean }> {
  const client = await database.pool.connect();
  try {
    const isPooled = pooled.has(client);
    if (!isPooled) await verifySession(client);
    else {
      const other = await database.pool.connect();
      // Both are closed: a statement that failed may have left them in any state.
      await verifyPooler(client, other).finally(() => other.release(true));
    }
    return { isPooled };
  } finally {
    client.release(pooled.has(client));
  }
}

/** PostgreSQL's code for a statement after one that failed in the same transaction. */
export const abortedTransaction = '25P02';

/** Connections through a pooler: the server process that answers is not the one that greeted us. */
const pooled = new WeakSet<pg.ClientBase>();

export const isPooled = (client: pg.ClientBase) => pooled.has(client);

/** Connections to a server without Citus. */
const undistributed = new WeakSet<pg.ClientBase>();

/**
 * Settings for the beginning of a transaction, so that the connection plans each named statement
 * once, for any values. They are for statements whose best plan does not depend on their values.
 * Without them, the server plans again for the values whenever the plan for any values looks more
 * expensive. It always does so for a range of a large table between two parameters, because it
 * expects a fixed part of all rows in the range, and for rows that are sent as arrays, because it
 * expects ten elements in an array.
 *
 * Citus chooses its workers by the values, and refuses a plan for any values.
 */
export const planOnce = (client: pg.ClientBase): string[] =>
  undistributed.has(client) ? ['set local plan_cache_mode = force_generic_plan'] : [];

/** Connections on which the next statement would fail. */
const faults = new WeakSet<pg.ClientBase>();

/** The latest error on each connection, except "the transaction is aborted" after another error. */
const firstErrors = new WeakMap<pg.ClientBase, Error>();

/** Connections on which a COMMIT returned before all servers that keep the rows confirmed it. */
const unconfirmed = new WeakSet<pg.ClientBase>();

/**
 * The server's functions that warn of an unconfirmed COMMIT: PostgreSQL stopped waiting for a
 * synchronous standby, or Citus could not tell one of its workers to commit (decision 0020). The
 * text of a warning depends on the server's language; the function's name does not.
 */
const unconfirmedRoutines = ['SyncRepWaitForLSN', 'FinishRemoteTransactionCommit'];

export const isFaulty = (client: pg.ClientBase) => faults.has(client);

/**
 * The error that made a transaction fail. In a pipeline, the caller may first see the error of a
 * later statement, which says only that the transaction is aborted.
 */
export function causeOf(client: pg.ClientBase, error: unknown): unknown {
  const isConsequence = (error as { code?: unknown }).code === abortedTransaction;
  return isConsequence ? (firstErrors.get(client) ?? error) : error;
}

export const isUnconfirmed = (client: pg.ClientBase) => unconfirmed.has(client);

/** The driver's own connection below a client. */
function connectionOf(client: pg.ClientBase): EventEmitter & { stream: Duplex } {
  return (client as unknown as { connection: EventEmitter & { stream: Duplex } }).connection;
}

function watchForFaults(client: pg.ClientBase): void {
  // A connection that dies while it is in use fails the statements on it. Its error event still
  // needs a listener: without one it would end the process.
  client.on('error', () => {});
  connectionOf(client).on('errorMessage', (error: pg.DatabaseError) => {
    if (isFault(error)) faults.add(client);
    if (error.code !== abortedTransaction) firstErrors.set(client, error);
  });
  client.on('notice', ({ routine }) => {
    if (unconfirmedRoutines.includes(routine ?? '')) unconfirmed.add(client);
  });
}

/**
 * Errors after which the next statement on the same connection would fail too: the server became
 * read only (25006), or it is shutting down.
 */
function isFault(error: pg.DatabaseError): boolean {
  if (isWorkerAway(error)) return false;
  return error.code === '25006' || /^(08|57P0)/.test(error.code ?? '') || isPostmasterGone(error);
}

/**
 * When the coordinator's own postmaster has died, Citus ends a statement that waits for a Citus
 * worker with an internal error. PostgreSQL would close the connection with a 57P01.
 */
export function isPostmasterGone(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError)) return false;
  return error.code === 'XX000' && error.message.startsWith('postmaster was shut down');
}

/** libpq's messages for a closed connection, which Citus passes on as an internal error. */
const closedByWorker =
  /server closed the connection|connection not open|could not (send|receive) data/;

/**
 * The functions in which Citus finds that a Citus worker closed its connection, at a time when no
 * Citus worker has committed yet.
 */
const failedRoutines = ['CheckRemoteTransactionsHealth', 'MarkRemoteTransactionFailed'];

/**
 * Whether our own database server works but a Citus worker behind it does not answer. The statement
 * then fails with an ERROR, which has undone the transaction; the end of our own connection is
 * FATAL. A pooler's own errors have no routine.
 */
export function isWorkerAway(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError)) return false;
  const { severity, routine, code = '', message } = error;
  if (severity !== 'ERROR' || routine === undefined) return false;
  if (/^(08|57P)/.test(code) || failedRoutines.includes(routine)) return true;
  return routine === 'ReportResultError' && closedByWorker.test(message);
}

/** Closes a connection at once. What is in flight on it fails as if the network had failed. */
export function cut(client: pg.ClientBase): void {
  connectionOf(client).stream.destroy();
}

/** Whether the driver gave up on a statement. The connection may be dead. */
export const isQueryTimeout = (error: unknown) =>
  error instanceof Error && error.message === 'Query read timeout';

/** Returns a connection to the pool, or closes it if the next statement on it would fail. */
export function releaseClient(client: pg.PoolClient, error?: unknown): void {
  client.release(isQueryTimeout(error) || faults.has(client) || unconfirmed.has(client));
}

/**
 * Wraps the pool for Kysely, which releases a connection without reporting errors on it. Here
 * `release` closes the connection if the next statement on it would fail.
 */
function dropsFaulty(pool: pg.Pool): pg.Pool {
  const wrapped = new WeakMap<pg.PoolClient, Pick<pg.PoolClient, 'query' | 'release'>>();
  return {
    connect: async () => {
      const client = await pool.connect();
      let wrap = wrapped.get(client);
      if (!wrap) {
        wrap = {
          query: queryByName(client) as pg.PoolClient['query'],
          release: () => releaseClient(client),
        };
        wrapped.set(client, wrap);
      }
      return wrap;
    },
    end: () => pool.end(),
    options: pool.options,
  } as unknown as pg.Pool;
}
