import { sql } from 'kysely';
import { statement } from '#platform/database/compile-once.ts';
import type { Handle } from '#platform/database/database.ts';
import { isFree, type Lease } from '#platform/database/due-work.sql.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Callback, CallbackAttempt } from './callback.ts';

type Key = { merchant_id: string; id: string };
type CheckoutKey = { merchant_id: string; checkout_id: string };

export const insertCallback = statement((db, callback: Callback) =>
  db.insertInto('callbacks').values(callback),
);

export async function insertCallbacks(db: Handle, callbacks: Callback[]): Promise<void> {
  await db.insertInto('callbacks').values(callbacks).execute();
}

export async function findCallback(db: Handle, key: Key): Promise<Callback | null> {
  const row = await db
    .selectFrom('callbacks')
    .selectAll()
    .where('id', '=', key.id)
    .where('merchant_id', '=', key.merchant_id)
    .executeTakeFirst();
  return row ?? null;
}

/** The callback that reports how a checkout ended. */
export async function findCheckoutCallback(
  db: Handle,
  merchant_id: string,
  checkout_id: string,
): Promise<Callback | null> {
  const row = await db
    .selectFrom('callbacks')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('listed_id', '=', checkout_id)
    .executeTakeFirst();
  return row ?? null;
}

/** The newest events about a checkout, at most `limit`, the oldest of them first. */
export async function listCheckoutEvents(
  db: Handle,
  key: CheckoutKey,
  limit: number,
): Promise<Callback[]> {
  const rows = await selectEvents(db, key).orderBy('id', 'desc').limit(limit).execute();
  return rows.reverse();
}

/** All events about a checkout, the oldest first. */
export const selectCheckoutEvents = (db: Handle, key: CheckoutKey) =>
  selectEvents(db, key).orderBy('id');

const selectEvents = (db: Handle, { merchant_id, checkout_id }: CheckoutKey) =>
  db
    .selectFrom('callbacks')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('event', 'is not', null);

/** The number of the last event, by integration and object. */
export async function listSequences(
  db: Handle,
  merchant_ids: string[],
  subject_ids: string[],
): Promise<{ integration_id: string; subject_id: string; sequence: number }[]> {
  const { rows } = await sql<{ integration_id: string; subject_id: string; sequence: number }>`
    select integration_id, subject_id, max(sequence) as sequence
    from callbacks
    where event is not null and merchant_id = any(${merchant_ids}::uuid[])
      and subject_id = any(${subject_ids}::uuid[])
    group by integration_id, subject_id`.execute(db);
  return rows;
}

/** The part of a callback that the payment page of its checkout needs. */
export const selectDelivery = (db: Handle, merchant_id: string, checkout_id: string) =>
  db
    .selectFrom('callbacks')
    .select(['status', 'attempts', 'created_at', 'redirect_url'])
    .where('merchant_id', '=', merchant_id)
    .where('listed_id', '=', checkout_id);

/** The merchant of a callback. Only an operator may ask without naming the merchant. */
export async function findCallbackMerchant(db: Handle, id: string): Promise<string | null> {
  const row = await db
    .selectFrom('callbacks')
    .select('merchant_id')
    .where('id', '=', id)
    .executeTakeFirst();
  return row?.merchant_id ?? null;
}

export const selectCallbackAttempts = (db: Handle, key: Key) =>
  db
    .selectFrom('callback_attempts')
    .selectAll()
    .where('merchant_id', '=', key.merchant_id)
    .where('callback_id', '=', key.id)
    .orderBy('number');

export async function listCallbackAttempts(db: Handle, key: Key): Promise<CallbackAttempt[]> {
  return await selectCallbackAttempts(db, key).execute();
}

/** Claims a callback and begins a new run, unless it is being delivered. */
export async function moveRetriggered(
  db: Handle,
  { merchant_id, id }: Key,
  { now, due_at, lease, leased_until }: Lease & { due_at: Timestamp },
): Promise<Callback | null> {
  // Lock the callback first. Another process may be deleting its expired attempts, and the count
  // below must see the result.
  await db
    .selectFrom('callbacks')
    .select('id')
    .where('id', '=', id)
    .where('merchant_id', '=', merchant_id)
    .forUpdate()
    .execute();
  // Count the attempts again: a process that died may have left one that `attempts` does not
  // include.
  const { rows } = await sql<Callback>`
    update callbacks
    set status = 'pending', run = run + 1, run_attempts = 0, due_at = ${due_at}, lease = ${lease},
      leased_until = ${leased_until},
      attempts = attempts_expired + (
        select count(*) from callback_attempts a
        where a.merchant_id = ${merchant_id} and a.callback_id = ${id})
    where id = ${id} and merchant_id = ${merchant_id} and ${isFree(now)}
    returning *`.execute(db);
  return rows[0] ?? null;
}
