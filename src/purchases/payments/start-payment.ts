import assert from 'node:assert/strict';
import { OutcomeUnknown, RequestRefused } from '#gateway/gateway.ts';
import { isMoneyStopped, type MoneyProblem } from '#gateway/guard-gateway.ts';
import { leaseSeconds, nextRetryAt } from '#gateway/retry-times.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { releaseDue } from '#platform/database/due-work.sql.ts';
import { reading, transaction } from '#platform/database/transaction.ts';
import { secondsAfter, timestamp } from '#platform/shared/clock.ts';
import {
  type DeliveryDeps,
  deliverFirst,
  makeFirstDue,
} from '#purchases/callbacks/delivery/deliver-callback.ts';
import { findCheckout, lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { isBlocked } from '#purchases/instalments/gateway-block.sql.ts';
import { planPayments } from '#purchases/instalments/instalment.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { raiseGatewayAlert } from '#record/alerts/raise-gateway-alert.ts';
import { type AskDeps, askGateway, cardTokenContext } from './ask-gateway.ts';
import type { PayRequest } from './pay-page.ts';
import {
  insertAttempt,
  listAttempts,
  moveGivenUp,
  moveInFlightToVoiding,
} from './payment-attempt.sql.ts';
import { attemptId, isPastDeadline, type PaymentAttempt } from './payment-attempt.ts';
import { recordOutcome } from './record-outcome.ts';

export type PaymentDeps = AskDeps & DeliveryDeps & QueueDeps & { money: MoneyProblem };

/**
 * A shopper pays. The attempt is committed before the gateway is called, so that a worker can
 * settle it if this process dies. If the outcome is not known in time, the attempt stays due and a
 * worker settles it; the page polls until then. Returns false if payments are paused and nothing
 * began.
 */
export async function startPayment(
  deps: PaymentDeps,
  merchant: Merchant,
  checkout: { merchant_id: string; id: string },
  request: PayRequest,
): Promise<boolean> {
  if (await isMoneyStopped(deps.money)) return false;
  const attempt = await openAttempt(deps, merchant, checkout, request);
  if (attempt === 'blocked') return false;
  if (attempt) await settleAttempt(deps, merchant, attempt, true);
  return true;
}

/**
 * Finds the outcome of a claimed attempt and records it, or releases the attempt. Never throws: the
 * attempt is committed, and a later claim settles it. The callback is sent at once while a
 * shopper's request waits, else by the worker.
 */
export function settleAttempt(
  deps: PaymentDeps,
  merchant: Merchant,
  attempt: PaymentAttempt,
  isAwaited: boolean,
): Promise<void> {
  const work = () => findAndRecord(deps, merchant, attempt, isAwaited);
  return deps.tracer ? deps.tracer.inCheckout(attempt.checkout_id, 'payment', work) : work();
}

async function findAndRecord(
  deps: PaymentDeps,
  merchant: Merchant,
  attempt: PaymentAttempt,
  isAwaited: boolean,
): Promise<void> {
  let checkout: Checkout | null = null;
  try {
    checkout = await reading(deps, (db) =>
      findCheckout(db, attempt.merchant_id, attempt.checkout_id),
    );
    assert(checkout);
    const finding = await askGateway(deps, merchant, checkout, attempt);
    await recordOutcome(deps, merchant, attempt, finding);
    const notify = isAwaited ? deliverFirst : makeFirstDue;
    await notify(deps, merchant, attempt.checkout_id);
  } catch (error) {
    const about = { err: error, attempt_id: attempt.id };
    if (error instanceof OutcomeUnknown) {
      deps.log.warn(about, 'the outcome of a payment is not known yet');
    } else {
      deps.log.error(about, 'a payment attempt could not be settled');
    }
    try {
      await releaseFailed(deps, merchant, checkout, attempt, error);
    } catch (failure) {
      // Its lease runs out anyway.
      deps.log.error({ ...about, err: failure }, 'a payment attempt was not released');
    }
  }
}

/**
 * Releases an attempt that could not be settled, and raises an alert if that lasts. A shopper does
 * not wait for an attempt that the gateway refused, or that can no longer be the outcome: it is
 * given up, and whatever the gateway holds for it is voided (decision 0023).
 */
async function releaseFailed(
  deps: PaymentDeps,
  merchant: Merchant,
  checkout: Checkout | null,
  attempt: PaymentAttempt,
  error: unknown,
): Promise<void> {
  const { db } = deps.database;
  const { merchant_id, id, lease, tries, number, checkout_id } = attempt;
  assert(lease !== null);
  const now = merchant.now();
  const retryAt = timestamp(nextRetryAt(now, tries));
  const isRefused = attempt.status === 'starting' && error instanceof RequestRefused;
  const isTooLate = checkout !== null && isPastDeadline(checkout, now);
  const isGivenUp = (isRefused || isTooLate) && (await moveGivenUp(db, attempt, retryAt));
  if (!isGivenUp) await releaseDue(db, 'payment_attempts', { merchant_id, id }, lease, retryAt);
  await raiseGatewayAlert(deps, merchant, {
    what: `Payment attempt ${number} of checkout ${checkout_id}`,
    subject_id: checkout_id,
    error,
    isOutcomeUnknown: error instanceof OutcomeUnknown,
    retries: tries,
    isGivenUp: isGivenUp && isRefused,
  });
}

/**
 * Null if nothing may start: the checkout has ended, expired, or is being paid. `blocked`: the
 * gateway may have its payment already, and an operator has to look at it first.
 */
async function openAttempt(
  deps: PaymentDeps,
  merchant: Merchant,
  key: { merchant_id: string; id: string },
  { number_of_payments, card_token, consent }: PayRequest,
): Promise<PaymentAttempt | 'blocked' | null> {
  const lease = deps.random.uuid();
  return await transaction(deps, async ({ db }, maybeCommitted) => {
    const checkout = await lockCheckout(db, key.merchant_id, key.id);
    assert(checkout);
    const attempts = await listAttempts(db, key.merchant_id, key.id);
    const committed = maybeCommitted && attempts.find((attempt) => attempt.lease === lease);
    if (committed) return committed;
    const now = merchant.now();
    if (checkout.status !== 'received' || !isOpen(checkout, now)) return null;
    if (attempts.some(({ status }) => status === 'starting') || !mayTryAgain(attempts)) return null;
    if (await isBlocked(db, { merchant_id: key.merchant_id, checkout_id: key.id }))
      return 'blocked';
    // The shopper left their bank's challenge and pays again: void that attempt (decision 0023).
    await moveInFlightToVoiding(db, key.merchant_id, key.id, timestamp(now));

    const [first] = planPayments(checkout.amount, number_of_payments, merchant.localDate(now));
    assert(first);
    const number = (attempts[0]?.number ?? 0) + 1;
    const id = attemptId(checkout.id, number);
    const attempt = {
      merchant_id: checkout.merchant_id,
      id,
      checkout_id: checkout.id,
      number,
      status: 'starting' as const,
      number_of_payments,
      amount: first.amount,
      currency: checkout.currency,
      sealed_card_token: deps.sealing.seal(card_token, cardTokenContext({ id })),
      consent,
      customer_ref: attempts.find((one) => one.customer_ref !== null)?.customer_ref ?? null,
      created_at: timestamp(now),
      due_at: timestamp(now),
      lease,
      leased_until: timestamp(secondsAfter(deps.clock.now(), leaseSeconds)),
      written_id: deps.random.uuid(),
    };
    await insertAttempt(db, attempt);
    const [inserted] = await listAttempts(db, key.merchant_id, key.id);
    assert(inserted?.id === id);
    return inserted;
  });
}

/** Whether a payment may still begin: for half an hour (decision 0011). */
export function isOpen(checkout: Checkout, now: Temporal.Instant): boolean {
  return Temporal.Instant.compare(now, checkout.expires_at) < 0;
}

/** Twenty attempts are enough for a shopper and too few for card testing. */
const attemptsMax = 20;

export function mayTryAgain(attempts: PaymentAttempt[]): boolean {
  return attempts.length < attemptsMax;
}
