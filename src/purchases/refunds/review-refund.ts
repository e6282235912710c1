import { leaseSeconds } from '#gateway/retry-times.ts';
import { findMerchant, findThreshold } from '#merchants/merchant.sql.ts';
import { type FourEyesDefault, type Merchant, thresholdOf } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import { newLease } from '#platform/database/due-work.sql.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import { approverOf, mustCountAsPerson, mustCountAsSecond } from '#record/actions/second-person.ts';
import { postMovements } from '#record/ledger/post-movements.ts';
import { processRefund, type RefundProcessDeps } from './process-refunds.ts';
import {
  findRefundMerchant,
  listParts,
  lockRefund,
  lockRefundCheckout,
  moveRefund,
  sumAlone,
  sumRefundable,
} from './refund.sql.ts';
import {
  agreedTo,
  explainBadReason,
  isFirstOfTwo,
  NothingLeft,
  type RefundRequest,
} from './refund.ts';
import { startRefund, sumOf } from './start-refund.ts';

/** To process refunds, and to know how many people have to agree. */
export type ReviewDeps = RefundProcessDeps & FourEyesDefault;

/**
 * The console names a refund with the merchant in whose rows it found it, so that an action never
 * reaches another merchant's refund. The command line gives the id alone.
 */
type NamedRefund = string | { merchant_id: string; id: string };

/**
 * An operator approves a request; it is processed at once. Above the merchant's threshold two
 * people have to approve it (decision 0074): the first approval is noted, and the second processes
 * it.
 */
export async function approveRefund(
  deps: ReviewDeps,
  operator: string,
  named: NamedRefund,
): Promise<RefundRequest> {
  return await reviewed(deps, operator, 'refunds approve', named, async (db, { refund }, claim) => {
    if (refund.status !== 'requested' || refund.approved_at !== null) {
      throw notReviewable(refund, 'approved');
    }
    const agreed = agreedTo(refund);
    if (agreed.length > 0) mustCountAsSecond(deps, operator, agreed);
    const reviewer = approverOf(deps, operator);
    const { merchant, ...lease } = claim;
    // The merchant was read before the lock, and its threshold may have been lowered since.
    const above =
      agreed.length === 0 ? thresholdOf(deps, await findThreshold(db, merchant.id)) : null;
    if (above !== null && isFirstOfTwo(refund, above, await sumAlone(db, refund))) {
      mustCountAsPerson(deps);
      return await moveRefund(db, refund, ['requested'], {
        first_approved_by: reviewer.person_id,
        first_approved_by_name: reviewer.name,
        first_approved_at: lease.at,
      });
    }
    const by = { approved_by: reviewer.person_id, approved_by_name: reviewer.name };
    const approval = { ...lease, ...by };
    const started = await startUnlessSpent(deps, db, merchant, refund, approval);
    if (typeof started !== 'string') return started;
    const { at: approved_at, ...leased } = approval;
    const to = { ...leased, approved_at, due_at: approved_at, attempts: 0 };
    return await moveRefund(db, refund, ['requested'], to);
  });
}

/**
 * An operator retries a failed refund, if the remainder allows it (decision 0014). A declined one
 * was never approved, and a retry does not approve it (decision 0074).
 */
export async function retryRefund(
  deps: ReviewDeps,
  operator: string,
  named: NamedRefund,
): Promise<RefundRequest> {
  return await reviewed(deps, operator, 'refunds retry', named, async (db, locked, claim) => {
    const { checkout, refund } = locked;
    if (refund.status !== 'failed') {
      throw new OperatorError(
        `Refund ${refund.id} is ${refund.status}: only a failed refund can be retried.`,
      );
    }
    if (refund.approved_at === null) {
      throw new OperatorError(
        `Refund ${refund.id} was declined and never approved, so it cannot be retried. To refund it after all, ask for a new refund: on the page of the checkout in the console, or by the merchant's API.`,
      );
    }
    const parts = await listParts(db, refund.merchant_id, refund.checkout_id);
    const moved = sumOf(
      parts.filter((part) => part.refund_id === refund.id && part.status === 'done'),
    );
    const remainder = await sumRefundable(db, checkout);
    if (refund.amount - moved > remainder) {
      throw new OperatorError(
        `${refund.amount - moved} cents are left to refund, but only ${remainder} cents of the checkout are refundable by now.`,
      );
    }
    const { merchant, ...lease } = claim;
    const started = await startRefund(deps, db, merchant, refund, 'failed', lease);
    if (typeof started === 'string') {
      throw new OperatorError(
        started === 'disputed'
          ? 'The shopper disputes a payment of this checkout. Try again when that is decided.'
          : 'A payment of this checkout must be collected first. Try again when its outcome is known.',
      );
    }
    return started;
  });
}

