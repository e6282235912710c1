import assert from 'node:assert/strict';
import { OutcomeUnknown, RequestRefused } from '#gateway/gateway.ts';
import { isMoneyStopped } from '#gateway/guard-gateway.ts';
import { leaseSeconds, nextRetryAt } from '#gateway/retry-times.ts';
import { StatusUnknown } from '#gateway/status-unknown.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { type MerchantDueWork, runDueWork, runMerchantDueWork } from '#merchants/run-due-work.ts';
import { newLease, releaseDue } from '#platform/database/due-work.sql.ts';
import { reading } from '#platform/database/transaction.ts';
import type { RateLimits } from '#platform/http/rate-limits.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { type DeliveryDeps, deliverFirst } from '#purchases/callbacks/delivery/deliver-callback.ts';
import { findCheckout } from '#purchases/checkouts/checkout.sql.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import type { MerchantMailDeps } from '#purchases/messages/mail-merchant.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { raiseGatewayAlert } from '#record/alerts/raise-gateway-alert.ts';
import { type AskDeps, askGateway } from './ask-gateway.ts';
import { noteDecline } from './card-testing.ts';
import { isCardDeclined } from './choose-step.ts';
import { claimAttempt, dueAttempts, moveGivenUp } from './payment-attempt.sql.ts';
import { isFirstPayment, isOver, type PaymentAttempt } from './payment-attempt.ts';
import { recordOutcome } from './record-outcome.ts';

export type PaymentDeps = AskDeps &
  DeliveryDeps &
  QueueDeps &
  MerchantMailDeps & { rateLimits: RateLimits };

/**
 * Finds the outcome of a claimed attempt and records it, or releases the attempt. Never throws: the
 * attempt is committed, and a later claim settles it. If `isAwaited` is set, a shopper's request is
 * waiting, and the callback of the checkout is sent at once; otherwise the worker sends it.
 * `checkout` is the row of the checkout, if the caller has it. Returns false if the gateway's
 * answer is unknown or could not be recorded.
 */
export function settleAttempt(
  deps: PaymentDeps,
  merchant: Merchant,
  attempt: PaymentAttempt,
  isAwaited: boolean,
  checkout: Checkout | null = null,
): Promise<boolean> {
  const work = () => askAndRecord(deps, merchant, attempt, isAwaited, checkout);
  return deps.tracer ? deps.tracer.inCheckout(attempt.checkout_id, 'payment', work) : work();
}

async function askAndRecord(
  deps: PaymentDeps,
  merchant: Merchant,
  attempt: PaymentAttempt,
  isAwaited: boolean,
  known: Checkout | null,
): Promise<boolean> {
  let checkout = known;
  try {
    checkout ??= await reading(deps, (db) =>
      findCheckout(db, attempt.merchant_id, attempt.checkout_id),
    );
    assert(checkout);
    const answer = await askGateway(deps, merchant, checkout, attempt);
    const { callback, isRecorded } = await recordOutcome(
      deps,
      merchant,
      attempt,
      answer,
      isAwaited,
    );
    if (callback) await deliverFirst(deps, callback);
    if (isRecorded && isCardDeclined(answer)) await noteDecline(deps, merchant, attempt);
    if (answer.outcome === 'processing') await alertUnknown(deps, merchant, attempt, answer);
    return true;
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
      // If the release fails too, the lease runs out.
      deps.log.error(
        { ...about, err: failure },
        'the lease of a payment attempt could not be released',
      );
    }
    return false;
  }
}

/** Alerts an operator at once if the gateway reports a status that this version does not know. */
async function alertUnknown(
  deps: PaymentDeps,
  merchant: Merchant,
  { number, checkout_id }: PaymentAttempt,
  { unknown_status }: { unknown_status?: string },
): Promise<void> {
  if (unknown_status === undefined) return;
  await raiseGatewayAlert(deps, merchant, {
    what: `Payment attempt ${number}`,
    subject_id: checkout_id,
    error: new StatusUnknown('the payment', unknown_status),
    isOutcomeUnknown: true,
    retries: 0,
  });
}

/**
 * Releases an attempt that could not be settled, and raises an alert if the failures last. A
 * shopper need not wait for an attempt that the gateway refused, or that has run out of time: it is
 * given up, and anything that the gateway has for it is voided (decision 0023). In a restored
 * database an attempt that has run out of time may be a purchase, so it is not given up while money
 * is stopped, or while we do not know whether it is.
 */
async function releaseFailed(
  deps: PaymentDeps,
  merchant: Merchant,
  checkout: Checkout | null,
  attempt: PaymentAttempt,
  error: unknown,
): Promise<void> {
  const { db } = deps.database;
  const { merchant_id, id, lease, attempts, number, checkout_id } = attempt;
  assert(lease !== null);
  const now = merchant.now();
  const retryAt = timestamp(nextRetryAt(now, attempts));
  const isRefused = attempt.status === 'starting' && error instanceof RequestRefused;
  const isTooLate =
    checkout !== null &&
    isOver(attempt, checkout, now) &&
    !(await isMoneyStopped(deps.money, attempt.gateway));
  const isGivenUp = (isRefused || isTooLate) && (await moveGivenUp(db, attempt, retryAt));
  if (!isGivenUp) await releaseDue(db, 'payment_attempts', { merchant_id, id }, lease, retryAt);
  await raiseGatewayAlert(deps, merchant, {
    what: isFirstPayment(attempt)
      ? `Payment attempt ${number}`
      : `The shopper’s attempt ${number} on the plan`,
    subject_id: checkout_id,
    error,
    isOutcomeUnknown: error instanceof OutcomeUnknown,
    retries: attempts,
    isGivenUp: isGivenUp && isRefused,
  });
}

const work: MerchantDueWork<'payment_attempts', PaymentDeps> = {
  due: dueAttempts,
  leaseSeconds,
  batchSize: 10,
  merchantsMax: 50,
  concurrency: 50,
  roundMilliseconds: 0,
  run: (deps, merchant, attempts) =>
    Promise.all(attempts.map((attempt) => settleAttempt(deps, merchant, attempt, false))),
};

/**
 * Settles attempts that are due: unknown outcomes, sessions and challenges from which the shopper
 * did not return (decision 0023), and what must be voided.
 */
export const recoverAttempts = (deps: PaymentDeps) => runDueWork(deps, work);

export const recoverMerchantAttempts = (deps: PaymentDeps, merchant: Merchant) =>
  runMerchantDueWork(deps, work, merchant);

/**
 * Settles an attempt when the shopper returns from their bank, or when the card form has confirmed.
 * Returns false if the attempt has ended or is already claimed, or if settling it failed.
 */
export async function settleReturned(
  deps: PaymentDeps,
  merchant: Merchant,
  attempt: PaymentAttempt,
): Promise<boolean> {
  const claimed = await claimAttempt(deps.database.db, attempt, newLease(deps, leaseSeconds));
  return claimed !== null && (await settleAttempt(deps, merchant, claimed, true));
}
