import type pg from 'pg';
import { secondsAfter, timestamp } from '#platform/shared/clock.ts';
import { comparePayouts } from '#purchases/payouts/compare-payouts.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import { nameDatabase, readHeartbeat, resumeMoney } from './gateway-heartbeat.sql.ts';
import { type ReconcileDeps, type Reconciled, reconcileOn } from './reconcile.ts';
import { lockRecording } from './reconciliation.sql.ts';
import { settleInFlight } from './settle-in-flight.ts';

/** A hold of the days before the backup may have been captured or voided since. */
const marginDays = 8;
/** The range of a database that has no heartbeat to count from. */
const ordinaryDays = 40;

/**
 * Reconciles, records what the gateway did and this database does not know, and then lets money
 * move again (decision 0098). What could not be recorded is an alert that blocks its checkout.
 */
export async function recordLost(
  deps: ReconcileDeps & OperatorDeps,
  operator: string,
  progress: (checked: number) => void = () => {},
): Promise<Reconciled> {
  const client = await deps.database.pool.connect();
  try {
    if (!(await lockRecording(client))) {
      throw new OperatorError(
        'Another process records what the gateway did. Wait until it has ended.',
      );
    }
    return await recordOn(client, deps, operator, progress);
  } finally {
    // Closing the connection releases its locks.
    client.release(true);
  }
}

async function recordOn(
  client: pg.ClientBase,
  deps: ReconcileDeps & OperatorDeps,
  operator: string,
  progress: (checked: number) => void,
): Promise<Reconciled> {
  const { db } = deps.database;
  await nameDatabase(db, deps.random.uuid());
  const before = await readHeartbeat(db);
  const isStopped = before.stopped_at !== null;
  const day = 86_400;
  const range =
    before.heartbeat_at !== null
      ? secondsAfter(Temporal.Instant.from(before.heartbeat_at), -marginDays * day)
      : isStopped
        ? null
        : secondsAfter(startOfDay(deps.clock.now()), -ordinaryDays * day);
  const from = range && timestamp(range);
  // Settle these first. Otherwise an attempt that has ended would prevent the recording of a later
  // one.
  const recorder = { ...deps, operator, isStopped };
  const settled = isStopped ? await settleInFlight(recorder) : 0;
  const reconciled = await reconcileOn(client, deps, { from, to: null, recorder }, progress);
  const answer = { ...reconciled, recorded: reconciled.recorded + settled };
  const { checked, recorded, differences } = answer;

  const heartbeats = await deps.gateway.listHeartbeats();
  const row = await readHeartbeat(db);
  const own = heartbeats.find(({ database }) => database === row.id) ?? null;
  const heartbeat = Math.max(own?.count ?? 0, row.heartbeat) + 1;
  // Raise the gateway's heartbeat first, while money is stopped. Then the heartbeat here is never
  // behind once money moves.
  if (isStopped && row.id !== null) {
    const heartbeat_ref = own?.heartbeat_ref ?? null;
    await deps.gateway.writeHeartbeat({ heartbeat_ref, database: row.id, count: heartbeat });
  }
  await operate(deps, operator, 'gateway resume', async (tx, at) => {
    let payouts = 0;
    if (isStopped) {
      await resumeMoney(tx, { heartbeat, at, server: row.current_server });
      payouts = await comparePayouts(tx, at);
    }
    const found = { checked, recorded, differences: differences.length };
    const details = { ...found, resumed: isStopped, payouts_to_compare: payouts };
    return { subject_id: null, details, result: null };
  });
  return answer;
}

/** A run that continues must have the same range. */
const startOfDay = (now: Temporal.Instant) =>
  Temporal.Instant.from(`${now.toString().slice(0, 10)}T00:00:00Z`);
