import assert from 'node:assert/strict';
import { findMerchant } from '#merchants/merchant.sql.ts';
import { newLease } from '#platform/database/due-work.sql.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { findCallback, listCallbackAttempts } from '#purchases/callbacks/callback.sql.ts';
import type { Callback, CallbackAttempt } from '#purchases/callbacks/callback.ts';
import { type DeliveryDeps, deliverFirst } from '#purchases/callbacks/delivery/deliver-callback.ts';
import { leaseSeconds } from '#purchases/callbacks/delivery/limits.ts';
import type { Account, Service } from './service.ts';

/** The callback of a checkout and its attempts. */
export async function readCallback(
  { deps }: Pick<Service, 'deps'>,
  checkout_id: string,
): Promise<Callback & { tried: CallbackAttempt[] }> {
  const { db, pool } = deps.database;
  const { rows } = await pool.query(
    'select merchant_id, id from callbacks where checkout_id = $1',
    [checkout_id],
  );
  const callback = await findCallback(db, rows[0]);
  assert.ok(callback);
  return { ...callback, tried: await listCallbackAttempts(db, callback) };
}

/** Makes the first delivery of a callback, as the process that ended the checkout would. */
export async function deliverFirstOf(deps: DeliveryDeps, checkout_id: string): Promise<void> {
  const { lease, leased_until } = newLease(deps, leaseSeconds);
  const callback = await deps.database.db
    .updateTable('callbacks')
    .set({ lease, leased_until })
    .where('checkout_id', '=', checkout_id)
    .returningAll()
    .executeTakeFirstOrThrow();
  await deliverFirst(deps, callback);
}

/** An id that ascends with time and then with a number, as the service's own do. */
const newId = (number: string) => `
  (lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '7' ||
   lpad(to_hex(${number} % 4096), 3, '0') || '8' || substr(md5(random()::text), 1, 15))::uuid`;

/**
 * Inserts cancelled checkouts whose callbacks were never attempted, as after a crash: one for every
 * URL. They are written in one statement, because there may be thousands.
 */
export async function queueCallbacks(
  { deps }: Pick<Service, 'deps'>,
  account: Account,
  urls: string[],
): Promise<string[]> {
  const merchant_id = account.merchant.id;
  const { pool } = deps.database;
  const merchant = await findMerchant(deps.database.db, deps.clock, merchant_id);
  assert.ok(merchant);
  const now = timestamp(merchant.now());
  const { rows } = await pool.query(
    `with room as (
       insert into list_totals as l (merchant_id, list, total, last_created_at)
       values ($1, 'checkouts', $4, $3)
       on conflict (merchant_id, list) do update
         set total = l.total + excluded.total, last_created_at = excluded.last_created_at
       returning total
     ), ended as (
       insert into checkouts (merchant_id, id, number, integration_id, status, amount, currency,
         client_reference_id, notify_url, success_url, cancel_url, customer, line_items, terms,
         number_of_payments, signed, created_at, expires_at, completed_at)
       select $1, ${newId('n')}, room.total - $4 + n, $2, 'cancelled', 150000, 'ZAR',
         'order-' || n, url, 'https://shop.example/paid', 'https://shop.example/cart',
         '{"email": "thandi@example.com"}', '[]', '{1,3}', 1, true, $3,
         $3::timestamptz + interval '30 minutes', $3
       from room, unnest($5::text[]) with ordinality as u (url, n)
       returning *
     ), moved as (
       insert into checkout_moves (merchant_id, checkout_id, from_status, to_status, at)
       select merchant_id, id, 'received', 'cancelled', $3 from ended
     ), queued as (
       insert into callbacks (merchant_id, id, checkout_id, listed_id, integration_id, notify_url,
         host, payload, status, created_at, due_at)
       select merchant_id, ${newId('number')}, id, id, integration_id, notify_url,
         substring(notify_url from '^[^:]+://([^/?#]*)'),
         convert_to(format('{"status":"cancelled","amount":150000,"currency":"ZAR",'
           '"client_reference_id":"%s","number_of_payments":1}', client_reference_id), 'UTF8'),
         'pending', $3, $3::timestamptz + $6::int * interval '1 second'
       from ended
     )
     select id from ended order by number`,
    [merchant_id, account.id, now, urls.length, urls, leaseSeconds],
  );
  return rows.map(({ id }) => id);
}

export async function alertsOf(
  { deps }: Pick<Service, 'deps'>,
  merchant_id: string,
  kind = 'callback_exhausted',
): Promise<{ detail: string; subject_id: string | null }[]> {
  const { rows } = await deps.database.pool.query(
    'select * from alerts where merchant_id = $1 and kind = $2 order by at',
    [merchant_id, kind],
  );
  return rows;
}
