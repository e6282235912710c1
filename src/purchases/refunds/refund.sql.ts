import assert from 'node:assert/strict';
import { type Insertable, sql, type Updateable } from 'kysely';
import { selectMerchant, toMerchantRow } from '#merchants/merchant.sql.ts';
import type { MerchantRow } from '#merchants/merchant.ts';
import { compileOnce, statement } from '#platform/database/compile-once.ts';
import type { Handle } from '#platform/database/database.ts';
import type { DueWork } from '#platform/database/due-work.sql.ts';
import { asRows, together } from '#platform/database/read-together.ts';
import type { Tables } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { sumDisputed } from '#purchases/disputes/dispute.sql.ts';
import type { RefundPart, RefundRequest, RefundStatus, RefundSummary } from './refund.ts';

type CheckoutKey = { merchant_id: string; checkout_id: string };
type Key = { merchant_id: string; id: string };

/**
 * The amount of a checkout that refund requests have refunded or may still refund (decision 0014).
 */
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

export const insertRefunds = statement((db, refunds: RefundRequest[]) =>
  db.insertInto('refund_requests').values(refunds),
);

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
 * The merchant of a refund request, for the command line, which sees all merchants. A refund's key
 * includes its merchant, so refunds of two merchants may have the same id. Returns null in that
 * case, and if there is no such request.
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
 * The sum of each checkout's refunds that were approved although fewer than two people agreed to
 * them: the service approved them when a person or the merchant asked, or one person approved them.
 * Every such refund counts, even a failed one, because it can be retried (decision 0074).
 */
export async function listAloneSums(
  db: Handle,
  refunds: { merchant_id: string; checkout_id: string }[],
): Promise<Map<string, number>> {
  if (refunds.length === 0) return new Map();
  const unique = (values: string[]) => [...new Set(values)];
  const rows = await selectAlone(db)
    .where('merchant_id', 'in', unique(refunds.map(({ merchant_id }) => merchant_id)))
    .where('checkout_id', 'in', unique(refunds.map(({ checkout_id }) => checkout_id)))
    .execute();
  return new Map(rows.map(({ checkout_id, sum }) => [checkout_id, sum]));
}

const selectAlone = (db: Handle) =>
  db
    .selectFrom('refund_requests')
    .select(['checkout_id', sql<number>`sum(amount)::bigint`.as('sum')])
    .where('approved_at', 'is not', null)
    .where(
      sql<boolean>`num_nonnulls(requested_by_name, first_approved_by_name, approved_by_name) < 2`,
    )
    .groupBy('checkout_id');

/** The sum of `listAloneSums` for one checkout. Returns no row if there are no such refunds. */
export const selectAloneSum = (db: Handle, { merchant_id, checkout_id }: CheckoutKey) =>
  selectAlone(db).where('merchant_id', '=', merchant_id).where('checkout_id', '=', checkout_id);

export async function sumAlone(db: Handle, key: CheckoutKey): Promise<number> {
  return (await selectAloneSum(db, key).executeTakeFirst())?.sum ?? 0;
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

/** The last `limit` refund requests of a checkout, newest first. */
export const selectNewestRefunds = (
  db: Handle,
  { merchant_id, checkout_id }: CheckoutKey,
  limit: number,
) =>
  db
    .selectFrom('refund_requests')
    .select(['amount', 'status', 'created_at'])
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .orderBy('number', 'desc')
    .limit(limit);

/** All refund requests of a checkout in one row: a merchant may make any number of them. */
export const selectRefundSummary = (db: Handle, { merchant_id, checkout_id }: CheckoutKey) =>
  db
    .selectFrom('refund_requests')
    .select([
      sql<number>`count(*)::integer`.as('count'),
      sql<boolean>`coalesce(bool_or(status in ('requested', 'pending')), false)`.as('is_open'),
      sql<Timestamp | null>`max(coalesce(completed_at, created_at))`.as('moved_at'),
    ])
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id);

export async function summariseRefunds(db: Handle, key: CheckoutKey): Promise<RefundSummary> {
  return await selectRefundSummary(db, key).executeTakeFirstOrThrow();
}

/** The amount of each payment that refunds have returned to the card or are returning. */
export const selectReturned = (db: Handle, { merchant_id, checkout_id }: CheckoutKey) =>
  db
    .selectFrom('refund_parts')
    .select(['instalment', sql<number>`sum(amount)::bigint`.as('sum')])
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('kind', '=', 'card')
    .where('status', 'in', ['open', 'done'])
    .groupBy('instalment');

/** How many refunds that only cancel the rest of the plan have failed. */
export async function countFailedRests(
  db: Handle,
  { merchant_id, checkout_id }: CheckoutKey,
): Promise<number> {
  const { count } = await db
    .selectFrom('refund_requests')
    .select(sql<number>`count(*)::integer`.as('count'))
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('uncollected_only', '=', true)
    .where('status', '=', 'failed')
    .executeTakeFirstOrThrow();
  return count;
}

/**
 * How many refunds each of the gateway's payments has, including those in flight and those that
 * failed there. All parts of a round are one refund (`byPayment`).
 */
export async function countCardRefunds(
  db: Handle,
  { merchant_id, checkout_id }: CheckoutKey,
): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('refund_parts')
    .select(['payment_ref', sql<number>`count(distinct (refund_id, round))::integer`.as('count')])
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('kind', '=', 'card')
    .where((is) => is.or([is('status', 'in', ['open', 'done']), is('refund_ref', 'is not', null)]))
    .where('payment_ref', 'is not', null)
    .groupBy('payment_ref')
    .execute();
  return new Map(rows.map(({ payment_ref, count }) => [payment_ref ?? '', count]));
}

