import { bucketBounds } from '#purchases/callbacks/delivery/destination-statistics.ts';
import { DestinationRow, DestinationsQuery } from './callback.schema.ts';
import {
  type DestinationState,
  listDestinationDays,
  listDestinationsPage,
  listFailures,
} from './destinations.sql.ts';
import { defineList, readList } from './list.ts';
import { listMerchantNames } from './owner.sql.ts';
import { scopeOf } from './viewer.ts';

/** How many days the statistics of a receiver cover. */
const destinationDays = 7;

/** Receivers with their recent results. */
export const destinationList = defineList({
  name: 'destinations',
  permission: 'callbacks.read',
  query: DestinationsQuery,
  row: DestinationRow,
  read({ deps, ...viewer }, query, page) {
    const scope = scopeOf(viewer, query);
    return readList(
      deps,
      page,
      (db, range) => listDestinationsPage(db, scope, range),
      async (db, rows) => {
        const since = dayBefore(deps.clock.now(), destinationDays);
        const days = await listDestinationDays(db, scope, rows, since);
        const failures = await listFailures(db, scope, rows);
        const ids = rows.map(({ merchant_id }) => merchant_id);
        const names = await listMerchantNames(db, scope, ids);
        return rows.map((row) => {
          const isSame = (one: Pick<DestinationState, 'merchant_id' | 'host'>) =>
            one.merchant_id === row.merchant_id && one.host === row.host;
          const own = days.filter(isSame);
          const attempts = own.reduce((sum, day) => sum + day.attempts, 0);
          const delivered = own.reduce((sum, day) => sum + day.delivered, 0);
          const histograms = own.map(({ buckets }) => buckets);
          return {
            ...row,
            merchant_name: names.get(row.merchant_id)?.name ?? '',
            attempts,
            delivered,
            success_rate: attempts === 0 ? null : delivered / attempts,
            p95_ms: percentile(histograms, bucketBounds, 0.95),
            failures_in_a_row: failures.find(isSame)?.failures ?? 0,
          };
        });
      },
    );
  },
  columns: [
    ['Merchant', (row) => row.merchant_name],
    ['Host', (row) => row.host],
    ['Attempts', (row) => row.attempts],
    ['Delivered', (row) => row.delivered],
    ['p95 ms', (row) => row.p95_ms],
    ['Failures in a row', (row) => row.failures_in_a_row],
    ['Last attempt', (row) => row.last_attempt_at],
    ['Last error', (row) => row.last_error],
    ['Last error at', (row) => row.last_error_at],
  ],
});

/**
 * The upper bound of the histogram's bucket that contains this percentile; null without answers.
 */
function percentile(
  histograms: number[][],
  bounds: readonly number[],
  part: number,
): number | null {
  const sums = bounds.map((_, index) =>
    histograms.reduce((sum, buckets) => sum + (buckets[index] ?? 0), 0),
  );
  const wanted = sums.reduce((sum, count) => sum + count, 0) * part;
  if (wanted === 0) return null;
  let passed = 0;
  for (const [index, count] of sums.entries()) {
    passed += count;
    if (passed >= wanted) return bounds[index] ?? null;
  }
  return bounds.at(-1) ?? null;
}

export function dayBefore(now: Temporal.Instant, days: number): string {
  return now.toZonedDateTimeISO('UTC').toPlainDate().subtract({ days }).toString();
}
