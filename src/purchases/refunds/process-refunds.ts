import assert from 'node:assert/strict';
import { type Gateway, OutcomeUnknown } from '#gateway/gateway.ts';
import type { Gateways } from '#gateway/gateways.ts';
import { isKeyRemembered, leaseSeconds, mayBeInFlight, nextRetryAt } from '#gateway/retry-times.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { type MerchantDueWork, runDueWork, runMerchantDueWork } from '#merchants/run-due-work.ts';
import type { Database } from '#platform/database/database.ts';
import { releaseDue } from '#platform/database/due-work.sql.ts';
import { reading, transaction } from '#platform/database/transaction.ts';
import { writeAndCommit } from '#platform/database/write-together.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Tracer } from '#platform/tracing/trace.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { raiseGatewayAlert } from '#record/alerts/raise-gateway-alert.ts';
import {
  failRequested,
  isOnCard,
  type PartAnswer,
  recordParts,
  recordWatch,
} from './record-refund.ts';
import { dueRefunds, listParts, lockWithCheckout, moveAsked } from './refund.sql.ts';
import {
  byPayment,
  NothingLeft,
  nextRefundLookUp,
  type RefundPart,
  type RefundRequest,
} from './refund.ts';
import { readParts, readStart } from './refund-sources.sql.ts';
import { startRefund, sumOf } from './start-refund.ts';

export type RefundProcessDeps = QueueDeps & {
  database: Database;
  clock: Clock;
  log: Logger;
  gateways: Gateways;
  tracer: Tracer | null;
};

const work: MerchantDueWork<'refund_requests', RefundProcessDeps> = {
  due: dueRefunds,
  leaseSeconds,
  batchSize: 10,
  merchantsMax: 50,
  concurrency: 50,
  roundMilliseconds: 0,
  run: (deps, merchant, refunds) =>
    Promise.all(refunds.map((refund) => processRefund(deps, merchant, refund))),
};

/**
 * Processes refunds that are due: starts approved ones, continues pending ones, and watches ended
 * ones for a while, because the card network may return the money later.
 */
export const processDueRefunds = (deps: RefundProcessDeps) => runDueWork(deps, work);

export const processMerchantRefunds = (deps: RefundProcessDeps, merchant: Merchant) =>
  runMerchantDueWork(deps, work, merchant);

/**
 * Processes a claimed refund as far as possible now, and returns it as it was last seen. Never
 * throws: the refund is committed, and a later claim continues it.
 */
export function processRefund(
  deps: RefundProcessDeps,
  merchant: Merchant,
  refund: RefundRequest,
  /** The refund's parts, if the caller has just started it. */
  begun?: RefundPart[],
): Promise<RefundRequest> {
  const work = () => processOnce(deps, merchant, refund, begun);
  return deps.tracer ? deps.tracer.inCheckout(refund.checkout_id, 'refund', work) : work();
}

async function processOnce(
  deps: RefundProcessDeps,
  merchant: Merchant,
  refund: RefundRequest,
  begun: RefundPart[] | undefined,
): Promise<RefundRequest> {
  let seen = refund;
  let parts = begun;
  try {
    if (refund.status === 'complete' || refund.status === 'failed') {
      await watch(deps, merchant, refund);
      return refund;
    }
    if (refund.status === 'requested') {
      ({ refund: seen, parts } = await start(deps, merchant, refund));
    }
    // Another process may have claimed the refund.
    const isOurs = seen.status === 'pending' && seen.lease === refund.lease;
    return isOurs ? await carryOut(deps, merchant, seen, parts) : seen;
  } catch (error) {
    const about = { err: error, refund_id: refund.id };
    if (error instanceof OutcomeUnknown) {
      deps.log.warn(about, 'the outcome of a refund is not known yet');
    } else {
      deps.log.error(about, 'a refund could not be processed');
    }
    await releaseForRetry(deps, merchant, refund);
    await alert(deps, merchant, refund, error);
    return seen;
  }
}

async function alert(
  deps: RefundProcessDeps,
  merchant: Merchant,
  refund: RefundRequest,
  error: unknown,
): Promise<void> {
  try {
    await raiseGatewayAlert(deps, merchant, {
      what: 'A refund',
      subject_id: refund.id,
      error,
      isOutcomeUnknown: error instanceof OutcomeUnknown,
      retries: refund.attempts,
    });
  } catch (failure) {
    deps.log.error({ err: failure, refund_id: refund.id }, 'an alert could not be raised');
  }
}

