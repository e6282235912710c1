import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { DueWork } from '#platform/database/due-work.sql.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Payout, PayoutLine, PayoutStatus, Totals } from './payout.ts';

export const duePayoutDays: DueWork<'payout_days'> = { table: 'payout_days', due: 'due_at' };

/** Public holidays of a territory around a date, enough to find the business days next to it. */
export async function listHolidays(
  db: Handle,
  territory: string,
  around: string,
): Promise<Set<string>> {
  const rows = await db
    .selectFrom('holidays')
    .select('on_date')
    .where('territory', '=', territory)
    .where(sql<boolean>`on_date between ${around}::date - 31 and ${around}::date + 31`)
    .execute();
  return new Set(rows.map(({ on_date }) => on_date));
}

/** Begins a merchant's payouts. Does nothing if they have begun. */
export async function insertPayoutDay(
  db: Handle,
  merchant_id: string,
  due_at: Timestamp,
): Promise<void> {
  await db
    .insertInto('payout_days')
    .values({ merchant_id, due_at, lease: null, leased_until: null })
    .onConflict((on) => on.column('merchant_id').doNothing())
    .execute();
}

/** The merchant's day, if it is still claimed under the lease. Locks its row. */
export async function lockPayoutDay(
  db: Handle,
  merchant_id: string,
  lease: string,
): Promise<{ compare_before: Timestamp | null } | null> {
  const row = await db
    .selectFrom('payout_days')
    .select('compare_before')
    .where('merchant_id', '=', merchant_id)
    .where('lease', '=', lease)
    .forUpdate()
    .executeTakeFirst();
  return row ?? null;
}

export async function movePayoutDay(
  db: Handle,
  merchant_id: string,
  due_at: Timestamp,
): Promise<void> {
  await db
    .updateTable('payout_days')
    .set({ due_at, attempts: 0, lease: null, leased_until: null })
    .where('merchant_id', '=', merchant_id)
    .execute();
}

/** Whether an entry that is in no payout yet is from before a time. */
export async function hasOpenEntryBefore(
  db: Handle,
  merchant_id: string,
  before: Timestamp,
): Promise<boolean> {
  const row = await db
    .selectFrom('settlement_entries')
    .select('id')
    .where('merchant_id', '=', merchant_id)
    .where('payout_id', 'is', null)
    .where('kind', '<>', 'paid_out')
    .where('at', '<', before)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Payouts with sales before this time must be compared. The time is on each merchant's clock. */
export async function markPayoutDays(db: Handle, before: Timestamp): Promise<void> {
  await sql`update payout_days d
    set compare_before = ${before}::timestamptz + m.clock_ahead_ms * interval '1 millisecond'
    from merchants m where m.id = d.merchant_id`.execute(db);
}

/** Payouts that are not exported must be compared with the bank. Returns how many there are. */
export async function markOpenPayouts(db: Handle, compare_since: Timestamp): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable('payouts')
    .set({ compare_since })
    .where('status', 'in', ['draft', 'approved'])
    .executeTakeFirstOrThrow();
  return Number(numUpdatedRows);
}

export async function insertPayout(db: Handle, payout: Payout): Promise<void> {
  await db.insertInto('payouts').values(payout).execute();
}

/** Finds a payout by its id alone, for an operator. */
export async function findPayoutOfAny(db: Handle, id: string): Promise<Payout | null> {
  const row = await db.selectFrom('payouts').selectAll().where('id', '=', id).executeTakeFirst();
  return row ?? null;
}

export async function findPayout(
  db: Handle,
  merchant_id: string,
  id: string,
): Promise<Payout | null> {
  const row = await db
    .selectFrom('payouts')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('id', '=', id)
    .executeTakeFirst();
  return row ?? null;
}

export async function lockPayout(
  db: Handle,
  merchant_id: string,
  id: string,
): Promise<Payout | null> {
  const row = await db
    .selectFrom('payouts')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();
  return row ?? null;
}

type Moved = Partial<
  Pick<
    Payout,
    | 'status'
    | 'first_approver'
    | 'approver'
    | 'approved_at'
    | 'export_id'
    | 'exported_at'
    | 'paid_at'
    | 'bank_reference'
    | 'returned_at'
    | 'return_reason'
    | 'return_noted_by'
    | 'bank_account'
    | 'compare_since'
  >
>;

/** Returns null if the payout is not in the state that the move begins from. */
export async function movePayout(
  db: Handle,
  { merchant_id, id }: Pick<Payout, 'merchant_id' | 'id'>,
  from: PayoutStatus[],
  to: Moved,
): Promise<Payout | null> {
  const row = await db
    .updateTable('payouts')
    .set(to)
    .where('merchant_id', '=', merchant_id)
    .where('id', '=', id)
    .where('status', 'in', from)
    .returningAll()
    .executeTakeFirst();
  return row ?? null;
}

const selectLines = (db: Handle, merchant_id: string, payout_id: string) =>
  db
    .selectFrom('settlement_entries as e')
    .leftJoin('checkouts as c', (on) =>
      on.onRef('c.id', '=', 'e.checkout_id').onRef('c.merchant_id', '=', 'e.merchant_id'),
    )
    .select([
      'e.line',
      'e.kind',
      'e.checkout_id',
      'c.client_reference_id',
      'e.gross',
      'e.fee',
      'e.vat',
      'e.net',
      'e.at',
    ])
    .where('e.merchant_id', '=', merchant_id)
    .where('e.payout_id', '=', payout_id)
    .orderBy('e.line');

/** The lines of a payout from one number to another, in order. */
export async function listLines(
  db: Handle,
  { merchant_id, id }: Pick<Payout, 'merchant_id' | 'id'>,
  range: { first: number; last: number },
): Promise<PayoutLine[]> {
  const rows = await selectLines(db, merchant_id, id)
    .where('e.line', '>=', range.first)
    .where('e.line', '<=', range.last)
    .execute();
  return rows as PayoutLine[];
}

/** The sums of a payout's lines. */
export async function sumLines(
  db: Handle,
  { merchant_id, id }: Pick<Payout, 'merchant_id' | 'id'>,
): Promise<Totals> {
  const { rows } = await sql<Totals>`
    select coalesce(sum(gross), 0)::bigint as gross, coalesce(sum(fee), 0)::bigint as fee,
      coalesce(sum(vat), 0)::bigint as vat, coalesce(sum(net), 0)::bigint as net
    from settlement_entries where merchant_id = ${merchant_id} and payout_id = ${id}`.execute(db);
  return rows[0] as Totals;
}

/** The payouts of one file for the bank, or all that wait for one, in a stable order. */
export async function listExport(
  db: Handle,
  wanted: { export_id: string } | 'approved',
): Promise<Payout[]> {
  const query = db.selectFrom('payouts').selectAll();
  const found =
    wanted === 'approved'
      ? query.where('status', '=', 'approved')
      : query.where('export_id', '=', wanted.export_id);
  return await found.orderBy('created_at').orderBy('id').execute();
}
