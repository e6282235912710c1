import { type RawBuilder, sql } from 'kysely';
import { isCounted, type Stream } from '#operating/rollups/rollup.sql.ts';
import { type Scope, scoped } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Amounts } from '#platform/shared/fees.ts';
import type { EntryKind } from '#record/ledger/settlement.ts';
import { type Page, type PageOf, readRange } from './range.sql.ts';

// Due work adds rows to the sums in the order of their ids. The exact current value is a sum plus
// the rows after its position, which are those of the last minutes.

type Moved = {
  sold: number;
  collected: number;
  refunded: number;
  disputed: number;
  fees: number;
  vat: number;
  paid_out: number;
};
export type MoneyTotal = Moved & { currency: string; locale: string };
export type MoneyDay = MoneyTotal & { day: string; merchant_id: string; merchant_name: string };

type Positions = Record<Stream, string>;

/** The position of each stream: the id up to which its rows are in the sums. */
export async function findPositions(db: Handle): Promise<Positions> {
  const rows = await db.selectFrom('rollups').select(['stream', 'after']).execute();
  return Object.fromEntries(rows.map(({ stream, after }) => [stream, after])) as Positions;
}

/**
 * The rows of a stream that are not in the sums yet. The position may have moved since it was read,
 * so the statement reads it again. The value that was read is there only for the planner, which
 * learns from it how few rows follow.
 */
const isAfter = (stream: Stream, positions: Positions) =>
  sql<boolean>`id > ${positions[stream]} and id >
    (select after from rollups where stream = ${sql.lit(stream)})`;

const sumOf = (name: string, value: RawBuilder<unknown>) =>
  sql`sum(${value})::bigint as ${sql.ref(name)}`;
const names = ['sold', 'collected', 'refunded', 'disputed', 'fees', 'vat', 'paid_out'];
const sums = sql.join(names.map((name) => sumOf(name, sql.ref(name))));

/**
 * The movements of a local day, by merchant. A merchant whose movements are all zero is left out.
 */
function selectMoved(db: Handle, scope: Scope, day: string, positions: Positions) {
  const own = sql`join merchants m on m.id = r.merchant_id
    join territories t on t.code = m.territory
    where (r.at at time zone t.time_zone)::date = ${day}::date`;
  const moved = sql<MoneyDay>`(
    select merchant_id, ${sums} from (
      select merchant_id, sold, collected, card_refunds as refunded, disputed, fees, vat, paid_out
      from merchant_days where day = ${day}::date
      union all
      select r.merchant_id,
        case when kind = 'sold' then amount else 0 end,
        case when kind in ('captured', 'collected') then amount else 0 end,
        case kind when 'refunded' then amount when 'returned' then -amount else 0 end,
        case kind when 'withdrawn' then amount when 'reinstated' then -amount else 0 end,
        0, 0, 0
      from (select merchant_id, kind, amount, at from postings
        where ${isAfter('postings', positions)} and ${isCounted}) r ${own}
      union all
      select r.merchant_id, 0, 0, 0, 0, fee, vat,
        case when kind in ('paid_out', 'payout_returned') then -net else 0 end
      from (select merchant_id, kind, fee, vat, net, at from settlement_entries
        where ${isAfter('entries', positions)}) r ${own}
    ) every
    group by merchant_id
    having ${sql.join(
      names.map((name) => sql`sum(${sql.ref(name)}) <> 0`),
      sql` or `,
    )}
  )`;
  const query = db
    .selectFrom(moved.as('moved'))
    .innerJoin('merchants as m', 'm.id', 'moved.merchant_id')
    .innerJoin('territories as t', 't.code', 'm.territory');
  // biome-ignore lint/suspicious/noExplicitAny: the joins change nothing that the scope reads.
  return scoped(query as any, scope, 'm.id');
}

/** A page of the merchants that had movements on a local day, by name. */
export async function listMoneyDayPage(
  db: Handle,
  scope: Scope,
  day: string,
  page: PageOf,
): Promise<Page<MoneyDay>> {
  const positions = await findPositions(db);
  const query = selectMoved(db, scope, day, positions).select([
    sql.lit(day).as('day'),
    'm.id as merchant_id',
    'm.name as merchant_name',
    't.currency',
    't.locale',
    ...names.map((name) => `moved.${name}`),
  ]);
  const columns = ['m.name', 'm.id'];
  return await readRange(query, page, columns, 'asc', ['merchant_name', 'merchant_id']);
}

