import { leaseSeconds } from '#gateway/retry-times.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import { newLease } from '#platform/database/due-work.sql.ts';
import { reading, transaction } from '#platform/database/transaction.ts';
import { secondsAfter, timestamp } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';
import { lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import type { AskDeps } from './ask-gateway.ts';
import { insertAttempt, listAttempts, moveAttempt } from './payment-attempt.sql.ts';
import {
  attemptId,
  cardTokenContext,
  isOnPlan,
  networkContext,
  type PaymentAttempt,
  waitsForShopper,
} from './payment-attempt.ts';

export type NewAttempt = Pick<
  PaymentAttempt,
  | 'purpose'
  | 'instalments'
  | 'number_of_payments'
  | 'amount'
  | 'consent'
  | 'customer_ref'
  | 'card_ref'
> & {
  /** Null if the stored card, `card_ref`, is charged, or if the card is entered in a session. */
  card_token: string | null;
  /** The shopper's IP network (`networkOf`). */
  network: string;
  lease: string;
};

/**
 * Writes an attempt that is claimed under `lease`, in a transaction that holds the checkout's lock
 * and has found that no other attempt is in flight. The caller settles it after the commit.
 */
export async function openAttempt(
  deps: Pick<AskDeps, 'clock' | 'sealing'> & { random: Random },
  db: Handle,
  checkout: Checkout,
  /** The previous attempt in the same series of numbers. */
  previous: Pick<PaymentAttempt, 'number'> | null,
  now: Temporal.Instant,
  { card_token, network, ...attempt }: NewAttempt,
): Promise<PaymentAttempt> {
  const { merchant_id, id: checkout_id, currency, gateway } = checkout;
  const name = { purpose: attempt.purpose, checkout_id, number: (previous?.number ?? 0) + 1 };
  const id = attemptId(name);
  const { seal } = deps.sealing;
  return await insertAttempt(db, {
    ...{ ...attempt, ...name, merchant_id, id, currency, gateway },
    status: 'starting',
    consent: attempt.consent && JSON.stringify(attempt.consent),
    uses_stored_card: attempt.card_ref !== null,
    sealed_card_token: card_token === null ? null : seal(card_token, cardTokenContext({ id })),
    sealed_network: seal(network, networkContext({ id })),
    created_at: timestamp(now),
    due_at: timestamp(now),
    leased_until: timestamp(secondsAfter(deps.clock.now(), leaseSeconds)),
    written_id: deps.random.uuid(),
  });
}

/**
 * Claims an attempt on the plan page to end it, because the shopper left the card form or their
 * bank's challenge and is beginning again. That attempt may have succeeded in the meantime, so a
 * new one begins only once its outcome is known. Returns null if no attempt waits for the shopper.
 */
export async function leaveAttempt(
  deps: Pick<AskDeps, 'database' | 'clock'> & { random: Random },
  merchant: Merchant,
  key: { merchant_id: string; checkout_id: string },
): Promise<PaymentAttempt | null> {
  const findNewest = async (db: Handle) => (await listAttempts(db, key)).find(isOnPlan);
  const newest = await reading(deps, findNewest);
  if (!waitsForShopper(newest)) return null;
  const { now: _, ...lease } = newLease(deps, leaseSeconds);
  return await transaction(deps, async ({ db }, maybeCommitted) => {
    await lockCheckout(db, key.merchant_id, key.checkout_id);
    const current = await findNewest(db);
    if (maybeCommitted && current?.lease === lease.lease) return current;
    if (!current || !waitsForShopper(current)) return null;
    const due_at = timestamp(merchant.now());
    // Another process may be looking up the attempt, but its result no longer counts.
    return await moveAttempt(db, current, { ...lease, status: 'voiding', due_at, attempts: 0 });
  });
}
