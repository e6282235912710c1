import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

// Pages of rows for operators. Each page is a range of an index, however long the list is: a key
// says where the previous page ended, so neither an offset nor a count is needed. Ids ascend with
// time, so the order of ids is the order of creation.

/** The position where a page ended: the values of the order's columns in its last row. */
export type Key = string[];

export type Page<Row> = { rows: Row[]; last: Key | null };

export type PageOf = { after: Key | null; limit: number };

/** A span of time. `until` is excluded. */
export type Span = { from?: Timestamp | undefined; until?: Timestamp | undefined };

/** The key does not belong to this list. */
export class BadKey extends Error {}

/** The console lists the newest rows first, the command line the oldest. */
export const sortOrders = ['newest first', 'oldest first'] as const;
export type SortOrder = (typeof sortOrders)[number];
export const directionOf = (order: SortOrder) => (order === 'newest first' ? 'desc' : 'asc');

/** The rows after a key, ordered by the columns. `names` are the columns' names in a row. */
export async function readRange<Row extends object>(
  // biome-ignore lint/suspicious/noExplicitAny: it pages queries of any shape.
  query: any,
  page: PageOf,
  columns: string[],
  direction: 'asc' | 'desc',
  names = columns.map((column) => column.split('.').at(-1) as string),
): Promise<Page<Row>> {
  let ordered = query.limit(page.limit);
  for (const column of columns) ordered = ordered.orderBy(sql.ref(column), direction);
  if (page.after !== null) {
    if (page.after.length !== columns.length) throw new BadKey();
    const refs = sql.join(columns.map((column) => sql.ref(column)));
    const values = sql.join(page.after.map((value) => sql`${value}`));
    ordered = ordered.where(
      direction === 'asc'
        ? sql<boolean>`(${refs}) > (${values})`
        : sql<boolean>`(${refs}) < (${values})`,
    );
  }
  const rows: Row[] = await ordered.execute();
  const last = rows.at(-1) as Record<string, unknown> | undefined;
  if (!last || rows.length < page.limit) return { rows, last: null };
  return { rows, last: names.map((name) => String(last[name])) };
}

/**
 * The number of a merchant's first checkout or refund at or after a time. Times ascend with the
 * numbers, which have no gaps, so a binary search of about twenty steps needs no index by time.
 */
export async function findNumberAt(
  db: Handle,
  list: 'checkouts' | 'refund_requests',
  merchant_id: string,
  time: Timestamp,
): Promise<number> {
  const { rows } = await sql<{ number: number }>`
    with recursive range (low, high) as (
      select 1::bigint, total + 1 from list_totals
      where merchant_id = ${merchant_id} and list = ${list}
      union all
      select case when c.created_at < ${time}::timestamptz then c.number + 1 else r.low end,
        case when c.created_at < ${time}::timestamptz then r.high else c.number end
      from range r
      join ${sql.table(list)} c on c.merchant_id = ${merchant_id} and c.number = (r.low + r.high) / 2
      where r.low < r.high
    )
    select low as number from range where low >= high`.execute(db);
  return rows[0]?.number ?? 1;
}
