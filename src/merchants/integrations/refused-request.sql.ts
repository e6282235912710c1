import type { Insertable, Selectable } from 'kysely';
import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Tables } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

export type RefusedRequest = Selectable<Tables['refused_requests']>;

/** An integration keeps this many of its newest refused requests. */
export const refusedMax = 10;

/**
 * Inserts a request and deletes the oldest ones. Two concurrent inserts may leave one too many
 * until the next.
 */
export async function insertRefusedRequest(
  db: Handle,
  row: Insertable<Tables['refused_requests']>,
): Promise<void> {
  const { integration_id } = row;
  const newest = db
    .selectFrom('refused_requests')
    .select('id')
    .where('integration_id', '=', integration_id)
    .orderBy('id', 'desc')
    .limit(refusedMax - 1);
  await db
    .deleteFrom('refused_requests')
    .where('integration_id', '=', integration_id)
    .where('id', 'not in', newest)
    .execute();
  await db.insertInto('refused_requests').values(row).execute();
}

export async function listRefusedRequests(
  db: Handle,
  integration_id: string,
): Promise<RefusedRequest[]> {
  return await db
    .selectFrom('refused_requests')
    .selectAll()
    .where('integration_id', '=', integration_id)
    .orderBy('id', 'desc')
    .limit(refusedMax)
    .execute();
}

export async function deleteRefusedBefore(
  db: Handle,
  cutoff: Timestamp,
  count: number,
): Promise<number> {
  const result = await sql`
    delete from refused_requests where id in (
      select id from refused_requests where at <= ${cutoff} order by at limit ${count})`.execute(
    db,
  );
  return Number(result.numAffectedRows ?? 0n);
}