/** An operator declines a request with a reason. Its amount returns to the remainder. */
export async function declineRefund(
  deps: OperatorDeps,
  operator: string,
  named: NamedRefund,
  reason: string,
): Promise<RefundRequest> {
  const bad = explainBadReason(reason);
  if (bad !== null) throw new OperatorError(bad);
  const { merchant, id } = await findNamed(deps, named);
  return await operate(deps, operator, 'refunds decline', async (db) => {
    const { refund } = await lockWithCheckout(db, merchant, id);
    if (refund.status !== 'requested' || refund.approved_at !== null) {
      throw notReviewable(refund, 'declined');
    }
    const declined = await moveRefund(db, refund, ['requested'], { status: 'failed', reason });
    const { merchant_id, checkout_id, currency, amount } = refund;
    const at = timestamp(merchant.now());
    const movement = { merchant_id, checkout_id, currency, amount, refund_id: refund.id };
    await postMovements(deps, db, at, [{ ...movement, kind: 'released' }]);
    return { subject_id: refund.id, details: { reason }, result: declined as RefundRequest };
  });
}

type Claim = { at: Timestamp; lease: string; leased_until: Timestamp; merchant: Merchant };

/** Makes the operator's change and processes the refund under the same lease. */
async function reviewed(
  deps: ReviewDeps,
  operator: string,
  action: string,
  named: NamedRefund,
  change: (db: Handle, locked: Locked, claim: Claim) => Promise<RefundRequest | null>,
): Promise<RefundRequest> {
  const { merchant, id } = await findNamed(deps, named);
  const claimed = await operate(deps, operator, action, async (db) => {
    const locked = await lockWithCheckout(db, merchant, id);
    const { now: _, ...lease } = newLease(deps, leaseSeconds);
    const at = timestamp(merchant.now());
    const result = (await change(db, locked, { ...lease, at, merchant })) as RefundRequest;
    const { checkout_id, amount } = locked.refund;
    const isFirst = result.approved_at === null && { approval: 'first of two' };
    return { subject_id: id, details: { checkout_id, amount, ...isFirst }, result };
  });
  return claimed.approved_at === null ? claimed : await processRefund(deps, merchant, claimed);
}

async function findNamed(
  deps: OperatorDeps,
  named: NamedRefund,
): Promise<{ merchant: Merchant; id: string }> {
  const { db } = deps.database;
  const id = typeof named === 'string' ? named : named.id;
  const merchant_id =
    typeof named !== 'string'
      ? named.merchant_id
      : isUuid(named)
        ? await findRefundMerchant(db, named)
        : null;
  const merchant = merchant_id && (await findMerchant(db, deps.clock, merchant_id));
  if (!merchant) throw new OperatorError(`There is no refund ${id}.`);
  return { merchant, id };
}

type Locked = { checkout: Checkout; refund: RefundRequest };

/** Locks the checkout first, as every transaction does. */
async function lockWithCheckout(db: Handle, merchant: Merchant, id: string): Promise<Locked> {
  const key = { merchant_id: merchant.id, id };
  const checkout = await lockRefundCheckout(db, key);
  const refund = checkout && (await lockRefund(db, key));
  if (!refund) throw new OperatorError(`There is no refund ${id}.`);
  return { checkout, refund };
}

/** Starts a refund, unless a dispute took what it would be taken from: then processing fails it. */
async function startUnlessSpent(
  deps: RefundProcessDeps,
  db: Handle,
  merchant: Merchant,
  refund: RefundRequest,
  lease: Parameters<typeof startRefund>[5],
) {
  try {
    return await startRefund(deps, db, merchant, refund, 'requested', lease);
  } catch (error) {
    if (error instanceof NothingLeft) return 'spent';
    throw error;
  }
}

function notReviewable(refund: RefundRequest, verb: string): OperatorError {
  const how = refund.status === 'requested' ? 'approved already' : refund.status;
  return new OperatorError(
    `Refund ${refund.id} is ${how}: only one that waits for review can be ${verb}.`,
  );
}
