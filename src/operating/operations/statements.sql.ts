import { type Scope, scoped } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { MonthlyStatement } from '#purchases/payouts/monthly-statement.ts';
import { type Page, type PageOf, readRange } from './range.sql.ts';

/** The newest statements first, for one month or for all. */
export async function listStatementsPage(
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

export async function findStatementWithin(
  db: Handle,
  scope: Scope,
  id: string,
): Promise<MonthlyStatement | null> {
  const query = scoped(db.selectFrom('monthly_statements').selectAll(), scope).where('id', '=', id);
  return (await query.executeTakeFirst()) ?? null;
}

/** The newest statement of a merchant for a month: its last correction, if it was corrected. */
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
    .orderBy('number', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row ?? null;
}

type Version = Pick<MonthlyStatement, 'merchant_id' | 'id' | 'number' | 'reference' | 'corrects'>;

/** The statements that these ones correct, and those that correct them. */
export async function listVersions(db: Handle, of: MonthlyStatement[]): Promise<Version[]> {
  if (of.length === 0) return [];
  return await db
    .selectFrom('monthly_statements')
    .select(['merchant_id', 'id', 'number', 'reference', 'corrects'])
    .where('merchant_id', 'in', [...new Set(of.map(({ merchant_id }) => merchant_id))])
    .where((where) =>
      where.or([
        where(
          'number',
          'in',
          of.map(({ corrects }) => corrects ?? 0),
        ),
        where(
          'corrects',
          'in',
          of.map(({ number }) => number),
        ),
      ]),
    )
    .execute();
}
