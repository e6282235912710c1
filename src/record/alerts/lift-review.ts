import type { Handle } from '#platform/database/database.ts';
import type { Logger } from '#platform/shared/logger.ts';
import {
  type OperatorDeps,
  OperatorError,
  personOf,
  showOperator,
} from '#record/actions/operate.ts';
import { explainNoApprover } from '#record/actions/second-person.ts';
import { raiseAlert } from './raise-alert.ts';

/** The person's roles or scope do not allow this action. */
export class NotPermitted extends OperatorError {}

const liftRefused =
  'Only an administrator of the payment service may raise or remove the amount above which refunds need two people, or end the review of refunds.';

export type LiftDeps = OperatorDeps & { log: Logger };

/**
 * Part of every action that weakens the review of refunds, in its transaction. The people whom the
 * review binds must not lift it, so a person needs the permission `review.lift`. They must also be
 * an approver: anyone else could not approve a large refund, but could end the rule and then refund
 * alone. The command line needs neither: its users are as powerful as root anyway. The alert tells
 * the other operators who lifted which review (decision 0074).
 */
export async function liftReview(
  deps: LiftDeps,
  db: Handle,
  operator: string,
  lifted: {
    mayLiftReview: boolean | undefined;
    merchant_id?: string;
    integration_id?: string;
    /** The operator's action as a sentence without its subject. */
    did: string;
  },
): Promise<void> {
  const { mayLiftReview, merchant_id, integration_id, did } = lifted;
  if (personOf(deps) !== null && mayLiftReview !== true) throw new NotPermitted(liftRefused);
  const why = explainNoApprover(deps);
  if (why !== null) {
    throw new OperatorError(
      `Only a person who can be the second approver can lift the review of refunds. ${why}`,
    );
  }
  await raiseAlert(deps, db, {
    kind: 'refund_review_lifted',
    caused_by: operator,
    ...(merchant_id !== undefined && { merchant_id }),
    ...(integration_id !== undefined && { integration_id }),
    detail: `${showOperator(deps, operator)} ${did} If this was not agreed, undo it and look at the refunds since then.`,
  });
}
