import { type Scope, scoped } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import {
  type NumberedAction,
  presentAction,
  selectActions,
} from '#record/actions/operator-action.sql.ts';
import { type Page, type PageOf, readRange } from './range.sql.ts';

export type ActionFilter = {
  id?: string | undefined;
  subject_id?: string | undefined;
  person_id?: string | undefined;
  operator?: string | undefined;
};

/** The newest actions first. A merchant's people see those of its own people and keys. */
export async function pageActions(
  db: Handle,
  scope: Scope,
  filter: ActionFilter,
  page: PageOf,
): Promise<Page<NumberedAction>> {
  let query = scoped(selectActions(db), scope);
  for (const [column, value] of Object.entries(filter)) {
    if (value !== undefined) query = query.where(column as keyof ActionFilter, '=', value);
  }
  const { rows, last } = await readRange<Parameters<typeof presentAction>[0]>(
    query,
    page,
    ['at', 'id'],
    'desc',
  );
  return { rows: rows.map(presentAction), last };
}

/** People by their ids. Those without merchants are the service's staff. */
export async function listActors(db: Handle, ids: (string | null)[]) {
  const known = [...new Set(ids)].filter((id) => id !== null);
  const rows =
    known.length === 0
      ? []
      : await db
          .selectFrom('people')
          .select(['id', 'name', 'roles', 'merchant_ids'])
          .where('id', 'in', known)
          .execute();
  return new Map(rows.map((row) => [row.id, row]));
}
