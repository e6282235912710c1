import { sql } from 'kysely';
import type { Handle } from '../database/database.ts';
import { pageRange } from '../database/list-totals.sql.ts';
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

/** Whose a refund request is, among the merchants that an intermediary manages. */
export async function findManagedRefundMerchant(
  db: Handle,
  integration_id: string,
  id: string,
): Promise<string | null> {
  const row = await db
    .selectFrom('refund_requests')
    .innerJoin('managed_merchants', 'managed_merchants.merchant_id', 'refund_requests.merchant_id')
    .select('refund_requests.merchant_id')
    .where('refund_requests.id', '=', id)
    .where('managed_merchants.integration_id', '=', integration_id)
    .executeTakeFirst();
  return row?.merchant_id ?? null;
}

export async function listRefunds(
  db: Handle,
  merchant_id: string,
  total: number,
  page: { number: number; items: number },
): Promise<RefundRequest[]> {
  const { first, last } = pageRange(total, page);
  if (last < 1) return [];
  return await db
    .selectFrom('refund_requests')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('number', '>=', first)
    .where('number', '<=', last)
    .orderBy('number', 'desc')
    .execute();
}
