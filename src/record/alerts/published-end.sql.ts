import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { ChainEnd } from '#record/actions/operator-chain.sql.ts';

/** An end of the chain that was posted to the operator's own URL. */
export type PublishedEnd = ChainEnd & { on_date: string; at: Timestamp };

/** Records the end of the chain for a day. Returns false if the day already has one. */
export async function insertPublishedEnd(db: Handle, end: PublishedEnd): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('published_ends')
    .values(end)
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  return numInsertedOrUpdatedRows === 1n;
}

/** The published ends up to a moment, the newest first. */
export async function listPublishedEnds(
  db: Handle,
  { until, limit }: { until?: Timestamp; limit: number },
): Promise<PublishedEnd[]> {
  return await db
    .selectFrom('published_ends')
    .selectAll()
    .$if(until !== undefined, (query) => query.where('at', '<=', until as Timestamp))
    .orderBy('on_date', 'desc')
    .limit(limit)
    .execute();
}
