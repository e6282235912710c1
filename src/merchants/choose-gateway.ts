import type { ChosenGateways } from '#gateway/gateway-name.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import { findMerchantRow, lockMerchant, moveGateways } from './merchant.sql.ts';
import type { MerchantRow } from './merchant.ts';

/**
 * Chooses the gateway for a merchant's new checkouts, and the second gateway that stands in while
 * the first does not answer. Existing checkouts keep the gateway that they began with (decision
 * 0029).
 */
export async function chooseGateways(
  deps: OperatorDeps,
  operator: string,
  { id, gateway, second_gateway }: ChosenGateways & { id: string },
): Promise<MerchantRow> {
  if (second_gateway !== null && gateway === null) {
    throw new OperatorError('A second gateway stands in for a first one. Name both.');
  }
  if (second_gateway !== null && second_gateway === gateway) {
    throw new OperatorError('The second gateway must differ from the first.');
  }
  return await operate(deps, operator, 'merchants gateway', async (db) => {
    const isFound = isUuid(id) && (await lockMerchant(db, id)) !== null;
    const before = isFound ? await findMerchantRow(db, id) : null;
    if (!before) throw new OperatorError(`There is no merchant ${id}.`);
    await moveGateways(db, id, { gateway, second_gateway });
    const was = { gateway: before.gateway, second_gateway: before.second_gateway };
    const details = { gateway, second_gateway, before: was };
    return { subject_id: id, details, result: { ...before, gateway, second_gateway } };
  });
}
