import { findMerchantRow } from '#merchants/merchant.sql.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { OperatorError } from '#record/actions/operate.ts';
import type { LiftDeps } from '#record/alerts/lift-review.ts';
import { operateOnAccess } from '#record/alerts/operate-on-access.ts';
import {
  deleteManagedMerchants,
  insertManagedMerchants,
  listManagedMerchantIds,
} from './integration.sql.ts';
import { liftReviewOf } from './lift-review-of.ts';
import { lockLiveIntegration } from './lock-integration.ts';

/**
 * Changes which merchants an intermediary acts for. Returns all of them. If its refunds are not
 * reviewed, adding a merchant needs `mayLiftReview`.
 */
export async function manageMerchants(
  deps: LiftDeps,
  operator: string,
  wanted: { id: string; add: string[]; remove: string[]; mayLiftReview?: boolean },
): Promise<string[]> {
  const add = wanted.add.map((id) => id.toLowerCase());
  const remove = wanted.remove.map((id) => id.toLowerCase());
  const both = add.find((id) => remove.includes(id));
  if (both !== undefined) {
    throw new OperatorError(`The merchant ${both} is in both --add and --remove. Name it once.`);
  }
  return await operateOnAccess(deps, operator, 'integrations manage', async (db, now) => {
    const integration = await lockLiveIntegration(db, wanted.id);
    if (!integration.intermediary) {
      throw new OperatorError(
        `The integration ${integration.id} belongs to one merchant. Only an intermediary manages merchants.`,
      );
    }
    for (const merchant of add) {
      if (!isUuid(merchant) || !(await findMerchantRow(db, merchant))) {
        throw new OperatorError(`There is no merchant ${merchant}.`);
      }
    }
    const managed = await listManagedMerchantIds(db, integration.id);
    for (const merchant of remove) {
      if (!managed.includes(merchant)) {
        throw new OperatorError(
          `The integration ${integration.id} does not manage the merchant ${merchant}.`,
        );
      }
    }
    await insertManagedMerchants(db, integration.id, add, now);
    const added = add.filter((merchant) => !managed.includes(merchant));
    if (added.length > 0 && integration.refund_mode === 'auto') {
      await liftReviewOf(deps, db, operator, integration, {
        mayLiftReview: wanted.mayLiftReview,
        did: `let intermediary ${integration.id} act for merchant ${added.join(', ')}: its refunds are approved at once.`,
      });
    }
    await deleteManagedMerchants(db, integration.id, remove);
    const result = await listManagedMerchantIds(db, integration.id);
    return { subject_id: integration.id, details: { add, remove }, result };
  });
}
