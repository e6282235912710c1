import { sql } from 'kysely';
import { type Scope, scoped } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Payout, PayoutStatus } from '#purchases/payouts/payout.ts';
import { type Page, type PageOf, readRange } from './range.sql.ts';

/** The newest payouts first. */
export async function listPayoutsPage(
  db: Handle,
  scope: Scope,
  status: PayoutStatus | null,
  page: PageOf,
): Promise<Page<Payout>> {
  let query = scoped(db.selectFrom('payouts').selectAll(), scope);
  if (status !== null) query = query.where('status', '=', status);
  return await readRange(query, page, ['created_at', 'id'], 'desc');
}

export async function findPayoutWithin(
  db: Handle,
  scope: Scope,
  id: string,
): Promise<Payout | null> {
  const query = scoped(db.selectFrom('payouts').selectAll(), scope).where('id', '=', id);
  return (await query.executeTakeFirst()) ?? null;
}

/** These payouts, if they are in the scope. */
export async function listPayoutsWithin(
  db: Handle,
  scope: Scope,
  ids: string[],
): Promise<Pick<Payout, 'id' | 'merchant_id'>[]> {
  return await scoped(db.selectFrom('payouts').select(['id', 'merchant_id']), scope)
    .where(sql<boolean>`id = any(${ids}::uuid[])`)
    .execute();
}

/** The payouts with a line that belongs to a checkout with an open dispute. */
export async function listDisputedPayouts(
  db: Handle,
  payouts: Pick<Payout, 'merchant_id' | 'id'>[],
): Promise<Set<string>> {
  const merchants = [...new Set(payouts.map(({ merchant_id }) => merchant_id))];
  // The join implies the condition on `e.merchant_id`. Without it, the index would be searched once
  // for each merchant.
  const { rows } = await sql<{ payout_id: string }>`
    select distinct e.payout_id
    from (
      select distinct merchant_id, checkout_id
      from disputes
      where merchant_id = any(${merchants}::uuid[])
        and status in ('inquiry', 'needs_response', 'under_review')
    ) d
    join settlement_entries e on e.merchant_id = d.merchant_id and e.checkout_id = d.checkout_id
    where e.merchant_id = any(${merchants}::uuid[])
      and e.payout_id = any(${payouts.map(({ id }) => id)}::uuid[])`.execute(db);
  return new Set(rows.map(({ payout_id }) => payout_id));
}
