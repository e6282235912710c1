import { type Scope, scoped } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Dispute, DisputeStatus } from '#purchases/disputes/dispute.ts';
import { type Page, type PageOf, readRange } from './range.sql.ts';

/** The newest disputes first. */
export async function pageDisputes(
  db: Handle,
  scope: Scope,
  status: DisputeStatus | null,
  page: PageOf,
): Promise<Page<Dispute>> {
  let query = db.selectFrom('disputes').selectAll();
  if (status !== null) query = query.where('status', '=', status);
  return await readRange(scoped(query, scope), page, ['created_at', 'id'], 'desc');
}

/** Disputes by their ids, of those that the scope contains. */
export async function listDisputesById(
  db: Handle,
  scope: Scope,
  ids: string[],
): Promise<Dispute[]> {
  return await scoped(db.selectFrom('disputes').selectAll(), scope)
    .where('id', 'in', ids)
    .execute();
}
