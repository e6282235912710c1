import assert from 'node:assert/strict';
import { type DeliveryDeps, deliverFirst } from '../callbacks/delivery/deliver-callback.ts';
import { lockCheckout } from '../checkouts/checkout.sql.ts';
import { cancelCheckout } from '../checkouts/end-checkout.ts';
import { transaction } from '../database/transaction.ts';
import { type Merchant, merchantNow } from '../merchants/merchant.ts';
import { timestamp } from '../shared/clock.ts';
import { listAttempts, moveInFlightToVoiding } from './payment-attempt.sql.ts';
import { isInFlight } from './payment-attempt.ts';
import { isOpen } from './start-payment.ts';

/**
 * A shopper cancels. Whatever attempt is in flight is let go; if it was authorised before we got
 * the checkout's lock, it has won and nothing is cancelled. As long as a payment may still finish
 * it can also be called off.
 */
export async function cancelPayment(
  deps: DeliveryDeps,
  merchant: Merchant,
  key: { merchant_id: string; id: string },
  number_of_payments: number,
): Promise<void> {
  await transaction(deps, async ({ db }) => {
    const checkout = await lockCheckout(db, key.merchant_id, key.id);
    assert(checkout);
    const now = merchantNow(deps.clock, merchant);
    if (checkout.status !== 'received') return;
    const attempts = await listAttempts(db, key.merchant_id, key.id);
    if (!isOpen(checkout, now) && !attempts.some(isInFlight)) return;
    const cancelled = await cancelCheckout(deps, db, key, number_of_payments, timestamp(now));
    assert(cancelled, 'the checkout is received and locked');
    await moveInFlightToVoiding(db, key.merchant_id, key.id, timestamp(now));
  });
  await deliverFirst(deps, merchant, key.id);
}
