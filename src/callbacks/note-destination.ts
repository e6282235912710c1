import type { Handle } from '../database/database.ts';
import { raiseAlert } from '../operators/raise-alert.ts';
import type { Clock } from '../shared/clock.ts';
import type { Logger } from '../shared/logger.ts';
import type { Random } from '../shared/random.ts';
import { advanceFailures, clearFailures, moveAlerted } from './destination.sql.ts';

/** So many failures in a row, over all callbacks to one host, are no accident any more. */
const failuresBeforeAlert = 5;

/**
 * Notes how a delivery to a merchant's receiver went, in the transaction that records it. One that
 * keeps failing is told to the operator once, before any callback is given up; one that works
 * again starts anew.
 */
export async function noteDestination(
  deps: { clock: Clock; random: Random; log: Logger },
  db: Handle,
  callback: { merchant_id: string; integration_id: string; notify_url: string },
  reason: string | null,
): Promise<void> {
  // What was not the receiver's fault says nothing of it.
  if (reason === 'no_signing_key' || reason === 'interrupted') return;
  const { host } = new URL(callback.notify_url);
  if (reason === null) {
    await clearFailures(db, callback.merchant_id, host);
    return;
  }
  const { failures, alerted } = await advanceFailures(db, callback.merchant_id, host);
  if (failures < failuresBeforeAlert || alerted) return;
  await moveAlerted(db, callback.merchant_id, host);
  await raiseAlert(deps, db, {
    kind: 'destination_failing',
    merchant_id: callback.merchant_id,
    integration_id: callback.integration_id,
    detail: `Callbacks to ${host} have failed ${failures} times in a row (last: ${reason}).`,
  });
}
