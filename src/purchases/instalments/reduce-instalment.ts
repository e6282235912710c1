import type { Merchant } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { moveReduced } from './instalment.sql.ts';
import {
  collectsAt,
  type Instalment,
  type InstalmentStatus,
  nextCollectionTime,
} from './instalment.ts';

// Applies a refund to a payment that was not collected, in the refund's own transaction, which
// holds the checkout's lock.

/** Takes an amount from a payment. A scheduled or overdue payment that is taken whole is cancelled. */
export async function reduceInstalment(
  db: Handle,
  payment: Instalment,
  amount: number,
): Promise<void> {
  const reduced = payment.reduced + amount;
  // A hold that is taken whole stays `authorised` until the gateway has voided it.
  const isCancelled = payment.status !== 'authorised' && reduced === payment.amount;
  await moveReduced(db, payment, {
    status: isCancelled ? 'cancelled' : payment.status,
    reduced,
    due_at: isCancelled ? null : payment.due_at,
  });
}

/** The gateway has voided a hold that a refund took whole. */
export async function cancelHeldInstalment(db: Handle, payment: Instalment): Promise<void> {
  const { reduced } = payment;
  await moveReduced(db, payment, { status: 'cancelled', reduced, due_at: null });
}

/**
 * The refund failed: returns what it took to the payment. `was` is the payment's status before the
 * refund.
 */
export async function restoreInstalment(
  db: Handle,
  merchant: Merchant,
  payment: Instalment,
  { amount, was }: { amount: number; was: InstalmentStatus },
  now: Temporal.Instant,
): Promise<void> {
  const isBack = payment.status === 'cancelled';
  await moveReduced(db, payment, {
    status: isBack ? was : payment.status,
    reduced: payment.reduced - amount,
    due_at:
      isBack && was === 'scheduled'
        ? timestamp(collectsAgainAt(merchant, payment, now))
        : payment.due_at,
  });
}

/** On its date, or, if that has passed, at the next collection time. */
function collectsAgainAt(
  { territory: { time_zone } }: Merchant,
  payment: Instalment,
  now: Temporal.Instant,
): Temporal.Instant {
  const planned = collectsAt(payment.due_on, time_zone);
  const isPast = Temporal.Instant.compare(planned, now) <= 0;
  return isPast ? nextCollectionTime(now, time_zone) : planned;
}
