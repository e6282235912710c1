import { sql } from 'kysely';
import type { Handle } from '../database/database.ts';
import type { GatewayFee, Posting } from './posting.ts';

export async function insertPostings(db: Handle, postings: Posting[]): Promise<void> {
  await db.insertInto('postings').values(postings).execute();
}

/** Writes fees of the gateway, and returns those that were not known. */
export async function insertFees(db: Handle, fees: GatewayFee[]): Promise<GatewayFee[]> {
  return await db
    .insertInto('gateway_fees')
    .values(fees)
    .onConflict((conflict) => conflict.doNothing())
    .returningAll()
    .execute();
}

/** All postings of a checkout, oldest first. */
export async function listPostings(
  db: Handle,
  merchant_id: string,
  checkout_id: string,
): Promise<Posting[]> {
  return await db
    .selectFrom('postings')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .orderBy('at')
    .orderBy('id')
    .execute();
}

/** What disputes took from the payments of a checkout and did not give back. */
export async function listDisputedAmounts(
  db: Handle,
  { merchant_id, checkout_id }: { merchant_id: string; checkout_id: string },
): Promise<{ instalment: number; amount: number }[]> {
  const { rows } = await sql<{ instalment: number; amount: number }>`
    select instalment, sum(case kind when 'withdrawn' then amount else -amount end)::bigint as amount
    from postings
    where merchant_id = ${merchant_id} and checkout_id = ${checkout_id}
      and kind in ('withdrawn', 'reinstated')
    group by instalment`.execute(db);
  return rows;
}
