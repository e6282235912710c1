import assert from 'node:assert/strict';
import {
  acceptSignatures,
  refuseUnsigned,
  type SignedPost,
} from '#merchants/integrations/accept-signatures.ts';
import { mustSign } from '#merchants/integrations/check-signature.ts';
import { findIntegration } from '#merchants/integrations/integration.sql.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Database, Handle } from '#platform/database/database.ts';
import { advanceListTotal } from '#platform/database/merchant-lists.sql.ts';
import { beginInTime, type Transaction, transaction } from '#platform/database/transaction.ts';
import { writeTogether } from '#platform/database/write-together.ts';
import { notFound, unprocessable } from '#platform/http/errors.ts';
import type { KeyedRequest } from '#platform/http/idempotency.sql.ts';
import { recordAnswer } from '#platform/http/idempotency.ts';
import type { Approver } from '#platform/shared/approver.ts';
import type { Clock } from '#platform/shared/clock.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { createTurns } from '#platform/shared/in-turn.ts';
import type { Random } from '#platform/shared/random.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { joinCheckout } from '#platform/tracing/trace.ts';
import { lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { sumDisputed } from '#purchases/disputes/dispute.sql.ts';
import { postingsOf } from '#record/ledger/post-movements.ts';
import { announceRefund } from './announce-refund.ts';
import type { CreateRefundBody } from './refund.schema.ts';
import { findRefund, insertRefunds, sumRefunds } from './refund.sql.ts';
import { explainClosedWindow, type RefundRequest } from './refund.ts';

export const unknownCheckout = () => notFound('There is no checkout with that checkout_id.');

const explainDisputed = (disputed: number, remainder: number) =>
  `The shopper disputes ${disputed} cents of this checkout with the bank. Until that is decided, at most ${remainder} cents can be refunded.`;

/**
 * Refunds of one checkout wait for the same row. They queue here, so that waiting refunds hold no
 * connection. Each database has its own queues, because each has its own connections.
 */
const queues = new WeakMap<Database, ReturnType<typeof createTurns>>();

function queueOf(database: Database): ReturnType<typeof createTurns> {
  const queue = queues.get(database) ?? createTurns();
  queues.set(database, queue);
  return queue;
}

export async function createRefund(
  deps: { database: Database; clock: Clock; random: Random },
  post: SignedPost & { keyed: KeyedRequest | null },
  merchant: Merchant,
  { checkout_id, amount }: CreateRefundBody,
): Promise<RefundRequest> {
  if (!isUuid(checkout_id)) throw unknownCheckout();
  const id = deps.random.uuid();
  const create = async ({ db }: Transaction, maybeCommitted: boolean) => {
    const now = merchant.now();
    const mandatory = await refuseUnsigned(db, [post]);

    // Refunds of one checkout are serialised from here on.
    const checkout = await lockCheckout(db, merchant.id, checkout_id);
    if (maybeCommitted) {
      // The refund is looked up before anything is refused: once committed it is valid, even if a
      // signature has become mandatory since.
      const committed = await findRefund(db, merchant.id, id);
      if (committed) return committed;
    }
    if (post.key === null && mandatory.has(post.caller.id)) throw mustSign();
    if (!checkout) throw unknownCheckout();
    joinCheckout(checkout.id);
    if (checkout.status !== 'successful') {
      throw unprocessable('Only successful checkouts can be refunded.');
    }
    assert(checkout.completed_at !== null);
    const [creator, refunded, disputed] = await readCreatorAndSums(db, checkout);
    assert(creator);
    const closed = explainClosedWindow(
      {
        completed_at: checkout.completed_at,
        refund_mode: creator.refund_mode,
        time_zone: merchant.territory.time_zone,
      },
      now,
    );
    if (closed !== null) throw unprocessable(closed);
    const unrefunded = checkout.amount - refunded;
    // Money that a cardholder disputes is with the cardholder, or may be soon.
    const remainder = Math.max(0, unrefunded - disputed);
    if (amount > remainder && amount <= unrefunded)
      throw unprocessable(explainDisputed(disputed, remainder));
    if (amount > remainder) {
      throw unprocessable(`Refund amount exceeds the refundable remainder of ${remainder} cents.`);
    }
    const refund = await reserveRefund(deps, db, { merchant, now }, checkout, {
      id,
      amount,
      integration_id: post.caller.id,
      signed: post.key !== null,
      isApproved: creator.refund_mode === 'auto' && (await isAuto(db, post.caller.id)),
      requester: null,
      reason: null,
    });
    await acceptSignatures(db, [post], timestamp(deps.clock.now()));
    if (post.keyed) {
      await recordAnswer(db, deps.clock, { ...post.keyed, status: 200, answer: refund });
    }
    return refund;
  };
  const inTurn = queueOf(deps.database);
  return await inTurn(checkout_id.toLowerCase(), () =>
    beginInTime(deps.clock, () => transaction(deps, create)),
  );
}

/**
 * The integration that created the checkout, which decides how it is refunded (decision 0014), and
 * the amounts that are already refunded or disputed. Call it after the checkout is locked, so that
 * refunds committed while we waited are counted.
 */
const readCreatorAndSums = (db: Handle, { merchant_id, id, integration_id }: Checkout) =>
  Promise.all([
    findIntegration(db, integration_id),
    sumRefunds(db, merchant_id, id),
    sumDisputed(db, merchant_id, id),
  ]);

/**
 * Auto-approval integrations need no review (decision 0014). An integration whose own refunds are
 * reviewed cannot avoid the review by refunding another integration's checkouts (decision 0074).
 */
const isAuto = async (db: Handle, id: string) =>
  (await findIntegration(db, id))?.refund_mode === 'auto';

/** Writes a request and reserves its amount, in a transaction that holds the checkout's lock. */
export async function reserveRefund(
  deps: { random: Random },
  db: Handle,
  { merchant, now }: { merchant: Merchant; now: Temporal.Instant },
  checkout: Pick<Checkout, 'merchant_id' | 'id' | 'currency' | 'gateway'>,
  wanted: {
    id: string;
    amount: number;
    integration_id: string;
    signed: boolean;
    isApproved: boolean;
    /** The operator who requests it. Null if it comes over the API. */
    requester: Approver | null;
    reason: string | null;
    uncollected_only?: boolean;
  },
): Promise<RefundRequest> {
  const { id, amount, integration_id, signed, isApproved, requester, reason } = wanted;
  const { merchant_id, currency, gateway } = checkout;
  const { total, last_created_at } = await advanceListTotal(
    db,
    merchant_id,
    'refund_requests',
    1,
    timestamp(now),
  );
  const refund: RefundRequest = {
    merchant_id,
    id,
    number: total,
    // The id as it is stored; the caller may have used upper case.
    checkout_id: checkout.id,
    gateway,
    integration_id,
    status: 'requested',
    amount,
    currency,
    signed,
    uncollected_only: wanted.uncollected_only ?? false,
    created_at: last_created_at,
    approved_at: isApproved ? last_created_at : null,
    completed_at: null,
    reason: null,
    kept: 0,
    due_at: isApproved ? last_created_at : null,
    attempts: 0,
    lease: null,
    leased_until: null,
    requested_by: requester?.person_id ?? null,
    requested_by_name: requester?.name ?? null,
    request_reason: reason,
    first_approved_by: null,
    first_approved_by_name: null,
    first_approved_at: null,
    approved_by: null,
    approved_by_name: null,
  };
  const movement = { merchant_id, checkout_id: checkout.id, amount, currency, refund_id: id };
  await writeTogether(db, {
    refund: insertRefunds([refund]),
    postings: postingsOf(deps, last_created_at, [{ ...movement, kind: 'reserved' }]),
  });
  await announceRefund(deps, db, merchant, refund);
  return refund;
}