/** The movements of a local day, of all merchants in the scope, by currency. */
export async function sumMoneyDay(db: Handle, scope: Scope, day: string): Promise<MoneyTotal[]> {
  const positions = await findPositions(db);
  return (await selectMoved(db, scope, day, positions)
    .select(['t.currency', 't.locale', ...names.map((name) => sumOf(name, sql.ref(name)))])
    .groupBy(['t.currency', 't.locale'])
    .orderBy('t.currency')
    .execute()) as unknown as MoneyTotal[];
}

/** The sums of a merchant's entries by kind: of all entries, and of those in payouts. */
export async function sumEntries(
  db: Handle,
  merchant_id: string,
): Promise<(Amounts & { kind: EntryKind; is_line: boolean })[]> {
  const positions = await findPositions(db);
  const amounts = sql.join(
    ['gross', 'fee', 'vat', 'net'].map((name) => sumOf(name, sql.ref(name))),
  );
  const { rows } = await sql<Amounts & { kind: EntryKind; is_line: boolean }>`
    select kind, is_line, ${amounts} from (
      select kind, false as is_line, gross, fee, vat, net from merchant_entries
      where merchant_id = ${merchant_id}
      union all
      select kind, false, gross, fee, vat, net from settlement_entries
      where merchant_id = ${merchant_id} and ${isAfter('entries', positions)}
      union all
      select kind, true, gross, fee, vat, net from payout_sums where merchant_id = ${merchant_id}
    ) every
    group by kind, is_line`.execute(db);
  return rows;
}

/** The sums of open entries at or after a time, by kind. The next payout does not include them. */
export async function sumEntriesFrom(
  db: Handle,
  merchant_id: string,
  from: Timestamp,
): Promise<{ kind: EntryKind; net: number }[]> {
  const { rows } = await sql<{ kind: EntryKind; net: number }>`
    select kind, sum(net)::bigint as net from settlement_entries
    where merchant_id = ${merchant_id} and payout_id is null and kind <> 'paid_out'
      and at >= ${from}
    group by kind`.execute(db);
  return rows;
}

export type OpenEntry = Amounts & {
  id: string;
  kind: EntryKind;
  at: Timestamp;
  checkout_id: string | null;
  client_reference_id: string | null;
  release_on: string | null;
  payout_id: string | null;
};

const selectEntries = (db: Handle, merchant_id: string) =>
  db
    .selectFrom('settlement_entries as e')
    .leftJoin('checkouts as c', (on) =>
      on.onRef('c.id', '=', 'e.checkout_id').onRef('c.merchant_id', '=', 'e.merchant_id'),
    )
    .select(['e.id', 'e.kind', 'e.at', 'e.checkout_id', 'c.client_reference_id', 'e.release_on'])
    .select(['e.gross', 'e.fee', 'e.vat', 'e.net'])
    .select(sql<string | null>`coalesce(e.paid_payout_id, e.payout_id)`.as('payout_id'))
    .where('e.merchant_id', '=', merchant_id);

const kindsOf: Record<string, EntryKind[]> = {
  sale: ['sale'],
  refund: ['refund', 'refund_reversed'],
  dispute: ['dispute', 'dispute_reversed'],
  payout_returned: ['payout_returned'],
  // Only these kinds bear a fee; a constraint of the table ensures that.
  fee: ['sale', 'refund', 'refund_reversed', 'dispute_fee'],
};

/** The entries of a merchant that are in no payout yet, the newest first. */
export async function listOpenEntriesPage(
  db: Handle,
  merchant_id: string,
  group: string | undefined,
  page: PageOf,
): Promise<Page<OpenEntry>> {
  let query = selectEntries(db, merchant_id)
    .where('e.payout_id', 'is', null)
    .where('e.kind', '<>', 'paid_out');
  const kinds = group === undefined ? undefined : kindsOf[group];
  if (kinds) query = query.where('e.kind', 'in', kinds);
  if (kinds && !kinds.includes('sale')) query = query.where('e.kind', '<>', 'sale');
  if (group === 'fee') query = query.where('e.fee', '<>', 0);
  return await readRange(query, page, ['e.at', 'e.id'], 'desc');
}

/** The reserves of a merchant that are still held; those to be released last come first. */
export async function listReservesPage(
  db: Handle,
  merchant_id: string,
  page: PageOf,
): Promise<Page<OpenEntry>> {
  const query = selectEntries(db, merchant_id)
    .leftJoin('settlement_entries as r', (on) =>
      on.onRef('r.merchant_id', '=', 'e.merchant_id').onRef('r.reserve_id', '=', 'e.id'),
    )
    .where('e.kind', '=', 'reserve')
    .where('r.id', 'is', null);
  return await readRange(query, page, ['e.release_on', 'e.id'], 'desc');
}
