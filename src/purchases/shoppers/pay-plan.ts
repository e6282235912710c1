import assert from 'node:assert/strict';
import { cardKeyOf, OutcomeUnknown, RequestRefused } from '#gateway/gateway.ts';
import { isMoneyStopped } from '#gateway/guard-gateway.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { listDisputeStates } from '#purchases/disputes/dispute.sql.ts';
import { listCardDeclines, listLastCollections } from '#purchases/instalments/collection.sql.ts';
import { isBlocked } from '#purchases/instalments/gateway-block.sql.ts';
import {
  isDetaching,
  listStoredCards,
  lockInstalments,
} from '#purchases/instalments/instalment.sql.ts';
import {
  findForbidding,
  findForbiddingForGood,
  forbidsCard,
  type Instalment,
} from '#purchases/instalments/instalment.ts';
import { openShopperPayment } from '#purchases/instalments/shopper-payment.ts';
import { leaveAttempt, openAttempt } from '#purchases/payments/open-attempt.ts';
import { findGatewayRefs, listAttempts } from '#purchases/payments/payment-attempt.sql.ts';
import {
  type Consent,
  isInFlight,
  isOnPlan,
  type PaymentAttempt,
} from '#purchases/payments/payment-attempt.ts';
import { type PaymentDeps, settleAttempt } from '#purchases/payments/settle-attempt.ts';
import { coveredBy } from './plan.ts';
import type { PlanKey } from './plan-access.sql.ts';
import {
  type PayPlanRequest,
  type PlanPurpose,
  type PlanRefusal,
  paysStored,
  type ReplaceCardRequest,
} from './plan-attempt.ts';

type PaidCheckout = Pick<Checkout, 'merchant_id' | 'id' | 'gateway'>;

/**
 * Pays payments of the plan for a shopper. The attempt is committed before the gateway is called,
 * so that a worker can settle it if this process dies. Returns why nothing began, or null if an
 * attempt began. Also returns null if another attempt is in flight, which the page then shows.
 */
export async function payPlan(
  deps: PaymentDeps,
  merchant: Merchant,
  checkout: PaidCheckout,
  request: PayPlanRequest,
  network: string,
): Promise<PlanRefusal | null> {
  return await begin(deps, merchant, checkout, {
    purpose: 'plan_payment',
    card_token: request.card_token,
    isStored: paysStored(request),
    consent: request.keep_card ? request.consent : null,
    payments: request,
    network,
  });
}

/** Replaces the card for the remaining payments. Nothing is charged. */
export async function replaceStoredCard(
  deps: PaymentDeps,
  merchant: Merchant,
  checkout: PaidCheckout,
  { card_token, consent }: ReplaceCardRequest,
  network: string,
): Promise<PlanRefusal | null> {
  return await begin(deps, merchant, checkout, {
    purpose: 'new_card',
    card_token,
    isStored: false,
    consent,
    payments: null,
    network,
  });
}

type Wanted = {
  purpose: PlanPurpose;
  card_token: string | null;
  isStored: boolean;
  consent: Consent | null;
  /** The payments to pay; null when the card is replaced. */
  payments: Pick<PayPlanRequest, 'what' | 'payments' | 'amount'> | null;
  network: string;
};

async function begin(
  deps: PaymentDeps,
  merchant: Merchant,
  { merchant_id, id: checkout_id, gateway }: PaidCheckout,
  wanted: Wanted,
): Promise<PlanRefusal | null> {
  if (await isMoneyStopped(deps.money, gateway)) return 'payments_paused';
  const key = { merchant_id, checkout_id };
  const left = await leaveAttempt(deps, merchant, key);
  if (left) await settleAttempt(deps, merchant, left, true);
  const entered = await readEntered(deps, merchant, { ...key, gateway }, wanted.card_token);
  if (entered === null) return 'payments_paused';
  const opened = await openPlanAttempt(deps, merchant, key, { ...wanted, entered: entered.key });
  if (typeof opened === 'string' || opened === null) return opened;
  await settleAttempt(deps, merchant, opened, true);
  return null;
}

/**
 * The key of the card that the shopper entered. The gateway is asked only if a card of this
 * checkout was declined for good, because the entered card may be that card (decision 0027).
 * Returns null if the gateway does not answer or refuses.
 */
