import { type Gateway, OutcomeUnknown, RequestRefused } from '#gateway/gateway.ts';
import type { Database } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import { type Clock, secondsAfter, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { findLost } from './find-lost.ts';
import {
  claimBeat,
  type Mark,
  moveServer,
  nameDatabase,
  raiseBeat,
  readMark,
  stopMoney,
} from './gateway-mark.sql.ts';

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
  /**
   * Raises the heartbeat here and at the gateway if that is due. Returns 0, because nothing more is
   * due.
   */
  beat(): Promise<number>;
};

type GuardDeps = {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
  gateway: Gateway;
  environment: 'sandbox' | 'production';
};

/** A restore is noticed if a heartbeat came after the backup. */
const beatSeconds = 60;
/** How old the knowledge of the row may be. A process does not read it for each payment. */
const freshMilliseconds = 1_000;

const unknownReason = 'It is not known yet whether the gateway is ahead of the database.';

export function createMoneyGuard(deps: GuardDeps): MoneyGuard {
  const { db } = deps.database;
  /** The server on which this process has compared the heartbeats, or null if it has not yet. */
  let verifiedServer: string | null = null;
  /**
   * The highest heartbeat that this process has read. A lower one means that the database went
   * back.
   */
  let highestBeat = 0;
  let reason: string | null = null;
  let readAt = Number.NEGATIVE_INFINITY;
  let failedAt = Number.NEGATIVE_INFINITY;
  let failure: Error | null = null;
  let reading: Promise<void> | null = null;
  let verifying: Promise<string | null> | null = null;

  async function stop(why: string): Promise<string> {
    const stopped_reason = `${why} No money moves until \`tranche gateway reconcile --adopt\` has recorded what the gateway did.`;
    const at = timestamp(deps.clock.now());
    await transaction(deps, async ({ db: tx }) => {
      if (!(await stopMoney(tx, at, stopped_reason))) return;
      await raiseAlert(deps, tx, { kind: 'gateway_ahead', detail: stopped_reason });
    });
    reason = stopped_reason;
    // A reading of the row that began before the stop may set the reason back. Compare again then.
    verifiedServer = null;
    return stopped_reason;
  }

  async function read(): Promise<Mark> {
    const mark = await readMark(db);
    if (mark.id === null) {
      await nameDatabase(db, deps.random.uuid());
      return await readMark(db);
    }
    return mark;
  }

  /**
   * Compares the heartbeats. The database is read after the gateway, because it is written before
   * it.
   */
  async function compareBeats(): Promise<{
    mark: Mark;
    heartbeat_ref: string | null;
    stopped: string | null;
  }> {
    const heartbeats = await deps.gateway.listHeartbeats();
    const mark = await read();
    const own = heartbeats.find(({ database }) => database === mark.id) ?? null;
    let stopped = mark.stopped_reason;
    if (own !== null && own.count > mark.beat) {
      stopped = await stop(
        `The gateway is ahead of this database (beat ${own.count} there, ${mark.beat} here): the database was restored from a backup, or a server took over that lacked the last changes.`,
      );
    } else if (own === null && heartbeats.length > 0 && deps.environment === 'production') {
      // In a sandbox several databases may share an account of the gateway.
      stopped = await stop(
        'Another database has used this account of the gateway: this one is new, or was restored from a backup without a mark.',
      );
    }
    return { mark, heartbeat_ref: own?.heartbeat_ref ?? null, stopped };
  }

  /**
   * Null if money may move on this server. The answer does not come from `reason`, which a reading
   * of the row from before the stop may have set back.
   */
  async function verify(): Promise<string | null> {
    const { mark, stopped } = await compareBeats();
    if (stopped !== null) return stopped;
    if (mark.server !== null && mark.server !== mark.current_server) {
      deps.log.warn('the database runs on another server: comparing the newest records');
      const lost = await findLost(deps, mark.beat_at);
      if (lost !== null) {
        return await stop(
          `The database runs on another server and does not know the gateway's ${lost}: that server lacked the last changes.`,
        );
      }
      await moveServer(db, mark.current_server);
    }
    verifiedServer = mark.current_server;
    return null;
  }

  async function readRow(): Promise<void> {
    // A heartbeat that this process writes meanwhile may be missing from what it reads.
    const known = highestBeat;
    const mark = await read();
    reason = mark.stopped_reason;
    if (reason === null && mark.beat < known) {
      await stop(`The beat of the database fell from ${known} to ${mark.beat}.`);
    }
    highestBeat = Math.max(highestBeat, mark.beat);
    if (mark.current_server !== verifiedServer) verifiedServer = null;
    readAt = deps.clock.monotonic();
  }

  /** Callers that come meanwhile share one reading. It never waits for the gateway. */
  async function knowRow(): Promise<void> {
    if (deps.clock.monotonic() - readAt < freshMilliseconds) return;
    reading ??= readRow().finally(() => {
      reading = null;
    });
    await reading;
  }

  async function know(): Promise<string | null> {
    await knowRow();
    if (reason !== null || verifiedServer !== null) return reason;
    verifying ??= verify().finally(() => {
      verifying = null;
    });
    return await verifying;
  }

  async function raise(): Promise<void> {
    const now = deps.clock.now();
    const next = timestamp(secondsAfter(now, beatSeconds));
    if ((await know()) !== null || !(await claimBeat(db, timestamp(now), next))) return;
    const { mark, heartbeat_ref, stopped } = await compareBeats();
    // A server that this process has not verified must not count as the one that wrote the
    // heartbeat.
    if (stopped !== null || mark.id === null || mark.current_server !== verifiedServer) return;
    // Here first: the gateway's heartbeat is higher only if a change here was lost.
    const beat = await raiseBeat(db, timestamp(now), mark.current_server);
    if (beat === null) return;
    highestBeat = Math.max(highestBeat, beat);
    await deps.gateway.writeHeartbeat({ heartbeat_ref, database: mark.id, count: beat });
  }

  return {
    async problem() {
      // Many payments may ask at once while the gateway does not answer.
      if (failure !== null && deps.clock.monotonic() - failedAt < freshMilliseconds) throw failure;
      try {
        const stopped = await know();
        failure = null;
        return stopped;
      } catch (error) {
        failedAt = deps.clock.monotonic();
        const isGateways = error instanceof OutcomeUnknown || error instanceof RequestRefused;
        failure = isGateways ? error : new OutcomeUnknown(unknownReason);
        deps.log.warn({ err: error }, 'it is not known whether money may move');
        throw failure;
      }
    },

    async stopReason() {
      await knowRow();
      return reason;
    },

    async beat() {
      try {
        await raise();
      } catch (error) {
        // The next heartbeat says the same.
        if (!(error instanceof OutcomeUnknown)) throw error;
        deps.log.warn({ err: error }, 'the mark at the gateway was not written');
      }
      return 0;
    },
  };
}
