import { sql } from 'kysely';
import type { Timestamp } from '../shared/clock.ts';
import type { Handle } from './database.ts';

export type ListName = 'checkouts' | 'refund_requests';

/** Adds rows to a merchant's list: their last number, and a creation time in their order. */
export async function advanceListTotal(
  db: Handle,
  merchant_id: string,
  list: ListName,
  count: number,
  now: Timestamp,
): Promise<{ total: number; last_created_at: Timestamp }> {
  const { rows } = await sql<{ total: number; last_created_at: Timestamp }>`
    insert into list_totals as l (merchant_id, list, total, last_created_at)
    values (${merchant_id}, ${list}, ${count}, ${now})
    on conflict (merchant_id, list) do update
      set total = l.total + excluded.total,
          last_created_at = greatest(l.last_created_at, excluded.last_created_at)
    returning total, last_created_at`.execute(db);
  return rows[0] as { total: number; last_created_at: Timestamp };
}

/** The numbers of the rows on one page of a list, newest first: a range, not an offset. */
export function pageRange(
  total: number,
  page: { number: number; items: number },
): { first: number; last: number } {
  const last = total - (page.number - 1) * page.items;
  return { first: Math.max(last - page.items + 1, 1), last };
}

export async function findListTotal(
  db: Handle,
  merchant_id: string,
  list: ListName,
): Promise<number> {
  const row = await db
    .selectFrom('list_totals')
    .select('total')
    .where('merchant_id', '=', merchant_id)
    .where('list', '=', list)
    .executeTakeFirst();
  return row?.total ?? 0;
}
