import { isUuid } from '#platform/shared/uuid.ts';
import { findCheckoutMerchant, lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import { unblockCheckout } from '#purchases/instalments/block-checkout.ts';
import { FreeText } from '#record/actions/free-text.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';

/**
 * Releases a checkout once an operator has settled what the gateway did for it. Its plan and
 * refunds continue.
 */
export async function releaseCheckout(
  deps: OperatorDeps,
  operator: string,
  id: string,
  reason: string,
): Promise<{ checkout_id: string; released: number }> {
  const checkout_id = id.toLowerCase();
  const { db } = deps.database;
  const merchant_id = isUuid(id) ? await findCheckoutMerchant(db, checkout_id) : null;
  if (merchant_id === null) throw new OperatorError(`There is no checkout ${id}.`);
  return await operate(deps, operator, 'gateway release', async (tx, at) => {
    await lockCheckout(tx, merchant_id, checkout_id);
    const released = await unblockCheckout(tx, { merchant_id, checkout_id }, at);
    if (released === 0) throw new OperatorError(`Nothing blocks checkout ${id}.`);
    const result = { checkout_id, released };
    const details = { reason: new FreeText(reason), released };
    return { subject_id: checkout_id, details, result };
  });
}
