import type pg from 'pg';
import type { GatewayName } from '#gateway/gateway-name.ts';
import { refuseOtherAccounts } from '#gateway/guard-gateway.ts';
import { secondsAfter, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import { comparePayouts } from '#purchases/payouts/compare-payouts.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import {
  moveHeartbeat,
  nameDatabase,
  readHeartbeat,
  resumeMoney,
} from './gateway-heartbeat.sql.ts';
import { type ReconcileDeps, type Reconciled, reconcileOn } from './reconcile.ts';
import { lockRecording } from './reconciliation.sql.ts';
import { settleInFlight } from './settle-in-flight.ts';

/** A hold that was made in the days before the backup may have been captured or voided since. */
const marginDays = 8;
/** How many days are read if there is no heartbeat to count from, and money is not stopped. */
const ordinaryDays = 40;

/**
 * Reconciles, records what the gateway did without this database knowing, and then lets money move
 * again (decision 0098). Anything that could not be recorded becomes an alert that blocks its
 * checkout.
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
        'Another process is recording what the gateway did. Wait until it has finished.',
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
  const { names } = deps.gateways;
  await refuseOtherAccounts(deps.money, names);
  for (const name of names) await nameDatabase(db, deps.random.uuid(), name);
  const before = await Promise.all(names.map((name) => readHeartbeat(db, name)));
  const isStopped = before.some(({ stopped_at }) => stopped_at !== null);
  // Attempts in flight are settled first. Otherwise an attempt that has ended would prevent the
  // recording of a later one.
  const recorder = { ...deps, operator, isStopped };
  const answer: Reconciled = { checked: 0, differences: [], recorded: 0 };
  if (isStopped) answer.recorded += await settleInFlight(recorder);
  for (const [index, gateway] of names.entries()) {
    const from = readsFrom(deps, before[index]?.heartbeat_at ?? null, isStopped);
    const range = { from, to: null, gateway, recorder };
    const checkedBefore = answer.checked;
    const one = await reconcileOn(client, deps, range, (checked) =>
      progress(checkedBefore + checked),
    );
    answer.checked += one.checked;
    answer.recorded += one.recorded;
    answer.differences.push(...one.differences);
  }
  const raised = isStopped ? await raiseHeartbeats(deps) : [];
  const { checked, recorded, differences } = answer;
  await operate(deps, operator, 'gateway resume', async (tx, at) => {
    let payouts = 0;
    if (isStopped) {
      for (const { gateway, ...to } of raised) await moveHeartbeat(tx, gateway, { ...to, at });
      await resumeMoney(tx);
      payouts = await comparePayouts(tx, at);
    }
    const found = { checked, recorded, differences: differences.length };
    const details = { ...found, resumed: isStopped, payouts_to_compare: payouts };
    return { subject_id: null, details, result: null };
  });
  return answer;
}

/**
 * Raises the heartbeats at the gateways first, while money is still stopped, so that the heartbeats
 * here are never behind once money moves.
 */
async function raiseHeartbeats(
  deps: ReconcileDeps,
): Promise<{ gateway: GatewayName; heartbeat: number; server: string }[]> {
  const { db } = deps.database;
  const raised = [];
  for (const gateway of deps.gateways.names) {
    const port = deps.gateways.of(gateway);
    const heartbeats = await port.listHeartbeats();
    const row = await readHeartbeat(db, gateway);
    const own = heartbeats.find(({ database }) => database === row.id) ?? null;
    const heartbeat = Math.max(own?.count ?? 0, row.heartbeat) + 1;
    if (row.id !== null) {
      const heartbeat_ref = own?.heartbeat_ref ?? null;
      const written = { heartbeat_ref, database: row.id, gateway, count: heartbeat };
      await port.writeHeartbeat(written);
    }
    raised.push({ gateway, heartbeat, server: row.current_server });
  }
  return raised;
}

const day = 86_400;

/** The time from which a gateway's records are read; null for all of them. */
function readsFrom(
  { clock }: ReconcileDeps,
  heartbeat_at: Timestamp | null,
  isStopped: boolean,
): Timestamp | null {
  if (heartbeat_at !== null) {
    return timestamp(secondsAfter(Temporal.Instant.from(heartbeat_at), -marginDays * day));
  }
  return isStopped ? null : timestamp(secondsAfter(startOfDay(clock.now()), -ordinaryDays * day));
}

/** The start of the day, because a run that continues must have the same range. */
const startOfDay = (now: Temporal.Instant) =>
  Temporal.Instant.from(`${now.toString().slice(0, 10)}T00:00:00Z`);
