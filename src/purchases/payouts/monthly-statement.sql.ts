import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import { type DueWork, released } from '#platform/database/due-work.sql.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { MonthlyStatement, StatementLine, StatementMonth } from './monthly-statement.ts';

export const dueStatementMonths: DueWork<'statement_months'> = {
  table: 'statement_months',
  due: 'due_at',
};

/** Begins a merchant's statements. Does nothing if they have begun. */
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

/** The merchant's month, if it is still claimed under the lease. Locks its row. */
export async function lockStatementMonth(
  db: Handle,
  merchant_id: string,
  lease: string,
): Promise<StatementMonth | null> {
  const row = await db
    .selectFrom('statement_months')
    .select(['month', 'number', 'lines'])
    .where('merchant_id', '=', merchant_id)
    .where('lease', '=', lease)
    .forUpdate()
    .executeTakeFirst();
  return row ?? null;
}

/** Moves on with the statement, or to that of the next month. */
export async function moveStatementMonth(
  db: Handle,
  merchant_id: string,
  to: Partial<StatementMonth> & {
    due_at?: Timestamp;
    attempts?: number;
    lease?: null;
    leased_until: Timestamp | null;
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

/** The last statement before this number. */
export async function findStatementBefore(
  db: Handle,
  merchant_id: string,
  number: number,
): Promise<MonthlyStatement | null> {
  const row = await db
    .selectFrom('monthly_statements')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('number', '=', number - 1)
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
  { merchant_id, number }: Pick<MonthlyStatement, 'merchant_id' | 'number'>,
  range: { first: number; last: number },
): Promise<StatementLine[]> {
  const { rows } = await sql<StatementLine>`
    select e.statement_line as line, e.kind, e.at, e.checkout_id, c.client_reference_id,
      p.reference as payout_reference, e.gross, e.fee, e.vat, e.net
    from settlement_entries e
    left join checkouts c on c.id = e.checkout_id and c.merchant_id = e.merchant_id
    left join payouts p on p.id = e.paid_payout_id and p.merchant_id = e.merchant_id
    where e.merchant_id = ${merchant_id} and e.statement = ${number}
      and e.statement_line between ${range.first} and ${range.last}
    order by e.statement_line`.execute(db);
  return rows;
}
