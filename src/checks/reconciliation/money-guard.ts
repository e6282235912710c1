import { type Gateway, OutcomeUnknown, RequestRefused } from '#gateway/gateway.ts';
import type { Database, Handle } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import { sharing } from '#platform/shared/cache.ts';
import { type Clock, secondsAfter, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { findLost } from './find-lost.ts';
import {
  claimHeartbeat,
  type DatabaseHeartbeat,
  moveServer,
  nameDatabase,
  raiseHeartbeat,
  readHeartbeat,
  stopMoney,
} from './gateway-heartbeat.sql.ts';
import { describeStop, explainAhead, explainFall, explainLost } from './money-stop.ts';

/**
 * Whether money may move (decision 0097). A database that was restored from a backup does not know
 * what the gateway did since. So money moves only once this process has compared the database's
 * heartbeat with the gateway's, and stops in all processes when the gateway's is ahead.
 */
export type MoneyGuard = {
  /**
   * Why no money may move, or null. Asks the gateway if this process has not yet, and throws what
   * the gateway's client throws: a call that moves money would have ended in the same way.
   */
  problem(): Promise<string | null>;
  /** Why an operator must act, or null. Does not ask the gateway. */
  stopReason(): Promise<string | null>;
  /** Raises the heartbeat here and at the gateway if that is due. Returns 0. */
  raiseHeartbeat(): Promise<number>;
};

type GuardDeps = {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
  gateway: Gateway;
  environment: 'sandbox' | 'production';
  /** Ends every session, link and token. */
  endAccess(db: Handle, at: Timestamp): Promise<void>;
};

/** A restore is noticed if a heartbeat came after the backup. */
const heartbeatSeconds = 60;
/**
 * How long a process may use the row as it last read it. It does not read the row for each payment.
 */
const freshMilliseconds = 1_000;

const unknownReason = 'It is not known yet whether the gateway is ahead of the database.';

/** The knowledge of this process. */
type Known = {
  /**
   * The server on which this process has compared the heartbeats; null before that. `verify` sets
   * it. A stop resets it, and so does a row that comes from another server.
   */
  verifiedServer: string | null;
  /** The highest heartbeat that this process has read or raised. A lower one means a restore. */
  highestHeartbeat: number;
  /** Why money is stopped: the row's reason as it was last read, or our own stop since. */
  reason: string | null;
  /** When the row was last read. */
  readAt: number;
  /** The last comparison that failed. `problem` repeats its error for a moment. */
  failure: { error: Error; at: number } | null;
};

type Guard = {
  deps: GuardDeps;
  known: Known;
  /**
   * Reads the row. Callers that come meanwhile share one reading. It never waits for the gateway.
   */
  readRow(): Promise<void>;
  /** Compares the database with the gateway. Callers that come meanwhile share one comparison. */
  verify(): Promise<string | null>;
};

export function createMoneyGuard(deps: GuardDeps): MoneyGuard {
  const known: Known = {
    verifiedServer: null,
    highestHeartbeat: 0,
    reason: null,
    readAt: Number.NEGATIVE_INFINITY,
    failure: null,
  };
  const guard: Guard = {
    deps,
    known,
    readRow: sharing(() => readRow(deps, known)),
    verify: sharing(() => verify(deps, known)),
  };
  return {
    problem: () => findProblem(guard),

    async stopReason() {
      await knowRow(guard);
      return known.reason;
    },

    async raiseHeartbeat() {
      try {
        await raise(guard);
      } catch (error) {
        // The next heartbeat will compare again.
        if (!(error instanceof OutcomeUnknown)) throw error;
        deps.log.warn({ err: error }, 'the heartbeat at the gateway was not written');
      }
      return 0;
    },
  };
}

async function findProblem(guard: Guard): Promise<string | null> {
  const { deps, known } = guard;
  // Many payments may ask at once while the gateway does not answer. They share one failure.
  if (known.failure !== null && isFresh(deps, known.failure.at)) throw known.failure.error;
  try {
    const stopped = await know(guard);
    known.failure = null;
    return stopped;
  } catch (error) {
    const isGateways = error instanceof OutcomeUnknown || error instanceof RequestRefused;
    const shown = isGateways ? error : new OutcomeUnknown(unknownReason);
    known.failure = { error: shown, at: deps.clock.monotonic() };
    deps.log.warn({ err: error }, 'it is not known whether money may move');
    throw shown;
  }
}

async function know(guard: Guard): Promise<string | null> {
  await knowRow(guard);
  const { reason, verifiedServer } = guard.known;
  return reason !== null || verifiedServer !== null ? reason : await guard.verify();
}

async function knowRow({ deps, known, readRow }: Guard): Promise<void> {
  if (!isFresh(deps, known.readAt)) await readRow();
}

const isFresh = ({ clock }: GuardDeps, at: number) => clock.monotonic() - at < freshMilliseconds;

async function readRow(deps: GuardDeps, known: Known): Promise<void> {
  // A heartbeat that this process writes meanwhile may be missing from what it reads.
  const { highestHeartbeat } = known;
  const row = await readNamedHeartbeat(deps);
  known.reason = row.stopped_reason;
  const fall = explainFall(row, highestHeartbeat);
  if (fall !== null) await stop(deps, known, fall);
  known.highestHeartbeat = Math.max(known.highestHeartbeat, row.heartbeat);
  if (row.current_server !== known.verifiedServer) known.verifiedServer = null;
  known.readAt = deps.clock.monotonic();
}

/**
 * Null if money may move on this server. The answer does not come from `known.reason`: a read of
 * the row that began before the stop may have reset it.
 */
async function verify(deps: GuardDeps, known: Known): Promise<string | null> {
  const { row, stopped } = await compareHeartbeats(deps, known);
  if (stopped !== null) return stopped;
  if (row.server !== null && row.server !== row.current_server) {
    deps.log.warn('the database runs on another server: comparing the newest records');
    const lost = await findLost(deps, row.heartbeat_at);
    if (lost !== null) return await stop(deps, known, explainLost(lost));
    await moveServer(deps.database.db, row.current_server);
  }
  known.verifiedServer = row.current_server;
  return null;
}

async function raise(guard: Guard): Promise<void> {
  const { deps, known } = guard;
  const { db } = deps.database;
  const now = deps.clock.now();
  const next = timestamp(secondsAfter(now, heartbeatSeconds));
  if ((await know(guard)) !== null || !(await claimHeartbeat(db, timestamp(now), next))) return;
  const { row, heartbeat_ref, stopped } = await compareHeartbeats(deps, known);
  // A server that this process has not verified must not count as the one that wrote the heartbeat.
  if (stopped !== null || row.id === null || row.current_server !== known.verifiedServer) return;
  // Raise the heartbeat here first, so that the gateway's is higher only if a change here was lost.
  const heartbeat = await raiseHeartbeat(db, timestamp(now), row.current_server);
  if (heartbeat === null) return;
  known.highestHeartbeat = Math.max(known.highestHeartbeat, heartbeat);
  await deps.gateway.writeHeartbeat({ heartbeat_ref, database: row.id, count: heartbeat });
}

/**
 * Read the gateway first and then the database. A heartbeat is written to the database first, so a
 * heartbeat in flight never makes the gateway look ahead.
 */
async function compareHeartbeats(
  deps: GuardDeps,
  known: Known,
): Promise<{ row: DatabaseHeartbeat; heartbeat_ref: string | null; stopped: string | null }> {
  const heartbeats = await deps.gateway.listHeartbeats();
  const row = await readNamedHeartbeat(deps);
  const own = heartbeats.find(({ database }) => database === row.id) ?? null;
  const ahead = explainAhead(row, heartbeats, deps.environment);
  const stopped = ahead === null ? row.stopped_reason : await stop(deps, known, ahead);
  return { row, heartbeat_ref: own?.heartbeat_ref ?? null, stopped };
}

async function readNamedHeartbeat({
  database: { db },
  random,
}: GuardDeps): Promise<DatabaseHeartbeat> {
  const row = await readHeartbeat(db);
  if (row.id !== null) return row;
  await nameDatabase(db, random.uuid());
  return await readHeartbeat(db);
}

async function stop(deps: GuardDeps, known: Known, why: string): Promise<string> {
  const reason = describeStop(why);
  const at = timestamp(deps.clock.now());
  await transaction(deps, async ({ db }) => {
    if (!(await stopMoney(db, at, reason))) return;
    await deps.endAccess(db, at);
    await raiseAlert(deps, db, { kind: 'gateway_ahead', detail: reason });
  });
  known.reason = reason;
  // A read of the row that began before the stop may reset the reason. Compare again then.
  known.verifiedServer = null;
  return reason;
}
