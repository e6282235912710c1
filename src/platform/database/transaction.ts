import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import type { Clock } from '#platform/shared/clock.ts';
import { sendDirectly } from './compile-once.ts';
import {
  abortedTransaction,
  causeOf,
  cut,
  type Database,
  type Handle,
  isFaulty,
  isPostmasterGone,
  isQueryTimeout,
  isUnconfirmed,
  isWorkerAway,
  planOnce,
  releaseClient,
} from './database.ts';
import { currentDeadline, type Deadline, lockEndOf, noteCommit } from './deadline.ts';
import { isPlanOutdated, queryByName } from './name-statements.ts';
import type { Tables } from './tables.ts';

/**
 * The connection died around COMMIT, and the database could not be asked whether it committed.
 * The caller may report neither success nor failure.
 */
export class FateUnknown extends Error {}

/**
 * The work did not begin: its deadline passed while it waited, or too much other work was waiting
 * or in progress. Nothing was done.
 */
export class NotBegun extends Error {}

/** Another transaction changed what this one had read. Nothing was done, and it runs again. */
export class Outpaced extends Error {}

/** Codes after which nothing was done, so that the caller may retry. */
const transientCodes = new Set([
  '25006', // the server is read only: a standby, or a primary that was demoted
  '25P03', // idle in a transaction for too long: this process stalled and the server cut it off
  '40001', // serialisation failure
  '40P01', // deadlock
  '53300', // too many connections
  '55P03', // lock timeout
  '57P01', // the server is shutting down
  '57P02', // the server crashed
  '57P03', // the server is starting up
  '57P05', // idle for too long (idle_session_timeout): the server closed the connection
  'EAI_AGAIN',
  'EAI_FAIL',
  'ECONNABORTED',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETDOWN',
  'ENETUNREACH',
  'ENOTFOUND', // the name of a container that is stopped does not resolve
  'EPIPE',
  'ETIMEDOUT',
]);

export function isTransient(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof NotBegun || error instanceof Outpaced) return true;
  if (isPlanOutdated(error)) return true;
  if (isWorkerAway(error) || isPostmasterGone(error)) return true;
  const code = (error as { code?: unknown }).code;
  if (typeof code === 'string') return transientCodes.has(code) || code.startsWith('08');
  return /Connection terminated|timeout exceeded when trying to connect|^timeout expired$|Client has encountered a connection error|Query read timeout/.test(
    error.message,
  );
}

/**
 * Whether a transient error comes from other work on the same rows or in a queue, and not from a
 * server that does not answer.
 */
export function isContended(error: Error): boolean {
  if (error instanceof NotBegun || error instanceof Outpaced) return true;
  const { code } = error as { code?: unknown };
  return code === '40001' || code === '40P01' || code === lockTimeout;
}

/**
 * Whether the server refused the statement. The end of a connection is not a refusal: it does not
 * show whether COMMIT succeeded.
 */
function isRefusal(error: unknown): boolean {
  if (error instanceof RolledBack) return true;
  if (!(error instanceof pg.DatabaseError)) return false;
  if (isWorkerAway(error)) return true;
  const isEnd = ['FATAL', 'PANIC'].includes(error.severity ?? '') || isPostmasterGone(error);
  return !isEnd && !/^(08|57P)/.test(error.code ?? '');
}

/** The `lock_timeout` of every connection. */
const lockMillisecondsMax = 10_000;

/** The last wait for a lock is not shorter than this, even if the deadline is near. */
const lockMillisecondsMin = 1_000;

/**
 * A transaction that waits for no lock finishes long before this, unless its connection is dead.
 */
const stallMilliseconds = 5_000;

const lockTimeout = '55P03';

/** Whether a statement waited for a lock for longer than `lock_timeout`. Nothing was done. */
export function isLockTimeout(error: unknown): boolean {
  return error instanceof Error && (error as { code?: unknown }).code === lockTimeout;
}

/**
 * Retries `attempt` until the deadline while the database does not answer or asks for a retry.
 * `maybeCommitted` says that an earlier run may have committed, so `attempt` has to look for its
 * own rows before it writes any. An error for which `mayRetry` returns false goes to the caller at
 * once, unless a COMMIT is in doubt.
 */
