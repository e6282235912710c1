import { sql } from 'kysely';
import type { Handle } from '../database/database.ts';
import type { RefundRequest } from './refund.ts';

/** What refund requests that may still move money, or have, take from a checkout (D27). */
export async function sumRefunds(
  db: Handle,
  merchant_id: string,
  checkout_id: string,
): Promise<number> {
  const { sum } = await db
    .selectFrom('refund_requests')
    .select(sql<number>`coalesce(sum(amount), 0)::bigint`.as('sum'))
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('status', '!=', 'failed')
    .executeTakeFirstOrThrow();
  return sum;
}

export async function insertRefund(db: Handle, refund: RefundRequest): Promise<void> {
  await db.insertInto('refund_requests').values(refund).execute();
}

export async function findRefund(
  db: Handle,
  merchant_id: string,
  id: string,
): Promise<RefundRequest | null> {
  const row = await db
    .selectFrom('refund_requests')
    .selectAll()
    .where('id', '=', id)
    .where('merchant_id', '=', merchant_id)
    .executeTakeFirst();
  return row ?? null;
}
