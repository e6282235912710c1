import assert from 'node:assert/strict';
import { cardToStore, type Decline, type HeldCard } from '#gateway/gateway.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Database, Handle } from '#platform/database/database.ts';
import { type Lease, newLease } from '#platform/database/due-work.sql.ts';
import { transaction } from '#platform/database/transaction.ts';
import { writeAndCommit, writeTogether } from '#platform/database/write-together.ts';
import { type Clock, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import { showMoney } from '#platform/shared/money.ts';
import type { Callback } from '#purchases/callbacks/callback.ts';
import { leaseSeconds } from '#purchases/callbacks/delivery/limits.ts';
import { lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { completeCheckout, invalidateCheckout } from '#purchases/checkouts/end-checkout.ts';
import { replaceCard } from '#purchases/instalments/replace-card.ts';
import { scheduleInstalments } from '#purchases/instalments/schedule-instalments.ts';
import {
  collectShopperPayment,
  releaseShopperPayment,
} from '#purchases/instalments/shopper-payment.ts';
import type { MerchantMailDeps } from '#purchases/messages/mail-merchant.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { chooseMove, type Outcome } from './choose-step.ts';
import { lockAttempt, updateState } from './payment-attempt.sql.ts';
import { isFirstPayment, type PaymentAttempt } from './payment-attempt.ts';

/**
 * Writes the outcome of an attempt, and all its consequences, in one transaction. An outcome counts
 * only under the lease under which it was found. Every transaction locks the checkout first, so the
 * outcome is decided only once.
 *
 * If `delivers` is set and this outcome pays the checkout, returns its callback, if it has one,
 * claimed for the caller to deliver. Otherwise a worker delivers the callback. Also returns whether
 * this call recorded the outcome.
 */
export async function recordOutcome(
  deps: { database: Database; clock: Clock } & QueueDeps & MerchantMailDeps,
  merchant: Merchant,
  attempt: PaymentAttempt,
  answer: Outcome,
  delivers = false,
): Promise<{ callback: Callback | null; isRecorded: boolean }> {
  const claim = delivers ? newLease(deps, leaseSeconds) : null;
  let callback: Callback | null = null;
  let isRecorded = false;
  await transaction(deps, async (tx, maybeCommitted) => {
    const { db } = tx;
    // The writes of an earlier run were rolled back, unless its COMMIT is in doubt.
    if (!maybeCommitted) isRecorded = false;
    const [checkout, current] = await Promise.all([
      lockCheckout(db, attempt.merchant_id, attempt.checkout_id),
      lockAttempt(db, attempt),
    ]);
    assert(checkout);
    // Another process has claimed the attempt, or an earlier run of this transaction was committed.
    if (current === null || current.lease !== attempt.lease || current.due_at === null) return;
    const now = merchant.now();
    const { to, effect } = chooseMove(current, checkout, answer, now);
    const moved = { ...current, ...to };
    const outcome = { attempt: updateState(current, to) };
    isRecorded = true;
    const at = timestamp(now);
    if (effect === 'refuse') {
      await writeAndCommit(tx, { ...outcome, ...invalidateCheckout(checkout, at) });
    } else if (effect === 'succeed' && isFirstPayment(moved)) {
      assert(answer.outcome === 'done');
      const paid = payCheckout(deps, merchant, checkout, moved, answer.card, at, claim);
      await mailLinkPaid(deps, db, merchant, checkout);
      await writeAndCommit(tx, { ...outcome, ...paid.writes });
      // It is not certain yet that this transaction is committed. The delivery sends nothing unless
      // it finds the claim, which this transaction writes.
      if (claim && paid.callback) callback = paid.callback;
    } else {
      await writeTogether(db, outcome);
      if (effect === 'fail') await recordFailure(db, moved, declineIn(answer), at);
      if (effect !== 'succeed') return;
      assert(answer.outcome === 'done');
      await recordOnPlan(deps, db, merchant, moved, answer.card, at);
    }
  });
  return { callback, isRecorded };
}

/**
 * Informs those of the merchant's people who chose this mail: a shop without a server gets no
 * callback.
 */
async function mailLinkPaid(
  deps: { clock: Clock } & MerchantMailDeps,
  db: Handle,
  { name, territory }: Merchant,
  { merchant_id, id, payment_link_id, amount, client_reference_id: reference }: Checkout,
): Promise<void> {
  if (payment_link_id === null) return;
  await deps.mailMerchant(db, {
    ...{ merchant_id, kind: 'link_paid', event: id, at: timestamp(deps.clock.now()) },
    facts: { merchant: name, amount: showMoney(amount, territory), reference },
  });
}

/** Returns the writes for a checkout that this attempt has paid. */
function payCheckout(
  deps: QueueDeps,
  merchant: Merchant,
  checkout: Checkout,
  attempt: PaymentAttempt,
  card: HeldCard,
  at: Timestamp,
  claim: Lease | null,
) {
  const { payment_ref, number_of_payments } = attempt;
  assert(payment_ref !== null);
  const paid = completeCheckout(deps, checkout, number_of_payments, at, claim);
  const stored_card = number_of_payments > 1 ? withConsent(attempt, card) : null;
  const plan = scheduleInstalments(deps, merchant, paid.checkout, { payment_ref, stored_card });
  return { callback: paid.callback, writes: { ...paid.writes, ...plan } };
}

/** Records that the shopper paid payments of the plan, replaced the card, or both. */
async function recordOnPlan(
  deps: QueueDeps,
  db: Handle,
  merchant: Merchant,
  attempt: PaymentAttempt,
  card: HeldCard,
  at: Timestamp,
): Promise<void> {
  const { purpose, payment_ref, consent } = attempt;
  assert(payment_ref !== null);
  const isKept = consent !== null && card.card_ref !== null;
  if (isKept) await replaceCard(deps, db, merchant, attempt, withConsent(attempt, card), at);
  if (purpose === 'plan_payment') await collectShopperPayment(deps, db, attempt, payment_ref, at);
}

function withConsent({ customer_ref, consent }: PaymentAttempt, card: HeldCard) {
  const { card_ref } = card;
  assert(customer_ref !== null && consent !== null && card_ref !== null);
  return { ...cardToStore(card), customer_ref, card_ref, consent };
}

const declineIn = (answer: Outcome) => (answer.outcome === 'declined' ? answer.decline : null);

/**
 * Restores the earlier state of the payments of the plan: nothing was charged or changed.
 */
async function recordFailure(
  db: Handle,
  attempt: PaymentAttempt,
  answered: Decline | null,
  at: Timestamp,
): Promise<void> {
  if (attempt.purpose !== 'plan_payment') return;
  const { decline_reason, may_retry, decline_code, network_decline_code, payment_ref } = attempt;
  const decline = {
    ...answered,
    reason: decline_reason ?? 'processing_error',
    may_retry: may_retry ?? true,
    ...(decline_code !== null && { code: decline_code }),
    ...(network_decline_code !== null && { network_code: network_decline_code }),
  };
  await releaseShopperPayment(db, attempt, decline, payment_ref, at);
}
