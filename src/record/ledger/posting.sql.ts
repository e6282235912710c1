import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { AccountFee, GatewayFee, Posting } from './posting.ts';

export async function insertPostings(db: Handle, postings: Posting[]): Promise<void> {
  await db.insertInto('postings').values(postings).execute();
}

/** Writes fees of the gateway, and returns those that are new. */
export async function insertFees(db: Handle, fees: GatewayFee[]): Promise<GatewayFee[]> {
  return await db
    .insertInto('gateway_fees')
    .values(fees)
    .onConflict((conflict) => conflict.doNothing())
    .returningAll()
    .execute();
}

/** Writes fees of the gateway's account that are not known yet. */
export async function insertAccountFees(db: Handle, fees: AccountFee[]): Promise<void> {
  await db
    .insertInto('gateway_account_fees')
    .values(fees)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

export type DisputedAmount = { checkout_id: string; instalment: number; amount: number };

/** The amounts that disputes took from the payments of checkouts and did not return. */
export async function listDisputedAmounts(
  db: Handle,
  checkouts: { merchant_id: string; checkout_id: string }[],
): Promise<DisputedAmount[]> {
  if (checkouts.length === 0) return [];
  const merchant_ids = [...new Set(checkouts.map(({ merchant_id }) => merchant_id))];
  const checkout_ids = [...new Set(checkouts.map(({ checkout_id }) => checkout_id))];
  const { rows } = await sql<DisputedAmount>`
    select checkout_id, instalment,
      sum(case kind when 'withdrawn' then amount else -amount end)::bigint as amount
    from postings
    where merchant_id in (${sql.join(merchant_ids)}) and checkout_id in (${sql.join(checkout_ids)})
      and kind in ('withdrawn', 'reinstated')
    group by checkout_id, instalment`.execute(db);
  return rows;
}
