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
  return {
    ...(await readMovements(db, key)),
    collections: await listCollections(db, key),
    parts: await listParts(db, merchant_id, checkout_id),
    card: await findStoredCardFace(db, key),
    isBlocked: await isBlocked(db, key),
  };
}

/** The rows that say when a checkout last moved. */
export async function readMovements(db: Handle, key: PlanKey): Promise<MovementRows> {
  return {
    instalments: await listInstalments(db, key),
    refunds: await listCheckoutRefunds(db, key.merchant_id, key.checkout_id),
    disputes: await listCheckoutDisputes(db, key),
  };
}
