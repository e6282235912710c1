import assert from 'node:assert/strict';
import { findCallback, listCallbackAttempts } from '../src/callbacks/callback.sql.ts';
import type { Callback, CallbackAttempt } from '../src/callbacks/callback.ts';
import { cancelCheckout } from '../src/checkouts/end-checkout.ts';
import { transaction } from '../src/database/transaction.ts';
import { findMerchant } from '../src/merchants/merchant.sql.ts';
import { merchantNow } from '../src/merchants/merchant.ts';
import { timestamp } from '../src/shared/clock.ts';
import { type Account, createCheckout, type Service } from './service.ts';

/** The callback of a checkout and everything that was tried. */
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

/** Ended checkouts whose callbacks nobody has begun to deliver, as a crash leaves them. */
export async function queueCallbacks(
  service: Service,
  account: Account,
  urls: string[],
): Promise<string[]> {
  const { deps } = service;
  const ids: string[] = [];
  for (let from = 0; from < urls.length; from += 50) {
    const some = urls.slice(from, from + 50);
    const created = await Promise.all(
      some.map((notify_url, index) =>
        createCheckout(service, account, {
          notify_url,
          client_reference_id: `order-${from + index}`,
        }),
      ),
    );
    ids.push(...created);
  }
  const merchant_id = account.merchant.id;
  const merchant = await findMerchant(deps.database.db, merchant_id);
  assert.ok(merchant);
  const now = timestamp(merchantNow(deps.clock, merchant));
  await transaction(deps, async ({ db }) => {
    for (const id of ids) {
      const cancelled = await cancelCheckout(deps, db, { merchant_id, id }, 1, now);
      assert.ok(cancelled);
    }
  });
  return ids;
}

export async function alertsOf(
  { deps }: Pick<Service, 'deps'>,
  merchant_id: string,
  kind = 'callback_exhausted',
): Promise<{ detail: string }[]> {
  const { rows } = await deps.database.pool.query(
    'select * from alerts where merchant_id = $1 and kind = $2 order by at',
    [merchant_id, kind],
  );
  return rows;
}
