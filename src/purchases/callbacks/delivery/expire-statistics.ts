import { transaction } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import {
  deleteExpiredDays,
  deleteExpiredDestinations,
  listExpiredDays,
  listExpiredDestinations,
} from './destination-statistics.sql.ts';
import type { RetentionDeps } from './expire-attempts.ts';
import { expireBatchSize, statisticsDays } from './limits.ts';

/**
 * Deletes a batch of old daily results, and a batch of destinations to which nothing was sent during
 * the retention period of attempts. Merchants choose the hosts, so without this the tables would
 * grow for ever. Returns how many rows of either were found.
 */
export async function expireStatistics(
  deps: RetentionDeps,
  batchSize = expireBatchSize,
): Promise<number> {
  const { db } = deps.database;
  const before = (days: number) => timestamp(deps.clock.now().subtract({ hours: 24 * days }));
  const day = before(statisticsDays).slice(0, 10);
  const days = await listExpiredDays(db, day, batchSize);
  for (const [merchant_id, rows] of Map.groupBy(days, (one) => one.merchant_id)) {
    await deleteExpiredDays(db, merchant_id, rows);
  }
  const cutoff = before(deps.callbackRetentionDays);
  const destinations = await listExpiredDestinations(db, cutoff, batchSize);
  for (const [merchant_id, rows] of Map.groupBy(destinations, (one) => one.merchant_id)) {
    const hosts = rows.map(({ host }) => host);
    await transaction(deps, ({ db }) => deleteExpiredDestinations(db, merchant_id, hosts, cutoff));
  }
  return days.length + destinations.length;
}
