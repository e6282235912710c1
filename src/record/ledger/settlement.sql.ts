import { type Insertable, type RawBuilder, sql } from 'kysely';
import { compileOnce, statement } from '#platform/database/compile-once.ts';
import type { Handle } from '#platform/database/database.ts';
import { asRows, together } from '#platform/database/read-together.ts';
import type { Tables } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { type BookedEntry, type Entry, type KindSums, salesOf, type Terms } from './settlement.ts';

/** The terms in force at `at`, by the local date of the merchant's territory. */
const selectTerms = (db: Handle, merchant_id: string, at: Timestamp) =>
  db
    .selectFrom('settlement_terms as s')
    .innerJoin('merchants as m', 'm.id', 's.merchant_id')
    .innerJoin('territories as t', 't.code', 'm.territory')
    .selectAll('s')
    .where('s.merchant_id', '=', merchant_id)
    .where(sql<boolean>`s.from_on <= (${at}::timestamptz at time zone t.time_zone)::date`)
    .orderBy('s.from_on', 'desc')
    .limit(1);

export async function findTerms(
  db: Handle,
  merchant_id: string,
  at: Timestamp,
): Promise<Terms | null> {
  return (await selectTerms(db, merchant_id, at).executeTakeFirst()) ?? null;
}

type BooksKey = { merchant_id: string; checkout_ids: string[]; at: Timestamp };

/** The queries for a merchant's terms and for the entries of some checkouts. */
export const booksQueries = (db: Handle, { merchant_id, checkout_ids, at }: BooksKey) => ({
  terms: selectTerms(db, merchant_id, at),
  entries: selectBooked(merchant_id, checkout_ids),
});

/** A merchant's terms, or null, and the sales of some checkouts with the fees of their disputes. */
export const booksOf = (rows: { terms: Terms[]; entries: BookedEntry[] }) => ({
  terms: asRows(rows.terms)[0] ?? null,
  sales: salesOf(rows.entries),
  dispute_fees: rows.entries.filter(({ kind }) => kind === 'dispute_fee'),
});
export type Books = ReturnType<typeof booksOf>;

const selectBooks = compileOnce((db, { merchant_id, checkout_ids, at }: BooksKey) =>
  together<{ terms: Terms; entries: BookedEntry }>(
    booksQueries(db, { merchant_id, checkout_ids, at }),
  ),
);

export async function findBooks(db: Handle, key: BooksKey): Promise<Books> {
  const [rows] = await selectBooks(db, key);
  return booksOf(rows ?? { terms: [], entries: [] });
}

/** A list shows at most this many terms. The audit of the operators' actions has all of them. */
const termsMax = 100;

/** The terms of a merchant, the newest first. */
export async function listTerms(db: Handle, merchant_id: string): Promise<Terms[]> {
  return await selectTermsOf(db, merchant_id).limit(termsMax).execute();
}

export async function findTermsOn(
  db: Handle,
  merchant_id: string,
  day: string,
): Promise<Terms | null> {
  const row = await selectTermsOf(db, merchant_id)
    .where('from_on', '<=', day)
    .limit(1)
    .executeTakeFirst();
  return row ?? null;
}

const selectTermsOf = (db: Handle, merchant_id: string) =>
  db
    .selectFrom('settlement_terms')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .orderBy('from_on', 'desc');

/**
 * Writes terms, or replaces those of the same date. Entries keep the fees that they were written
 * with.
 */
export async function insertTerms(db: Handle, terms: Terms): Promise<void> {
  const { merchant_id, from_on, ...rest } = terms;
  await db
    .insertInto('settlement_terms')
    .values({ merchant_id, from_on, ...rest })
    .onConflict((on) => on.columns(['merchant_id', 'from_on']).doUpdateSet(rest))
    .execute();
}

/** Inserts entries other than sales. */
export const insertEntryRows = statement(
  (db, entries: Insertable<Tables['settlement_entries']>[]) =>
    db.insertInto('settlement_entries').values(entries),
);

/** Writes entries. A sale that another transaction has written in the meantime is left out. */
export async function insertEntries(db: Handle, entries: Entry[]): Promise<void> {
  const sales = entries.filter(({ kind }) => kind === 'sale');
  const others = entries.filter(({ kind }) => kind !== 'sale');
  const into = db.insertInto('settlement_entries');
  if (sales.length > 0) {
    await into
      .values(sales)
      .onConflict((on) => on.doNothing())
      .execute();
  }
  if (others.length > 0) await into.values(others).execute();
}

