import { leaseSeconds } from '#gateway/retry-times.ts';
import { findMerchant, findThreshold } from '#merchants/merchant.sql.ts';
import { thresholdOf } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import { newLease } from '#platform/database/due-work.sql.ts';
import { showMoney } from '#platform/shared/money.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { findCheckoutMerchant, lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import { OperatorError, operate } from '#record/actions/operate.ts';
import { approverOf, mustBeApprover } from '#record/actions/second-person.ts';
import { reserveRefund } from './create-refund.ts';
import { processRefund } from './process-refunds.ts';
import { findRefund, moveRefund, sumAlone, sumRefundable } from './refund.sql.ts';
import { explainBadReason, needsSecondPerson, type RefundRequest, requestedId } from './refund.ts';
import type { ReviewDeps } from './review-refund.ts';

type Wanted = {
  /** The caller's id for this request. Repeating the request does not make a second refund. */
  request_id: string;
  checkout_id: string;
  amount: number;
  reason: string | null;
  uncollected_only?: boolean;
};

/**
 * Requests a refund for an operator. The refund needs no review and is processed at once, unless it
 * is above the merchant's threshold: then another person has to approve it (decision 0074).
 * Operators are not bound by the merchants' refund window; the preview warns about it.
 */
export async function requestRefund(
  deps: ReviewDeps,
  operator: string,
  wanted: Wanted,
): Promise<RefundRequest> {
  const { checkout_id, amount, reason } = wanted;
  const bad = reason === null ? null : explainBadReason(reason);
  if (bad !== null) throw new OperatorError(bad);
  const { db: database } = deps.database;
  const merchant_id = isUuid(checkout_id)
    ? await findCheckoutMerchant(database, checkout_id)
    : null;
  const merchant = merchant_id && (await findMerchant(database, deps.clock, merchant_id));
  if (!merchant) throw new OperatorError(`There is no checkout ${checkout_id}.`);
  const earlier = await findEarlier(database, merchant.id, wanted);
  if (earlier) return earlier;
  const id = requestedId(merchant.id, wanted.request_id);
  const requester = approverOf(deps, operator);
  const { refund, isClaimed } = await operate(deps, operator, 'refunds create', async (db) => {
    const checkout = await lockCheckout(db, merchant.id, checkout_id);
    // The reason is left out: it may name the shopper, and the audit cannot be erased.
    const about = { merchant_id: merchant.id, details: { checkout_id, amount } };
    const written = await findEarlier(db, merchant.id, wanted);
    if (written) {
      return { ...about, subject_id: written.id, result: { refund: written, isClaimed: false } };
    }
    if (checkout?.status !== 'successful') {
      throw new OperatorError(
        `The checkout is ${checkout?.status}: only successful ones can be refunded.`,
      );
    }
    if (reason !== null && checkout.erased_at !== null) {
      throw new OperatorError(
        'This shopper’s data was erased, and nothing would erase a reason. Leave it out.',
      );
    }
    const remainder = await sumRefundable(db, checkout);
    if (amount > remainder) {
      const { currency } = checkout;
      const money = showMoney(remainder, { currency, locale: merchant.territory.locale });
      throw new OperatorError(`The amount exceeds the refundable remainder of ${money}.`);
    }
    // Earlier refunds count too, so that several small refunds cannot replace a large one.
    const alone = await sumAlone(db, { merchant_id: merchant.id, checkout_id });
    // The merchant was read before the lock, and its threshold may have been lowered since.
    const above = thresholdOf(deps, await findThreshold(db, merchant.id));
    const isApproved = !needsSecondPerson(alone + amount, above);
    if (!isApproved) mustBeApprover(deps);
    const reserved = await reserveRefund(deps, db, { merchant, now: merchant.now() }, checkout, {
      id,
      amount,
      integration_id: checkout.integration_id,
      signed: false,
      isApproved,
      requester,
      reason,
      uncollected_only: wanted.uncollected_only ?? false,
    });
    if (!isApproved) {
      return { ...about, subject_id: id, result: { refund: reserved, isClaimed: false } };
    }
    const { now: _, ...lease } = newLease(deps, leaseSeconds);
    const claimed = (await moveRefund(db, reserved, ['requested'], lease)) as RefundRequest;
    return { ...about, subject_id: id, result: { refund: claimed, isClaimed: true } };
  });
  // If the refund is not claimed, another person has to approve it, or an earlier run of the same
  // request made it and processes it.
  return isClaimed ? await processRefund(deps, merchant, refund) : refund;
}

/**
 * Returns the refund that an earlier run of this request made, or null. Throws if the earlier run
 * asked for another refund.
 */
async function findEarlier(
  db: Handle,
  merchant_id: string,
  wanted: Wanted,
): Promise<RefundRequest | null> {
  const { request_id, checkout_id, amount } = wanted;
  const earlier = await findRefund(db, merchant_id, requestedId(merchant_id, request_id));
  if (earlier === null) return null;
  if (earlier.checkout_id === checkout_id && earlier.amount === amount) return earlier;
  throw new OperatorError('This request was used for another refund. Start a new request.');
}
