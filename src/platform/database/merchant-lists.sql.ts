import { type RawBuilder, type Selectable, sql } from 'kysely';
import type pg from 'pg';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Handle } from './database.ts';
import type { Tables } from './tables.ts';

// The common parts of a merchant's lists: numbers, pages, owners. A list has its table's name.

export type ListName = 'checkouts' | 'payment_links' | 'refund_requests' | 'payouts';

/**
 * Reserves numbers at the end of a merchant's list. `last_created_at` is the time for the new rows:
 * it is not before the `created_at` of any earlier row.
 */
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

/**
 * Reserves numbers at the end of several merchants' lists. Locks in the order of the merchants, so
 * that two processes cannot deadlock. A count of 0 only takes the lock.
 */
export async function advanceListTotals(
  client: pg.ClientBase,
  list: ListName,
  room: Map<string, { count: number; at: Timestamp }>,
): Promise<void> {
  const merchants = [...room].sort(([a], [b]) => (a < b ? -1 : 1));
  // VALUES makes Citus send these rows only to their merchants' nodes. Citus would send a SELECT to
  // all nodes.
  const rows = merchants.map(
    (_, index) => `($${3 * index + 1}, '${list}', $${3 * index + 2}, $${3 * index + 3})`,
  );
  await client.query({
    name: `${list}-advance-totals-${rows.length}`,
    text: `
      insert into list_totals as l (merchant_id, list, total, last_created_at)
      values ${rows.join(', ')}
      on conflict (merchant_id, list) do update
        set total = l.total + excluded.total,
            last_created_at = greatest(l.last_created_at, excluded.last_created_at)`,
    values: merchants.flatMap(([id, { count, at }]) => [id, count, at]),
  });
}

/**
 * One page of a merchant's list, newest first, and the length of the whole list. The numbers of the
 * rows have no gaps, so a page is a range of numbers and needs neither OFFSET nor a count.
 */
export async function listPage<List extends ListName>(
  db: Handle,
  list: List,
  merchant_id: string,
  page: { number: number; items: number },
): Promise<{ total: number; rows: Selectable<Tables[List]>[] }> {
  const found = await db
    .selectFrom('list_totals')
    .select('total')
    .where('merchant_id', '=', merchant_id)
    .where('list', '=', list)
    .executeTakeFirst();
  const total = found?.total ?? 0;
  const last = total - (page.number - 1) * page.items;
  if (last < 1) return { total, rows: [] };
  const rows = await db
    .selectFrom(list as 'checkouts')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('number', '>', last - page.items)
    .where('number', '<=', last)
    .orderBy('number', 'desc')
    .execute();
  return { total, rows: rows as Selectable<Tables[List]>[] };
}

/**
 * A filtered list shows at most this many matches, the newest ones: all of them are read for every
 * page.
 */
export const matchesMax = 1_000;

/**
 * One page of the rows in a merchant's list with this `client_reference_id`, their own or their
 * checkout's. Matches have no dense numbers, so this reads the numbers of all of them first. A
 * merchant may use one reference for every order; `matchesMax` bounds the work (decision 0009).
 */
export async function listMatches<List extends 'checkouts' | 'refund_requests'>(
  db: Handle,
  list: List,
  merchant_id: string,
  client_reference_id: string,
  page: { number: number; items: number },
): Promise<{ total: number; rows: Selectable<Tables[List]>[] }> {
  const checkouts = db
    .selectFrom('checkouts')
    .select(['id', 'number'])
    .where('merchant_id', '=', merchant_id)
    .where('client_reference_id', '=', client_reference_id)
    .orderBy('number', 'desc')
    .limit(matchesMax);
  const matches =
    list === 'checkouts'
      ? await checkouts.execute()
      : await db
          .selectFrom(checkouts.as('c'))
          .innerJoin('refund_requests as r', 'r.checkout_id', 'c.id')
          .select('r.number')
          .where('r.merchant_id', '=', merchant_id)
          .orderBy('r.number', 'desc')
          .limit(matchesMax)
          .execute();
  const first = (page.number - 1) * page.items;
  const numbers = matches.slice(first, first + page.items).map(({ number }) => number);
  if (numbers.length === 0) return { total: matches.length, rows: [] };
  const rows = await db
    .selectFrom(list as 'checkouts')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('number', 'in', numbers)
    .orderBy('number', 'desc')
    .execute();
  return { total: matches.length, rows: rows as Selectable<Tables[List]>[] };
}

/** The merchant that owns a row, among those that an intermediary manages. */
export async function findManagedOwner(
  db: Handle,
  list: ListName,
  integration_id: string,
  id: string,
): Promise<string | null> {
  const row = await db
    .selectFrom(`${list as 'checkouts'} as l`)
    .innerJoin('managed_merchants as m', 'm.merchant_id', 'l.merchant_id')
    .select('l.merchant_id')
    .where('l.id', '=', id)
    .where('m.integration_id', '=', integration_id)
    .executeTakeFirst();
  return row?.merchant_id ?? null;
}

/**
 * Sets `last_created_at` of each list to the time on its merchant's clock if it is later than that
 * time by more than `margin`. Returns how many lists were changed.
 */
export async function lowerListPositions(
  db: Handle,
  now: Timestamp,
  margin: RawBuilder<unknown>,
): Promise<number> {
  const merchantNow = sql`(${now}::timestamptz + m.clock_ahead_ms * interval '1 millisecond')`;
  const { numAffectedRows } = await sql`
    update list_totals as l set last_created_at = ${merchantNow}
    from merchants m
    where m.id = l.merchant_id and l.last_created_at > ${merchantNow} + ${margin}`.execute(db);
  return Number(numAffectedRows ?? 0n);
}
