import { type Scope, scoped } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { MonthlyStatement } from '#purchases/payouts/monthly-statement.ts';
import { type Page, type PageOf, readRange } from './range.sql.ts';

/** The newest statements first, for one month or for all. */
export async function pageStatements(
  db: Handle,
  scope: Scope,
  /** The first day of the month. */
  month: string | null,
  page: PageOf,
): Promise<Page<MonthlyStatement>> {
  let query = scoped(db.selectFrom('monthly_statements').selectAll(), scope);
  if (month !== null) query = query.where('month', '=', month);
  return await readRange(query, page, ['created_at', 'id'], 'desc');
}

/** One statement in the scope. */
export async function findStatementWithin(
  db: Handle,
  scope: Scope,
  id: string,
): Promise<MonthlyStatement | null> {
  const query = scoped(db.selectFrom('monthly_statements').selectAll(), scope).where('id', '=', id);
  return (await query.executeTakeFirst()) ?? null;
}

/** A merchant's statement for a month. */
export async function findStatementOf(
  db: Handle,
  merchant_id: string,
  month: string,
): Promise<MonthlyStatement | null> {
  const row = await db
    .selectFrom('monthly_statements')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('month', '=', month)
    .executeTakeFirst();
  return row ?? null;
}
