import { type Scope, scoped } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { directionOf, type Page, type PageOf, readRange, type SortOrder } from './range.sql.ts';

export async function listMerchantsPage(
  db: Handle,
  scope: Scope,
  page: PageOf,
  order: SortOrder = 'newest first',
): Promise<Page<{ id: string; created_at: Timestamp }>> {
  const query = scoped(db.selectFrom('merchants').select(['id', 'created_at']), scope, 'id');
  return await readRange(query, page, ['created_at', 'id'], directionOf(order));
}
