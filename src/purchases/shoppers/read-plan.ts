import assert from 'node:assert/strict';
import { compileOnce } from '#platform/database/compile-once.ts';
import type { Handle } from '#platform/database/database.ts';
import { asRows, together } from '#platform/database/read-together.ts';
import { listDisputeStates, selectDisputeStates } from '#purchases/disputes/dispute.sql.ts';
import { selectTellingCollections } from '#purchases/instalments/collection.sql.ts';
import { selectBlocks } from '#purchases/instalments/gateway-block.sql.ts';
import {
  listInstalments,
  selectInstalments,
  selectStoredCardFace,
} from '#purchases/instalments/instalment.sql.ts';
import {
  selectNewestRefunds,
  selectRefundSummary,
  selectReturned,
  summariseRefunds,
} from '#purchases/refunds/refund.sql.ts';
import type { MovementRows, PlanRows } from './plan.ts';
import type { PlanKey } from './plan-access.sql.ts';

/** The page shows this many refunds, and how many others there are. */
const refundsShownMax = 50;

/** The queries for everything that the plan page of one checkout shows. */
export const planQueries = (db: Handle, key: PlanKey) => ({
  instalments: selectInstalments(db, key),
  refunds: selectRefundSummary(db, key),
  disputes: selectDisputeStates(db, key),
  newestRefunds: selectNewestRefunds(db, key, refundsShownMax),
  returned: selectReturned(db, key),
  collections: selectTellingCollections(db, key),
  cards: selectStoredCardFace(db, key),
  blocks: selectBlocks(db, key),
});

const selectPlan = compileOnce((db, { merchant_id, checkout_id }: PlanKey) =>
  together(planQueries(db, { merchant_id, checkout_id })),
);

type Read<Queries> = {
  [Name in keyof Queries]: Queries[Name] extends { execute(): Promise<infer Rows> } ? Rows : never;
};

/** Everything that the plan page of one checkout shows, as of one moment. */
export async function readPlan(db: Handle, key: PlanKey): Promise<PlanRows> {
  const [rows] = await selectPlan(db, key);
  assert(rows);
  return planOf(rows);
}

/** Makes the plan from rows that were read as JSON. */
export function planOf(rows: Read<ReturnType<typeof planQueries>>): PlanRows {
  const [refunds] = asRows(rows.refunds);
  assert(refunds);
  return {
    instalments: asRows(rows.instalments),
    refunds,
    disputes: asRows(rows.disputes),
    newestRefunds: asRows(rows.newestRefunds).reverse(),
    returned: new Map(rows.returned.map(({ instalment, sum }) => [instalment, sum])),
    collections: asRows(rows.collections),
    card: rows.cards[0] ?? null,
    isBlocked: rows.blocks.length > 0,
  };
}

/** Reads the rows that show when a checkout's money or status last moved. */
export async function readMovements(db: Handle, key: PlanKey): Promise<MovementRows> {
  const [instalments, refunds, disputes] = await Promise.all([
    listInstalments(db, key),
    summariseRefunds(db, key),
    listDisputeStates(db, key),
  ]);
  return { instalments, refunds, disputes };
}
