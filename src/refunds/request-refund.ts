import { findCheckoutMerchant, lockCheckout } from '../checkouts/checkout.sql.ts';
import { newLease } from '../database/due-work.sql.ts';
import { sumDisputed } from '../disputes/dispute.sql.ts';
import { leaseSeconds } from '../gateway/retry-times.ts';
import { findMerchant } from '../merchants/merchant.sql.ts';
import { merchantNow } from '../merchants/merchant.ts';
import { OperatorError, operate } from '../operators/operate.ts';
import { isUuid } from '../shared/uuid.ts';
import { reserveRefund } from './create-refund.ts';
import { processRefund, type RefundProcessDeps } from './process-refunds.ts';
import { findRefund, moveRefund, sumRefunds } from './refund.sql.ts';
import { explainBadReason, needsSecondPerson, type RefundRequest } from './refund.ts';
import { reviewerOf } from './review-refund.ts';

/**
 * An operator asks for a refund. It needs no review, so it is processed at once, unless it is above
 * the merchant's threshold: then another person has to approve it (decision 0074). The window for
 * merchants does not bind operators; the preview warns of it. `id` is the caller's, so that a
 * repeated request makes one refund.
 */
export async function requestRefund(
  deps: RefundProcessDeps,
  operator: string,
  wanted: { id: string; checkout_id: string; amount: number; reason: string | null },
): Promise<RefundRequest> {
  const { id, checkout_id, amount, reason } = wanted;
  const bad = reason === null ? null : explainBadReason(reason);
  if (bad !== null) throw new OperatorError(bad);
  const { db: database } = deps.database;
  const merchant_id = isUuid(checkout_id)
    ? await findCheckoutMerchant(database, checkout_id)
    : null;
  const merchant = merchant_id && (await findMerchant(database, merchant_id));
  if (!merchant) throw new OperatorError(`There is no checkout ${checkout_id}.`);
  const earlier = await findRefund(database, merchant.id, id);
  if (earlier) return sameAs(earlier, wanted);
  const requester = reviewerOf(deps, operator);
  const isApproved = !needsSecondPerson(amount, merchant);
  const claimed = await operate(deps, operator, 'refunds create', async (db) => {
    const checkout = await lockCheckout(db, merchant.id, checkout_id);
    // Not the reason: it may name the shopper, and the audit cannot be erased.
    const details = { checkout_id, amount };
    const written = await findRefund(db, merchant.id, id);
    if (written) {
      sameAs(written, wanted);
      return { subject_id: id, details, result: null };
    }
    if (checkout?.status !== 'successful') {
      throw new OperatorError(
        `The checkout is ${checkout?.status}: only successful ones can be refunded.`,
      );
    }
    const refunded = await sumRefunds(db, merchant.id, checkout_id);
    const disputed = await sumDisputed(db, merchant.id, checkout_id);
    const remainder = Math.max(0, checkout.amount - refunded - disputed);
    if (amount > remainder) {
      throw new OperatorError(`The amount exceeds the refundable remainder of ${remainder} cents.`);
    }
    const refund = await reserveRefund(deps, db, merchantNow(deps.clock, merchant), checkout, {
      id,
      amount,
      integration_id: checkout.integration_id,
      signed: false,
      isApproved,
      requester,
      reason,
    });
    if (!isApproved) return { subject_id: id, details, result: null };
    const { now: _, ...lease } = newLease(deps, leaseSeconds);
    const result = await moveRefund(db, refund, ['requested'], lease);
    return { subject_id: id, details, result };
  });
  // Null: another person has to approve it, or the first of two equal requests processes it.
  if (claimed !== null) await processRefund(deps, merchant, claimed);
  return (await findRefund(database, merchant.id, id)) as RefundRequest;
}

/** A repeated request gets the refund of the first, if it asks for the same. */
function sameAs(
  refund: RefundRequest,
  wanted: { checkout_id: string; amount: number },
): RefundRequest {
  if (refund.checkout_id === wanted.checkout_id && refund.amount === wanted.amount) return refund;
  throw new OperatorError('This request was used for another refund. Begin a new one.');
}
