import assert from 'node:assert/strict';
import { type Heartbeat, OutcomeUnknown, RequestRefused } from '#gateway/gateway.ts';
import type { GatewayName } from '#gateway/gateway-name.ts';
import { GatewayMissing, type Gateways } from '#gateway/gateways.ts';
import type { MoneyProblem } from '#gateway/guard-gateway.ts';
import type { Database, Handle } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import { sharing } from '#platform/shared/cache.ts';
import { type Clock, secondsAfter, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import { findAlertThatStarts } from '#record/alerts/alert.sql.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { type AccessGuard, createAccessGuard } from './access-guard.ts';
import { moveAccessServer, readServer } from './access-server.sql.ts';
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
import {
  describeStop,
  explainAhead,
  explainFall,
  explainLostChanges,
  explainOtherName,
  nameGateway,
} from './money-stop.ts';

/**
 * Whether money may move (decision 0097). A database that was restored from a backup does not know
 * what the gateways have done since. So money moves at a gateway only once this process has
 * compared the database's heartbeat with that gateway's. Money stops at all gateways, in all
 * processes, when one gateway is ahead.
 */
export type MoneyGuard = Pick<AccessGuard, 'accessProblem'> & {
  /**
   * Why no money may move at this gateway or at all gateways; null if it may move. Asks a gateway
   * that this process has not asked yet, and throws what its client throws: a call that moves money
   * would have failed the same way.
   */
  problem: MoneyProblem['problem'];
  /** Asks and throws like `problem`. Once the account is known to be right, it reads no row. */
  accountProblem: MoneyProblem['accountProblem'];
  /** Why an operator must act, or null. Asks no gateway. */
  stopReason(): Promise<string | null>;
  /**
   * Whether a worker may claim what moves money. First compares every gateway that this process has
   * not compared yet, because what was in flight at a backup must not be touched before the restore
   * is noticed. A gateway that does not answer delays nothing at the others.
   */
  mayClaim(): Promise<boolean>;
  /** Raises the due heartbeats, here and at their gateways. Returns 0. */
  raiseHeartbeat(): Promise<number>;
  /**
   * Compares again with every gateway that answers, and raises the heartbeats there at once, so
   * that a later restore to a time before this is noticed. Returns why money may not move, or null.
   * Throws what the clients throw if no gateway has the new heartbeat.
   */
  raiseHeartbeatNow(): Promise<string | null>;
};

type GuardDeps = {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
  gateways: Gateways;
  environment: 'sandbox' | 'production';
  /** Ends every session, link and token. */
  endAccess(db: Handle, at: Timestamp): Promise<void>;
};

/** A restore is noticed only if there was a heartbeat after the backup. */
const heartbeatSeconds = 60;
/**
 * How long a process may use the row that it last read, instead of reading the row for each
 * payment.
 */
const freshMilliseconds = 1_000;

const unknownReason = (gateway = 'the gateway') =>
  `It is not known yet whether ${gateway} is ahead of the database.`;

type Known = {
  /**
   * The server on which this process has compared the heartbeats; null before that. `verify` sets
   * it. A stop resets it, and so does a row that comes from another server.
   */
  verifiedServer: string | null;
  /** The highest heartbeat that this process has read or raised. A lower one means a restore. */
  highestHeartbeat: number;
  /**
   * Why money is stopped: the reason in the row when it was last read, or a stop by this process
   * since then.
   */
  reason: string | null;
  /** Whether the database was on another server when one of the gateways was last compared. */
  hasMoved: boolean;
  /** When the row was last read. */
  readAt: number;
  /** When the next heartbeat is due, as it was last read; null if it may be due now. */
  dueAt: Timestamp | null;
  /**
   * The last comparison of the account. `reason` says why the account is the wrong one, and is null
   * if it is the right one. A wrong account is compared again later.
   */
  account: { reason: string | null; at: number } | null;
  /**
   * The last comparison that failed. For a short time after it, `problem` rethrows its error
   * instead of comparing again.
   */
  failure: { error: Error; at: number } | null;
};

type Guard = {
  deps: GuardDeps;
  name: GatewayName;
  known: Known;
  /** Reads the row, without waiting for the gateway. Concurrent callers share one read. */
  readRow(): Promise<void>;
  /** Compares the database with the gateway. Concurrent callers share one comparison. */
  verify(): Promise<string | null>;
  /** Compares the account with the gateway's name. Concurrent callers share one comparison. */
  compareAccount(): Promise<void>;
};

export function createMoneyGuard(deps: GuardDeps): MoneyGuard {
  const guards = new Map(deps.gateways.names.map((name) => [name, createGuard(deps, name)]));
  const [first] = guards.values();
  assert(first);
  const guardOf = (name: GatewayName) => {
    const guard = guards.get(name);
    if (!guard) throw new GatewayMissing(name);
    return guard;
  };
  return {
    ...createAccessGuard(deps, () => findAnyProblem([...guards.values()])),

    async problem(gateway) {
      const all = [...guards.values()];
      return gateway === undefined
        ? await findAnyProblem(all)
        : await findProblemAt(all, guardOf(gateway));
    },

    async accountProblem(gateway) {
      const guard = guardOf(gateway);
      // Once the account is known to be right, the row is not read: a read that failed would say
      // nothing about the account.
      if (guard.known.account?.reason === null) return null;
      return await findProblem(guard, knowAccount);
    },

    async stopReason() {
      await knowRow(first);
      return first.known.reason;
    },

    async mayClaim() {
      const all = [...guards.values()];
      const asked = all.filter(({ known }) => known.verifiedServer !== null || !known.failure);
      await Promise.allSettled([knowRow(first), ...asked.map((one) => findProblem(one, know))]);
      const isStopped = all.some(({ known }) => known.reason !== null);
      return !isStopped && all.some(isUsable);
    },

    async raiseHeartbeat() {
      const failures: unknown[] = [];
      for (const guard of guards.values()) {
        try {
          await raiseDue(guard);
        } catch (error) {
          // The next heartbeat compares again. A key that one gateway refuses does not stop the
          // others.
          if (!(error instanceof OutcomeUnknown)) failures.push(error);
          warnUnwritten(guard, error);
        }
      }
      if (failures.length > 0) throw failures[0];
      return 0;
    },

    raiseHeartbeatNow: () => raiseNow([...guards.values()]),
  };
}

function createGuard(deps: GuardDeps, name: GatewayName): Guard {
  const known: Known = {
    verifiedServer: null,
    highestHeartbeat: 0,
    reason: null,
    hasMoved: false,
    readAt: Number.NEGATIVE_INFINITY,
    dueAt: null,
    account: null,
    failure: null,
  };
  const guard: Guard = {
    ...{ deps, name, known },
    readRow: sharing(() => readRow(guard)),
    verify: sharing(() => verify(guard)),
    compareAccount: sharing(async () => {
      await compareHeartbeats(deps, name, known);
    }),
  };
  return guard;
}

/**
 * Whether work may be claimed for a gateway. A refused key does not prevent it: the claimed work
 * gets the same refusal and raises an alert.
 */
const isUsable = ({ known: { verifiedServer, failure } }: Guard) =>
  verifiedServer !== null || failure?.error instanceof RequestRefused;

/** A gateway that does not answer must not hide that another one is ahead. */
async function findAnyProblem(guards: Guard[]): Promise<string | null> {
  const found = await Promise.allSettled(guards.map((guard) => findProblem(guard, know)));
  const stopped = found.find((one) => one.status === 'fulfilled' && one.value !== null);
  if (stopped?.status === 'fulfilled') return stopped.value;
  const failed = found.find((one) => one.status === 'rejected');
  if (failed) throw failed.reason;
  return null;
}

async function findProblemAt(all: Guard[], guard: Guard): Promise<string | null> {
  const problem = await findProblem(guard, know);
  if (problem !== null || !guard.known.hasMoved) return problem;
  return await findProblemOfOthers(all.filter((one) => one !== guard));
}

/**
 * Why the other gateways forbid moving money at this one, or null. Asked when the database has
 * moved to another server: it may be a restored backup, without the payments that were made at the
 * other gateways since then.
 */
async function findProblemOfOthers(others: Guard[]): Promise<string | null> {
  const reason = await findAnyProblem(others).catch((error: Error) => {
    // This gateway refused nothing, so a refusal by another gateway becomes an unknown outcome.
    throw error instanceof OutcomeUnknown
      ? error
      : new OutcomeUnknown(unknownReason(), 'no_answer');
  });
  const wrong = others.find(({ known: { account } }) => account?.reason === reason);
  return reason !== null && wrong
    ? `${unknownReason(`the gateway ${wrong.name}`)} ${reason}`
    : reason;
}

async function findProblem(
  guard: Guard,
  ask: (guard: Guard) => Promise<string | null>,
): Promise<string | null> {
  const { deps, known } = guard;
  // Many payments may ask at once while the gateway does not answer. They share one failure.
  if (known.failure !== null && isFresh(deps, known.failure.at)) throw known.failure.error;
  try {
    const stopped = await ask(guard);
    known.failure = null;
    return stopped;
  } catch (error) {
    const shown = isOfGateway(error) ? error : new OutcomeUnknown(unknownReason());
    known.failure = { error: shown, at: deps.clock.monotonic() };
    deps.log.warn({ err: error, gateway: guard.name }, 'it is not known whether money may move');
    throw shown;
  }
}

const isOfGateway = (error: unknown) =>
  error instanceof OutcomeUnknown || error instanceof RequestRefused;

async function know(guard: Guard): Promise<string | null> {
  await knowRow(guard);
  const { reason, verifiedServer } = guard.known;
  if (reason !== null || verifiedServer !== null) return reason;
  return findOtherAccount(guard) ?? (await guard.verify());
}

/** A right account counts as right until the process ends or a heartbeat finds another one. */
async function knowAccount(guard: Guard): Promise<string | null> {
  if (findOtherAccount(guard) === null) await guard.compareAccount();
  return guard.known.account?.reason ?? null;
}

/**
 * Only a restart with other settings corrects a wrong account, so the gateway is not asked for
 * every payment.
 */
function findOtherAccount({ deps, known: { account } }: Guard): string | null {
  if (account === null || account.reason === null) return null;
  const isRecent = deps.clock.monotonic() - account.at < heartbeatSeconds * 1_000;
  return isRecent ? account.reason : null;
}

/** Compares the account with the gateway's name. Returns why no request may go there, or null. */
async function checkAccount(
  deps: GuardDeps,
  name: GatewayName,
  known: Known,
  { id }: DatabaseHeartbeat,
  heartbeats: Heartbeat[],
): Promise<string | null> {
  const own = heartbeats.find(({ database }) => database === id);
  const why = own ? explainOtherName(name, own) : null;
  known.account = { reason: why, at: deps.clock.monotonic() };
  if (why === null) return null;
  // A process that verified the account earlier must not rely on that any more.
  known.verifiedServer = null;
  const { db } = deps.database;
  const kind = 'gateway_other_account';
  if ((await findAlertThatStarts(db, kind, [why], { isOpen: true })) === null) {
    await raiseAlert(deps, db, { kind, detail: why });
  }
  return why;
}

async function knowRow({ deps, known, readRow }: Guard): Promise<void> {
  if (!isFresh(deps, known.readAt)) await readRow();
}

const isFresh = ({ clock }: GuardDeps, at: number) => clock.monotonic() - at < freshMilliseconds;

async function readRow({ deps, name, known }: Guard): Promise<void> {
  // The row that is read may lack a heartbeat that this process writes during the read. So the row
  // is compared with the highest heartbeat known before.
  const { highestHeartbeat } = known;
  const row = await readNamedHeartbeat(deps, name);
  known.reason = row.stopped_reason;
  known.hasMoved = row.has_moved;
  const fall = explainFall(row, highestHeartbeat);
  if (fall !== null) await stop(deps, known, fall);
  known.highestHeartbeat = Math.max(known.highestHeartbeat, row.heartbeat);
  if (row.current_server !== known.verifiedServer) known.verifiedServer = null;
  known.readAt = deps.clock.monotonic();
  known.dueAt = row.due_at;
}

/**
 * Returns null if money may move on this server. The answer does not come from `known.reason`,
 * because a read of the row that began before the stop may have reset it.
 */
async function verify({ deps, name, known }: Guard): Promise<string | null> {
  const { row, stopped } = await compareHeartbeats(deps, name, known);
  if (stopped !== null) return stopped;
  if (row.server !== null && row.server !== row.current_server) {
    const gateway = deps.gateways.of(name);
    deps.log.warn('the database runs on another server: comparing the newest records');
    const lost = await findLost({ ...deps, gateway, name }, row.heartbeat_at);
    const called = nameGateway(name, deps.gateways.names);
    if (lost !== null) return await stop(deps, known, explainLostChanges(lost, called));
    await moveServer(deps.database.db, name, row.current_server);
  }
  known.verifiedServer = row.current_server;
  return null;
}

async function raiseDue(guard: Guard): Promise<void> {
  const { deps, name, known } = guard;
  const now = deps.clock.now();
  const next = timestamp(secondsAfter(now, heartbeatSeconds));
  if ((await know(guard)) !== null) return;
  if (known.dueAt !== null && known.dueAt > timestamp(now)) return;
  if (await claimHeartbeat(deps.database.db, name, timestamp(now), next)) await raise(guard);
}

/**
 * Writes a new heartbeat to every gateway. One gateway that takes it is enough: after a restore its
 * count is higher than the database's, and then money stops at all gateways.
 */
async function raiseNow(guards: Guard[]): Promise<string | null> {
  const failures: unknown[] = [];
  const reasons = await Promise.all(
    guards.map(async (guard) => {
      try {
        return (await findProblemAt(guards, guard)) ?? (await raise(guard));
      } catch (error) {
        failures.push(error);
        warnUnwritten(guard, error);
        return null;
      }
    }),
  );
  if (failures.length === guards.length) throw failures[0];
  return reasons.find((reason) => reason !== null) ?? null;
}

const warnUnwritten = ({ deps, name: gateway }: Guard, error: unknown) =>
  deps.log.warn({ err: error, gateway }, 'the heartbeat at a gateway was not written');

/** Returns why the heartbeat was not raised. Null if the gateway has the new one. */
async function raise({ deps, name, known }: Guard): Promise<string | null> {
  const { row, heartbeat_ref, stopped } = await compareHeartbeats(deps, name, known);
  if (stopped !== null) return stopped;
  // The heartbeat must not be credited to a server that this process has not verified.
  if (row.id === null || row.current_server !== known.verifiedServer) return unknownReason();
  // Raise the heartbeat here first, so that the gateway's is higher only if a change here was lost.
  const now = timestamp(deps.clock.now());
  const heartbeat = await raiseHeartbeat(deps.database.db, name, now, row.current_server);
  if (heartbeat === null) return unknownReason();
  known.highestHeartbeat = Math.max(known.highestHeartbeat, heartbeat);
  const gateway = deps.gateways.of(name);
  const written = { heartbeat_ref, database: row.id, gateway: name };
  // Several payout exports may write heartbeats at once, so an older count may overwrite a newer
  // one at the gateway. Write until the gateway has the newest count.
  for (let count = heartbeat, newest = heartbeat; ; count = newest) {
    await gateway.writeHeartbeat({ ...written, count });
    newest = (await readHeartbeat(deps.database.db, name)).heartbeat;
    if (newest <= count) return null;
  }
}

/**
 * Reads the gateway first and then the database. A heartbeat is written to the database first, so a
 * heartbeat in flight never makes the gateway seem to be ahead.
 */
async function compareHeartbeats(
  deps: GuardDeps,
  name: GatewayName,
  known: Known,
): Promise<{ row: DatabaseHeartbeat; heartbeat_ref: string | null; stopped: string | null }> {
  const heartbeats = await deps.gateways.of(name).listHeartbeats();
  const row = await readNamedHeartbeat(deps, name);
  const own = heartbeats.find(({ database }) => database === row.id) ?? null;
  const other = await checkAccount(deps, name, known, row, heartbeats);
  if (other !== null) return { row, heartbeat_ref: null, stopped: other };
  const called = nameGateway(name, deps.gateways.names);
  const ahead = explainAhead(row, heartbeats, deps.environment, called);
  const stopped = ahead === null ? row.stopped_reason : await stop(deps, known, ahead);
  return { row, heartbeat_ref: own?.heartbeat_ref ?? null, stopped };
}

async function readNamedHeartbeat(
  { database: { db }, random, gateways }: GuardDeps,
  name: GatewayName,
): Promise<DatabaseHeartbeat> {
  const row = await readHeartbeat(db, name, gateways.names);
  if (row.id !== null && row.is_known) return row;
  await nameDatabase(db, random.uuid(), name);
  return await readHeartbeat(db, name, gateways.names);
}

async function stop(deps: GuardDeps, known: Known, why: string): Promise<string> {
  const reason = describeStop(why);
  const at = timestamp(deps.clock.now());
  await transaction(deps, async ({ db }) => {
    if (!(await stopMoney(db, at, reason))) return;
    await deps.endAccess(db, at);
    // All sessions, links and tokens that the restore brought back have ended. Any that are valid
    // from now on were created on this server, so access may be opened on it.
    await moveAccessServer(db, { server: await readServer(db), at });
    await raiseAlert(deps, db, { kind: 'gateway_ahead', detail: reason });
  });
  known.reason = reason;
  // A read of the row that began before the stop may reset the reason. Then we must compare again.
  known.verifiedServer = null;
  return reason;
}