async function releaseForRetry(
  deps: RefundProcessDeps,
  merchant: Merchant,
  refund: RefundRequest,
): Promise<void> {
  try {
    await release(deps, refund, nextRetryAt(merchant.now(), refund.attempts));
  } catch (error) {
    // If the release fails too, the lease runs out.
    deps.log.error(
      { err: error, refund_id: refund.id },
      'the lease of a refund could not be released',
    );
  }
}

async function release(
  deps: RefundProcessDeps,
  { merchant_id, id, lease }: RefundRequest,
  retryAt: Temporal.Instant,
): Promise<void> {
  assert(lease !== null);
  const { db } = deps.database;
  await releaseDue(db, 'refund_requests', { merchant_id, id }, lease, timestamp(retryAt));
}

/**
 * A dispute takes weeks, and an operator who must look at a checkout may take days. A refund that
 * waits for either is checked this often.
 */
const disputedHours = 6;

/**
 * Makes a requested refund `pending`, unless it must wait or another process has claimed it. Fails
 * the refund if too little is left for it.
 */
async function start(
  deps: RefundProcessDeps,
  merchant: Merchant,
  refund: RefundRequest,
): Promise<{ refund: RefundRequest; parts?: RefundPart[] }> {
  const { lease, leased_until } = refund;
  const started = await transaction(deps, async (tx) => {
    const { db } = tx;
    const at = timestamp(merchant.now());
    const [current, facts] = await Promise.all([
      lockWithCheckout(db, refund),
      readStart(db, refund, at),
    ]);
    // Another process claimed the refund, or an earlier run of this transaction was committed.
    if (current.lease !== lease || current.status !== 'requested') return { refund: current };
    const claim = { at, lease, leased_until };
    try {
      const begins = await startRefund(deps, db, merchant, current, facts, 'requested', claim);
      if (typeof begins !== 'string') await writeAndCommit(tx, begins.writes);
      return begins;
    } catch (error) {
      if (!(error instanceof NothingLeft)) throw error;
      return { refund: await failRequested(deps, db, merchant, current, error.reason) };
    }
  });
  if (typeof started !== 'string') return started;
  if (started === 'collecting') await releaseForRetry(deps, merchant, refund);
  else await release(deps, refund, merchant.now().add({ hours: disputedHours }));
  return { refund };
}

/** Sends the open parts to the gateway until none is open or the gateway needs time. */
async function carryOut(
  deps: RefundProcessDeps,
  merchant: Merchant,
  refund: RefundRequest,
  begun: RefundPart[] | undefined,
): Promise<RefundRequest> {
  // A refund that has just begun need not be read again, because none of it can be disputed yet.
  for (let known = begun; ; known = undefined) {
    const { parts, isDisputed } = known
      ? { parts: known, isDisputed: false }
      : await reading(deps, (db) => readParts(db, refund));
    const open = parts.filter(({ status }) => status === 'open');
    // A hold is voided last: until then, everything that was reduced can be restored.
    const cards = open.filter(({ kind }) => kind === 'card');
    const asked = cards.length > 0 ? cards : open;
    const requests = byPayment(asked);
    const answers = await Promise.allSettled(
      requests.map((request) => {
        const part = { ...request[0], amount: sumOf(request) };
        return isDisputed && part.kind === 'card'
          ? lookUp(deps.gateways.of(refund.gateway), merchant, part)
          : ask(deps, merchant, refund, part, known !== undefined);
      }),
    );
    const partAnswers = answers.flatMap((result, index) => {
      const answer = result.status === 'fulfilled' ? result.value : null;
      return answer === null ? [] : (requests[index] ?? []).map((part) => ({ part, answer }));
    });
    const now = merchant.now();
    const outcome = await recordParts(deps, merchant, refund, partAnswers);
    const failure = answers.find((answer) => answer.status === 'rejected');
    if (failure) throw failure.reason;
    if (typeof outcome !== 'string') return outcome;
    if (partAnswers.length < asked.length) {
      await release(deps, refund, now.add({ hours: disputedHours }));
      return refund;
    }
    if (outcome === 'waits') {
      await release(deps, refund, nextRefundLookUp(now, refund.attempts));
      // `alert` raises an alert only after about a day of look-ups.
      await alert(deps, merchant, refund, new OutcomeUnknown('the gateway has not settled it'));
      return refund;
    }
  }
}

