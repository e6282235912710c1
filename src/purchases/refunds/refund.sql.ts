import { sql, type Updateable } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { DueWork } from '#platform/database/due-work.sql.ts';
import type { Tables } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { sumDisputed } from '#purchases/disputes/dispute.sql.ts';
import type { RefundPart, RefundRequest, RefundStatus, RefundSummary } from './refund.ts';

type CheckoutKey = { merchant_id: string; checkout_id: string };
type Key = { merchant_id: string; id: string };

/** The amount of a checkout that refund requests refunded or still may (decision 0014). */
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

/**
 * The merchant of a refund request, for the command line, which sees all merchants. The key of a
 * refund has its merchant too. If refunds of two merchants share an id, it finds neither.
 */
export async function findRefundMerchant(db: Handle, id: string): Promise<string | null> {
  const rows = await db
    .selectFrom('refund_requests')
    .select('merchant_id')
    .where('id', '=', id)
    .limit(2)
    .execute();
  const [only] = rows;
  return only && rows.length === 1 ? only.merchant_id : null;
}

/**
 * By checkout, the sum of its refunds that were approved although fewer than two people agreed to
 * them: the service approved them when a person or the merchant asked, or one person approved them.
 * Each counts, however it was requested and whatever became of it: a failed refund can be retried
 * (decision 0074).
 */
export async function listAloneSums(
  db: Handle,
  refunds: { merchant_id: string; checkout_id: string }[],
): Promise<Map<string, number>> {
  if (refunds.length === 0) return new Map();
  const unique = (values: string[]) => [...new Set(values)];
  const rows = await db
    .selectFrom('refund_requests')
    .select(['checkout_id', sql<number>`sum(amount)::bigint`.as('sum')])
    .where('merchant_id', 'in', unique(refunds.map(({ merchant_id }) => merchant_id)))
    .where('checkout_id', 'in', unique(refunds.map(({ checkout_id }) => checkout_id)))
    .where('approved_at', 'is not', null)
    .where(
      sql<boolean>`num_nonnulls(requested_by_name, first_approved_by_name, approved_by_name) < 2`,
    )
    .groupBy('checkout_id')
    .execute();
  return new Map(rows.map(({ checkout_id, sum }) => [checkout_id, sum]));
}

/** The same for one checkout. */
export async function sumAlone(
  db: Handle,
  refund: { merchant_id: string; checkout_id: string },
): Promise<number> {
  return (await listAloneSums(db, [refund])).get(refund.checkout_id) ?? 0;
}

/**
 * The amount of a checkout that can still be refunded. Money that a cardholder disputes is not ours
 * to refund.
 */
export async function sumRefundable(
  db: Handle,
  checkout: { merchant_id: string; id: string; amount: number },
): Promise<number> {
  const refunded = await sumRefunds(db, checkout.merchant_id, checkout.id);
  const disputed = await sumDisputed(db, checkout.merchant_id, checkout.id);
  return Math.max(0, checkout.amount - refunded - disputed);
}

/** The newest refund requests of a checkout, the oldest of them first. */
export async function listNewestRefunds(
  db: Handle,
  { merchant_id, checkout_id }: CheckoutKey,
  limit: number,
): Promise<Pick<RefundRequest, 'amount' | 'status' | 'created_at'>[]> {
  const newest = await db
    .selectFrom('refund_requests')
    .select(['amount', 'status', 'created_at'])
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .orderBy('number', 'desc')
    .limit(limit)
    .execute();
  return newest.reverse();
}

/** All refund requests of a checkout in one row: a merchant may make any number of them. */
export async function summariseRefunds(
  db: Handle,
  { merchant_id, checkout_id }: CheckoutKey,
): Promise<RefundSummary> {
  return await db
    .selectFrom('refund_requests')
    .select([
      sql<number>`count(*)::integer`.as('count'),
      sql<boolean>`coalesce(bool_or(status in ('requested', 'pending')), false)`.as('is_open'),
      sql<Timestamp | null>`max(coalesce(completed_at, created_at))`.as('moved_at'),
    ])
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .executeTakeFirstOrThrow();
}

/** By payment, the amount that refunds returned to its card, or are returning. */
export async function sumReturned(
  db: Handle,
  { merchant_id, checkout_id }: CheckoutKey,
): Promise<Map<number, number>> {
  const rows = await db
    .selectFrom('refund_parts')
    .select(['instalment', sql<number>`sum(amount)::bigint`.as('sum')])
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('kind', '=', 'card')
    .where('status', 'in', ['open', 'done'])
    .groupBy('instalment')
    .execute();
  return new Map(rows.map(({ instalment, sum }) => [instalment, sum]));
}

export const dueRefunds: DueWork<'refund_requests'> = {
  table: 'refund_requests',
  due: 'due_at',
};

/**
 * Locks the checkout of a refund. A later statement locks the refund itself, so that it sees the
 * current row.
 */
export async function lockRefundCheckout(db: Handle, key: Key): Promise<Checkout | null> {
  const row = await db
    .selectFrom('checkouts')
    .selectAll()
    .where('merchant_id', '=', key.merchant_id)
    .where('id', '=', ({ selectFrom }) =>
      selectFrom('refund_requests')
        .select('checkout_id')
        .where('id', '=', key.id)
        .where('merchant_id', '=', key.merchant_id),
    )
    .forNoKeyUpdate()
    .executeTakeFirst();
  return row ?? null;
}

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

/**
 * Moves a refund from one of the given statuses. Returns null if another process moved it first.
 */
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

export async function insertParts(db: Handle, parts: RefundPart[]): Promise<void> {
  await db.insertInto('refund_parts').values(parts).execute();
}

/** The parts of every refund of a checkout, in order. */
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

/** Notes when the request for a part was last sent. */
export async function moveAsked(db: Handle, part: Key, asked_at: Timestamp): Promise<void> {
  await db
    .updateTable('refund_parts')
    .set({ asked_at })
    .where('id', '=', part.id)
    .where('merchant_id', '=', part.merchant_id)
    .execute();
}

/** Returns false if an earlier run wrote this result. */
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