export const dueRefunds: DueWork<'refund_requests'> = {
  table: 'refund_requests',
  due: 'due_at',
};

export async function findRefundOwner(
  db: Handle,
  { merchant_id, id }: Key,
): Promise<{ merchant: MerchantRow; checkout_id: string } | null> {
  const [rows] = await selectOwner(db, { merchant_id, id });
  const [merchant] = asRows(rows?.merchants ?? []);
  const [refund] = rows?.refunds ?? [];
  return merchant && refund ? { merchant: toMerchantRow(merchant), ...refund } : null;
}

const selectOwner = compileOnce((db, { merchant_id, id }: Key) =>
  together({
    merchants: selectMerchant(db, merchant_id),
    refunds: db
      .selectFrom('refund_requests')
      .select('checkout_id')
      .where('id', '=', id)
      .where('merchant_id', '=', merchant_id),
  }),
);

export async function lockRefund(
  db: Handle,
  { merchant_id, id }: Key,
): Promise<RefundRequest | null> {
  const [row] = await lockOne(db, { merchant_id, id });
  return row ?? null;
}

const lockOne = compileOnce((db, key: Key) =>
  db
    .selectFrom('refund_requests')
    .selectAll()
    .where('id', '=', key.id)
    .where('merchant_id', '=', key.merchant_id)
    .forUpdate(),
);

/** Locks the checkout first, as every transaction does, and then its refund. */
export async function lockWithCheckout(
  db: Handle,
  { merchant_id, checkout_id, id }: CheckoutKey & Key,
): Promise<RefundRequest> {
  const [row] = await lockBoth(db, { merchant_id, checkout_id, id });
  assert(row, 'a refund is never deleted');
  return row;
}

const lockBoth = compileOnce((db, key: CheckoutKey & Key) =>
  db
    .selectFrom('checkouts as c')
    .innerJoin('refund_requests as r', (join) =>
      join.onRef('r.merchant_id', '=', 'c.merchant_id').onRef('r.checkout_id', '=', 'c.id'),
    )
    .selectAll('r')
    .where('c.id', '=', key.checkout_id)
    .where('c.merchant_id', '=', key.merchant_id)
    .where('r.id', '=', key.id)
    // The database server takes the locks in this order.
    .forNoKeyUpdate('c')
    .forUpdate('r'),
);

type Changes = Updateable<Tables['refund_requests']>;

type Moved = Key & Changes & { from: RefundStatus[] };

const updateRefund = (db: Handle, { merchant_id, id, from, ...to }: Moved) =>
  db
    .updateTable('refund_requests')
    .set(to)
    .where('id', '=', id)
    .where('merchant_id', '=', merchant_id)
    .where(sql<boolean>`status = any (${from}::text[])`);

const writeState = statement((db, moved: Moved) => updateRefund(db, moved).returning('id'));

/** Writes the new state of a locked refund. */
export const updateState = ({ merchant_id, id }: Key, from: RefundStatus[], to: Changes) =>
  writeState({ merchant_id, id, from, ...to });

/**
 * Moves a refund from one of the given statuses. Returns null if another process moved it first.
 */
export async function moveRefund(
  db: Handle,
  key: Key,
  from: RefundStatus[],
  to: Changes,
): Promise<RefundRequest | null> {
  const { merchant_id, id } = key;
  const [row] = await updateAndRead(db, { merchant_id, id, from, ...to });
  return row ?? null;
}

const updateAndRead = compileOnce((db, moved: Moved) => updateRefund(db, moved).returningAll());

export const insertParts = statement((db, parts: Insertable<Tables['refund_parts']>[]) =>
  db.insertInto('refund_parts').values(parts),
);

export const selectParts = (db: Handle, { merchant_id, id }: Key) =>
  db
    .selectFrom('refund_parts')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('refund_id', '=', id)
    .orderBy('round')
    .orderBy('number');

export async function listParts(db: Handle, key: Key): Promise<RefundPart[]> {
  return await selectParts(db, key).execute();
}

/** Records when the request for a part was last sent. */
export async function moveAsked(
  db: Handle,
  { merchant_id, id }: Key,
  asked_at: Timestamp,
): Promise<void> {
  await updateAsked(db, { merchant_id, id, asked_at });
}

const updateAsked = compileOnce((db, to: Key & { asked_at: Timestamp }) =>
  db
    .updateTable('refund_parts')
    .set({ asked_at: to.asked_at })
    .where('id', '=', to.id)
    .where('merchant_id', '=', to.merchant_id),
);

const updateParts = statement((db, values: Key & { parts: string }) =>
  db
    .updateTable('refund_parts as p')
    .from(
      sql<RefundPart>`jsonb_to_recordset(${values.parts}::jsonb)`.as<'v'>(
        sql`v(id uuid, status text, key_number integer, keyed_at timestamptz, refund_ref text,
          settled_at timestamptz)`,
      ),
    )
    .set(({ ref }) => ({
      status: ref('v.status'),
      key_number: ref('v.key_number'),
      keyed_at: ref('v.keyed_at'),
      refund_ref: ref('v.refund_ref'),
      settled_at: ref('v.settled_at'),
    }))
    .where('p.merchant_id', '=', values.merchant_id)
    // The planner does not know how few these parts are. Without this condition it would read all
    // parts of the merchant.
    .where('p.refund_id', '=', values.id)
    .whereRef('p.id', '=', 'v.id')
    .returning('p.id'),
);

/** Writes the new states of parts of a locked refund. */
export const updatePartStates = ({ merchant_id, id }: Key, parts: RefundPart[]) =>
  updateParts({ merchant_id, id, parts: JSON.stringify(parts) });

/** Returns false if the part has changed since it was read: an earlier run wrote this answer. */
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
