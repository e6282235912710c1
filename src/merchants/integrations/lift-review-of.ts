import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { OperatorError, personOf } from '#record/actions/operate.ts';
import { explainNoApprover } from '#record/actions/second-person.ts';
import { type LiftDeps, liftReview } from '#record/alerts/lift-review.ts';
import { listInForce } from './credential.sql.ts';
import type { Integration } from './integration.ts';

/**
 * Part of every action that lets a person refund without a review, by giving them credentials for
 * an integration whose refunds are approved at once (decision 0074).
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
  });
}

/** Whether the person who sees a new secret may not end the review of refunds. */
export const isSeenWithoutLift = (
  deps: Pick<LiftDeps, 'origin' | 'clock'>,
  { mayLiftReview }: { mayLiftReview?: boolean },
): boolean =>
  personOf(deps) !== null && (mayLiftReview !== true || explainNoApprover(deps) !== null);

/**
 * Refuses to end the review while a secret in force is known to a person who may not end it: that
 * person could then refund alone. The caller holds the integration's lock, so no secret is created
 * meanwhile.
 */
export async function refuseSeenSecrets(db: Handle, id: string, now: Timestamp): Promise<void> {
  const secrets = await listInForce(db, 'client_secrets', id, now);
  if (!secrets.some(({ seen_without_lift }) => seen_without_lift)) return;
  throw new OperatorError(
    `A client secret of integration ${id} was created by a person who could not end the review of refunds, so that person knows it. Rotate the client secret without an overlap and give the new one to the merchant. Then end the review.`,
  );
}
