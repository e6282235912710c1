import { sql } from 'kysely';
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
    if (value === undefined) continue;
    query =
      column === 'person_id'
        ? query.where(sql<boolean>`person_id = coalesce(
            (select p.identity_id from people p where p.id = ${value}::uuid), ${value}::uuid)`)
        : query.where(column as keyof ActionFilter, '=', value);
  }
  const { rows, last } = await readRange<Parameters<typeof presentAction>[0]>(
    query,
    page,
    ['at', 'id'],
    'desc',
  );
  return { rows: rows.map(presentAction), last };
}
