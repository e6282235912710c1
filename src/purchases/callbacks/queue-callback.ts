import type { Statement } from '#platform/database/compile-once.ts';
import type { Lease } from '#platform/database/due-work.sql.ts';
import { secondsAfter, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';
import { formPayload, isForm } from '#purchases/callbacks/delivery/legacy-form.ts';
import { leaseSeconds } from '#purchases/callbacks/delivery/limits.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { insertCallback } from './callback.sql.ts';
import { type Callback, callbackPayload, newCallback, undelivered } from './callback.ts';

/**
 * Makes the callback of a checkout, to be written in the transaction that ends the checkout. The
 * process that has claimed it delivers it after the commit. If that process dies, a worker does. A
 * checkout of a payment link may have no notify_url, and so no callback.
 */
export function queueCallback(
  deps: { random: Random },
  checkout: Checkout,
  created_at: Timestamp,
  claim: Lease | null,
): { row: Callback; write: Statement<object> } | null {
  const { notify_url } = checkout;
  if (notify_url === null) return null;
  const leaseEnd = secondsAfter(Temporal.Instant.from(created_at), leaseSeconds);
  const row = newCallback({
    merchant_id: checkout.merchant_id,
    id: deps.random.uuid(),
    checkout_id: checkout.id,
    integration_id: checkout.integration_id,
    notify_url,
    payload: isForm(checkout) ? formPayload(checkout) : callbackPayload(checkout),
    sealed_verify: checkout.sealed_verify,
    event: null,
    subject_id: null,
    sequence: null,
    ...undelivered,
    created_at,
    due_at: claim === null ? created_at : timestamp(leaseEnd),
    lease: claim?.lease ?? null,
    leased_until: claim?.leased_until ?? null,
  });
  return { row, write: insertCallback(row) };
}
