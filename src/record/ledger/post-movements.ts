import assert from 'node:assert/strict';
import { send } from '#platform/database/compile-once.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';
import { insertPostings } from './posting.sql.ts';
import { type MovementKind, movements, type Posting } from './posting.ts';
import { changesOf, hasEffect, settleMovements } from './settle-movements.ts';
import type { SaleState, Terms } from './settlement.ts';

export type Movement = {
  kind: MovementKind;
  merchant_id: string;
  checkout_id: string;
  amount: number;
  currency: string;
  instalment?: number;
  refund_id?: string;
  dispute_id?: string;
};

/**
 * Movements to be written into the books, in the transaction of the change that causes them. They
 * must not affect the merchant's own books: `postMovements` is for those that do.
 */
export function postingsOf(deps: { random: Random }, at: Timestamp, list: Movement[]) {
  assert(!list.some(hasEffect));
  return insertPostings(list.map((movement) => posting(deps, at, movement)));
}

/**
 * Movements of one checkout that may reverse a sale, with their effects on the merchant's own
 * books, which were read under the lock of the checkout.
 */
export const reversalsOf = (
  deps: { random: Random },
  at: Timestamp,
  books: { terms: Terms | null; sales: SaleState[] },
  list: Movement[],
) => ({
  postings: list.length === 0 ? null : insertPostings(list.map((one) => posting(deps, at, one))),
  entries: changesOf(deps, at, books, list),
});

/**
 * Writes movements of one merchant into the books, and their effects into the merchant's own books.
 * Runs in the transaction of the change that caused them.
 */
export async function postMovements(
  deps: { random: Random },
  db: Handle,
  at: Timestamp,
  list: Movement[],
): Promise<void> {
  if (list.length === 0) return;
  await send(db, insertPostings(list.map((movement) => posting(deps, at, movement))));
  await settleMovements(deps, db, at, list);
}

const posting = (
  deps: { random: Random },
  at: Timestamp,
  { instalment, refund_id, dispute_id, ...movement }: Movement,
): Posting => ({
  ...movement,
  ...movements[movement.kind],
  id: deps.random.uuid(),
  instalment: instalment ?? null,
  refund_id: refund_id ?? null,
  dispute_id: dispute_id ?? null,
  at,
});
