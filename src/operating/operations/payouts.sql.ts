import { sql } from 'kysely';
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

/** The sum of a payout's lines. The database adds them up, because there may be very many. */
export async function sumPayoutLines(
  db: Handle,
  { merchant_id, id }: Pick<Payout, 'merchant_id' | 'id'>,
): Promise<{ gross: number; fee: number; vat: number; net: number }> {
  const { rows } = await sql<{ gross: number; fee: number; vat: number; net: number }>`
    select coalesce(sum(gross), 0)::bigint as gross, coalesce(sum(fee), 0)::bigint as fee,
      coalesce(sum(vat), 0)::bigint as vat, coalesce(sum(net), 0)::bigint as net
    from settlement_entries where merchant_id = ${merchant_id} and payout_id = ${id}`.execute(db);
  return rows[0] as { gross: number; fee: number; vat: number; net: number };
}
