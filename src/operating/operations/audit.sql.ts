import type { Scope } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { actionColumns, type OperatorAction } from '#record/actions/operator-action.sql.ts';
import { type Page, type PageOf, readRange } from './range.sql.ts';

export type ActionFilter = {
  id?: string | undefined;
  subject_id?: string | undefined;
  person_id?: string | undefined;
  operator?: string | undefined;
};

/** The newest actions first. They belong to no merchant: only a scope of all merchants has them. */
export async function pageActions(
  db: Handle,
  scope: Scope,
  filter: ActionFilter,
  page: PageOf,
): Promise<Page<OperatorAction & { number: number }>> {
  if (scope !== 'all merchants') return { rows: [], last: null };
  let query = db.selectFrom('operator_actions').select([...actionColumns, 'number']);
  for (const [column, value] of Object.entries(filter)) {
    if (value !== undefined) query = query.where(column as keyof ActionFilter, '=', value);
  }
  return await readRange(query, page, ['at', 'id'], 'desc');
}

/** The people among these who belong to merchants. The others are the staff of the service. */
export async function listPeopleWithin(db: Handle, ids: (string | null)[]): Promise<Set<string>> {
  const known = [...new Set(ids)].filter((id) => id !== null);
  if (known.length === 0) return new Set();
  const rows = await db
    .selectFrom('people')
    .select('id')
    .where('id', 'in', known)
    .where('merchant_ids', 'is not', null)
    .execute();
  return new Set(rows.map(({ id }) => id));
}
