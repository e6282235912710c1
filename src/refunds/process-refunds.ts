import assert from 'node:assert/strict';
import { lockCheckout } from '../checkouts/checkout.sql.ts';
import type { Database } from '../database/database.ts';
import { claimDue, listMerchantsWithDue, newLease } from '../database/due-work.sql.ts';
import { reading, transaction } from '../database/transaction.ts';
import { type Gateway, OutcomeUnknown } from '../gateway/gateway.ts';
import { isKeyKnown, leaseSeconds, mayBeUnderWay, nextLook, timeFor } from '../gateway/patience.ts';
import { findMerchant } from '../merchants/merchant.sql.ts';
import { type Merchant, merchantNow } from '../merchants/merchant.ts';
import { raiseGatewayAlert } from '../operators/raise-gateway-alert.ts';
import { type Clock, timestamp } from '../shared/clock.ts';
import type { Logger } from '../shared/logger.ts';
import type { Random } from '../shared/random.ts';
import { isOnCard, type PartFinding, recordParts, recordWatch } from './record-refund.ts';
import { dueRefunds, listParts, lockRefund, moveAsked, movePutDown } from './refund.sql.ts';
import { nextRefundLook, type RefundPart, type RefundRequest } from './refund.ts';
import { startRefund } from './start-refund.ts';

export type RefundProcessDeps = {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
  gateway: Gateway;
};

const mostMerchants = 50;
const mostRefunds = 10;

/**
 * Processes refunds that are due: approved ones begin, pending ones go on, what ended ones gave to
 * a card is watched for a while, because the network may return it later. Merchant by merchant.
 */
