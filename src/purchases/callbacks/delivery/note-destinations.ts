import type { Handle } from '#platform/database/database.ts';
import type { Clock } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import type { Callback } from '#purchases/callbacks/callback.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { advanceFailures, moveAlerted } from './destination.sql.ts';
import { isOurFailure } from './failure-reason.ts';
import { failuresBeforeAlert } from './limits.ts';

export type Delivered = { callback: Callback; reason: string | null };

/**
 * Counts failures in a row of each destination, in the transaction that records the deliveries. A
 * destination that keeps failing raises one alert, long before a callback is exhausted. A success
 * clears the count (`moveAttemptsEnded`).
 */
export async function noteDestinations(
  deps: { clock: Clock; random: Random; log: Logger },
  db: Handle,
  deliveries: Delivered[],
): Promise<void> {
  const failing = new Map<string, { last: Delivered; failures: number }>();
  for (const one of deliveries) {
    if (isOurFailure(one.reason)) continue;
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
  deps: { clock: Clock; random: Random; log: Logger },
  db: Handle,
  { callback, reason }: Delivered,
  count: number,
): Promise<void> {
  const { failures, alerted } = await advanceFailures(db, callback, count);
  if (failures < failuresBeforeAlert || alerted) return;
  await moveAlerted(db, callback);
  await raiseAlert(deps, db, {
    kind: 'destination_failing',
    merchant_id: callback.merchant_id,
    integration_id: callback.integration_id,
    detail: `Callbacks to ${callback.host} have failed ${failures} times in a row (last: ${reason}).`,
  });
}
