import assert from 'node:assert/strict';
import { leaseSeconds } from '#gateway/retry-times.ts';
import {
  type FourEyesDefault,
  type Merchant,
  onOwnClock,
  thresholdOf,
} from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import { newLease } from '#platform/database/due-work.sql.ts';
import type { Writes } from '#platform/database/write-together.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import { showMoney } from '#platform/shared/money.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import { FreeText } from '#record/actions/free-text.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import { refuseStale } from '#record/actions/refuse-stale.ts';
import { approverOf, mustBeApprover, mustBeSecondApprover } from '#record/actions/second-person.ts';
import { postMovements } from '#record/ledger/post-movements.ts';
import { announceRefund } from './announce-refund.ts';
import { processRefund, type RefundProcessDeps } from './process-refunds.ts';
import {
  findRefundMerchant,
  findRefundOwner,
  lockRefund,
  lockWithCheckout,
  moveRefund,
  sumRefundable,
} from './refund.sql.ts';
import {
  agreedTo,
  explainBadReason,
  isFirstOfTwo,
  NothingLeft,
  type RefundPart,
  type RefundRequest,
} from './refund.ts';
import { type RefundStart, readApproval, readStart } from './refund-sources.sql.ts';
import { startRefund, sumOf } from './start-refund.ts';

export type ReviewDeps = RefundProcessDeps & FourEyesDefault & Pick<OperatorDeps, 'origin'>;

/**
 * The console names a refund together with its merchant, so that an action never reaches another
 * merchant's refund. The command line gives only the id.
 */
type NamedRefund = string | { merchant_id: string; id: string };

/**
 * Approves a request for an operator, and processes it at once. Above the merchant's threshold two
 * people have to approve it (decision 0074): the first approval is only recorded. If `asFirst` is
 * set, the operator expects theirs to be the first of two approvals, and an approval that would
 * start the refund is refused.
 */
export async function approveRefund(
  deps: ReviewDeps,
  operator: string,
  named: NamedRefund,
  asFirst = false,
): Promise<RefundRequest> {
  return await reviewed(deps, operator, 'refunds approve', named, async (db, found, claim) => {
    const { merchant, ...lease } = claim;
    // Both statements are sent together. The second one begins once the first one has its locks.
    const [refund, facts] = await Promise.all([
      lockWithCheckout(db, found),
      readApproval(db, found, lease.at),
    ]);
    if (refund.status !== 'requested' || refund.approved_at !== null) {
      throw notReviewable(refund, 'approved');
    }
    const agreed = agreedTo(refund);
    if (agreed.length > 0) mustBeSecondApprover(deps, operator, agreed);
    const reviewer = approverOf(deps, operator);
    const above = agreed.length === 0 ? thresholdOf(deps, facts.threshold) : null;
    if (above !== null && isFirstOfTwo(refund, above, facts.alone)) {
      mustBeApprover(deps);
      return await move(db, refund, {
        first_approved_by: reviewer.person_id,
        first_approved_by_name: reviewer.name,
        first_approved_at: lease.at,
      });
    }
    if (asFirst) await refuseStale(db, { id: refund.id }, firstOfTwo, deps);
    const by = { approved_by: reviewer.person_id, approved_by_name: reviewer.name };
    const approval = { ...lease, ...by };
    const started = await startUnlessSpent(
      deps,
      db,
      merchant,
      refund,
      facts,
      'requested',
      approval,
    );
    if (typeof started !== 'string') return started;
    const { at: approved_at, ...leased } = approval;
    const to = { ...leased, approved_at, due_at: approved_at, attempts: 0 };
    return await move(db, refund, to);
  });
}

/** The details that the audit has of a first approval. */
const firstOfTwo = { approval: 'first of two' };

/** Moves a locked request that has no parts yet. */
async function move(
  db: Handle,
  refund: RefundRequest,
  to: Parameters<typeof moveRefund>[3],
): Promise<Reviewed> {
  const moved = await moveRefund(db, refund, ['requested'], to);
  assert(moved, 'the refund is locked');
  return { refund: moved };
}

/**
 * Retries a failed refund for an operator, if enough of the checkout is left (decision 0014). A
 * declined refund was never approved, and a retry does not approve it (decision 0074).
 */
export async function retryRefund(
  deps: ReviewDeps,
  operator: string,
  named: NamedRefund,
): Promise<RefundRequest> {
  return await reviewed(deps, operator, 'refunds retry', named, async (db, found, claim) => {
    const { merchant, ...lease } = claim;
    const [checkout, refund, facts] = await Promise.all([
      lockCheckout(db, found.merchant_id, found.checkout_id),
      lockRefund(db, found),
      readStart(db, found, lease.at),
    ]);
    assert(checkout && refund);
    if (refund.status !== 'failed') {
      throw new OperatorError(
        `Refund ${refund.id} is ${refund.status}: only a failed refund can be retried.`,
      );
    }
    if (refund.approved_at === null) {
      throw new OperatorError(
        `Refund ${refund.id} was declined and never approved, so it cannot be retried. To refund it after all, request a new refund on the checkout's page in the console, or through the merchant API.`,
      );
    }
    const moved = sumOf(facts.earlier.filter(({ status }) => status === 'done'));
    const remainder = await sumRefundable(db, checkout);
    if (refund.amount - moved > remainder) {
      const place = { currency: refund.currency, locale: merchant.territory.locale };
      throw new OperatorError(
        `${showMoney(refund.amount - moved, place)} is left to refund, but only ${showMoney(remainder, place)} of the checkout can still be refunded.`,
      );
    }
    const started = await startUnlessSpent(deps, db, merchant, refund, facts, 'failed', lease);
    if (typeof started === 'string') throw new OperatorError(notRetried[started]);
    return started;
  });
}