export async function processDueRefunds(deps: RefundProcessDeps): Promise<number> {
  const { db } = deps.database;
  const now = timestamp(deps.clock.now());
  const merchants = await listMerchantsWithDue(db, dueRefunds, now, mostMerchants);
  const counts = await Promise.all(
    merchants.map(async (id) => {
      const merchant = await findMerchant(db, id);
      return merchant ? await processMerchantRefunds(deps, merchant) : 0;
    }),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

export async function processMerchantRefunds(
  deps: RefundProcessDeps,
  merchant: Merchant,
): Promise<number> {
  const now = timestamp(merchantNow(deps.clock, merchant));
  const claim = { ...newLease(deps, leaseSeconds), merchantNow: now };
  const refunds = await claimDue(deps.database.db, dueRefunds, merchant.id, claim, mostRefunds);
  await Promise.all(refunds.map((refund) => processRefund(deps, merchant, refund)));
  return refunds.length;
}

/**
 * Takes a refund in hand as far as it goes now. Never throws: the refund is on record whatever
 * happens here, and whoever looks at it next goes on.
 */
export async function processRefund(
  deps: RefundProcessDeps,
  merchant: Merchant,
  refund: RefundRequest,
): Promise<void> {
  try {
    if (refund.status === 'complete' || refund.status === 'failed') {
      await watch(deps, merchant, refund);
      return;
    }
    const pending = refund.status === 'pending' ? refund : await start(deps, merchant, refund);
    if (pending) await carryOut(deps, merchant, pending);
  } catch (error) {
    const about = { err: error, refund_id: refund.id };
    if (error instanceof OutcomeUnknown) {
      deps.log.warn(about, 'the outcome of a refund is not known yet');
    } else {
      deps.log.error(about, 'a refund could not be processed');
    }
    await putDown(deps, merchant, refund);
    await tell(deps, merchant, refund, error);
  }
}

async function tell(
  deps: RefundProcessDeps,
  merchant: Merchant,
  refund: RefundRequest,
  error: unknown,
): Promise<void> {
  try {
    await raiseGatewayAlert(deps, merchant, {
      what: `Refund ${refund.id}`,
      subject_id: refund.id,
      error,
      isOutcomeUnknown: error instanceof OutcomeUnknown,
      retries: refund.tries,
    });
  } catch (failure) {
    deps.log.error({ err: failure, refund_id: refund.id }, 'the operator could not be told');
  }
}

async function putDown(
  deps: RefundProcessDeps,
  merchant: Merchant,
  refund: RefundRequest,
): Promise<void> {
  const again = timestamp(nextLook(merchantNow(deps.clock, merchant), refund.tries));
  try {
    await movePutDown(deps.database.db, refund, again);
  } catch (error) {
    // Its lease will run out all the same.
    deps.log.error({ err: error, refund_id: refund.id }, 'a refund was not put down');
  }
}

/** requested → pending. Null when it has to wait, or somebody else has it. */
async function start(
  deps: RefundProcessDeps,
  merchant: Merchant,
  refund: RefundRequest,
): Promise<RefundRequest | null> {
  const { lease, leased_until } = refund;
  const started = await transaction(deps, async ({ db }) => {
    await lockCheckout(db, refund.merchant_id, refund.checkout_id);
    const current = await lockRefund(db, refund);
    if (current?.lease !== lease) return null;
    // This very step is committed already.
    if (current.status === 'pending') return current;
    const at = timestamp(merchantNow(deps.clock, merchant));
    const claim = { at, lease, leased_until };
    return (await startRefund(deps, db, current, 'requested', claim)) ?? 'waits';
  });
  if (started !== 'waits') return started;
  await putDown(deps, merchant, refund);
  return null;
}

/** Asks the gateway for what is open until nothing is, or the gateway needs time. */
async function carryOut(
  deps: RefundProcessDeps,
  merchant: Merchant,
  refund: RefundRequest,
): Promise<void> {
  for (;;) {
    const parts = await reading(deps, (db) =>
      listParts(db, refund.merchant_id, refund.checkout_id),
    );
    const open = parts.filter((part) => part.refund_id === refund.id && part.status === 'open');
    // A hold is let go last: until then everything that was taken can be put back.
    const cards = open.filter(({ kind }) => kind === 'card');
    const asked = cards.length > 0 ? cards : open;
    const answers = await Promise.allSettled(asked.map((part) => ask(deps, merchant, part)));
    const findings = answers.flatMap((answer, index) =>
      answer.status === 'fulfilled'
        ? [{ part: asked[index] as RefundPart, finding: answer.value }]
        : [],
    );
    const now = merchantNow(deps.clock, merchant);
    const outcome = await recordParts(deps, merchant, refund, findings);
    const failure = answers.find((answer) => answer.status === 'rejected');
    if (failure) throw failure.reason;
    if (outcome !== 'goes on') {
      if (outcome === 'waits') {
        const again = timestamp(nextRefundLook(now, refund.tries));
        await movePutDown(deps.database.db, refund, again);
        // Half a day in all by then.
        const patience = new OutcomeUnknown('the gateway takes long over it');
        await tell(deps, merchant, refund, patience);
      }
      return;
    }
  }
}

async function ask(
  deps: RefundProcessDeps,
  merchant: Merchant,
  part: RefundPart,
): Promise<PartFinding> {
  const time = timeFor(deps.clock, merchant);
  const { payment_ref } = part;
  assert(payment_ref !== null, 'what is held or was collected has a reference');
  if (part.kind === 'hold') {
    const key = `${part.id}:void`;
    const { outcome } = await deps.gateway.void({ key, merchant: time, payment_ref });
    assert.equal(outcome, 'voided', 'nobody captures while a refund is in progress');
    return { outcome: 'done', refund_ref: null };
  }
  if (part.refund_ref !== null) {
    return foundRefund(await deps.gateway.refundStatus(time, part.refund_ref));
  }
  if (!isKeyKnown(part.keyed_at, time.now)) {
    const found = await deps.gateway.findRefund(time, { payment_ref, refund_id: part.id });
    if (found) return foundRefund(found);
    if (part.asked_at !== null && mayBeUnderWay(part.asked_at, deps.clock.now())) {
      throw new OutcomeUnknown('a refund that is not there yet may be under way');
    }
    return { outcome: 'lost' };
  }
  await moveAsked(deps.database.db, part, timestamp(deps.clock.now()));
  const refund = await deps.gateway.refund({
    key: `${part.id}:a${part.key_number}`,
    merchant: time,
    payment_ref,
    amount: part.amount,
    refund_id: part.id,
  });
  return foundRefund(refund);
}

function foundRefund(refund: {
  refund_ref: string | null;
  status: 'pending' | 'succeeded' | 'failed';
}): PartFinding {
  const { refund_ref, status } = refund;
  return { outcome: status === 'succeeded' ? 'done' : status, refund_ref };
}

/** Asks whether what was given back to the card is still there. */
async function watch(
  deps: RefundProcessDeps,
  merchant: Merchant,
  refund: RefundRequest,
): Promise<void> {
  const parts = await reading(deps, (db) => listParts(db, refund.merchant_id, refund.checkout_id));
  const given = parts.filter((part) => part.refund_id === refund.id && isOnCard(part));
  const time = timeFor(deps.clock, merchant);
  const states = await Promise.allSettled(
    given.map(async (part) => {
      assert(part.refund_ref !== null);
      return await deps.gateway.refundStatus(time, part.refund_ref);
    }),
  );
  const returned = given.filter((_, index) => {
    const state = states[index];
    return state?.status === 'fulfilled' && state.value.status === 'failed';
  });
  // What the gateway would not say is asked for on the next of the days, and not for ever.
  const failure = states.find((state) => state.status === 'rejected');
  if (failure) {
    const about = { err: failure.reason, refund_id: refund.id };
    deps.log.warn(about, 'the gateway did not say whether a refund still stands');
  }
  await recordWatch(deps, merchant, refund, returned);
}
