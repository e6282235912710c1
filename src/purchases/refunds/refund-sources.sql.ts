import assert from 'node:assert/strict';
import { selectThreshold } from '#merchants/merchant.sql.ts';
import type { OwnThreshold } from '#merchants/merchant.ts';
import { compileOnce } from '#platform/database/compile-once.ts';
import type { Handle } from '#platform/database/database.ts';
import { asRows, together } from '#platform/database/read-together.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import {
  selectOpenDisputes,
  selectPausingLosses,
  selectUnbookedLosses,
} from '#purchases/disputes/dispute.sql.ts';
import { spread } from '#purchases/disputes/dispute.ts';
import { selectOpenCollections } from '#purchases/instalments/collection.sql.ts';
import { selectBlocks } from '#purchases/instalments/gateway-block.sql.ts';
import { type CheckoutKey, selectInstalments } from '#purchases/instalments/instalment.sql.ts';
import type { Instalment } from '#purchases/instalments/instalment.ts';
import { selectDisputedAmounts } from '#record/ledger/posting.sql.ts';
import { type Books, booksOf, booksQueries } from '#record/ledger/settlement.sql.ts';
import { selectAloneSum, selectParts, selectReturned } from './refund.sql.ts';
import { type RefundPart, withDisputed } from './refund.ts';

// Each step of a refund reads its rows in one statement. With a statement for each read, approving
// and completing a refund took 40 statements.

/** The payments that a refund is taken from, and the reasons why it may not begin. */
export type RefundSources = {
  instalments: Instalment[];
  /** The amount that refunds and disputes have taken from each payment, or will take. */
  given: Map<number, number>;
  isDisputed: boolean;
  isBlocked: boolean;
  /** Whether a payment of the checkout is being collected. */
  isCollecting: boolean;
};

const sourceQueries = (db: Handle, key: CheckoutKey) => ({
  instalments: selectInstalments(db, key),
  returned: selectReturned(db, key),
  disputed: selectDisputedAmounts(key),
  unbooked: selectUnbookedLosses(db, key),
  disputes: selectOpenDisputes(db, key),
  blocks: selectBlocks(db, key),
  collections: selectOpenCollections(db, key),
});

type Read<Queries> = {
  [Name in keyof Queries]: Queries[Name] extends { execute(...args: never[]): Promise<infer Rows> }
    ? Rows extends { rows: infer Raw }
      ? Raw
      : Rows
    : never;
};

function sourcesOf(rows: Read<ReturnType<typeof sourceQueries>>): RefundSources {
  const returned = new Map(rows.returned.map(({ instalment, sum }) => [instalment, sum]));
  const instalments: Instalment[] = asRows(rows.instalments);
  const given = rows.unbooked.reduce(
    (before, loss) => withDisputed(before, spread(roomsOf(instalments, before, loss), loss.amount)),
    withDisputed(returned, rows.disputed),
  );
  return {
    instalments,
    given,
    isDisputed: rows.disputes.length > 0,
    isBlocked: rows.blocks.length > 0,
    isCollecting: rows.collections.length > 0,
  };
}

/** The rest of each instalment that a disputed payment paid. */
const roomsOf = (
  instalments: Instalment[],
  given: ReadonlyMap<number, number>,
  loss: { payment_ref: string },
) =>
  instalments
    .filter(({ payment_ref }) => payment_ref === loss.payment_ref)
    .map(({ number, amount, reduced }) => ({
      number,
      room: amount - reduced - (given.get(number) ?? 0),
    }));

const selectSources = compileOnce((db, key: CheckoutKey) => together(sourceQueries(db, key)));

/** The payments that a refund of a checkout would be taken from now. */
export async function readSources(
  db: Handle,
  { merchant_id, checkout_id }: CheckoutKey,
): Promise<RefundSources> {
  const [rows] = await selectSources(db, { merchant_id, checkout_id });
  assert(rows);
  return sourcesOf(rows);
}

type Named = CheckoutKey & { id: string };
type RefundKey = Named & { at: Timestamp };

