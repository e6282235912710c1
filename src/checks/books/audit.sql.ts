import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

/**
 * The audit's position: the last checkout that was audited and, once all checkouts are audited, the
 * last merchant. Until then `after_merchant` is null.
 */
export type AuditPosition = { after: string; after_merchant: string | null };

/** Claims the audit and returns its position, or null when another worker has claimed it. */
export async function claimAudit(
  db: Handle,
  now: Timestamp,
  leased_until: Timestamp,
): Promise<AuditPosition | null> {
  const row = await db
    .updateTable('audit')
    .set({ leased_until })
    .where((where) =>
      where.or([where('leased_until', 'is', null), where('leased_until', '<=', now)]),
    )
    .returning(['after', 'after_merchant'])
    .executeTakeFirst();
  return row ?? null;
}

/**
 * Moves the position past a range, adds the number of its differences, and releases the audit.
 * Changes nothing if the lease ran out and another worker has claimed the audit.
 */
export async function moveAudit(
  db: Handle,
  leased_until: Timestamp,
  to: AuditPosition,
  differences: number,
): Promise<void> {
  await db
    .updateTable('audit')
    .set((set) => ({
      ...to,
      leased_until: null,
      differences: set('differences', '+', differences),
    }))
    .where('leased_until', '=', leased_until)
    .execute();
}

/**
 * Ends a pass and begins the next. Changes nothing if the lease ran out and another worker has
 * claimed the audit.
 */
export async function moveAuditProved(
  db: Handle,
  leased_until: Timestamp,
  first: string,
  now: Timestamp,
): Promise<void> {
  await db
    .updateTable('audit')
    .set((set) => ({
      after: first,
      after_merchant: null,
      leased_until: null,
      differences: 0,
      proved_at: now,
      proved_differences: set.ref('differences'),
    }))
    .where('leased_until', '=', leased_until)
    .execute();
}

/** The range of the next checkouts after an id, in the order of their ids. Null if none follow. */
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

/**
 * The range of the next merchants after an id. It ends after a number of merchants, or earlier if
 * they have many checkouts. The books of one merchant cannot be split. Null if no merchants follow.
 */
export async function findMerchantSlice(
  db: Handle,
  after: string,
  max: { merchants: number; checkouts: number },
): Promise<{ first: string; last: string } | null> {
  const merchants = await db
    .selectFrom('merchants')
    .select('id')
    .where('id', '>', after)
    .orderBy('id')
    .limit(max.merchants)
    .execute();
  const ids = merchants.map(({ id }) => id);
  const [first] = ids;
  if (first === undefined) return null;
  const totals = await db
    .selectFrom('list_totals')
    .select(['merchant_id', 'total'])
    .where('list', '=', 'checkouts')
    .where('merchant_id', 'in', ids)
    .execute();
  const checkoutsOf = new Map(totals.map(({ merchant_id, total }) => [merchant_id, total]));
  let last = first;
  let checkouts = 0;
  for (const id of ids) {
    if (checkouts >= max.checkouts) break;
    checkouts += checkoutsOf.get(id) ?? 0;
    last = id;
  }
  return { first, last };
}

/**
 * The number of all checkouts. It is the sum of the lists' totals, which is cheaper than a count.
 */
export async function sumCheckouts(db: Handle): Promise<number> {
  const { rows } = await sql<{ sum: number }>`
    select coalesce(sum(total), 0)::bigint as sum from list_totals
    where list = 'checkouts'`.execute(db);
  return rows[0]?.sum ?? 0;
}
