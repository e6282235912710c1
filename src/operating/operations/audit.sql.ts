import { sql } from 'kysely';
import { isWithin, type Scope, scoped } from '#operating/search/scope.sql.ts';
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

/**
 * People by their ids, each with the access that the reader's merchants gave, or else the first one.
 * Those without merchants are the service's staff.
 */
export async function listActors(db: Handle, scope: Scope, ids: (string | null)[]) {
  const known = [...new Set(ids)].filter((id) => id !== null);
  if (known.length === 0) return new Map<string, Actor>();
  const rows = await db
    .selectFrom('people')
    .select(['id', 'identity_id', 'name', 'roles', 'merchant_ids'])
    .where((where) => where.or([where('id', 'in', known), where('identity_id', 'in', known)]))
    .orderBy(sql`identity_id is not null`)
    .orderBy('id')
    .execute();
  const actors = new Map<string, Actor>();
  for (const { identity_id, ...row } of rows) {
    const id = identity_id ?? row.id;
    const isOwn =
      scope !== 'all merchants' && row.merchant_ids?.some((one) => isWithin(scope, one));
    if (!actors.has(id) || isOwn) actors.set(id, row);
  }
  return actors;
}

type Actor = { id: string; name: string; roles: string[]; merchant_ids: string[] | null };
