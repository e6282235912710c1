import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

export type DestinationCount = {
  merchant_id: string;
  host: string;
  day: string;
  attempts: number;
  delivered: number;
  /** How many deliveries, also failed ones, took a time in each range (`bucketBounds`). */
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

type Day = { merchant_id: string; host: string; day: string };

export async function listExpiredDays(db: Handle, before: string, rowsMax: number): Promise<Day[]> {
  return await db
    .selectFrom('destination_days')
    .select(['merchant_id', 'host', 'day'])
    .where('day', '<', before)
    .limit(rowsMax)
    .execute();
}

export async function deleteExpiredDays(
  db: Handle,
  merchant_id: string,
  days: Pick<Day, 'host' | 'day'>[],
): Promise<void> {
  await sql`
    delete from destination_days d
    using unnest(${days.map(({ host }) => host)}::text[], ${days.map(({ day }) => day)}::date[])
      as i (host, day)
    where d.merchant_id = ${merchant_id} and d.host = i.host and d.day = i.day`.execute(db);
}

/** Destinations to which nothing was sent since the given time. */
export async function listExpiredDestinations(
  db: Handle,
  cutoff: Timestamp,
  rowsMax: number,
): Promise<{ merchant_id: string; host: string }[]> {
  return await db
    .selectFrom('destination_states')
    .select(['merchant_id', 'host'])
    .where('last_attempt_at', '<', cutoff)
    .limit(rowsMax)
    .execute();
}

/** Deletes what is known about a merchant's destinations, unless something was sent meanwhile. */
export async function deleteExpiredDestinations(
  db: Handle,
  merchant_id: string,
  hosts: string[],
  cutoff: Timestamp,
): Promise<void> {
  const deleted = await db
    .deleteFrom('destination_states')
    .where('merchant_id', '=', merchant_id)
    .where('host', 'in', hosts)
    .where('last_attempt_at', '<', cutoff)
    .returning('host')
    .execute();
  if (deleted.length === 0) return;
  await db
    .deleteFrom('destinations')
    .where('merchant_id', '=', merchant_id)
    .where(
      'host',
      'in',
      deleted.map(({ host }) => host),
    )
    .execute();
}
