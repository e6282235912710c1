import { sql } from 'kysely';
import type { Handle } from '../database/database.ts';
import { isFree, type Lease } from '../database/due-work.sql.ts';
import type { Timestamp } from '../shared/clock.ts';
import type { Callback, CallbackAttempt, CallbackStatus } from './callback.ts';

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

/** The newest first, one page at a time; `before` is the time of the last one on the page before. */
export async function listCallbacks(
  db: Handle,
  filter: { status?: CallbackStatus; merchant_id?: string; before?: Timestamp },
  limit: number,
): Promise<Omit<Callback, 'payload' | 'sealed_verify'>[]> {
  let query = db
    .selectFrom('callbacks')
    .select([
      'merchant_id',
      'id',
      'checkout_id',
      'integration_id',
      'notify_url',
      'status',
      'created_at',
      'due_at',
      'attempts',
      'run',
      'run_attempts',
      'attempts_expired',
      'host',
      'redirect_url',
      'delivered_at',
      'lease',
      'leased_until',
    ])
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit);
  if (filter.status) query = query.where('status', '=', filter.status);
  if (filter.merchant_id) query = query.where('merchant_id', '=', filter.merchant_id);
  if (filter.before) query = query.where('created_at', '<', filter.before);
  return await query.execute();
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