export async function retryTransient<T>(
  clock: Clock,
  attempt: (maybeCommitted: boolean, deadline: Deadline) => Promise<T>,
  mayRetry: (error: unknown) => boolean = () => true,
): Promise<T> {
  const deadline = currentDeadline(clock);
  let maybeCommitted = false;
  for (let pause = 10; ; pause = Math.min(pause * 2, 500)) {
    try {
      return await attempt(maybeCommitted, deadline);
    } catch (error) {
      if (error instanceof CommitInterrupted) maybeCommitted = true;
      else if (!isTransient(error) || (!maybeCommitted && !mayRetry(error))) {
        // The error may have ended this run before it found what an earlier run committed.
        const isBlind = maybeCommitted && error instanceof pg.DatabaseError;
        throw isBlind ? fateUnknown(error) : error;
      }
      let endsAt = maybeCommitted ? deadline.lookUpEndsAt : deadline.endsAt;
      if (isLockTimeout(error)) endsAt = Math.max(endsAt, lockEndOf(deadline));
      if (clock.monotonic() + pause > endsAt) throw maybeCommitted ? fateUnknown(error) : error;
    }
    await clock.sleep(pause);
  }
}

/** Begins work that has waited for its turn, unless its deadline has passed. */
export async function beginInTime<T>(clock: Clock, work: () => Promise<T>): Promise<T> {
  if (lockEndOf(currentDeadline(clock)) > clock.monotonic()) return await work();
  throw new NotBegun('the work waited until its deadline');
}

/** How long a statement may wait for a lock. `undefined` means as long as the connection allows. */
function lockMillisecondsLeft(clock: Clock, deadline: Deadline): number | undefined {
  const left = Math.ceil(lockEndOf(deadline) - clock.monotonic());
  return left < lockMillisecondsMax ? Math.max(left, lockMillisecondsMin) : undefined;
}

const fateUnknown = (cause: unknown) =>
  new FateUnknown('the fate of a commit is unknown', { cause });

/** COMMIT was sent, and its answer did not arrive. */
class CommitInterrupted extends Error {}

/** COMMIT was answered, but a standby or a Citus worker did not confirm it, so it can be lost. */
class Unconfirmed extends Error {}

/** An earlier statement failed, so the server answered COMMIT with ROLLBACK. */
class RolledBack extends Error {
  /**
   * The answers to the failed statement and to COMMIT may come together, and the caller may see
   * this error first. By this code, `causeOf` replaces it with the failed statement's error.
   */
  readonly code = abortedTransaction;
}

export type Transaction = {
  /** For typed statements. */
  db: Handle;
  /** The connection of `db`, for statements that are sent without waiting for the previous one. */
  client: pg.PoolClient;
  /**
   * Commits. The body calls it only to send COMMIT with its last statements. Otherwise the
   * transaction commits when the body ends.
   */
  commit(): Promise<void>;
};

/**
 * Runs one transaction, and retries it while the database does not answer or asks for a retry. The
 * caller chooses ids before the body runs. `maybeCommitted` means that an earlier run may have
 * committed. In that case the body first takes a row lock, which waits for a commit that is still
 * in flight. Then it looks for those ids. Only after that may it refuse or write anything.
 *
 * With `lockMilliseconds` two errors go to the caller at once, without a retry: a statement that
 * waited longer for a lock (`isLockTimeout`), and a Citus worker that does not answer
 * (`isWorkerAway`). If such a transaction takes too long, its connection is closed, and the
 * transaction is retried on another one.
 */
