import { findMerchant } from '#merchants/merchant.sql.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import { lockLink, moveLinkCancelled, withCheckouts } from './payment-link.sql.ts';
import { statusOf } from './payment-link.ts';

/**
 * Ends a link. A shopper who has already opened the payment page can still pay until their checkout
 * expires. A repeated call changes nothing.
 */
export async function cancelPaymentLink(
  deps: OperatorDeps,
  operator: string,
  key: { merchant_id: string; id: string },
): Promise<void> {
  await operate(deps, operator, 'payment-links cancel', async (db) => {
    const locked = await lockLink(db, key);
    const [link] = locked ? await withCheckouts(db, [locked]) : [];
    const merchant = await findMerchant(db, deps.clock, key.merchant_id);
    if (!link || !merchant) throw new OperatorError(`There is no payment link ${key.id}.`);
    const now = merchant.now();
    const status = statusOf(link, now);
    if (status === 'paid') throw new OperatorError('This link is paid. Refund the order instead.');
    if (status === 'expired') throw new OperatorError('This link has already expired.');
    await moveLinkCancelled(db, key, timestamp(now));
    const { merchant_id, id: subject_id } = key;
    return { subject_id, merchant_id, details: { merchant_id }, result: null };
  });
}
