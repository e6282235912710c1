import { type RawBuilder, sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { AttemptStatus } from '#purchases/payments/payment-attempt.ts';
import type { MovementKind } from '#record/ledger/posting.ts';
import type { EntryKind } from '#record/ledger/settlement.ts';

/** The sums are made from these rows, each kind in the order of its ids, which ascend with time. */
export const streams = ['checkouts', 'opens', 'attempts', 'postings', 'entries'] as const;
export type Stream = (typeof streams)[number];

/**
 * Locks a stream until the transaction ends, and returns its position. Returns null if another
 * process is adding it up.
 */
export async function lockStream(db: Handle, stream: Stream): Promise<string | null> {
  const row = await db
    .selectFrom('rollups')
    .select('after')
    .where('stream', '=', stream)
    .forUpdate()
    .skipLocked()
    .executeTakeFirst();
  return row?.after ?? null;
}

/** Moves the position. A day that was complete stays complete: `as_of` never goes back. */
export async function moveStream(
  db: Handle,
  stream: Stream,
  { after, as_of }: { after: string; as_of: Timestamp },
): Promise<void> {
  await db
    .updateTable('rollups')
    .set({ after, as_of: sql<Timestamp>`greatest(as_of, ${as_of})` })
    .where('stream', '=', stream)
    .execute();
}

/** The streams that have rows between their position and a bound. Usually there are none. */
export async function listWaitingStreams(db: Handle, bound: string): Promise<Stream[]> {
  const after = (stream: Stream) =>
    sql`(select after from rollups where stream = ${stream}) and id < ${bound}`;
  // Citus refuses a subquery without a column, and would read all rows without the limit.
  const { rows } = await sql<{ stream: Stream }>`
    select 'checkouts' as stream where exists (
      select 1 from checkouts where id > ${after('checkouts')} limit 1)
    union all select 'opens' where exists (
      select 1 from checkout_opens where id > ${after('opens')} limit 1)
    union all select 'attempts' where exists (
      select 1 from (select written_id as id from payment_attempts
        where purpose = 'first_payment') a where id > ${after('attempts')} limit 1)
    union all select 'postings' where exists (
      select 1 from postings where id > ${after('postings')} and ${isCounted} limit 1)
    union all select 'entries' where exists (
      select 1 from settlement_entries where id > ${after('entries')} limit 1)`.execute(db);
  return rows.map(({ stream }) => stream);
}

/** Records that all rows before this time are counted. */
export async function moveStreamsSeen(db: Handle, as_of: Timestamp): Promise<void> {
  await db
    .updateTable('rollups')
    .set({ as_of: sql<Timestamp>`greatest(as_of, ${as_of})` })
    .execute();
}

/** A range of a stream: ids after the position and before the bound. */
export type Range = { after: string; bound: string; limit: number };

/** Rows with the local day of a time. On Citus, every node has the joined tables. */
const withDay = (rows: RawBuilder<unknown>, at: string) => sql`
  select s.*, (s.${sql.ref(at)} at time zone t.time_zone)::date as day
  from (${rows}) s
  join merchants m on m.id = s.merchant_id
  join territories t on t.code = m.territory
  order by s.id`;

export type DayRow = { merchant_id: string; id: string; day: string };

export async function listCreated(db: Handle, range: Range): Promise<DayRow[]> {
  const { rows } = await sql<DayRow>`${withDay(
    sql`select merchant_id, id, created_at from checkouts
      where id > ${range.after} and id < ${range.bound} order by id limit ${range.limit}`,
    'created_at',
  )}`.execute(db);
  return rows;
}

export type OpenRow = DayRow & { was_tried: boolean };

/**
 * The opened pages, and whether a payment had begun before the page was opened. If so, the first
 * attempt counts as the opening.
 */
export async function listOpened(db: Handle, range: Range): Promise<OpenRow[]> {
  const { rows } = await sql<OpenRow>`${withDay(
    sql`select o.merchant_id, o.id, o.at, coalesce(a.written_id < o.id, false) as was_tried
      from checkout_opens o
      left join payment_attempts a on a.merchant_id = o.merchant_id
        and a.checkout_id = o.checkout_id and a.purpose = 'first_payment' and a.number = 1
      where o.id > ${range.after} and o.id < ${range.bound} order by o.id limit ${range.limit}`,
    'at',
  )}`.execute(db);
  return rows;
}

export type AttemptRow = DayRow & {
  number: number;
  status: AttemptStatus;
  decline_reason: string | null;
  /**
   * Whether the page was opened before. A payment that a program makes without the page counts as
   * an opening itself.
   */
  was_opened: boolean;
};

export async function listAttempted(db: Handle, range: Range): Promise<AttemptRow[]> {
  const { rows } = await sql<AttemptRow>`${withDay(
    sql`select a.merchant_id, a.written_id as id, a.number, a.status, a.decline_reason,
        a.created_at, coalesce(o.id < a.written_id, false) as was_opened
      from payment_attempts a
      left join checkout_opens o on o.merchant_id = a.merchant_id
        and o.checkout_id = a.checkout_id
      where a.purpose = 'first_payment' and a.written_id > ${range.after}
        and a.written_id < ${range.bound}
      order by a.written_id limit ${range.limit}`,
    'created_at',
  )}`.execute(db);
  return rows;
}

export type PostingRow = DayRow & {
  checkout_id: string;
  kind: MovementKind;
  amount: number;
  instalment: number | null;
};

/** The kinds of movements that the sums include. They match the predicate of the index. */
export const isCounted = sql<boolean>`kind in ('sold', 'captured', 'collected', 'cancelled',
  'restored', 'refunded', 'returned', 'withdrawn', 'reinstated')`;

export async function listPosted(db: Handle, range: Range): Promise<PostingRow[]> {
  const { rows } = await sql<PostingRow>`${withDay(
    sql`select merchant_id, id, checkout_id, kind, amount, instalment, at from postings
      where id > ${range.after} and id < ${range.bound}
        and ${isCounted}
      order by id limit ${range.limit}`,
    'at',
  )}`.execute(db);
  return rows;
}

export type EntryRow = DayRow & {
  kind: EntryKind;
  gross: number;
  fee: number;
  vat: number;
  net: number;
};

export async function listEntered(db: Handle, range: Range): Promise<EntryRow[]> {
  const { rows } = await sql<EntryRow>`${withDay(
    sql`select merchant_id, id, kind, gross, fee, vat, net, at from settlement_entries
      where id > ${range.after} and id < ${range.bound} order by id limit ${range.limit}`,
    'at',
  )}`.execute(db);
  return rows;
}

export type EntrySums = Omit<EntryRow, 'id' | 'day'>;

export async function advanceEntries(db: Handle, rows: EntrySums[]): Promise<void> {
  if (rows.length === 0) return;
  await db
    .insertInto('merchant_entries')
    .values(rows)
    .onConflict((conflict) =>
      conflict.columns(['merchant_id', 'kind']).doUpdateSet({
        gross: sql`merchant_entries.gross + excluded.gross`,
        fee: sql`merchant_entries.fee + excluded.fee`,
        vat: sql`merchant_entries.vat + excluded.vat`,
        net: sql`merchant_entries.net + excluded.net`,
      }),
    )
    .execute();
}

/**
 * The payments of checkouts: the amounts that a sale makes due, and their days. Neither ever
 * changes.
 */
export async function listPlanned(
  db: Handle,
  rows: { merchant_id: string; checkout_id: string }[],
): Promise<{ checkout_id: string; number: number; amount: number; due_on: string }[]> {
  if (rows.length === 0) return [];
  return await db
    .selectFrom('instalments')
    .select(['checkout_id', 'number', 'amount', 'due_on'])
    .where('checkout_id', 'in', [...new Set(rows.map(({ checkout_id }) => checkout_id))])
    .where('merchant_id', 'in', [...new Set(rows.map(({ merchant_id }) => merchant_id))])
    .execute();
}

export const dayCounts = [
  'created',
  'opened',
  'tried',
  'paid',
  'approved',
  'declined',
  'sold',
  'collected',
  'refunded',
  'card_refunds',
  'disputed',
  'fees',
  'vat',
  'paid_out',
] as const;
export type Count = (typeof dayCounts)[number];
export const emptyCounts = () =>
  Object.fromEntries(dayCounts.map((name) => [name, 0])) as Record<Count, number>;
export type DayCounts = { merchant_id: string; day: string } & Record<Count, number>;

export async function advanceDays(db: Handle, rows: DayCounts[]): Promise<void> {
  if (rows.length === 0) return;
  await db
    .insertInto('merchant_days')
    .values(rows)
    .onConflict((conflict) =>
      conflict
        .columns(['merchant_id', 'day'])
        .doUpdateSet(
          Object.fromEntries(
            dayCounts.map((name) => [name, sql.raw(`merchant_days.${name} + excluded.${name}`)]),
          ),
        ),
    )
    .execute();
}

export async function advanceDeclines(
  db: Handle,
  rows: { merchant_id: string; day: string; reason: string; count: number }[],
): Promise<void> {
  if (rows.length === 0) return;
  await db
    .insertInto('merchant_declines')
    .values(rows)
    .onConflict((conflict) =>
      conflict
        .columns(['merchant_id', 'day', 'reason'])
        .doUpdateSet({ count: sql`merchant_declines.count + excluded.count` }),
    )
    .execute();
}

export async function advanceDues(
  db: Handle,
  rows: { merchant_id: string; day: string; amount: number }[],
): Promise<void> {
  if (rows.length === 0) return;
  await db
    .insertInto('merchant_dues')
    .values(rows)
    .onConflict((conflict) =>
      conflict
        .columns(['merchant_id', 'day'])
        .doUpdateSet({ amount: sql`merchant_dues.amount + excluded.amount` }),
    )
    .execute();
}

/** The overdue amounts by merchant, read from the index of overdue payments. */
export async function sumOverdue(db: Handle): Promise<{ merchant_id: string; amount: number }[]> {
  const { rows } = await sql<{ merchant_id: string; amount: number }>`
    select merchant_id, sum(amount - reduced)::bigint as amount
    from instalments where status = 'overdue' group by merchant_id`.execute(db);
  return rows;
}

export async function listOverdueSums(
  db: Handle,
): Promise<{ merchant_id: string; amount: number }[]> {
  return await db.selectFrom('merchant_overdue').select(['merchant_id', 'amount']).execute();
}

export async function insertOverdueSums(
  db: Handle,
  rows: { merchant_id: string; amount: number; as_of: Timestamp }[],
): Promise<void> {
  if (rows.length === 0) return;
  await db
    .insertInto('merchant_overdue')
    .values(rows)
    .onConflict((conflict) =>
      conflict
        .columns(['merchant_id'])
        .doUpdateSet({ amount: sql`excluded.amount`, as_of: sql`excluded.as_of` }),
    )
    .execute();
}
