import { operate } from '#record/actions/operate.ts';
import type { LiftDeps } from '#record/alerts/lift-review.ts';
import { moveRefundMode } from './integration.sql.ts';
import type { RefundMode } from './integration.ts';
import { liftReviewOf, refuseSeenSecrets } from './lift-review-of.ts';
import { lockLiveIntegration } from './lock-integration.ts';

/**
 * Sets whether an operator reviews each refund of an integration. Earlier refunds are not affected:
 * one that is waiting for a review still needs it. To end the review, a person needs
 * `mayLiftReview`, and no secret may be in force that a person without it has seen.
 */
export async function setRefundMode(
  deps: LiftDeps,
  operator: string,
  wanted: { id: string; refund_mode: RefundMode; mayLiftReview?: boolean },
): Promise<{ id: string; refund_mode: RefundMode }> {
  const { refund_mode } = wanted;
  return await operate(deps, operator, 'integrations refunds', async (db, now) => {
    const before = await lockLiveIntegration(db, wanted.id);
    await moveRefundMode(db, before.id, refund_mode);
    if (refund_mode === 'auto' && before.refund_mode !== 'auto') {
      await liftReviewOf(deps, db, operator, before, {
        mayLiftReview: wanted.mayLiftReview,
        did: `ended the review of refunds of an integration: they are now approved at once.`,
      });
      await refuseSeenSecrets(db, before.id, now);
    }
    return {
      subject_id: before.id,
      merchant_id: before.merchant_id,
      details: { refund_mode, before: { refund_mode: before.refund_mode } },
      result: { id: before.id, refund_mode },
    };
  });
}
