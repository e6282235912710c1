import assert from 'node:assert/strict';
import type { Merchant } from '#merchants/merchant.ts';
import { newLease } from '#platform/database/due-work.sql.ts';
import { transaction } from '#platform/database/transaction.ts';
import { writeTogether } from '#platform/database/write-together.ts';
import { timestamp } from '#platform/shared/clock.ts';
import type { Callback } from '#purchases/callbacks/callback.ts';
import { type DeliveryDeps, deliverFirst } from '#purchases/callbacks/delivery/deliver-callback.ts';
import { leaseSeconds } from '#purchases/callbacks/delivery/limits.ts';
import { lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import { cancelCheckout } from '#purchases/checkouts/end-checkout.ts';
import { listAttempts, moveInFlightToVoiding } from './payment-attempt.sql.ts';
import { isInFlight } from './payment-attempt.ts';
import { isOpen } from './start-payment.ts';

/**
 * Cancels a checkout for its shopper, and voids the attempt in flight. If an attempt was authorised
 * before we got the checkout's lock, nothing is cancelled. A shopper may cancel as long as a
 * payment could still finish.
 */
export async function cancelPayment(
  deps: DeliveryDeps,
  merchant: Merchant,
  key: { merchant_id: string; id: string },
  number_of_payments: number,
): Promise<void> {
  const claim = newLease(deps, leaseSeconds);
  let callback: Callback | null = null;
  await transaction(deps, async ({ db }) => {
    const checkout = await lockCheckout(db, key.merchant_id, key.id);
    assert(checkout);
    const now = merchant.now();
    if (checkout.status !== 'received') return;
    const attempts = await listAttempts(db, { merchant_id: key.merchant_id, checkout_id: key.id });
    if (!isOpen(checkout, now) && !attempts.some(isInFlight)) return;
    const cancelled = cancelCheckout(deps, checkout, number_of_payments, timestamp(now), claim);
    await writeTogether(db, cancelled.writes);
    // It is not certain yet that this transaction is committed. The delivery sends nothing unless
    // it finds the claim, which this transaction writes.
    callback = cancelled.callback;
    await moveInFlightToVoiding(
      db,
      { merchant_id: key.merchant_id, checkout_id: key.id },
      timestamp(now),
    );
  });
  if (callback) await deliverFirst(deps, callback);
}
