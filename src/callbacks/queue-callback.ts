import type { Checkout } from '../checkouts/checkout.ts';
import type { Handle } from '../database/database.ts';
import type { Timestamp } from '../shared/clock.ts';
import type { Random } from '../shared/random.ts';
import { insertCallback } from './callback.sql.ts';
import { callbackPayload } from './callback.ts';

/** Writes what the merchant will be told, in the transaction of the outcome that it tells. */
export async function queueCallback(
  deps: { random: Random },
  db: Handle,
  checkout: Checkout,
  created_at: Timestamp,
): Promise<void> {
  await insertCallback(db, {
    merchant_id: checkout.merchant_id,
    id: deps.random.uuid(),
    checkout_id: checkout.id,
    integration_id: checkout.integration_id,
    notify_url: checkout.notify_url,
    payload: callbackPayload(checkout),
    status: 'pending',
    created_at,
  });
}
