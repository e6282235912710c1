import type { Handle } from '../database/database.ts';
import { type CheckoutKey, movePaused } from './instalment.sql.ts';

// A refund must not race with collections of the same checkout. Both run in the refund's own
// transaction, which holds the checkout's lock.

export async function pauseCollecting(db: Handle, key: CheckoutKey): Promise<void> {
  await movePaused(db, key, true);
}

export async function resumeCollecting(db: Handle, key: CheckoutKey): Promise<void> {
  await movePaused(db, key, false);
}
