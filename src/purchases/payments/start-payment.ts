import assert from 'node:assert/strict';
import { isMoneyStopped } from '#gateway/guard-gateway.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { beginAtMost } from '#platform/database/begin-at-most.ts';
import { compileOnce } from '#platform/database/compile-once.ts';
import { asRows, together } from '#platform/database/read-together.ts';
import { transaction } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import type { Language } from '#platform/shared/language.ts';
import { lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { writeLanguage } from '#purchases/checkouts/keep-language.ts';
import { selectBlocks } from '#purchases/instalments/gateway-block.sql.ts';
import { planPayments } from '#purchases/instalments/instalment.ts';
import { openAttempt } from './open-attempt.ts';
import { moveInFlightToVoiding, selectAttempts } from './payment-attempt.sql.ts';
import { type Consent, isInFlight, type PaymentAttempt } from './payment-attempt.ts';
import { type PaymentDeps, settleAttempt } from './settle-attempt.ts';

type FirstPayment = {
  number_of_payments: number;
  /** Null if the card is entered in the session that begins. */
  card_token: string | null;
  consent: Consent | null;
  network: string;
  /** The language that the shopper chose; absent to leave it as it is. */
  language?: Language | undefined;
};

/**
 * A process finishes this many payments within seconds, even if all of them arrive at once. More
 * would take longer than shoppers wait. If the gateway is slow, fewer can finish (decision 0013).
 */
const inProgressMax = 500;

const begin = beginAtMost(inProgressMax);

/**
 * Begins a shopper's payment. The attempt is committed before the gateway is called, so that a
 * worker can settle it if this process dies. If the outcome is not known in time, the attempt stays
 * due and a worker settles it; the page polls until then. Returns false if nothing began because
 * money is stopped, or because an operator has to look at the checkout first.
 */
export async function startPayment(
  deps: PaymentDeps,
  merchant: Merchant,
  checkout: Pick<Checkout, 'merchant_id' | 'id' | 'gateway'>,
  payment: FirstPayment,
): Promise<boolean> {
  if (await isMoneyStopped(deps.money, checkout.gateway)) return false;
  return await begin(async () => {
    const opened = await openFirstPayment(deps, merchant, checkout, payment);
    if (opened === 'blocked') return false;
    if (opened) await settleAttempt(deps, merchant, opened.attempt, true, opened.checkout);
    return true;
  });
}

/**
 * Returns null if nothing may start: the checkout has ended or expired, is being paid, has moved to
 * another gateway, or has had too many attempts. Returns `blocked` if the gateway may already have
 * a payment for the checkout, which an operator has to look at first.
 */
async function openFirstPayment(
  deps: PaymentDeps,
  merchant: Merchant,
  { merchant_id, id: checkout_id, gateway }: Pick<Checkout, 'merchant_id' | 'id' | 'gateway'>,
  { number_of_payments, card_token, consent, network, language }: FirstPayment,
): Promise<{ attempt: PaymentAttempt; checkout: Checkout } | 'blocked' | null> {
  const key = { merchant_id, checkout_id };
  const lease = deps.random.uuid();
  return await transaction(deps, async ({ db, commit }, maybeCommitted) => {
    // Both statements are sent together. The database server begins the second one once the first
    // one has the lock.
    const [checkout, [rows]] = await Promise.all([
      lockCheckout(db, merchant_id, checkout_id),
      selectAttemptsAndBlocks(db, key),
    ]);
    assert(checkout && rows);
    const attempts = asRows(rows.attempts);
    const committed = maybeCommitted && attempts.find((attempt) => attempt.lease === lease);
    if (committed) return { attempt: committed, checkout };
    const now = merchant.now();
    if (checkout.status !== 'received' || !isOpen(checkout, now)) return null;
    // The checkout has moved to another gateway, and the card is for the earlier one.
    if (checkout.gateway !== gateway) return null;
    if (attempts.some(({ status }) => status === 'starting') || !mayTryAgain(attempts)) return null;
    if (rows.blocks.length > 0) return 'blocked';
    // The shopper left the card form or their bank's challenge and is beginning again, so void the
    // earlier attempt (decision 0023).
    if (attempts.some(isInFlight)) await moveInFlightToVoiding(db, key, timestamp(now));

    const [first] = planPayments(checkout.amount, number_of_payments, merchant.localDate(now));
    assert(first);
    const customer_ref = attempts.find((one) => one.customer_ref !== null)?.customer_ref ?? null;
    const [, attempt] = await Promise.all([
      language && writeLanguage(db, checkout, language),
      openAttempt(deps, db, checkout, attempts[0] ?? null, now, {
        ...{ number_of_payments, card_token, consent, network, customer_ref, lease },
        purpose: 'first_payment',
        instalments: [1],
        amount: first.amount,
        card_ref: null,
      }),
      commit(),
    ]);
    return { attempt, checkout };
  });
}

const selectAttemptsAndBlocks = compileOnce(
  (db, { merchant_id, checkout_id }: { merchant_id: string; checkout_id: string }) => {
    const key = { merchant_id, checkout_id };
    return together({ attempts: selectAttempts(db, key), blocks: selectBlocks(db, key) });
  },
);

/** Whether a payment may still begin (decision 0011). */
export function isOpen(checkout: Checkout, now: Temporal.Instant): boolean {
  return Temporal.Instant.compare(now, checkout.expires_at) < 0;
}

/** This many attempts are enough for a shopper and too few for card testing. */
const attemptsMax = 20;

export function mayTryAgain(attempts: PaymentAttempt[]): boolean {
  return attempts.length < attemptsMax;
}
