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

/**
 * The newest actions first. In a merchant's scope, these are the actions of the merchant's own
 * people and of its API keys.
 */
export async function listActionsPage(
  db: Handle,
  scope: Scope,
  filter: ActionFilter,
  page: PageOf,
): Promise<Page<NumberedAction>> {
  let query = scoped(selectActions(db), scope);
  const order = ['at', 'id'];
  for (const [column, value] of Object.entries(filter)) {
    if (value === undefined) continue;
    const wanted =
      column === 'person_id'
        ? sql`coalesce((select p.identity_id from people p where p.id = ${value}::uuid), ${value}::uuid)`
        : sql`${value}`;
    const of = sql.ref(column);
    if (order.length > 2) {
      query = query.where(sql<boolean>`${of} = ${wanted}`);
      continue;
    }
    // The planner assumes that the rows with a value are spread evenly over time. With an equality
    // it may read the whole audit backwards until it finds a subject's last action. A range, and an
    // order that begins with the column, make it use the column's own index.
    query = query.where(sql<boolean>`${of} >= ${wanted} and ${of} <= ${wanted}`);
    order.unshift(column);
  }
  const { rows, last } = await readRange<Parameters<typeof presentAction>[0]>(
    query,
    page,
    order,
    'desc',
  );
  return { rows: rows.map(presentAction), last };
}
