import { type Scope, scoped } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Payout, PayoutStatus } from '#purchases/payouts/payout.ts';
import { type Page, type PageOf, readRange } from './range.sql.ts';

/** The newest payouts first. */
export async function pagePayouts(
  db: Handle,
  scope: Scope,
  status: PayoutStatus | null,
  page: PageOf,
): Promise<Page<Payout>> {
  let query = scoped(db.selectFrom('payouts').selectAll(), scope);
  if (status !== null) query = query.where('status', '=', status);
  return await readRange(query, page, ['created_at', 'id'], 'desc');
}

/** One payout of the scope. */
export async function findPayoutWithin(
  db: Handle,
  scope: Scope,
  id: string,
): Promise<Payout | null> {
  const query = scoped(db.selectFrom('payouts').selectAll(), scope).where('id', '=', id);
  return (await query.executeTakeFirst()) ?? null;
}
