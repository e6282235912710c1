import assert from 'node:assert/strict';
import { OutcomeUnknown, RequestRefused } from '#gateway/gateway.ts';
import { isMoneyStopped, type MoneyProblem } from '#gateway/guard-gateway.ts';
import { leaseSeconds, nextRetryAt } from '#gateway/retry-times.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { type MerchantDueWork, runDueWork, runMerchantDueWork } from '#merchants/run-due-work.ts';
import type { Handle } from '#platform/database/database.ts';
import { newLease, releaseDue } from '#platform/database/due-work.sql.ts';
import { reading, transaction } from '#platform/database/transaction.ts';
import { secondsAfter, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import { findCheckout, lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { listCheckoutDisputes } from '#purchases/disputes/dispute.sql.ts';
import { isBlocked } from '#purchases/instalments/gateway-block.sql.ts';
import { listLastCollections, lockInstalments } from '#purchases/instalments/instalment.sql.ts';
import type { Instalment } from '#purchases/instalments/instalment.ts';
import { openShopperPayment } from '#purchases/instalments/shopper-payment.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import type { Consent } from '#purchases/payments/payment-attempt.ts';
import { raiseGatewayAlert } from '#record/alerts/raise-gateway-alert.ts';
import { type AskDeps, askGateway } from './ask-gateway.ts';
import { coveredBy } from './plan.ts';
import type { ActRefusal, PayPlanRequest, ReplaceCardRequest } from './plan-act.ts';
import type { PlanKey } from './plan-proof.sql.ts';
import { recordAct } from './record-act.ts';
import {
  claimShopperAttempt,
  dueShopperAttempts,
  findGatewayRefs,
  findNewestAttempt,
  insertShopperAttempt,
  moveAttemptGivenUp,
  moveShopperAttempt,
} from './shopper-attempt.sql.ts';
import {
  cardTokenContext,
  isInFlight,
  type Purpose,
  type ShopperAttempt,
  shopperAttemptId,
} from './shopper-attempt.ts';

export type ActDeps = AskDeps & QueueDeps & { log: Logger; money: MoneyProblem };

/**
 * A shopper pays payments of the plan. The attempt is committed before the gateway is called, so
 * that a worker can settle it if this process dies. Returns why nothing was begun. It is null if an
 * attempt was begun, or another one is in flight; the page shows it.
 */
export async function payPlan(
  deps: ActDeps,
  merchant: Merchant,
  checkout: Pick<Checkout, 'merchant_id' | 'id'>,
  request: PayPlanRequest,
): Promise<ActRefusal | null> {
  return await begin(deps, merchant, checkout, {
    purpose: 'pay',
    card_token: request.card_token,
    consent: request.keep_card ? request.consent : null,
    wanted: request,
  });
}

/** A shopper replaces the card for the payments to come. Nothing is charged. */
export async function replaceStoredCard(
  deps: ActDeps,
  merchant: Merchant,
  checkout: Pick<Checkout, 'merchant_id' | 'id'>,
  { card_token, consent }: ReplaceCardRequest,
): Promise<ActRefusal | null> {
  return await begin(deps, merchant, checkout, {
    purpose: 'replace_card',
    card_token,
    consent,
    wanted: null,
  });
}

type Act = {
  purpose: Purpose;
  card_token: string | null;
  consent: Consent | null;
  /** The payments to pay; null when the card is replaced. */
  wanted: Pick<PayPlanRequest, 'what' | 'payments' | 'amount'> | null;
};

async function begin(
  deps: ActDeps,
  merchant: Merchant,
  { merchant_id, id: checkout_id }: Pick<Checkout, 'merchant_id' | 'id'>,
  act: Act,
): Promise<ActRefusal | null> {
  if (await isMoneyStopped(deps.money)) return 'payments_paused';
  const key = { merchant_id, checkout_id };
  const left = await leaveChallenge(deps, merchant, key);
  if (left) await settleAct(deps, merchant, left);
  const opened = await openAttempt(deps, merchant, key, act);
  if (typeof opened === 'string' || opened === null) return opened;
  await settleAct(deps, merchant, opened);
  return null;
}

/**
 * The shopper left their bank's challenge and begins again: ends that attempt. It may have
 * succeeded meanwhile, so the new one begins only after its outcome is known.
 */
async function leaveChallenge(
  deps: ActDeps,
  merchant: Merchant,
  key: PlanKey,
): Promise<ShopperAttempt | null> {
  const newest = await reading(deps, (db) => findNewestAttempt(db, key));
  if (newest?.status !== 'challenged') return null;
  const { now: _, ...lease } = newLease(deps, leaseSeconds);
  return await transaction(deps, async ({ db }, maybeCommitted) => {
    await lockCheckout(db, key.merchant_id, key.checkout_id);
    const current = await findNewestAttempt(db, key);
    if (maybeCommitted && current?.lease === lease.lease) return current;
    if (current?.status !== 'challenged') return null;
    const due_at = timestamp(merchant.now());
    // Another process may be looking it up. The answer that it gets no longer counts.
    const to = { ...lease, status: 'voiding' as const, due_at, tries: 0 };
    return await moveShopperAttempt(db, current, ['challenged'], to);
  });
}

/** A refusal, or null while another attempt is in flight. */
async function openAttempt(
  deps: ActDeps,
  merchant: Merchant,
  key: PlanKey,
  act: Act,
): Promise<ShopperAttempt | ActRefusal | null> {
  const { merchant_id, checkout_id } = key;
  const lease = deps.random.uuid();
  return await transaction(deps, async ({ db }, maybeCommitted) => {
    const checkout = await lockCheckout(db, merchant_id, checkout_id);
    assert(checkout);
    const newest = await findNewestAttempt(db, key);
    if (maybeCommitted && newest?.lease === lease) return newest;
    if (newest && isInFlight(newest)) return null;
    // A collection that is recorded now holds the locks of its payments, not that of the checkout.
    const instalments = await lockInstalments(db, key);
    const { customer_ref, card_ref } = await findGatewayRefs(db, key);
    const usesStoredCard = act.card_token === null;
    if (customer_ref === null || (usesStoredCard && card_ref === null)) return 'plan_changed';
    // Only a plan with a stored card can have another one.
    if (act.consent !== null && card_ref === null) return 'plan_changed';
    const payments = act.wanted ? coveredBy(act.wanted.what, instalments) : [];
    const refusal = await findRefusal(db, key, act, instalments, payments);
    if (refusal !== null) return refusal;

    const number = (newest?.number ?? 0) + 1;
    const id = shopperAttemptId(checkout_id, number);
    const now = merchant.now();
    const at = timestamp(now);
    await insertShopperAttempt(db, {
      merchant_id,
      id,
      checkout_id,
      number,
      purpose: act.purpose,
      status: 'starting',
      instalments: payments.map((payment) => payment.number),
      amount: sumOf(payments),
      currency: checkout.currency,
      sealed_card_token:
        act.card_token === null
          ? null
          : deps.sealing.seal(act.card_token, cardTokenContext({ id })),
      uses_stored_card: usesStoredCard,
      keeps_card: act.consent !== null,
      consent: act.consent,
      customer_ref,
      card_ref: usesStoredCard ? card_ref : null,
      created_at: at,
      due_at: at,
      lease,
      leased_until: timestamp(secondsAfter(deps.clock.now(), leaseSeconds)),
    });
    if (payments.length > 0) {
      const card = { customer_ref, card_ref: usesStoredCard ? card_ref : null };
      const asked_at = timestamp(deps.clock.now());
      await openShopperPayment(db, { ...key, id }, payments, card, { at, asked_at });
    }
    const inserted = await findNewestAttempt(db, key);
    assert(inserted?.id === id);
    return inserted;
  });
}

async function findRefusal(
  db: Handle,
  { merchant_id, checkout_id }: PlanKey,
  { wanted }: Act,
  instalments: Instalment[],
  payments: Instalment[],
): Promise<ActRefusal | null> {
  if (wanted === null) {
    return coveredBy('rest', instalments).length === 0 ? 'plan_changed' : null;
  }
  // A payment that was in flight when the dispute came is not paused yet.
  const disputes = await listCheckoutDisputes(db, { merchant_id, checkout_id });
  if (disputes.some(({ is_pausing }) => is_pausing)) return 'disputed';
  if (await isBlocked(db, { merchant_id, checkout_id })) return 'payments_paused';
  if (instalments.some(({ paused }) => paused)) return 'refund_in_progress';
  const numbers = payments.map(({ number }) => number);
  const isShown =
    numbers.length > 0 &&
    numbers.join() === wanted.payments.join() &&
    sumOf(payments) === wanted.amount;
  if (!isShown) return 'plan_changed';
  const collections = await listLastCollections(db, merchant_id, [checkout_id]);
  const isCharged = collections.some(
    ({ status, instalment }) => status === 'open' && numbers.includes(instalment),
  );
  return isCharged ? 'being_charged' : null;
}

const sumOf = (payments: Instalment[]) =>
  payments.reduce((sum, { amount, reduced }) => sum + amount - reduced, 0);

/**
 * Finds the outcome of a claimed attempt and records it, or releases the attempt. Never throws: the
 * attempt is committed, and a later claim settles it.
 */
async function settleAct(
  deps: ActDeps,
  merchant: Merchant,
  attempt: ShopperAttempt,
): Promise<void> {
  try {
    const checkout = await reading(deps, (db) =>
      findCheckout(db, attempt.merchant_id, attempt.checkout_id),
    );
    assert(checkout);
    const finding = await askGateway(deps, merchant, checkout, attempt);
    await recordAct(deps, merchant, attempt, finding);
  } catch (error) {
    const about = { err: error, attempt_id: attempt.id };
    if (error instanceof OutcomeUnknown) {
      deps.log.warn(about, "the outcome of a shopper's attempt is not known yet");
    } else {
      deps.log.error(about, "a shopper's attempt could not be settled");
    }
    try {
      await releaseFailed(deps, merchant, attempt, error);
    } catch (failure) {
      // Its lease runs out anyway.
      deps.log.error({ ...about, err: failure }, "a shopper's attempt was not released");
    }
  }
}

/** A shopper does not wait for a request that the gateway refused: the attempt is given up. */
async function releaseFailed(
  deps: ActDeps,
  merchant: Merchant,
  attempt: ShopperAttempt,
  error: unknown,
): Promise<void> {
  const { db } = deps.database;
  const { merchant_id, id, lease, tries, number, checkout_id } = attempt;
  assert(lease !== null);
  const retryAt = timestamp(nextRetryAt(merchant.now(), tries));
  const isRefused = attempt.status === 'starting' && error instanceof RequestRefused;
  const isGivenUp = isRefused && (await moveAttemptGivenUp(db, attempt, retryAt));
  if (!isGivenUp) await releaseDue(db, 'shopper_attempts', { merchant_id, id }, lease, retryAt);
  await raiseGatewayAlert(deps, merchant, {
    what: `Attempt ${number} of the shopper of checkout ${checkout_id}`,
    subject_id: checkout_id,
    error,
    isOutcomeUnknown: error instanceof OutcomeUnknown,
    retries: tries,
    isGivenUp,
  });
}

const work: MerchantDueWork<'shopper_attempts', ActDeps> = {
  due: dueShopperAttempts,
  leaseSeconds,
  batchSize: 10,
  merchantsMax: 50,
  lanes: 10,
  roundMilliseconds: 0,
  act: (deps, merchant, attempts) =>
    Promise.all(attempts.map((attempt) => settleAct(deps, merchant, attempt))),
};

/** Settles attempts that are due: unknown outcomes, challenges that were left. */
export const recoverActs = (deps: ActDeps) => runDueWork(deps, work);

export const recoverMerchantActs = (deps: ActDeps, merchant: Merchant) =>
  runMerchantDueWork(deps, work, merchant);

/**
 * The shopper returned from their bank. Settles the attempt now, unless it is claimed. Returns
 * whether it was this call that asked the gateway.
 */
export async function settleReturnedAct(
  deps: ActDeps,
  merchant: Merchant,
  attempt: ShopperAttempt,
): Promise<boolean> {
  const lease = newLease(deps, leaseSeconds);
  const claimed = await claimShopperAttempt(deps.database.db, attempt, lease);
  if (claimed) await settleAct(deps, merchant, claimed);
  return claimed !== null;
}