/** The sales of checkouts, and the refunds and dispute fees that followed them, in order. */
const selectBooked = (merchant_id: string, checkout_ids: string[]) =>
  sql<BookedEntry>`
    select kind, checkout_id, instalment, refund_id, dispute_id, gross, fee, vat, net
    from settlement_entries
    where merchant_id = ${merchant_id} and checkout_id = any (${checkout_ids}::uuid[])
      and kind in ('sale', 'refund', 'refund_reversed', 'dispute_fee')
    -- A refund is before its reversal, even if no time passed between them. The ids of entries that
    -- were written together have the order of the entries.
    order by at, kind, id`;

/** The amount that the shopper still owes and the amount collected in total, by checkout. */
export async function listPositions(
  db: Handle,
  merchant_id: string,
  checkout_ids: string[],
): Promise<{ checkout_id: string; remaining: number; ever_collected: number }[]> {
  const { rows } = await sql<{ checkout_id: string; remaining: number; ever_collected: number }>`
    select checkout_id,
      sum(case when debit in ('outstanding', 'collected') then amount else 0 end
        - case when credit in ('outstanding', 'collected') then amount else 0 end)::bigint
        as remaining,
      coalesce(sum(amount) filter (where kind in ('captured', 'collected')), 0)::bigint
        as ever_collected
    from postings
    where merchant_id = ${merchant_id} and checkout_id = any (${checkout_ids}::uuid[])
    group by checkout_id`.execute(db);
  return rows;
}

/** The reserves of a merchant that must be released by the local date `on`. */
export async function listDueReserves(
  db: Handle,
  merchant_id: string,
  on: string,
): Promise<{ id: string; net: number }[]> {
  return await db
    .selectFrom('settlement_entries as e')
    .leftJoin('settlement_entries as r', (on) =>
      on.onRef('r.merchant_id', '=', 'e.merchant_id').onRef('r.reserve_id', '=', 'e.id'),
    )
    .select(['e.id', 'e.net'])
    .where('e.merchant_id', '=', merchant_id)
    .where('e.kind', '=', 'reserve')
    .where('e.release_on', '<=', on)
    .where('r.id', 'is', null)
    .orderBy('e.id')
    .execute();
}

/** The entries older than `before` that are in no payout yet, added up by kind. */
export async function sumOpenEntries(
  db: Handle,
  merchant_id: string,
  before: Timestamp,
): Promise<KindSums[]> {
  const { rows } = await sql<KindSums>`
    select kind, sum(gross)::bigint as gross, sum(fee)::bigint as fee, sum(vat)::bigint as vat,
      sum(net)::bigint as net, count(*)::integer as count
    from settlement_entries
    where merchant_id = ${merchant_id} and payout_id is null and kind <> 'paid_out'
      and at < ${before}
    group by kind order by kind`.execute(db);
  return rows;
}

type Lines = { lines: number; before: Timestamp; max: number };

/**
 * Puts the oldest open entries into a payout or a statement, which already has `lines` lines, and
 * numbers them after those. Returns how many entries were put there.
 */
async function moveOldest(
  db: Handle,
  merchant_id: string,
  { lines, before, max }: Lines,
  as: { isOpen: RawBuilder<boolean>; set: RawBuilder<unknown> },
): Promise<number> {
  const { numAffectedRows } = await sql`
    update settlement_entries e set ${as.set}
    from (
      select id, ${lines}::integer + row_number() over (order by at, id) as line from (
        select id, at from settlement_entries
        where merchant_id = ${merchant_id} and ${as.isOpen} and at < ${before}
        order by at, id limit ${max}
      ) oldest
    ) v
    where e.merchant_id = ${merchant_id} and e.id = v.id`.execute(db);
  return Number(numAffectedRows);
}

/** Puts the oldest open entries before `before` into a payout. Returns how many. */
export const moveToPayout = (db: Handle, merchant_id: string, to: Lines & { payout_id: string }) =>
  moveOldest(db, merchant_id, to, {
    isOpen: sql`payout_id is null and kind <> 'paid_out'`,
    set: sql`payout_id = ${to.payout_id}, line = v.line`,
  });

/** Puts the oldest open entries before `before` into a statement. Returns how many. */
export const moveToStatement = (db: Handle, merchant_id: string, to: Lines & { number: number }) =>
  moveOldest(db, merchant_id, to, {
    isOpen: sql`statement is null`,
    set: sql`statement = ${to.number}, statement_line = v.line`,
  });

/** The lines of a monthly statement, added up by kind. */
export async function sumStatement(
  db: Handle,
  merchant_id: string,
  number: number,
): Promise<KindSums[]> {
  const { rows } = await sql<KindSums>`
    select kind, sum(gross)::bigint as gross, sum(fee)::bigint as fee, sum(vat)::bigint as vat,
      sum(net)::bigint as net, count(*)::integer as count
    from settlement_entries
    where merchant_id = ${merchant_id} and statement = ${number}
    group by kind order by kind`.execute(db);
  return rows;
}
