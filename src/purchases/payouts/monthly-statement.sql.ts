import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import { type DueWork, released } from '#platform/database/due-work.sql.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { MonthlyStatement, StatementLine, StatementMonth } from './monthly-statement.ts';

export const dueStatementMonths: DueWork<'statement_months'> = {
  table: 'statement_months',
  due: 'due_at',
};

/** Begins a merchant's statements. Does nothing if they have already begun. */
export async function insertStatementMonth(
  db: Handle,
  merchant_id: string,
  month: string,
  due_at: Timestamp,
): Promise<void> {
  await db
    .insertInto('statement_months')
    .values({ merchant_id, month, due_at, ...released })
    .onConflict((on) => on.column('merchant_id').doNothing())
    .execute();
}

/**
 * Locks the merchant's next statement; with a lease, only if it is still claimed under that lease.
 */
export async function lockStatementMonth(
  db: Handle,
  merchant_id: string,
  lease?: string,
): Promise<StatementMonth | null> {
  let query = db
    .selectFrom('statement_months')
    .select(['month', 'number', 'lines'])
    .where('merchant_id', '=', merchant_id);
  if (lease !== undefined) query = query.where('lease', '=', lease);
  return (await query.forUpdate().executeTakeFirst()) ?? null;
}

/** Moves the merchant's row forward, within the month or to the next month. */
export async function moveStatementMonth(
  db: Handle,
  merchant_id: string,
  to: Partial<StatementMonth> & {
    due_at?: Timestamp;
    attempts?: number;
    lease?: null;
    leased_until?: Timestamp | null;
  },
): Promise<void> {
  await db.updateTable('statement_months').set(to).where('merchant_id', '=', merchant_id).execute();
}

export async function insertMonthlyStatement(
  db: Handle,
  { sums, ...statement }: MonthlyStatement,
): Promise<void> {
  await db
    .insertInto('monthly_statements')
    .values({ ...statement, sums: JSON.stringify(sums) })
    .execute();
}

/**
 * The balances after the last earlier month that has a statement. Null if no earlier month has one.
 */
export async function findBalancesBefore(
  db: Handle,
  merchant_id: string,
  month: string,
): Promise<Pick<MonthlyStatement, 'closing' | 'reserve'> | null> {
  const row = await db
    .selectFrom('monthly_statements')
    .select(['closing', 'reserve'])
    .where('merchant_id', '=', merchant_id)
    .where('corrects', 'is', null)
    .where('month', '<', month)
    .orderBy('month', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row ?? null;
}

/** The statement that replaces the one with this number. */
export async function findCorrection(
  db: Handle,
  merchant_id: string,
  number: number,
): Promise<MonthlyStatement | null> {
  const row = await db
    .selectFrom('monthly_statements')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('corrects', '=', number)
    .executeTakeFirst();
  return row ?? null;
}

export async function findMonthlyStatement(
  db: Handle,
  merchant_id: string,
  id: string,
): Promise<MonthlyStatement | null> {
  const row = await db
    .selectFrom('monthly_statements')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('id', '=', id)
    .executeTakeFirst();
  return row ?? null;
}

/** The lines of a statement from one number to another, in order. */
export async function listStatementLines(
  db: Handle,
  { merchant_id, lines_of }: Pick<MonthlyStatement, 'merchant_id' | 'lines_of'>,
  range: { first: number; last: number },
): Promise<StatementLine[]> {
  const { rows } = await sql<StatementLine>`
    select e.statement_line as line, e.kind, e.at, e.checkout_id, c.client_reference_id,
      p.reference as payout_reference, e.gross, e.fee, e.vat, e.net
    from settlement_entries e
    left join checkouts c on c.id = e.checkout_id and c.merchant_id = e.merchant_id
    left join payouts p on p.id = e.paid_payout_id and p.merchant_id = e.merchant_id
    where e.merchant_id = ${merchant_id} and e.statement = ${lines_of}
      and e.statement_line between ${range.first} and ${range.last}
    order by e.statement_line`.execute(db);
  return rows;
}
