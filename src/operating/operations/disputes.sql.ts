import { sql } from 'kysely';
import { type Scope, scoped } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import type { Dispute, DisputeStatus } from '#purchases/disputes/dispute.ts';
import { type Page, type PageOf, readRange } from './range.sql.ts';

/** The newest disputes first. */
export async function listDisputesPage(
  db: Handle,
  scope: Scope,
  { status, gateway }: { status?: DisputeStatus | undefined; gateway?: string | undefined },
  page: PageOf,
): Promise<Page<Dispute>> {
  let query = db.selectFrom('disputes').selectAll();
  if (status !== undefined) query = query.where('status', '=', status);
  if (gateway !== undefined) query = query.where(sql<boolean>`gateway = ${gateway}`);
  return await readRange(scoped(query, scope), page, ['created_at', 'id'], 'desc');
}

/** The disputes in the scope with this id, ours or the gateway's. */
export async function listDisputesNamed(
  db: Handle,
  scope: Scope,
  text: string,
): Promise<Dispute[]> {
  return await scoped(db.selectFrom('disputes').selectAll(), scope)
    .where(isUuid(text) ? 'id' : 'dispute_ref', '=', text)
    .execute();
}
