import assert from 'node:assert/strict';
import { isMoneyStopped } from '#gateway/guard-gateway.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { transaction } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { isBlocked } from '#purchases/instalments/gateway-block.sql.ts';
import { planPayments } from '#purchases/instalments/instalment.ts';
import { openAttempt } from './open-attempt.ts';
import { listAttempts, moveInFlightToVoiding } from './payment-attempt.sql.ts';
import type { Consent, PaymentAttempt } from './payment-attempt.ts';
import { type PaymentDeps, settleAttempt } from './settle-attempt.ts';

type FirstPayment = { number_of_payments: number; card_token: string; consent: Consent | null };

/**
 * A shopper pays. The attempt is committed before the gateway is called, so that a worker can
 * settle it if this process dies. If the outcome is not known in time, the attempt stays due and a
 * worker settles it; the page polls until then. Returns false if payments are paused, and nothing
 * began.
 */
export async function startPayment(
  deps: PaymentDeps,
  merchant: Merchant,
  checkout: { merchant_id: string; id: string },
  payment: FirstPayment,
): Promise<boolean> {
  if (await isMoneyStopped(deps.money)) return false;
  const attempt = await openFirstPayment(deps, merchant, checkout, payment);
  if (attempt === 'blocked') return false;
  if (attempt) await settleAttempt(deps, merchant, attempt, true);
  return true;
}

/**
 * Null if nothing may start: the checkout has ended, expired, or is being paid. `blocked`: the
 * gateway may have its payment already, and an operator has to look at it first.
 */
async function openFirstPayment(
  deps: PaymentDeps,
  merchant: Merchant,
  { merchant_id, id: checkout_id }: { merchant_id: string; id: string },
  { number_of_payments, card_token, consent }: FirstPayment,
): Promise<PaymentAttempt | 'blocked' | null> {
  const key = { merchant_id, checkout_id };
  const lease = deps.random.uuid();
  return await transaction(deps, async ({ db }, maybeCommitted) => {
    const checkout = await lockCheckout(db, merchant_id, checkout_id);
    assert(checkout);
    const attempts = await listAttempts(db, key);
    const committed = maybeCommitted && attempts.find((attempt) => attempt.lease === lease);
    if (committed) return committed;
    const now = merchant.now();
    if (checkout.status !== 'received' || !isOpen(checkout, now)) return null;
    if (attempts.some(({ status }) => status === 'starting') || !mayTryAgain(attempts)) return null;
    if (await isBlocked(db, key)) return 'blocked';
    // The shopper left their bank's challenge and pays again: void that attempt (decision 0023).
    await moveInFlightToVoiding(db, key, timestamp(now));

    const [first] = planPayments(checkout.amount, number_of_payments, merchant.localDate(now));
    assert(first);
    const customer_ref = attempts.find((one) => one.customer_ref !== null)?.customer_ref ?? null;
    return await openAttempt(deps, db, checkout, attempts[0] ?? null, now, {
      ...{ number_of_payments, card_token, consent, customer_ref, lease },
      purpose: 'first_payment',
      instalments: [1],
      amount: first.amount,
      card_ref: null,
    });
  });
}

/** Whether a payment may still begin: for half an hour (decision 0011). */
export function isOpen(checkout: Checkout, now: Temporal.Instant): boolean {
  return Temporal.Instant.compare(now, checkout.expires_at) < 0;
}

/** Twenty attempts are enough for a shopper and too few for card testing. */
const attemptsMax = 20;

/** Whether another first payment may begin. */
export function mayTryAgain(attempts: PaymentAttempt[]): boolean {
  return attempts.length < attemptsMax;
}
