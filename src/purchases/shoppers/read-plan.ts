import type { Handle } from '#platform/database/database.ts';
import { listCheckoutDisputes } from '#purchases/disputes/dispute.sql.ts';
import { isBlocked } from '#purchases/instalments/gateway-block.sql.ts';
import {
  findStoredCardFace,
  listCollections,
  listInstalments,
} from '#purchases/instalments/instalment.sql.ts';
import { listNewestRefunds, summariseRefunds, sumReturned } from '#purchases/refunds/refund.sql.ts';
import type { MovementRows, PlanRows } from './plan.ts';
import type { PlanKey } from './plan-proof.sql.ts';

/** The page shows this many refunds, and the number of the others. */
const refundsShownMax = 50;

/** Everything that the plan page of one checkout is made from. */
export async function readPlan(db: Handle, key: PlanKey): Promise<PlanRows> {
  const [movements, newestRefunds, returned, collections, card, isBlockedNow] = await Promise.all([
    readMovements(db, key),
    listNewestRefunds(db, key, refundsShownMax),
    sumReturned(db, key),
    listCollections(db, key),
    findStoredCardFace(db, key),
    isBlocked(db, key),
  ]);
  return { ...movements, newestRefunds, returned, collections, card, isBlocked: isBlockedNow };
}

/** The rows that say when a checkout last moved. */
export async function readMovements(db: Handle, key: PlanKey): Promise<MovementRows> {
  const [instalments, refunds, disputes] = await Promise.all([
    listInstalments(db, key),
    summariseRefunds(db, key),
    listCheckoutDisputes(db, key),
  ]);
  return { instalments, refunds, disputes };
}