export function transaction<T>(
  deps: { database: Database; clock: Clock },
  body: (tx: Transaction, maybeCommitted: boolean) => Promise<T>,
  options: { lockMilliseconds?: number; isReadOnly?: boolean; isPlannedOnce?: boolean } = {},
): Promise<T> {
  const attempt = async (maybeCommitted: boolean, deadline: Deadline) => {
    const client = await deps.database.pool.connect();
    let committing: Promise<void> | undefined;
    const isLimited = options.lockMilliseconds !== undefined && !maybeCommitted;
    const cancelCut = isLimited
      ? deps.clock.after(stallMilliseconds, () => cut(client))
      : undefined;
    const commit = () => {
      committing ??= client.query('commit').then(({ command }) => {
        if (command !== 'COMMIT') throw new RolledBack('the transaction was rolled back');
        if (isUnconfirmed(client)) throw new Unconfirmed('a server has not confirmed the COMMIT');
      });
      return committing;
    };
    try {
      // BEGIN is sent together with the body's first statement; if BEGIN fails, so does that
      // statement. BEGIN and its settings travel in one message, because every answer wakes this
      // process.
      const wait = isLimited
        ? options.lockMilliseconds
        : lockMillisecondsLeft(deps.clock, deadline);
      const begin = [
        options.isReadOnly ? 'begin isolation level repeatable read read only' : 'begin',
      ];
      if (wait !== undefined) begin.push(`set local lock_timeout = ${wait}`);
      if (options.isPlannedOnce) begin.push(...planOnce(client));
      client.query(begin.join('; ')).catch(() => {});
      // The COMMIT of a transaction that wrote nothing does not wait for a standby. This lock
      // counts as a write. So if the server requires a standby, the standby confirms what the body
      // finds before we report that.
      if (maybeCommitted && !options.isReadOnly)
        await client.query('select from installation for key share');
      const result = await body({ db: handleOver(client), client, commit }, maybeCommitted);
      await commit();
      if (!options.isReadOnly) noteCommit();
      client.release();
      return result;
    } catch (error) {
      // The body may have failed because of a statement that was sent before COMMIT. Only the
      // answer to COMMIT counts, and it follows at once. If the transaction used only one Citus
      // worker, and that one died after it received the COMMIT, Citus refuses the COMMIT with a
      // warning. That Citus worker may have committed.
      const isOpen =
        committing !== undefined && (!(await isRefused(committing)) || isUnconfirmed(client));
      await release(client, error);
      if (isOpen) throw new CommitInterrupted('COMMIT got no answer', { cause: error });
      throw causeOf(client, error);
    } finally {
      cancelCut?.();
    }
  };
  if (options.lockMilliseconds === undefined) return retryTransient(deps.clock, attempt);
  return retryTransient(
    deps.clock,
    attempt,
    (error) => !isLockTimeout(error) && !isWorkerAway(error),
  );
}

const isRefused = (committing: Promise<void>) => committing.then(() => false, isRefusal);

/** Returns a connection to the pool with no transaction open, or closes it. */
async function release(client: pg.PoolClient, error: unknown): Promise<void> {
  // After a timeout the connection may be dead, and a ROLLBACK on it would time out too.
  if (isFaulty(client) || isQueryTimeout(error)) return releaseClient(client, error);
  try {
    await client.query('rollback');
    releaseClient(client, error);
  } catch (rollbackError) {
    client.release(rollbackError as Error);
  }
}

const handles = new WeakMap<pg.PoolClient, Handle>();

/** Typed statements on a connection that the caller opened and will release. */
function handleOver(client: pg.PoolClient): Handle {
  let handle = handles.get(client);
  if (!handle) {
    const query = queryByName(client, true);
    const one = { query, release: () => {} } as unknown as pg.PoolClient;
    handle = new Kysely<Tables>({
      dialect: new PostgresDialect({
        pool: { connect: async () => one, end: async () => {}, options: {} },
      }),
    });
    sendDirectly(handle, query);
    handles.set(client, handle);
  }
  return handle;
}

/** Runs statements that change nothing, so a retry is safe. */
export function reading<T>(
  deps: { database: Database; clock: Clock },
  read: (db: Handle) => Promise<T>,
): Promise<T> {
  return retryTransient(deps.clock, () => read(deps.database.db));
}

/**
 * Runs several statements that change nothing and all see the same snapshot. With `isPlannedOnce`
 * each statement is planned only once (`planOnce`). Set it only if their best plans do not depend
 * on their values.
 */
export function snapshot<T>(
  deps: { database: Database; clock: Clock },
  read: (db: Handle) => Promise<T>,
  options: { isPlannedOnce?: boolean } = {},
): Promise<T> {
  return transaction(deps, ({ db }) => read(db), { ...options, isReadOnly: true });
}
