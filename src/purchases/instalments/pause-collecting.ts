import { send } from '#platform/database/compile-once.ts';
import type { Handle } from '#platform/database/database.ts';
import { type CheckoutKey, movePausedUnlessAsked, updateResumed } from './instalment.sql.ts';

// A refund or a dispute must not race with collections of the same checkout. These functions run in
// the transaction of the refund or the dispute, which holds the checkout's lock. The transaction of
// a dispute also holds the instalments' locks: otherwise a transaction that records an outcome
// would not see the dispute, and these statements would not see the outcome.

/**
 * A dispute can come at any time. A payment whose request is in flight is paused when its outcome
 * is recorded.
 */
export async function pauseForDispute(db: Handle, key: CheckoutKey): Promise<void> {
  await movePausedUnlessAsked(db, key);
}

/** Resumes collecting, unless a pending refund, a dispute or a block still pauses the checkout. */
export async function resumeCollecting(db: Handle, key: CheckoutKey): Promise<void> {
  await send(db, updateResumed(key));
}

/** Resumes collecting in the statement that ends this refund. */
export const resumedAfter = ({ merchant_id, checkout_id, id }: CheckoutKey & { id: string }) =>
  updateResumed({ merchant_id, checkout_id }, id);
