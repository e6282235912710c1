import type { Database } from '#platform/database/database.ts';
import { type Clock, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import {
  advanceDestinationDays,
  advanceDestinationStates,
  type DestinationCount,
} from './destination-statistics.sql.ts';
import { isOurFailure } from './failure-reason.ts';

/**
 * The upper bounds of the histogram's buckets, in milliseconds. The last is the time limit of a
 * delivery.
 */
export const bucketBounds = [25, 50, 100, 200, 300, 500, 750, 1_000, 1_500, 2_500, 5_000, 10_000];

/**
 * Each receiver's results are counted in the memory of the process that delivers, and written every
 * few seconds, so that counting adds no cost to a delivery. A process that is killed loses the
 * counts of those seconds, and nothing else: every attempt has its own row.
 */
const counts = new WeakMap<Database, Map<string, DestinationCount>>();

export type CountedDelivery = {
  callback: { merchant_id: string; host: string };
  reason: string | null;
  milliseconds: number | undefined;
};

export function countDeliveries(
  deps: { database: Database; clock: Clock },
  deliveries: CountedDelivery[],
): void {
  const counted = counts.get(deps.database) ?? new Map<string, DestinationCount>();
  counts.set(deps.database, counted);
  const at = timestamp(deps.clock.now());
  for (const { callback, reason, milliseconds } of deliveries) {
    const { merchant_id, host } = callback;
    if (isOurFailure(reason)) continue;
    const day = at.slice(0, 10);
    const name = `${merchant_id} ${host} ${day}`;
    const count = counted.get(name) ?? newCount(merchant_id, host, day, at);
    counted.set(name, count);
    count.attempts += 1;
    count.last_attempt_at = at;
    if (reason === null) count.delivered += 1;
    else Object.assign(count, { last_error: reason, last_error_at: at });
    if (milliseconds === undefined) continue;
    const bucket = bucketBounds.findIndex((bound) => milliseconds <= bound);
    const index = bucket === -1 ? bucketBounds.length - 1 : bucket;
    count.buckets[index] = (count.buckets[index] ?? 0) + 1;
  }
}

const newCount = (
  merchant_id: string,
  host: string,
  day: string,
  at: Timestamp,
): DestinationCount => ({
  merchant_id,
  host,
  day,
  attempts: 0,
  delivered: 0,
  buckets: bucketBounds.map(() => 0),
  last_attempt_at: at,
  last_error: null,
  last_error_at: null,
});

/** Writes the counts of this process. Counts that cannot be written are lost. */
export async function writeDestinationStatistics(deps: { database: Database }): Promise<number> {
  const counted = counts.get(deps.database);
  if (!counted || counted.size === 0) return 0;
  counts.delete(deps.database);
  const rows = [...counted].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, row]) => row);
  const { db } = deps.database;
  await db.transaction().execute(async (tx) => {
    await advanceDestinationDays(tx, rows);
    await advanceDestinationStates(tx, rows);
  });
  // Returns zero, because the next counts are due after the pause, not at once.
  return 0;
}