/**
 * Looks up a card part while a dispute is open. Sends nothing: an earlier request may not have
 * arrived, and no refund may be made during a dispute. Returns null if the part must wait for the
 * end of the dispute.
 */
async function lookUp(
  gateway: Gateway,
  merchant: Merchant,
  { payment_ref, refund_ref, asked_at, amount, id: refund_id }: RefundPart,
): Promise<PartAnswer | null> {
  const time = merchant.forGateway();
  if (refund_ref !== null) return foundRefund(await gateway.refundStatus(time, refund_ref));
  if (asked_at === null) return null;
  assert(payment_ref !== null, 'a collected payment has a reference');
  const found = await gateway.findRefund(time, { payment_ref, amount, refund_id });
  return found && foundRefund(found);
}

async function ask(
  deps: RefundProcessDeps,
  merchant: Merchant,
  refund: RefundRequest,
  /** The first part of the request, with the amount of all its parts. */
  part: RefundPart,
  /** Whether the time of the request has already been written to the part. */
  isNoted: boolean,
): Promise<PartAnswer> {
  const gateway = deps.gateways.of(refund.gateway);
  const time = merchant.forGateway();
  const { payment_ref } = part;
  assert(payment_ref !== null, 'a held or collected payment has a reference');
  if (part.kind === 'hold') {
    const key = `${part.id}:void`;
    const { outcome } = await gateway.void({ key, merchant: time, payment_ref });
    assert.equal(outcome, 'voided', 'collecting is paused while a refund is in progress');
    return { outcome: 'done', refund_ref: null };
  }
  if (part.refund_ref !== null) {
    return foundRefund(await gateway.refundStatus(time, part.refund_ref));
  }
  const { amount, id: refund_id } = part;
  const isForgotten = !isKeyRemembered(part.keyed_at, time.now);
  // A service whose database was lost and restored may have sent this request before, under a key
  // that the gateway has forgotten.
  const mayBeRefunded = part.round > 1 || !isKeyRemembered(refund.created_at, time.now);
  if (isForgotten || mayBeRefunded) {
    const found = await gateway.findRefund(time, { payment_ref, amount, refund_id });
    if (found) return foundRefund(found);
  }
  if (isForgotten) {
    if (part.asked_at !== null && mayBeInFlight(part.asked_at, deps.clock.now())) {
      throw new OutcomeUnknown('a refund that was not found may be in flight');
    }
    return { outcome: 'lost' };
  }
  if (!isNoted || mayBeRefunded) {
    await moveAsked(deps.database.db, part, timestamp(deps.clock.now()));
  }
  const key = `${part.id}:a${part.key_number}`;
  const request = { id: refund.id, amount: refund.amount, created_at: refund.created_at };
  return foundRefund(
    await gateway.refund({ key, merchant: time, payment_ref, amount, refund_id, request }),
  );
}

function foundRefund(refund: {
  refund_ref: string | null;
  status: 'pending' | 'succeeded' | 'failed';
}): PartAnswer {
  const { refund_ref, status } = refund;
  return { outcome: status === 'succeeded' ? 'done' : status, refund_ref };
}

/** Checks that what was refunded to the card has not been returned by the card network. */
async function watch(
  deps: RefundProcessDeps,
  merchant: Merchant,
  refund: RefundRequest,
): Promise<void> {
  const parts = await reading(deps, (db) => listParts(db, refund));
  const given = Map.groupBy(parts.filter(isOnCard), ({ refund_ref }) => refund_ref);
  const gateway = deps.gateways.of(refund.gateway);
  const time = merchant.forGateway();
  const states = await Promise.allSettled(
    [...given.keys()].map(async (refund_ref) => {
      assert(refund_ref !== null);
      return await gateway.refundStatus(time, refund_ref);
    }),
  );
  const returned = [...given.values()].flatMap((parts, index) => {
    const state = states[index];
    return state?.status === 'fulfilled' && state.value.status === 'failed' ? parts : [];
  });
  // A check that got no answer does not count. It is retried, because it may have been the last
  // one.
  const failure = states.find((state) => state.status === 'rejected');
  if (failure && returned.length === 0) throw failure.reason;
  await recordWatch(deps, merchant, refund, returned);
}