const notRetried = {
  disputed: 'The shopper is disputing a payment of this checkout. Try again when that is decided.',
  blocked:
    'The gateway and our records differ about this checkout, so it is blocked. Try again when an operator of the payment service has released it.',
  collecting:
    'A payment of this checkout must be collected first. Try again when its outcome is known.',
  spent: 'The payments that it may be taken from no longer hold enough. Request a new refund.',
};

/** Declines a request for an operator, with a reason. Its amount can be refunded again. */
export async function declineRefund(
  deps: OperatorDeps,
  operator: string,
  named: NamedRefund,
  reason: string,
): Promise<RefundRequest> {
  const bad = explainBadReason(reason);
  if (bad !== null) throw new OperatorError(bad);
  const found = await findNamed(deps, named);
  const { merchant } = found;
  return await operate(deps, operator, 'refunds decline', async (db) => {
    const refund = await lockWithCheckout(db, found);
    if (refund.status !== 'requested' || refund.approved_at !== null) {
      throw notReviewable(refund, 'declined');
    }
    const declined = await moveRefund(db, refund, ['requested'], { status: 'failed', reason });
    const { merchant_id, checkout_id, currency, amount } = refund;
    const at = timestamp(merchant.now());
    const movement = { merchant_id, checkout_id, currency, amount, refund_id: refund.id };
    await postMovements(deps, db, at, [{ ...movement, kind: 'released' }]);
    const details = { reason: new FreeText(reason) };
    assert(declined, 'the refund is locked');
    await announceRefund(deps, db, merchant, declined);
    return { subject_id: refund.id, merchant_id: merchant.id, details, result: declined };
  });
}

/** A refund after an operator's change, with its parts and the writes to send if it began. */
type Reviewed = { refund: RefundRequest; parts?: RefundPart[]; writes?: Writes };

type Claim = { at: Timestamp; lease: string; leased_until: Timestamp; merchant: Merchant };

/** Makes the operator's change, and processes the refund under the same lease if it is approved. */
async function reviewed(
  deps: ReviewDeps,
  operator: string,
  action: string,
  named: NamedRefund,
  change: (db: Handle, found: Found, claim: Claim) => Promise<Reviewed>,
): Promise<RefundRequest> {
  const found = await findNamed(deps, named);
  const { merchant } = found;
  const claimed = await operate(deps, operator, action, async (db) => {
    const { now: _, ...lease } = newLease(deps, leaseSeconds);
    const at = timestamp(merchant.now());
    const { writes, ...result } = await change(db, found, { ...lease, at, merchant });
    const { id, checkout_id, amount } = result.refund;
    const isFirst = result.refund.approved_at === null && firstOfTwo;
    const details = { checkout_id, amount, ...isFirst };
    const about = { subject_id: id, merchant_id: merchant.id, details };
    return { ...about, result, ...(writes && { writes }) };
  });
  const { refund, parts } = claimed;
  return refund.approved_at === null ? refund : await processRefund(deps, merchant, refund, parts);
}

/** The refund that an operator named. The ids never change, so they are read before the lock. */
type Found = { merchant_id: string; checkout_id: string; id: string; merchant: Merchant };

async function findNamed(deps: OperatorDeps, named: NamedRefund): Promise<Found> {
  const { db } = deps.database;
  const id = typeof named === 'string' ? named : named.id;
  const merchant_id =
    typeof named !== 'string'
      ? named.merchant_id
      : isUuid(named)
        ? await findRefundMerchant(db, named)
        : null;
  const owner = merchant_id ? await findRefundOwner(db, { merchant_id, id }) : null;
  if (!owner) throw new OperatorError(`There is no refund ${id}.`);
  const merchant = onOwnClock(deps.clock, owner.merchant);
  return { merchant_id: merchant.id, checkout_id: owner.checkout_id, id, merchant };
}

/**
 * Starts a refund. Returns `spent` if a dispute or another refund took the money that it needs: an
 * approved refund then fails when it is processed.
 */
async function startUnlessSpent(
  deps: RefundProcessDeps,
  db: Handle,
  merchant: Merchant,
  refund: RefundRequest,
  facts: RefundStart,
  from: 'requested' | 'failed',
  lease: Parameters<typeof startRefund>[6],
) {
  try {
    return await startRefund(deps, db, merchant, refund, facts, from, lease);
  } catch (error) {
    if (error instanceof NothingLeft) return 'spent';
    throw error;
  }
}

function notReviewable(refund: RefundRequest, verb: string): OperatorError {
  const how = refund.status === 'requested' ? 'already approved' : refund.status;
  return new OperatorError(
    `Refund ${refund.id} is ${how}: only a refund that is waiting for review can be ${verb}.`,
  );
}
