import { sql, type Updateable } from 'kysely';
import type { Handle } from '../database/database.ts';
import type { DueWork } from '../database/due-work.sql.ts';
import type { Tables } from '../database/tables.ts';
import type { Timestamp } from '../shared/clock.ts';
import type { RefundPart, RefundRequest, RefundStatus } from './refund.ts';

type Key = { merchant_id: string; id: string };

/** What refund requests take from a checkout: what they may still move, or have (D27). */
export async function sumRefunds(
  db: Handle,
  merchant_id: string,
  checkout_id: string,
): Promise<number> {
  const { sum } = await db
    .selectFrom('refund_requests')
    .select(
      sql<number>`coalesce(sum(case status when 'failed' then kept else amount end), 0)::bigint`.as(
        'sum',
      ),
    )
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
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

/** Whose a refund request is, for an operator: whoever it may be. */
export async function findRefundMerchant(db: Handle, id: string): Promise<string | null> {
  const row = await db
    .selectFrom('refund_requests')
    .select('merchant_id')
    .where('id', '=', id)
    .executeTakeFirst();
  return row?.merchant_id ?? null;
}

/** Every checkout's are few. The oldest first. */
export async function listCheckoutRefunds(
  db: Handle,
  merchant_id: string,
  checkout_id: string,
): Promise<RefundRequest[]> {
  return await db
    .selectFrom('refund_requests')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .orderBy('number')
    .execute();
}

/** For an operator: those that wait the longest first when they wait, else the newest first. */
export async function listRefundsByStatus(
  db: Handle,
  filter: { status?: RefundStatus; merchant_id?: string },
  most: number,
): Promise<RefundRequest[]> {
  let query = db.selectFrom('refund_requests').selectAll();
  if (filter.status !== undefined) query = query.where('status', '=', filter.status);
  if (filter.merchant_id !== undefined) {
    query = query.where('merchant_id', '=', filter.merchant_id);
  }
  const order = filter.status === 'requested' ? 'asc' : 'desc';
  return await query.orderBy('created_at', order).orderBy('id', order).limit(most).execute();
}

export const dueRefunds: DueWork<'refund_requests'> = {
  table: 'refund_requests',
  due: 'due_at',
};

export async function lockRefund(db: Handle, key: Key): Promise<RefundRequest | null> {
  const row = await db
    .selectFrom('refund_requests')
    .selectAll()
    .where('id', '=', key.id)
    .where('merchant_id', '=', key.merchant_id)
    .forUpdate()
    .executeTakeFirst();
  return row ?? null;
}

/** From one of the given statuses to what is now known. Null: another actor moved it first. */
export async function moveRefund(
  db: Handle,
  key: Key,
  from: RefundStatus[],
  to: Updateable<Tables['refund_requests']>,
): Promise<RefundRequest | null> {
  const row = await db
    .updateTable('refund_requests')
    .set(to)
    .where('id', '=', key.id)
    .where('merchant_id', '=', key.merchant_id)
    .where('status', 'in', from)
    .returningAll()
    .executeTakeFirst();
  return row ?? null;
}

/** Puts a refund down that waits for something, to be looked at again later. */
export async function movePutDown(
  db: Handle,
  refund: Key & { lease: string | null },
  due_at: Timestamp,
): Promise<void> {
  await db
    .updateTable('refund_requests')
    .set((set) => ({ due_at, lease: null, leased_until: null, tries: set('tries', '+', 1) }))
    .where('id', '=', refund.id)
    .where('merchant_id', '=', refund.merchant_id)
    .where('lease', '=', refund.lease)
    .where('due_at', 'is not', null)
    .execute();
}

export async function insertParts(db: Handle, parts: RefundPart[]): Promise<void> {
  await db.insertInto('refund_parts').values(parts).execute();
}

/** What every refund of a checkout is taken from, in order. */
export async function listParts(
  db: Handle,
  merchant_id: string,
  checkout_id: string,
): Promise<RefundPart[]> {
  return await db
    .selectFrom('refund_parts')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .orderBy('refund_id')
    .orderBy('round')
    .orderBy('number')
    .execute();
}

/** The gateway is asked for it now. */
export async function moveAsked(db: Handle, part: Key, asked_at: Timestamp): Promise<void> {
  await db
    .updateTable('refund_parts')
    .set({ asked_at })
    .where('id', '=', part.id)
    .where('merchant_id', '=', part.merchant_id)
    .execute();
}

/** False: this very result is written already. */
export async function movePart(
  db: Handle,
  part: Pick<RefundPart, 'merchant_id' | 'id' | 'status' | 'key_number'>,
  to: Updateable<Tables['refund_parts']>,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('refund_parts')
    .set(to)
    .where('id', '=', part.id)
    .where('merchant_id', '=', part.merchant_id)
    .where('status', '=', part.status)
    .where('key_number', '=', part.key_number)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}
