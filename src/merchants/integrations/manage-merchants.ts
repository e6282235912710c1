import { listMerchantRows } from '#merchants/merchant.sql.ts';
import { noteEvents } from '#merchants/note-events.ts';
import { plural } from '#platform/shared/plural.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { OperatorError } from '#record/actions/operate.ts';
import type { LiftDeps } from '#record/alerts/lift-review.ts';
import { operateOnAccess } from '#record/alerts/operate-on-access.ts';
import { deleteManagedMerchants, insertManagedMerchants, listManaged } from './integration.sql.ts';
import { liftReviewOf } from './lift-review-of.ts';
import { lockLiveIntegration } from './lock-integration.ts';

/**
 * An alert names at most this many merchants. The audit row of the operator's action has all of
 * them.
 */
const namedMax = 10;

/**
 * Changes which merchants an intermediary acts for. Returns what changed. If its refunds are not
 * reviewed, adding a merchant needs `mayLiftReview`.
 */
export async function manageMerchants(
  deps: LiftDeps,
  operator: string,
  wanted: { id: string; add: string[]; remove: string[]; mayLiftReview?: boolean },
): Promise<{ added: string[]; removed: string[] }> {
  const add = [...new Set(wanted.add.map((id) => id.toLowerCase()))];
  const remove = [...new Set(wanted.remove.map((id) => id.toLowerCase()))];
  const both = add.find((id) => remove.includes(id));
  if (both !== undefined) {
    throw new OperatorError(`The merchant ${both} cannot be both added and removed. Name it once.`);
  }
  return await operateOnAccess(deps, operator, 'integrations manage', async (db, now) => {
    const integration = await lockLiveIntegration(db, wanted.id);
    if (!integration.intermediary) {
      throw new OperatorError(
        `The integration ${integration.id} belongs to one merchant. Only an intermediary manages merchants.`,
      );
    }
    const known = new Set((await listMerchantRows(db, add.filter(isUuid))).map(({ id }) => id));
    const unknown = add.find((id) => !known.has(id));
    if (unknown !== undefined) throw new OperatorError(`There is no merchant ${unknown}.`);
    const named = [...add, ...remove.filter(isUuid)];
    const managed = new Set(await listManaged(db, integration.id, named));
    const other = remove.find((id) => !managed.has(id));
    if (other !== undefined) {
      throw new OperatorError(
        `The integration ${integration.id} does not manage the merchant ${other}.`,
      );
    }
    const added = add.filter((id) => !managed.has(id));
    await insertManagedMerchants(db, integration.id, added, now);
    if (integration.events.length > 0) await noteEvents(db, added);
    if (added.length > 0 && integration.refund_mode === 'auto') {
      const more = added.length - namedMax;
      const others = more > 0 ? ` and ${plural(more, 'other')}` : '';
      await liftReviewOf(deps, db, operator, integration, {
        mayLiftReview: wanted.mayLiftReview,
        did: `let an intermediary whose refunds are approved at once act for merchant ${added.slice(0, namedMax).join(', ')}${others}.`,
      });
    }
    await deleteManagedMerchants(db, integration.id, remove);
    const result = { added, removed: remove };
    return { subject_id: integration.id, details: { add, remove }, result };
  });
}
