import { Kysely, PostgresDialect, sql } from 'kysely';
import pg from 'pg';
import type { Clock } from '../shared/clock.ts';
import type { Database, Handle } from './database.ts';
import type { Tables } from './tables.ts';

/**
 * The connection died around COMMIT and the database could not be asked what became of it.
 * The caller must neither claim success nor failure.
 */
export class FateUnknown extends Error {}

/** Codes after which nothing was done and the same thing may simply be tried again. */
const transientCodes = new Set([
  '25P03', // idle in a transaction for too long: this process was held up, and cut off
  '40001', // serialisation failure
  '40P01', // deadlock
  '53300', // too many connections
  '55P03', // lock timeout
  '57P01', // the server is shutting down
  '57P02', // the server crashed
  '57P03', // the server is starting up
  'EAI_AGAIN',
  'ECONNABORTED',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EPIPE',
  'ETIMEDOUT',
]);

export function isTransient(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = (error as { code?: unknown }).code;
  if (typeof code === 'string') return transientCodes.has(code) || code.startsWith('08');
  return /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Query read timeout/.test(
    error.message,
  );
}

/** The server answered and said no. A FATAL is no answer: it says that the connection ends. */
function isRefusal(error: unknown): boolean {
  if (error instanceof RolledBack) return true;
  if (!(error instanceof pg.DatabaseError)) return false;
  const isEnd = error.severity === 'FATAL' || error.severity === 'PANIC';
  return !isEnd && !/^(08|57P)/.test(error.code ?? '');
}

/** How long a request outlives a database that restarts. */
const patienceMilliseconds = 8_000;

/**
 * Runs `attempt` again while the database is away or asks for a retry. `attempt` hears whether an
 * earlier run may have been committed, so that it looks for its own rows first.
 */
export async function persist<T>(
  clock: Clock,
  attempt: (maybeCommitted: boolean) => Promise<T>,
): Promise<T> {
  const start = clock.monotonic();
  let maybeCommitted = false;
  for (let pause = 10; ; pause = Math.min(pause * 2, 500)) {
    try {
      return await attempt(maybeCommitted);
    } catch (error) {
      if (error instanceof CommitInterrupted) maybeCommitted = true;
      else if (!isTransient(error)) {
        // It may have kept the attempt from looking for what the one before it committed.
        const isBlind = maybeCommitted && error instanceof pg.DatabaseError;
        throw isBlind ? fateUnknown(error) : error;
      }
      if (clock.monotonic() - start + pause > patienceMilliseconds) {
        throw maybeCommitted ? fateUnknown(error) : error;
      }
    }
    await clock.sleep(pause);
  }
}

const fateUnknown = (cause: unknown) =>
  new FateUnknown('the fate of a commit is unknown', { cause });

/** COMMIT was sent and no answer came back. */
class CommitInterrupted extends Error {}

/** A statement failed before: the server answers COMMIT with ROLLBACK. */
class RolledBack extends Error {}

export type Transaction = {
  /** For typed statements. */
  db: Handle;
  /** The same connection, for statements that are sent without waiting for the one before. */
  client: pg.PoolClient;
  /**
   * Commits. Called by the body only to send COMMIT together with its last statements; otherwise
   * the body's end does it.
   */
  commit(): Promise<void>;
};

/**
 * One transaction, run again when the database goes away. The body must choose its ids before and
 * look for them when it is told that an earlier run may have been committed; it takes its first
 * row lock before that look, so that a commit still under way is waited for.
 */
export function transaction<T>(
  deps: { database: Database; clock: Clock },
  body: (tx: Transaction, maybeCommitted: boolean) => Promise<T>,
): Promise<T> {
  return persist(deps.clock, async (maybeCommitted) => {
    const client = await deps.database.pool.connect();
    let committing: Promise<void> | undefined;
    const commit = () => {
      committing ??= client.query('commit').then(({ command }) => {
        if (command !== 'COMMIT') throw new RolledBack('the transaction was rolled back');
      });
      return committing;
    };
    try {
      // Sent together with the body's first statement; if it fails so does that.
      client.query('begin').catch(() => {});
      const result = await body({ db: handleOver(client), client, commit }, maybeCommitted);
      await commit();
      client.release();
      return result;
    } catch (error) {
      // The body may have failed by a statement sent before COMMIT: what counts is the answer to
      // COMMIT itself, which follows it at once.
      const isOpen = committing !== undefined && !(await isRefused(committing));
      await release(client);
      if (isOpen) throw new CommitInterrupted('COMMIT got no answer', { cause: error });
      throw error;
    }
  });
}

const isRefused = (committing: Promise<void>) => committing.then(() => false, isRefusal);

/** Hands a connection back with nothing open on it, or not at all. */
async function release(client: pg.PoolClient): Promise<void> {
  try {
    await client.query('rollback');
    client.release();
  } catch (error) {
    client.release(error as Error);
  }
}

const handles = new WeakMap<pg.PoolClient, Handle>();

/** Typed statements on one connection that somebody else opened and will hand back. */
function handleOver(client: pg.PoolClient): Handle {
  let handle = handles.get(client);
  if (!handle) {
    const one = { query: client.query.bind(client), release: () => {} } as pg.PoolClient;
    handle = new Kysely<Tables>({
      dialect: new PostgresDialect({
        pool: { connect: async () => one, end: async () => {}, options: {} },
      }),
    });
    handles.set(client, handle);
  }
  return handle;
}

/** Statements that change nothing: safe to run again. */
export function reading<T>(
  deps: { database: Database; clock: Clock },
  read: (db: Handle) => Promise<T>,
): Promise<T> {
  return persist(deps.clock, () => read(deps.database.db));
}

/** Several statements that change nothing and all see the same moment. */
export function snapshot<T>(
  deps: { database: Database; clock: Clock },
  read: (db: Handle) => Promise<T>,
): Promise<T> {
  return transaction(deps, async ({ db }) => {
    await sql`set transaction isolation level repeatable read, read only`.execute(db);
    return await read(db);
  });
}
