import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import { isFree, type Lease } from '#platform/database/due-work.sql.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Callback, CallbackAttempt } from './callback.ts';

type Key = { merchant_id: string; id: string };

export async function insertCallback(db: Handle, callback: Omit<Callback, 'host'>): Promise<void> {
  await db.insertInto('callbacks').values(callback).execute();
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

export async function findCheckoutCallback(
  db: Handle,
  merchant_id: string,
  checkout_id: string,
): Promise<Callback | null> {
  const row = await db
    .selectFrom('callbacks')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .executeTakeFirst();
  return row ?? null;
}

/** The merchant of a callback. Only an operator may ask without naming the merchant. */
export async function findCallbackMerchant(db: Handle, id: string): Promise<string | null> {
  const row = await db
    .selectFrom('callbacks')
    .select('merchant_id')
    .where('id', '=', id)
    .executeTakeFirst();
  return row?.merchant_id ?? null;
}

export async function listCallbackAttempts(db: Handle, key: Key): Promise<CallbackAttempt[]> {
  return await db
    .selectFrom('callback_attempts')
    .selectAll()
    .where('merchant_id', '=', key.merchant_id)
    .where('callback_id', '=', key.id)
    .orderBy('number')
    .execute();
}

/** Claims a callback and begins a new run, unless it is being delivered. */
export async function moveRetriggered(
  db: Handle,
  { merchant_id, id }: Key,
  { now, due_at, lease, leased_until }: Lease & { due_at: Timestamp },
): Promise<Callback | null> {
  // Lock first: attempts may be expiring, and the count below must see the result.
  await db
    .selectFrom('callbacks')
    .select('id')
    .where('id', '=', id)
    .where('merchant_id', '=', merchant_id)
    .forUpdate()
    .execute();
  // A process that died may have left an attempt that is not counted.
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