/** `checkout_ids` contains only the refund's checkout. */
const refundQueries = (db: Handle, key: RefundKey & { checkout_ids: string[] }) => ({
  parts: selectParts(db, key),
  ...booksQueries(db, key),
});

const withList = ({ merchant_id, checkout_id, id }: Named, at: Timestamp) => ({
  ...{ merchant_id, checkout_id, id, at },
  checkout_ids: [checkout_id],
});

const selectStart = compileOnce((db, key: RefundKey & { checkout_ids: string[] }) =>
  together({ ...sourceQueries(db, key), ...refundQueries(db, key) }),
);

/** Everything that decides how a refund begins, read under the lock of the checkout. */
export type RefundStart = { sources: RefundSources; earlier: RefundPart[]; books: Books };

export async function readStart(db: Handle, refund: Named, at: Timestamp): Promise<RefundStart> {
  const [rows] = await selectStart(db, withList(refund, at));
  assert(rows);
  return startOf(rows);
}

function startOf(
  rows: Read<ReturnType<typeof sourceQueries> & ReturnType<typeof refundQueries>>,
): RefundStart {
  return { sources: sourcesOf(rows), earlier: asRows(rows.parts), books: booksOf(rows) };
}

const selectApproval = compileOnce((db, key: RefundKey & { checkout_ids: string[] }) =>
  together({
    ...sourceQueries(db, key),
    ...refundQueries(db, key),
    thresholds: selectThreshold(db, key.merchant_id),
    alone: selectAloneSum(db, key),
  }),
);

/**
 * Reads like `readStart`, and also what decides how many people have to approve the refund. The
 * threshold is read again, because the merchant may have lowered it since the caller read the
 * merchant. `alone` is the sum that was approved by fewer than two people.
 */
export async function readApproval(
  db: Handle,
  refund: Named,
  at: Timestamp,
): Promise<RefundStart & { threshold: { four_eyes_above: OwnThreshold }; alone: number }> {
  const [rows] = await selectApproval(db, withList(refund, at));
  const threshold = rows?.thresholds[0];
  assert(rows && threshold);
  return { ...startOf(rows), threshold, alone: rows.alone[0]?.sum ?? 0 };
}

const progressQueries = (db: Handle, key: RefundKey & { checkout_ids: string[] }) => ({
  ...refundQueries(db, key),
  losses: selectPausingLosses(db, key),
});

const selectProgress = compileOnce((db, key: RefundKey & { checkout_ids: string[] }) =>
  together(progressQueries(db, key)),
);

const selectProgressAndPlan = compileOnce((db, key: RefundKey & { checkout_ids: string[] }) =>
  together({ instalments: selectInstalments(db, key), ...progressQueries(db, key) }),
);

/**
 * Everything that decides what follows from the gateway's answers. Call it under the checkout's
 * lock. Only the answer about a hold needs the payments of the plan.
 */
export async function readProgress(
  db: Handle,
  refund: Named,
  at: Timestamp,
  withPlan: boolean,
): Promise<{
  instalments: Instalment[];
  parts: RefundPart[];
  books: Books;
  /** The lost disputes that pause the plan: it is not decided yet whether the rest stays due. */
  losses: { id: string }[];
}> {
  const key = withList(refund, at);
  const [rows] = withPlan
    ? await selectProgressAndPlan(db, key)
    : (await selectProgress(db, key)).map((row) => ({ ...row, instalments: [] }));
  assert(rows);
  return {
    instalments: asRows(rows.instalments),
    parts: asRows(rows.parts),
    books: booksOf(rows),
    losses: rows.losses,
  };
}

const selectPartsAndDisputes = compileOnce((db, key: Named) =>
  together({ parts: selectParts(db, key), disputes: selectOpenDisputes(db, key) }),
);

/** The parts of a refund, and whether a dispute prevents sending them. */
export async function readParts(
  db: Handle,
  { merchant_id, checkout_id, id }: Named,
): Promise<{ parts: RefundPart[]; isDisputed: boolean }> {
  const [rows] = await selectPartsAndDisputes(db, { merchant_id, checkout_id, id });
  assert(rows);
  return { parts: asRows(rows.parts), isDisputed: rows.disputes.length > 0 };
}
