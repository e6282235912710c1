import { findMerchantRow } from '#merchants/merchant.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import type { Callback } from '#purchases/callbacks/callback.ts';
import type { MerchantMailDeps } from '#purchases/messages/mail-merchant.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { advanceFailures, moveAlerted } from './destination.sql.ts';
import { isOurFailure } from './failure-reason.ts';
import { failuresBeforeAlert } from './limits.ts';

type NoteDeps = MerchantMailDeps & { clock: Clock; random: Random; log: Logger };
export type Delivered = { callback: Callback; reason: string | null };

/**
 * Counts each destination's consecutive failures, in the transaction that records the deliveries. A
 * destination that keeps failing causes one alert and one mail to the merchant, long before a
 * callback is exhausted. A success clears the count (`moveAttemptsEnded`).
 */
export async function noteDestinations(
  deps: NoteDeps,
  db: Handle,
  deliveries: Delivered[],
): Promise<void> {
  const failing = new Map<string, { last: Delivered; failures: number }>();
  for (const one of deliveries) {
    if (isOurFailure(one.reason) || (one.reason === null && failing.size === 0)) continue;
    const destination = `${one.callback.merchant_id} ${one.callback.host}`;
    const { failures = 0 } = failing.get(destination) ?? {};
    if (one.reason === null) failing.delete(destination);
    else failing.set(destination, { last: one, failures: failures + 1 });
  }
  // Every process updates destinations in this order, so two of them cannot deadlock.
  const sorted = [...failing].sort(([one], [other]) => (one < other ? -1 : 1));
  for (const [, { last, failures }] of sorted) await noteFailures(deps, db, last, failures);
}

async function noteFailures(
  deps: NoteDeps,
  db: Handle,
  { callback, reason }: Delivered,
  count: number,
): Promise<void> {
  const { failures, alerted } = await advanceFailures(db, callback, count);
  if (failures < failuresBeforeAlert || alerted) return;
  await moveAlerted(db, callback);
  const { merchant_id, host } = callback;
  const alert = await raiseAlert(deps, db, {
    kind: 'destination_failing',
    merchant_id,
    integration_id: callback.integration_id,
    detail: `Callbacks to ${host} have failed ${failures} times in a row (last: ${reason}).`,
  });
  const merchant = (await findMerchantRow(db, merchant_id))?.name ?? '';
  await deps.mailMerchant(db, {
    ...{ merchant_id, kind: 'callbacks_failing', event: alert, facts: { merchant, host } },
    at: timestamp(deps.clock.now()),
  });
}
