import { type RawBuilder, sql } from 'kysely';
import { statement } from '#platform/database/compile-once.ts';
import type { Handle } from '#platform/database/database.ts';
import type { AccountFee, GatewayFee, Posting } from './posting.ts';

export const insertPostings = statement((db, postings: Posting[]) =>
  db.insertInto('postings').values(postings),
);

/** Writes fees of the gateway, and returns those that are new. */
export async function insertFees(db: Handle, fees: GatewayFee[]): Promise<GatewayFee[]> {
  return await db
    .insertInto('gateway_fees')
    .values(fees)
    .onConflict((conflict) => conflict.doNothing())
    .returningAll()
    .execute();
}

/** Writes fees of the gateway's account that are not known yet, and returns how many. */
export async function insertAccountFees(db: Handle, fees: AccountFee[]): Promise<number> {
  const rows = await db
    .insertInto('gateway_account_fees')
    .values(fees)
    .onConflict((conflict) => conflict.doNothing())
    .returning('transaction_ref')
    .execute();
  return rows.length;
}

export type DisputedAmount = { checkout_id: string; instalment: number; amount: number };

/** The amounts that disputes took from the payments of checkouts and did not return. */
const selectDisputed = (isOf: RawBuilder<boolean>) =>
  sql<DisputedAmount>`
    select checkout_id, instalment,
      sum(case kind when 'withdrawn' then amount else -amount end)::bigint as amount
    from postings
    where ${isOf} and kind in ('withdrawn', 'reinstated')
    group by checkout_id, instalment`;

/** The amounts that disputes took from the payments of one checkout and did not return. */
export const selectDisputedAmounts = (key: { merchant_id: string; checkout_id: string }) =>
  selectDisputed(sql`merchant_id = ${key.merchant_id} and checkout_id = ${key.checkout_id}`);

/** The money of a payment of the plan that a dispute can move. */
export type DisputePosition = {
  instalment: number;
  /** The amount that was collected and neither refunded nor disputed. */
  collected: number;
  /** The amount that this dispute took and did not return. */
  withdrawn: number;
};

/** The amounts that a dispute can take from each payment of its checkout, or return to it. */
export async function listDisputePositions(
  db: Handle,
  { merchant_id, checkout_id }: { merchant_id: string; checkout_id: string },
  dispute_id: string,
): Promise<DisputePosition[]> {
  const { rows } = await sql<DisputePosition>`
    select instalment,
      sum(case when debit = 'collected' then amount else -amount end)::bigint as collected,
      coalesce(sum(case when credit = 'collected' then amount else -amount end)
        filter (where dispute_id = ${dispute_id}), 0)::bigint as withdrawn
    from postings
    where merchant_id = ${merchant_id} and checkout_id = ${checkout_id}
      and 'collected' in (debit, credit)
    group by instalment`.execute(db);
  return rows;
}

export async function listDisputedAmounts(
  db: Handle,
  checkouts: { merchant_id: string; checkout_id: string }[],
): Promise<DisputedAmount[]> {
  if (checkouts.length === 0) return [];
  const merchant_ids = [...new Set(checkouts.map(({ merchant_id }) => merchant_id))];
  const checkout_ids = [...new Set(checkouts.map(({ checkout_id }) => checkout_id))];
  const isOf = sql<boolean>`merchant_id = any (${merchant_ids}::uuid[])
    and checkout_id = any (${checkout_ids}::uuid[])`;
  return (await selectDisputed(isOf).execute(db)).rows;
}
