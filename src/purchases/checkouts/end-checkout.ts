import type { Lease } from '#platform/database/due-work.sql.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';
import { queueCallback } from '#purchases/callbacks/queue-callback.ts';
import { insertMove, updateEnded } from './checkout.sql.ts';
import type { Checkout } from './checkout.ts';

// Functions that end a checkout. Each returns the writes, which the caller sends in its
// transaction. The caller holds the lock of the checkout, and has seen that its status is
// `received`. With another status, the writes fail.

export const completeCheckout = (
  deps: { random: Random },
  checkout: Checkout,
  number_of_payments: number,
  at: Timestamp,
  claim: Lease | null,
) => endWithCallback(deps, checkout, { status: 'successful', number_of_payments }, at, claim);

export const cancelCheckout = (
  deps: { random: Random },
  checkout: Checkout,
  number_of_payments: number,
  at: Timestamp,
  claim: Lease | null,
) => endWithCallback(deps, checkout, { status: 'cancelled', number_of_payments }, at, claim);

/**
 * The gateway refuses the checkout's data, so the checkout can never be paid (decision 0011). The
 * contract has no callback for this status.
 */
export const invalidateCheckout = (checkout: Checkout, at: Timestamp) =>
  end({ ...checkout, status: 'invalid_payload', number_of_payments: null, completed_at: null }, at);

/**
 * With a claim, the caller delivers the callback right after the commit. Otherwise the callback is
 * due at once, and a worker delivers it.
 */
function endWithCallback(
  deps: { random: Random },
  checkout: Checkout,
  as: { status: 'successful' | 'cancelled'; number_of_payments: number },
  at: Timestamp,
  claim: Lease | null,
) {
  const ended = { ...checkout, ...as, completed_at: at };
  const queued = queueCallback(deps, ended, at, claim);
  const writes = { ...end(ended, at), callback: queued?.write ?? null };
  return { checkout: ended, callback: queued?.row ?? null, writes };
}

function end(ended: Checkout & { status: Exclude<Checkout['status'], 'received'> }, at: Timestamp) {
  const { merchant_id, id, status, number_of_payments, completed_at } = ended;
  return {
    checkout: updateEnded({ merchant_id, id, status, number_of_payments, completed_at }),
    move: insertMove({
      ...{ merchant_id, checkout_id: id, at },
      from_status: 'received',
      to_status: status,
    }),
  };
}
