import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { DueWork } from '#platform/database/due-work.sql.ts';
import { secondsAfter, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import type { PlanKey } from './plan-access.sql.ts';

// Statements about the retention period, and about the gateway's records of erased shoppers
// (decision 0070).

export const dueRetentionDates: DueWork<'retention_dates'> = {
  table: 'retention_dates',
  due: 'due_at',
};
export const dueErasures: DueWork<'erasures'> = { table: 'erasures', due: 'due_at' };
export const dueCustomers: DueWork<'deleted_customers'> = {
  table: 'deleted_customers',
  due: 'due_at',
};

/**
 * Inserts a retention date, due at once, for each merchant that has none. Its position (`number`)
 * is before the merchant's first checkout.
 */
export async function insertMissingRetentionDates(db: Handle, due_at: Timestamp): Promise<void> {
  const merchants = await db.selectFrom('merchants').select('id').execute();
  const retentionDates = await db.selectFrom('retention_dates').select('merchant_id').execute();
  const known = new Set(retentionDates.map(({ merchant_id }) => merchant_id));
  const missing = merchants.filter(({ id }) => !known.has(id));
  if (missing.length === 0) return;
  // All ids travel in one value, because a statement may have at most 65,535 values.
  await sql`insert into retention_dates (merchant_id, number, due_at)
    select id, 0, ${due_at}::timestamptz
    from unnest(${missing.map(({ id }) => id)}::uuid[]) m (id)
    on conflict do nothing`.execute(db);
}

/** Deletes all rows about retention, because there is no longer a retention period. */
export async function deleteRetention(db: Handle): Promise<void> {
  await sql`delete from retention_dates`.execute(db);
  await sql`delete from erasures`.execute(db);
}

export type NumberedCheckout = {
  id: string;
  number: number;
  created_at: Timestamp;
  erased_at: Timestamp | null;
};

/** The merchant's next checkouts after `number`. */
export async function listNextCheckouts(
  db: Handle,
  merchant_id: string,
  number: number,
  batchSize: number,
): Promise<NumberedCheckout[]> {
  return await db
    .selectFrom('checkouts')
    .select(['id', 'number', 'created_at', 'erased_at'])
    .where('merchant_id', '=', merchant_id)
    .where('number', '>', number)
    .orderBy('number')
    .limit(batchSize)
    .execute();
}

export async function insertErasures(
  db: Handle,
  merchant_id: string,
  checkout_ids: string[],
  due_at: Timestamp,
): Promise<void> {
  if (checkout_ids.length === 0) return;
  await db
    .insertInto('erasures')
    .values(checkout_ids.map((checkout_id) => ({ merchant_id, checkout_id, due_at })))
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Moves a claimed retention date and releases it. Returns false if another process claimed it. */
export async function moveRetentionDate(
  db: Handle,
  retentionDate: { merchant_id: string; lease: string | null },
  to: { number: number; due_at: Timestamp },
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('retention_dates')
    .set({ ...to, attempts: 0, lease: null, leased_until: null })
    .where('merchant_id', '=', retentionDate.merchant_id)
    .where('lease', '=', retentionDate.lease)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

/**
 * The expiry of the payment link that an erasure of its checkout would cancel. Null if there is
 * none: the checkout has no link, or the link is reusable, was paid or cancelled, has expired, or
 * has a newer checkout.
 */
export async function findLinkEnd(
  db: Handle,
  { merchant_id, id, payment_link_id, status }: Checkout,
  now: Timestamp,
): Promise<Timestamp | null> {
  if (payment_link_id === null || status === 'successful') return null;
  const link = await db
    .selectFrom('payment_links')
    .select('expires_at')
    .where('merchant_id', '=', merchant_id)
    .where('id', '=', payment_link_id)
    .where('checkout_id', '=', id)
    .where('reusable', '=', false)
    .where('cancelled_at', 'is', null)
    .where('expires_at', '>', now)
    .executeTakeFirst();
  return link?.expires_at ?? null;
}

/** Ends a claimed erasure. Returns false if another process claimed it. */
export async function deleteErasure(
  db: Handle,
  { merchant_id, checkout_id, lease }: PlanKey & { lease: string },
): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('erasures')
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('lease', '=', lease)
    .executeTakeFirstOrThrow();
  return numDeletedRows > 0n;
}

/**
 * Queues the deletion of the gateway's records of a checkout's shopper. An attempt without a
 * reference may have created a record that we never learnt of. For such an attempt the queued row
 * has no reference either, and the worker searches for the record later, once the gateway's search
 * can find it.
 */
export async function insertDeletedCustomers(
  db: Handle,
  { merchant_id, checkout_id }: PlanKey,
  due_at: Timestamp,
): Promise<void> {
  const found_at = timestamp(secondsAfter(Temporal.Instant.from(due_at), searchSeconds));
  await sql`
    insert into deleted_customers (merchant_id, checkout_id, gateway, customer_ref, due_at)
    select distinct merchant_id, checkout_id, gateway, coalesce(customer_ref, ${unknownRef}),
      case when customer_ref is null then ${found_at}::timestamptz else ${due_at}::timestamptz end
    from payment_attempts
    where merchant_id = ${merchant_id} and checkout_id = ${checkout_id}
    on conflict do nothing`.execute(db);
}

/** Stands for a reference that we do not know. */
export const unknownRef = '';
/** The gateway's search finds a record only this long after it was created. */
const searchSeconds = 3_600;

export async function moveCustomerDeleted(
  db: Handle,
  one: PlanKey & { customer_ref: string; lease: string | null },
  deleted_at: Timestamp,
): Promise<void> {
  await db
    .updateTable('deleted_customers')
    .set({ deleted_at, due_at: null, lease: null, leased_until: null })
    .where('merchant_id', '=', one.merchant_id)
    .where('checkout_id', '=', one.checkout_id)
    .where('customer_ref', '=', one.customer_ref)
    .where('lease', '=', one.lease)
    .execute();
}
