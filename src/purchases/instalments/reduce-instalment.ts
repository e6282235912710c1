import type { Merchant } from '#merchants/merchant.ts';
import { send } from '#platform/database/compile-once.ts';
import type { Handle } from '#platform/database/database.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { selectTellingCollections } from './collection.sql.ts';
import { type CheckoutKey, updateAmount, updateTaken } from './instalment.sql.ts';
import {
  collectsAt,
  type Instalment,
  type InstalmentStatus,
  nextCollectionTime,
  retriesAt,
} from './instalment.ts';

// Applies a refund to a payment that was not collected, in the refund's own transaction, which
// holds the checkout's lock.

/**
 * Takes amounts from payments of a checkout, and pauses collecting from it. The caller has made
 * sure that no request for any of them is in flight. Returns the write for the caller to send, or
 * null if there is nothing to write.
 */
export function reducePlan(
  key: CheckoutKey,
  plan: Instalment[],
  taken: { payment: Instalment; amount: number }[],
) {
  const reduced = taken.map(({ payment, amount }) => reducedBy(payment, amount));
  const paused = plan.filter(
    (one) => !one.paused && reduced.every(({ number }) => number !== one.number),
  );
  const written = [...reduced, ...paused.map(({ number }) => ({ number }))];
  return written.length === 0 ? null : updateTaken(key, written);
}

/** A scheduled or overdue payment that is taken entirely is cancelled. */
function reducedBy(payment: Instalment, amount: number) {
  const { number, status, due_at } = payment;
  const reduced = payment.reduced + amount;
  // A hold that is taken entirely stays `authorised` until the gateway has voided it.
  const isCancelled = status !== 'authorised' && reduced === payment.amount;
  return isCancelled
    ? { number, status: 'cancelled' as const, reduced, due_at: null }
    : { number, status, reduced, due_at };
}

/** The write for a hold that a refund took entirely, after the gateway has voided it. */
export const cancelHeldInstalment = ({ merchant_id, checkout_id, number, reduced }: Instalment) =>
  updateAmount({ merchant_id, checkout_id, number, status: 'cancelled', reduced, due_at: null });

/**
 * Restores the amount that a failed refund took from a payment. `was` is the payment's status
 * before the refund.
 */
export async function restoreInstalment(
  db: Handle,
  merchant: Merchant,
  payment: Instalment,
  { amount, was }: { amount: number; was: InstalmentStatus },
  now: Temporal.Instant,
): Promise<void> {
  const isBack = payment.status === 'cancelled';
  const { merchant_id, checkout_id, number } = payment;
  const restored = updateAmount({
    ...{ merchant_id, checkout_id, number },
    status: isBack ? was : payment.status,
    reduced: payment.reduced - amount,
    due_at:
      isBack && was === 'scheduled'
        ? timestamp(await collectsAgainAt(db, merchant, payment, now))
        : payment.due_at,
  });
  await send(db, restored);
}

/**
 * A restored payment is collected on its date or, after a decline, at the time that was planned for
 * its retry. If that time has passed, the payment is collected at the next collection time.
 */
async function collectsAgainAt(
  db: Handle,
  { territory: { time_zone } }: Merchant,
  payment: Instalment,
  now: Temporal.Instant,
): Promise<Temporal.Instant> {
  const planned =
    (await findRetry(db, payment, time_zone)) ?? collectsAt(payment.due_on, time_zone);
  const isPast = Temporal.Instant.compare(planned, now) <= 0;
  return isPast ? nextCollectionTime(now, time_zone) : planned;
}

/** The retry that was planned after the last decline of a payment. Null if none was planned. */
async function findRetry(
  db: Handle,
  payment: Instalment,
  timeZone: string,
): Promise<Temporal.Instant | null> {
  const { number, due_on, declines } = payment;
  if (declines === 0) return null;
  const last = (await selectTellingCollections(db, payment).execute()).find(
    ({ instalment, kind, status }) =>
      instalment === number && kind === 'charge' && status === 'declined',
  );
  if (!last?.settled_at) return null;
  const at = Temporal.Instant.from(last.settled_at);
  return retriesAt(due_on, declines, at, timeZone, last.wait_hours ?? 0);
}
