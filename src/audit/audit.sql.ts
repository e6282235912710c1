import { sql } from 'kysely';
import type { Handle } from '../database/database.ts';
import type { Timestamp } from '../shared/clock.ts';

/** Claims the audit and returns its mark, or null when another worker has claimed it. */
export async function claimAudit(
  db: Handle,
  now: Timestamp,
  leased_until: Timestamp,
): Promise<string | null> {
  const row = await db
    .updateTable('audit')
    .set({ leased_until })
    .where((where) =>
      where.or([where('leased_until', 'is', null), where('leased_until', '<=', now)]),
    )
    .returning('after')
    .executeTakeFirst();
  return row?.after ?? null;
}

/** Moves the mark past a range with so many differences, and releases the audit. */
export async function moveAudit(db: Handle, after: string, differences: number): Promise<void> {
  await db
    .updateTable('audit')
    .set((set) => ({
      after,
      leased_until: null,
      differences: set('differences', '+', differences),
    }))
    .execute();
}

/** Ends a pass and begins the next. A pass that began under an earlier version proves nothing. */
export async function moveAuditProved(db: Handle, first: string, now: Timestamp): Promise<void> {
  await sql`
    update audit
    set after = ${first}, leased_until = null, began_at = ${now}, differences = 0,
      proved_at = case when began_at is null then proved_at else ${now} end,
      proved_differences = case when began_at is null then proved_differences else differences end`.execute(
    db,
  );
}

/** The range of the next checkouts after an id, in the order of their ids. */
export async function findSlice(
  db: Handle,
  after: string,
  batchSize: number,
): Promise<{ first: string; last: string; count: number } | null> {
  // There is no min(uuid) before PostgreSQL 18.
  const { rows } = await sql<{ first: string; last: string; count: number }>`
    select (array_agg(id order by id))[1] as first, (array_agg(id order by id desc))[1] as last,
      count(*)::integer as count
    from (select id from checkouts where id > ${after} order by id limit ${batchSize}) s
    having count(*) > 0`.execute(db);
  return rows[0] ?? null;
}

/** The number of all checkouts, from the totals of the lists instead of a count. */
export async function sumCheckouts(db: Handle): Promise<number> {
  const { rows } = await sql<{ sum: number }>`
    select coalesce(sum(total), 0)::bigint as sum from list_totals
    where list = 'checkouts'`.execute(db);
  return rows[0]?.sum ?? 0;
}
