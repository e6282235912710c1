import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

export type DestinationCount = {
  merchant_id: string;
  host: string;
  day: string;
  attempts: number;
  delivered: number;
  /** How many answers fell into each range of response times. */
  buckets: number[];
  last_attempt_at: Timestamp;
  last_error: string | null;
  last_error_at: Timestamp | null;
};

export async function advanceDestinationDays(db: Handle, rows: DestinationCount[]): Promise<void> {
  const values = rows.map(({ merchant_id, host, day, attempts, delivered, buckets }) => ({
    merchant_id,
    host,
    day,
    attempts,
    delivered,
    buckets,
  }));
  // SQL cannot add up arrays, so each bucket is summed separately.
  const buckets = (rows[0]?.buckets ?? []).map(
    (_, index) =>
      `coalesce(destination_days.buckets[${index + 1}], 0) + excluded.buckets[${index + 1}]`,
  );
  await db
    .insertInto('destination_days')
    .values(values)
    .onConflict((conflict) =>
      conflict.columns(['merchant_id', 'host', 'day']).doUpdateSet({
        attempts: sql`destination_days.attempts + excluded.attempts`,
        delivered: sql`destination_days.delivered + excluded.delivered`,
        buckets: sql.raw(`array[${buckets.join(', ')}]`),
      }),
    )
    .execute();
}

/** Stores the newest known state of each receiver. */
export async function advanceDestinationStates(
  db: Handle,
  rows: DestinationCount[],
): Promise<void> {
  // Around midnight a receiver has two counts, but one statement may change a row only once.
  const newest = new Map<string, DestinationCount>();
  for (const row of rows) {
    const earlier = newest.get(`${row.merchant_id} ${row.host}`);
    const { last_error, last_error_at } = row.last_error === null && earlier ? earlier : row;
    newest.set(`${row.merchant_id} ${row.host}`, { ...row, last_error, last_error_at });
  }
  await db
    .insertInto('destination_states')
    .values(
      [...newest.values()].map(
        ({ merchant_id, host, last_attempt_at, last_error, last_error_at }) => ({
          merchant_id,
          host,
          last_attempt_at,
          last_error,
          last_error_at,
        }),
      ),
    )
    .onConflict((conflict) =>
      conflict.columns(['merchant_id', 'host']).doUpdateSet({
        last_attempt_at: sql`greatest(destination_states.last_attempt_at, excluded.last_attempt_at)`,
        last_error: sql`coalesce(excluded.last_error, destination_states.last_error)`,
        last_error_at: sql`coalesce(excluded.last_error_at, destination_states.last_error_at)`,
      }),
    )
    .execute();
}
