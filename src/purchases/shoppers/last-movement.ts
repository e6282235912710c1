import type { Timestamp } from '#platform/shared/clock.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import type { MovementRows } from './plan.ts';

/**
 * When a checkout's money or status last moved (decision 0069). A payment that a refund cancelled
 * moved with that refund, not on its planned date.
 */
export function lastMovement(
  { expires_at, completed_at }: Pick<Checkout, 'expires_at' | 'completed_at'>,
  { instalments, refunds, disputes }: MovementRows,
): Timestamp {
  return [
    completed_at,
    ...instalments.map(({ collected_at }) => collected_at),
    refunds.moved_at,
    ...disputes.map(({ closed_at, created_at }) => closed_at ?? created_at),
  ].reduce<Timestamp>((last, at) => (at !== null && at > last ? at : last), expires_at);
}

/** A payment link shows its order for this long after the last movement (decision 0069). */
const shownDays = 100;

/**
 * Whether the order behind a payment link is too old to be shown. A checkout that was not paid has
 * no payments or refunds.
 */
export function isPast(
  checkout: Pick<Checkout, 'expires_at' | 'completed_at'>,
  rows: MovementRows,
  now: Temporal.Instant,
): boolean {
  const { instalments, refunds, disputes } = rows;
  const isFinished =
    instalments.every(({ status }) => status === 'collected' || status === 'cancelled') &&
    !refunds.is_open &&
    disputes.every(({ closed_at }) => closed_at !== null);
  if (!isFinished) return false;
  return now.since(lastMovement(checkout, rows)).total('hours') > shownDays * 24;
}
