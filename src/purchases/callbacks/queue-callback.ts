import type { Handle } from '#platform/database/database.ts';
import { secondsAfter, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';
import { formPayload, isForm } from '#purchases/callbacks/delivery/legacy-form.ts';
import { leaseSeconds } from '#purchases/callbacks/delivery/limits.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { insertCallback } from './callback.sql.ts';
import { callbackPayload } from './callback.ts';

/** Writes the callback of a checkout, in the transaction that ends the checkout. */
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
    payload: isForm(checkout) ? formPayload(checkout) : callbackPayload(checkout),
    sealed_verify: checkout.sealed_verify,
    status: 'pending',
    created_at,
    // The process that ends the checkout delivers at once. If it dies, a worker delivers.
    due_at: timestamp(secondsAfter(Temporal.Instant.from(created_at), leaseSeconds)),
    attempts: 0,
    run: 1,
    run_attempts: 0,
    attempts_expired: 0,
    sent_attempt: null,
    redirect_url: null,
    delivered_at: null,
    lease: null,
    leased_until: null,
  });
}
