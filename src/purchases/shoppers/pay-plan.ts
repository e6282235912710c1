import assert from 'node:assert/strict';
import { isMoneyStopped } from '#gateway/guard-gateway.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { listCheckoutDisputes } from '#purchases/disputes/dispute.sql.ts';
import { isBlocked } from '#purchases/instalments/gateway-block.sql.ts';
import {
  listCardDeclines,
  listLastCollections,
  lockInstalments,
} from '#purchases/instalments/instalment.sql.ts';
import { findForbidding, type Instalment } from '#purchases/instalments/instalment.ts';
import { openShopperPayment } from '#purchases/instalments/shopper-payment.ts';
import { leaveChallenge, openAttempt } from '#purchases/payments/open-attempt.ts';
import { findGatewayRefs, listAttempts } from '#purchases/payments/payment-attempt.sql.ts';
import {
  type Consent,
  isInFlight,
  isOnPlan,
  type PaymentAttempt,
} from '#purchases/payments/payment-attempt.ts';
import { type PaymentDeps, settleAttempt } from '#purchases/payments/settle-attempt.ts';
import { coveredBy } from './plan.ts';
import type {
  PayPlanRequest,
  PlanPurpose,
  PlanRefusal,
  ReplaceCardRequest,
} from './plan-attempt.ts';
import type { PlanKey } from './plan-proof.sql.ts';

/**
 * A shopper pays payments of the plan. The attempt is committed before the gateway is called, so
 * that a worker can settle it if this process dies. Returns why nothing began; null if an attempt
 * began, or if another one is in flight, which the page shows.
 */
export async function payPlan(
  deps: PaymentDeps,
  merchant: Merchant,
  checkout: Pick<Checkout, 'merchant_id' | 'id'>,
  request: PayPlanRequest,
): Promise<PlanRefusal | null> {
  return await begin(deps, merchant, checkout, {
    purpose: 'plan_payment',
    card_token: request.card_token,
    consent: request.keep_card ? request.consent : null,
    payments: request,
  });
}

/** A shopper replaces the card for the payments to come. Nothing is charged. */
export async function replaceStoredCard(
  deps: PaymentDeps,
  merchant: Merchant,
  checkout: Pick<Checkout, 'merchant_id' | 'id'>,
  { card_token, consent }: ReplaceCardRequest,
): Promise<PlanRefusal | null> {
  return await begin(deps, merchant, checkout, {
    purpose: 'new_card',
    card_token,
    consent,
    payments: null,
  });
}

type Wanted = {
  purpose: PlanPurpose;
  card_token: string | null;
  consent: Consent | null;
  /** The payments to pay; null when the card is replaced. */
  payments: Pick<PayPlanRequest, 'what' | 'payments' | 'amount'> | null;
};

async function begin(
  deps: PaymentDeps,
  merchant: Merchant,
  { merchant_id, id: checkout_id }: Pick<Checkout, 'merchant_id' | 'id'>,
  wanted: Wanted,
): Promise<PlanRefusal | null> {
  if (await isMoneyStopped(deps.money)) return 'payments_paused';
  const key = { merchant_id, checkout_id };
  const left = await leaveChallenge(deps, merchant, key);
  if (left) await settleAttempt(deps, merchant, left, true);
  const opened = await openPlanAttempt(deps, merchant, key, wanted);
  if (typeof opened === 'string' || opened === null) return opened;
  await settleAttempt(deps, merchant, opened, true);
  return null;
}

/** A refusal, or null while another attempt is in flight. */
async function openPlanAttempt(
  deps: PaymentDeps,
  merchant: Merchant,
  key: PlanKey,
  wanted: Wanted,
): Promise<PaymentAttempt | PlanRefusal | null> {
  const lease = deps.random.uuid();
  const { purpose, card_token, consent } = wanted;
  return await transaction(deps, async ({ db }, maybeCommitted) => {
    const checkout = await lockCheckout(db, key.merchant_id, key.checkout_id);
    assert(checkout);
    const attempts = await listAttempts(db, key);
    const newest = attempts.find(isOnPlan) ?? null;
    if (maybeCommitted && newest?.lease === lease) return newest;
    if (attempts.some(isInFlight)) return null;
    // A collection that is being recorded now holds the locks of its payments, but not the
    // checkout's lock.
    const instalments = await lockInstalments(db, key);
    const refs = await findGatewayRefs(db, key);
    const { customer_ref } = refs;
    // Only a plan with a stored card can pay with it, or have another one.
    const needsStoredCard = card_token === null || consent !== null;
    if (customer_ref === null || (needsStoredCard && refs.card_ref === null)) return 'plan_changed';
    const payments = wanted.payments ? coveredBy(wanted.payments.what, instalments) : [];
    const refusal = await findRefusal(db, key, wanted, instalments, payments);
    if (refusal !== null) return refusal;

    const now = merchant.now();
    const card_ref = card_token === null ? refs.card_ref : null;
    if (card_ref !== null) {
      const declines = await listCardDeclines(db, key.merchant_id, [key.checkout_id]);
      const numbers = payments.map(({ number }) => number);
      const card = { checkout_id: key.checkout_id, card_ref };
      if (findForbidding(declines, card, numbers, now)) return 'card_refused';
    }
    const opened = await openAttempt(deps, db, checkout, newest, now, {
      ...{ purpose, card_token, consent, customer_ref, card_ref, lease },
      instalments: payments.map((payment) => payment.number),
      number_of_payments: checkout.number_of_payments ?? 1,
      amount: sumOf(payments),
    });
    if (payments.length > 0) {
      const times = { at: timestamp(now), asked_at: timestamp(deps.clock.now()) };
      await openShopperPayment(db, opened, payments, { customer_ref, card_ref }, times);
    }
    return opened;
  });
}

async function findRefusal(
  db: Handle,
  key: PlanKey,
  { payments: wanted }: Wanted,
  instalments: Instalment[],
  payments: Instalment[],
): Promise<PlanRefusal | null> {
  if (wanted === null) {
    return coveredBy('rest', instalments).length === 0 ? 'plan_changed' : null;
  }
  // A payment that was in flight when the dispute came is not paused yet.
  const disputes = await listCheckoutDisputes(db, key);
  if (disputes.some(({ is_pausing }) => is_pausing)) return 'disputed';
  if (await isBlocked(db, key)) return 'payments_paused';
  if (instalments.some(({ paused }) => paused)) return 'refund_in_progress';
  const numbers = payments.map(({ number }) => number);
  const isShown =
    numbers.length > 0 &&
    numbers.join() === wanted.payments.join() &&
    sumOf(payments) === wanted.amount;
  if (!isShown) return 'plan_changed';
  const collections = await listLastCollections(db, key.merchant_id, [key.checkout_id]);
  const isCharged = collections.some(
    ({ status, instalment }) => status === 'open' && numbers.includes(instalment),
  );
  return isCharged ? 'being_charged' : null;
}

const sumOf = (payments: Instalment[]) =>
  payments.reduce((sum, { amount, reduced }) => sum + amount - reduced, 0);
