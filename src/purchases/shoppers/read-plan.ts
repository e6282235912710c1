import type { Handle } from '#platform/database/database.ts';
import { listCheckoutDisputes } from '#purchases/disputes/dispute.sql.ts';
import { isBlocked } from '#purchases/instalments/gateway-block.sql.ts';
import {
  findStoredCardFace,
  listCollections,
  listInstalments,
} from '#purchases/instalments/instalment.sql.ts';
import { listCheckoutRefunds, listParts } from '#purchases/refunds/refund.sql.ts';
import type { MovementRows, PlanRows } from './plan.ts';
import type { PlanKey } from './plan-proof.sql.ts';

/** Everything that the plan page of one checkout is made from. */
export async function readPlan(db: Handle, key: PlanKey): Promise<PlanRows> {
  const { merchant_id, checkout_id } = key;
  const [movements, collections, parts, card, isBlockedNow] = await Promise.all([
    readMovements(db, key),
    listCollections(db, key),
    listParts(db, merchant_id, checkout_id),
    findStoredCardFace(db, key),
    isBlocked(db, key),
  ]);
  return { ...movements, collections, parts, card, isBlocked: isBlockedNow };
}

/** The rows that say when a checkout last moved. */
export async function readMovements(db: Handle, key: PlanKey): Promise<MovementRows> {
  const [instalments, refunds, disputes] = await Promise.all([
    listInstalments(db, key),
    listCheckoutRefunds(db, key.merchant_id, key.checkout_id),
    listCheckoutDisputes(db, key),
  ]);
  return { instalments, refunds, disputes };
}
