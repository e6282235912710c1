import { send } from '#platform/database/compile-once.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { insertBlock, moveUnblocked } from './gateway-block.sql.ts';
import { type CheckoutKey, moveResumedIfAsked, updatePaused } from './instalment.sql.ts';
import { resumeCollecting } from './pause-collecting.ts';

// The gateway did something for a checkout that we cannot record (decision 0098). Until an operator
// has looked at the checkout, none of its payments is collected and no refund begins. Both
// functions run in a transaction that holds the checkout's lock.

export async function blockCheckout(
  db: Handle,
  key: CheckoutKey,
  block: { reference: string; alert_id: string; created_at: Timestamp },
): Promise<void> {
  await insertBlock(db, { ...key, ...block });
  // A payment with a request in flight is paused, too: what the gateway did may differ from what
  // the request says.
  const { merchant_id, checkout_id } = key;
  await send(db, updatePaused({ merchant_id, checkout_id }));
}

/** Returns how many blocks there were. */
export async function unblockCheckout(
  db: Handle,
  key: CheckoutKey,
  at: Timestamp,
): Promise<number> {
  const cleared = await moveUnblocked(db, key, at);
  await resumeCollecting(db, key);
  // A dispute or a refund may still pause the plan, but not a payment with a request in flight: its
  // outcome must become known.
  await moveResumedIfAsked(db, key);
  return cleared;
}
