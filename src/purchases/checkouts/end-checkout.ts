import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';
import { queueCallback } from '#purchases/callbacks/queue-callback.ts';
import { moveEnded } from './checkout.sql.ts';
import type { Checkout } from './checkout.ts';

type Key = { merchant_id: string; id: string };

/**
 * Ends a checkout, in the caller's transaction. Null when it had already ended: the caller's result
 * is then not its outcome.
 */
export async function completeCheckout(
  deps: { random: Random },
  db: Handle,
  checkout: Key,
  number_of_payments: number,
  at: Timestamp,
): Promise<Checkout | null> {
  return await endWithCallback(deps, db, checkout, 'successful', number_of_payments, at);
}

export async function cancelCheckout(
  deps: { random: Random },
  db: Handle,
  checkout: Key,
  number_of_payments: number,
  at: Timestamp,
): Promise<Checkout | null> {
  return await endWithCallback(deps, db, checkout, 'cancelled', number_of_payments, at);
}

/**
 * The gateway refuses the checkout's data, so it can never be paid (decision 0011). The contract
 * has no callback for this status.
 */
export async function invalidateCheckout(
  db: Handle,
  checkout: Key,
  at: Timestamp,
): Promise<Checkout | null> {
  const end = { status: 'invalid_payload', number_of_payments: null, completed_at: null } as const;
  return await moveEnded(db, checkout, end, at);
}

async function endWithCallback(
  deps: { random: Random },
  db: Handle,
  checkout: Key,
  status: 'successful' | 'cancelled',
  number_of_payments: number,
  at: Timestamp,
): Promise<Checkout | null> {
  const end = { status, number_of_payments, completed_at: at };
  const ended = await moveEnded(db, checkout, end, at);
  if (ended) await queueCallback(deps, db, ended, at);
  return ended;
}
