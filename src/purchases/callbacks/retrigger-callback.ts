import { findMerchant } from '#merchants/merchant.sql.ts';
import { newLease } from '#platform/database/due-work.sql.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import {
  type DeliveryDeps,
  deliverCallback,
} from '#purchases/callbacks/delivery/deliver-callback.ts';
import { leaseSeconds } from '#purchases/callbacks/delivery/limits.ts';
import { OperatorError, operate } from '#record/actions/operate.ts';
import { findCallback, findCallbackMerchant, moveRetriggered } from './callback.sql.ts';
import type { Callback } from './callback.ts';

/**
 * Sends a callback again for an operator, in a new run whose first delivery is made at once
 * (decision 0033).
 */
export async function retriggerCallback(
  deps: DeliveryDeps,
  operator: string,
  id: string,
): Promise<Callback> {
  const merchant_id = isUuid(id) ? await findCallbackMerchant(deps.database.db, id) : null;
  const merchant = merchant_id && (await findMerchant(deps.database.db, deps.clock, merchant_id));
  if (!merchant) throw new OperatorError(`There is no callback ${id}.`);
  const key = { merchant_id: merchant.id, id };
  const callback = await operate(deps, operator, 'callbacks retry', async (db) => {
    const due_at = timestamp(merchant.now());
    const claimed = await moveRetriggered(db, key, { ...newLease(deps, leaseSeconds), due_at });
    if (!claimed) {
      throw new OperatorError(
        'This callback is being delivered right now. Look again in a moment.',
      );
    }
    const { merchant_id, checkout_id } = claimed;
    return { subject_id: id, merchant_id, details: { checkout_id }, result: claimed };
  });
  await deliverCallback(deps, callback, 'operator', operator);
  return (await findCallback(deps.database.db, key)) as Callback;
}
