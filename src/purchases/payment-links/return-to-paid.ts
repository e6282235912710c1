import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { expireCheckout } from '#purchases/checkouts/expire-checkout.ts';
import { lockLink, moveLinkCheckout } from './payment-link.sql.ts';

/**
 * Called when a payment that a restore had lost is recorded again. If the checkout's payment link
 * has made a newer checkout in the meantime, the link returns to the paid checkout, and the newer
 * one can no longer be paid.
 */
export async function returnToPaid(
  db: Handle,
  { merchant_id, id, payment_link_id }: Checkout,
  now: Timestamp,
): Promise<void> {
  if (payment_link_id === null) return;
  const link = await lockLink(db, { merchant_id, id: payment_link_id });
  if (!link || link.reusable || link.checkout_id === null || link.checkout_id === id) return;
  await moveLinkCheckout(db, link, { checkout_id: id });
  await expireCheckout(db, { merchant_id, id: link.checkout_id }, now);
}
