import type { Handle } from '#platform/database/database.ts';
import { CannotAdopt } from '#platform/shared/cannot-adopt.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { findNumber } from '#purchases/instalments/adopt-payment.ts';
import { listLastCollections, lockInstalments } from '#purchases/instalments/instalment.sql.ts';
import {
  collectShopperPayment,
  openShopperPayment,
} from '#purchases/instalments/shopper-payment.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { findNewestAttempt, insertSettledAttempt } from './shopper-attempt.sql.ts';
import { isInFlight, shopperAttemptId } from './shopper-attempt.ts';

/**
 * The number of the attempt that has this id, or null if the gateway's payment belongs to another
 * attempt.
 */
export const findAttemptNumber = (checkout_id: string, id: string) =>
  findNumber((number) => shopperAttemptId(checkout_id, number) === id);

/**
 * Records what a shopper paid before the database was restored (decision 0098), in a transaction
 * that holds the checkout's lock. A card that the shopper stored with it is not adopted, because the
 * consent was lost.
 */
export async function adoptShopperPayment(
  deps: QueueDeps,
  db: Handle,
  { merchant_id, id: checkout_id, currency }: Checkout,
  paid: {
    id: string;
    number: number;
    instalments: number[];
    amount: number;
    payment_ref: string;
    customer_ref: string;
    at: Timestamp;
  },
): Promise<void> {
  const key = { merchant_id, checkout_id };
  const { id, number, instalments, amount, payment_ref, customer_ref, at } = paid;
  const newest = await findNewestAttempt(db, key);
  if (newest && isInFlight(newest)) throw new CannotAdopt('the shopper is paying now');
  const payments = (await lockInstalments(db, key)).filter((one) =>
    instalments.includes(one.number),
  );
  const isDue = payments.every(
    ({ status, paused }) => (status === 'scheduled' || status === 'overdue') && !paused,
  );
  if (payments.length !== instalments.length || !isDue) {
    throw new CannotAdopt('the payments that it covers are not due');
  }
  const sum = payments.reduce((total, one) => total + one.amount - one.reduced, 0);
  if (sum !== amount) throw new CannotAdopt(`the payments that it covers sum to ${sum} cents`);
  const collections = await listLastCollections(db, merchant_id, [checkout_id]);
  if (collections.some((one) => one.status === 'open' && instalments.includes(one.instalment))) {
    throw new CannotAdopt('a payment that it covers is being collected');
  }
  await insertSettledAttempt(db, {
    ...{ merchant_id, checkout_id, currency, id, number, instalments, amount, customer_ref },
    payment_ref,
    at,
  });
  const card = { customer_ref, card_ref: null };
  await openShopperPayment(db, { ...key, id }, payments, card, { at, asked_at: at });
  const attempt = { ...key, id, amount, uses_stored_card: true, keeps_card: false, card_ref: null };
  await collectShopperPayment(deps, db, attempt, payment_ref, at);
}
