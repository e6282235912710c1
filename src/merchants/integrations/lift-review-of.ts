import type { Handle } from '#platform/database/database.ts';
import { type LiftDeps, liftReview } from '#record/alerts/lift-review.ts';
import type { Integration } from './integration.ts';

/**
 * Part of every action after which someone may refund without a review, with the credentials of an
 * integration whose refunds are approved at once (decision 0074).
 */
export async function liftReviewOf(
  deps: LiftDeps,
  db: Handle,
  operator: string,
  { id, merchant_id }: Pick<Integration, 'id' | 'merchant_id'>,
  { mayLiftReview, did }: { mayLiftReview: boolean | undefined; did: string },
): Promise<void> {
  await liftReview(deps, db, operator, {
    mayLiftReview,
    integration_id: id,
    ...(merchant_id !== null && { merchant_id }),
    did,
    restore: `tranche integrations refunds ${id} --mode manual`,
  });
}
