import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { DueWork } from '#platform/database/due-work.sql.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Amounts } from '#platform/shared/fees.ts';
import type { EntryKind } from '#record/ledger/settlement.ts';
import type { Payout, PayoutLine, PayoutStatus, Totals } from './payout.ts';

export const duePayoutDays: DueWork<'payout_days'> = { table: 'payout_days', due: 'due_at' };

/** The public holidays around a date in a territory, enough to find the nearest business days. */
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

/** Begins a merchant's payouts. Does nothing if they have already begun. */
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

/** Locks the merchant's payout day, if it is still claimed under the lease. */
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

/** Waits for a payout of the merchant that is being made, and keeps others from being made. */
export async function lockPayouts(db: Handle, merchant_id: string): Promise<void> {
  await db
    .selectFrom('payout_days')
    .select('merchant_id')
    .where('merchant_id', '=', merchant_id)
    .forUpdate()
    .execute();
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

/** Whether any entry from before this time is in no payout yet. */
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

/**
 * Records that payouts with entries from before this time must be compared with the bank. The time
 * is read on each merchant's clock.
 */
export async function markPayoutDays(db: Handle, before: Timestamp): Promise<void> {
  await sql`update payout_days d
    set compare_before = ${before}::timestamptz + m.clock_ahead_ms * interval '1 millisecond'
    from merchants m where m.id = d.merchant_id`.execute(db);
}

/**
 * Records that payouts which are not exported must be compared with the bank. Returns how many
 * there are.
 */
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

/** Adds the lines of a new payout to the sums of all the merchant's payouts. */
export async function advancePayoutSums(
  db: Handle,
  merchant_id: string,
  lines: (Amounts & { kind: EntryKind })[],
): Promise<void> {
  const sums = new Map<EntryKind, Amounts>();
  for (const { kind, gross, fee, vat, net } of lines) {
    const one = sums.get(kind) ?? { gross: 0, fee: 0, vat: 0, net: 0 };
    sums.set(kind, {
      gross: one.gross + gross,
      fee: one.fee + fee,
      vat: one.vat + vat,
      net: one.net + net,
    });
  }
  await db
    .insertInto('payout_sums')
    .values([...sums].map(([kind, amounts]) => ({ merchant_id, kind, ...amounts })))
    .onConflict((on) =>
      on.columns(['merchant_id', 'kind']).doUpdateSet({
        gross: sql`payout_sums.gross + excluded.gross`,
        fee: sql`payout_sums.fee + excluded.fee`,
        vat: sql`payout_sums.vat + excluded.vat`,
        net: sql`payout_sums.net + excluded.net`,
      }),
    )
    .execute();
}

/**
 * The payouts of a merchant that the bank has not paid yet: the oldest ones, and the sum of all.
 */
export async function listUnpaid(
  db: Handle,
  merchant_id: string,
  max: number,
): Promise<{ payouts: Payout[]; amount: number; count: number }> {
  const unpaid = db
    .selectFrom('payouts')
    .where('merchant_id', '=', merchant_id)
    .where(sql<boolean>`status in ('draft', 'approved', 'exported')`);
  const sum = await unpaid
    .select([
      sql<number>`coalesce(sum(amount), 0)::bigint`.as('amount'),
      sql<number>`count(*)::integer`.as('count'),
    ])
    .executeTakeFirstOrThrow();
  const payouts = await unpaid
    .selectAll()
    .orderBy('created_at')
    .orderBy('id')
    .limit(sql.lit(max))
    .execute();
  return { payouts, ...sum };
}

/** When the merchant's next payout is made, on its clock. Null if the merchant has no terms yet. */
export async function findPayoutDay(db: Handle, merchant_id: string): Promise<Timestamp | null> {
  const row = await db
    .selectFrom('payout_days')
    .select('due_at')
    .where('merchant_id', '=', merchant_id)
    .executeTakeFirst();
  return row?.due_at ?? null;
}

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

/** Returns null if the payout does not have the status that the move starts from. */
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

/** The payouts in the given files for the bank, in a stable order. */
export async function listExports(db: Handle, export_ids: string[]): Promise<Payout[]> {
  return await db
    .selectFrom('payouts')
    .selectAll()
    .where('export_id', 'in', export_ids)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
}

/**
 * Waits for another export, which may move the same payouts. The lock is held until the transaction
 * ends.
 */
export async function lockExports(db: Handle): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended('payouts export', 0))`.execute(db);
}

/** Approved payouts that follow a given one, the oldest first. */
export async function listApproved(
  db: Handle,
  after: Pick<Payout, 'created_at' | 'id'> | null,
  limit: number,
): Promise<Payout[]> {
  let query = db.selectFrom('payouts').selectAll().where('status', '=', 'approved');
  if (after !== null) {
    const { created_at, id } = after;
    query = query.where(sql<boolean>`(created_at, id) > (${created_at}::timestamptz, ${id}::uuid)`);
  }
  return await query.orderBy('created_at').orderBy('id').limit(limit).execute();
}

/**
 * Returns the payouts that were still approved and need no comparison with the bank, in the given
 * order. Each merchant's payouts get the time of its own clock.
 */
export async function moveExported(
  db: Handle,
  payouts: Pick<Payout, 'merchant_id' | 'id'>[],
  export_id: string,
  times: Map<string, Timestamp>,
): Promise<Payout[]> {
  if (payouts.length === 0) return [];
  const merchants = [...new Set(payouts.map(({ merchant_id }) => merchant_id))];
  const at = merchants.map((id) => times.get(id) as Timestamp);
  const moved = await db
    .updateTable('payouts')
    .from(
      sql<{
        id: string;
        at: Timestamp;
      }>`unnest(${merchants}::uuid[], ${at}::timestamptz[])`.as<'m'>(sql`m (id, at)`),
    )
    .set({ status: 'exported', export_id, exported_at: sql<Timestamp>`m.at` })
    .whereRef('payouts.merchant_id', '=', 'm.id')
    .where('payouts.merchant_id', 'in', merchants)
    .where(
      'payouts.id',
      'in',
      payouts.map(({ id }) => id),
    )
    .where('status', '=', 'approved')
    .where('compare_since', 'is', null)
    .returningAll('payouts')
    .execute();
  const places = new Map(payouts.map(({ id }, place) => [id, place]));
  return moved.sort((a, b) => Number(places.get(a.id)) - Number(places.get(b.id)));
}
