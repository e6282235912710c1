import type { Handle } from '../database/database.ts';
import { listCheckoutDisputes } from '../disputes/dispute.sql.ts';
import {
  findStoredCardFace,
  listInstalments,
  listLastCollections,
} from '../instalments/instalment.sql.ts';
import { listCheckoutRefunds, listParts } from '../refunds/refund.sql.ts';
import type { PlanRows } from './plan.ts';
import type { PlanKey } from './plan-proof.sql.ts';

/** Everything that the plan page of one checkout is made from. */
export async function readPlan(db: Handle, key: PlanKey): Promise<PlanRows> {
  const { merchant_id, checkout_id } = key;
  return {
    instalments: await listInstalments(db, key),
    collections: await listLastCollections(db, merchant_id, [checkout_id]),
    refunds: await listCheckoutRefunds(db, merchant_id, checkout_id),
    parts: await listParts(db, merchant_id, checkout_id),
    disputes: await listCheckoutDisputes(db, key),
    card: await findStoredCardFace(db, key),
  };
}