async function readEntered(
  deps: PaymentDeps,
  merchant: Merchant,
  { merchant_id, checkout_id, gateway }: PlanKey & Pick<Checkout, 'gateway'>,
  card_token: string | null,
): Promise<{ key: string | null } | null> {
  if (card_token === null) return { key: null };
  const now = merchant.now();
  const declines = await listCardDeclines(deps.database.db, merchant_id, [checkout_id], now);
  if (!declines.some(forbidsCard)) return { key: null };
  const time = { id: merchant_id, now: timestamp(now) };
  try {
    return { key: cardKeyOf(await deps.gateways.of(gateway).enteredCard(time, card_token)) };
  } catch (error) {
    if (!(error instanceof OutcomeUnknown || error instanceof RequestRefused)) throw error;
    deps.log.warn({ err: error, checkout_id }, 'the gateway did not say which card was entered');
    return null;
  }
}

/** The key of the card that pays: the stored one, or the one that the shopper entered. */
async function findCardKey(
  db: Handle,
  { merchant_id, checkout_id }: PlanKey,
  isStored: boolean,
  entered: string | null,
): Promise<string | null> {
  if (!isStored) return entered;
  const [card] = await listStoredCards(db, merchant_id, [checkout_id]);
  return card?.card_key ?? null;
}

/** Returns the attempt, a refusal, or null if another attempt is in flight. */
async function openPlanAttempt(
  deps: PaymentDeps,
  merchant: Merchant,
  key: PlanKey,
  wanted: Wanted & { entered: string | null },
): Promise<PaymentAttempt | PlanRefusal | null> {
  const lease = deps.random.uuid();
  const { purpose, card_token, isStored, consent, network, entered } = wanted;
  return await transaction(deps, async ({ db }, maybeCommitted) => {
    const checkout = await lockCheckout(db, key.merchant_id, key.checkout_id);
    assert(checkout);
    const attempts = await listAttempts(db, key);
    const newest = attempts.find(isOnPlan) ?? null;
    if (maybeCommitted && newest?.lease === lease) return newest;
    if (attempts.some(isInFlight)) return null;
    // A transaction that is recording a collection holds the locks of its payments, but not the
    // checkout's lock.
    const instalments = await lockInstalments(db, key);
    const refs = await findGatewayRefs(db, key);
    const { customer_ref } = refs;
    // Paying with the stored card, or replacing it, requires that the plan has one.
    const needsStoredCard = isStored || consent !== null;
    if (customer_ref === null || (needsStoredCard && refs.card_ref === null)) return 'plan_changed';
    // If a card is entered again, the gateway may store it under a reference that is being removed.
    const realNow = timestamp(deps.clock.now());
    if (consent !== null && (await isDetaching(db, key, realNow))) return 'plan_changed';
    const payments = wanted.payments ? askedFor(wanted.payments, instalments) : [];
    const refusal = await findRefusal(db, key, wanted, instalments, payments);
    if (refusal !== null) return refusal;

    const now = merchant.now();
    const card_ref = isStored ? refs.card_ref : null;
    const card_key = await findCardKey(db, key, isStored, entered);
    const declines = await listCardDeclines(db, key.merchant_id, [key.checkout_id], now);
    const numbers = payments.map(({ number }) => number);
    const card = { checkout_id: key.checkout_id, card_ref, card_key };
    // A card that the shopper enters is refused here only if the bank forbids every further charge.
    // Other limits count the declines of such cards (decision 0007).
    const forbidding =
      card_ref === null
        ? findForbiddingForGood(declines, card)
        : findForbidding(declines, card, numbers, now);
    if (forbidding) return 'card_refused';
    const opened = await openAttempt(deps, db, checkout, newest, now, {
      ...{ purpose, card_token, consent, network, customer_ref, card_ref, lease },
      instalments: payments.map((payment) => payment.number),
      number_of_payments: checkout.number_of_payments ?? 1,
      amount: sumOf(payments),
    });
    if (payments.length > 0) {
      const times = { at: timestamp(now), asked_at: realNow };
      const paying = { customer_ref, card_ref, card_key };
      await openShopperPayment(db, opened, payments, paying, times);
    }
    return opened;
  });
}

/** The payments that the request covers. A shopper may choose some of several late payments. */
function askedFor(
  { what, payments }: NonNullable<Wanted['payments']>,
  instalments: Instalment[],
): Instalment[] {
  const covered = coveredBy(what, instalments);
  return what === 'late' ? covered.filter(({ number }) => payments.includes(number)) : covered;
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
  // A payment that was in flight when the dispute arrived has not been paused yet.
  const disputes = await listDisputeStates(db, key);
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
