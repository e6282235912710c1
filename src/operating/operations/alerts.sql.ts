import { type Scope, scoped } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Alert, AlertHandling, AlertState } from '#record/alerts/alert.sql.ts';
import { type Page, type PageOf, readRange } from './range.sql.ts';

/** Lists alerts in one state, or without a state all that are not closed. The newest come first. */
export async function listAlertsPage(
  db: Handle,
  scope: Scope,
  { state, kind, kinds }: { state?: AlertState; kind?: string; kinds: string[] | null },
  page: PageOf,
): Promise<Page<Alert & AlertHandling>> {
  let query = scoped(db.selectFrom('alerts').selectAll(), scope);
  if (kinds !== null) query = query.where('kind', 'in', kinds);
  if (kind !== undefined) query = query.where('kind', '=', kind);
  query = query.where('closed_at', state === 'closed' ? 'is not' : 'is', null);
  if (state === 'open') query = query.where('taken_at', 'is', null);
  if (state === 'taken') query = query.where('taken_at', 'is not', null);
  return await readRange(query, page, ['at', 'id'], 'desc');
}

export async function findAlertWithin(
  db: Handle,
  scope: Scope,
  id: string,
): Promise<(Alert & AlertHandling) | null> {
  const query = scoped(db.selectFrom('alerts').selectAll(), scope).where('id', '=', id);
  return (await query.executeTakeFirst()) ?? null;
}
