import assert from 'node:assert/strict';
import type { HeldCard } from '#gateway/gateway.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Database, Handle } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import { type Clock, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import { lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { completeCheckout, invalidateCheckout } from '#purchases/checkouts/end-checkout.ts';
import { replaceCard } from '#purchases/instalments/replace-card.ts';
import { scheduleInstalments } from '#purchases/instalments/schedule-instalments.ts';
import {
  collectShopperPayment,
  releaseShopperPayment,
} from '#purchases/instalments/shopper-payment.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { chooseMove, type Outcome } from './choose-step.ts';
import { lockAttempt, moveAttempt } from './payment-attempt.sql.ts';
import type { PaymentAttempt } from './payment-attempt.ts';

/**
 * Writes the outcome of an attempt, and everything that follows from it, in one transaction. An
 * outcome counts only under the lease that it was found with. Every transaction locks the checkout
 * first, so that the lock's holder decides, once.
 */
export async function recordOutcome(
  deps: { database: Database; clock: Clock } & QueueDeps,
  merchant: Merchant,
  attempt: PaymentAttempt,
  answer: Outcome,
): Promise<void> {
  await transaction(deps, async ({ db }) => {
    const checkout = await lockCheckout(db, attempt.merchant_id, attempt.checkout_id);
    assert(checkout);
    const current = await lockAttempt(db, attempt);
    // Another process claimed it, or an earlier run of this transaction was committed.
    if (current === null || current.lease !== attempt.lease || current.due_at === null) return;
    const now = merchant.now();
    const { to, effect } = chooseMove(current, checkout, answer, now);
    const moved = await moveAttempt(db, current, to);
    assert(moved, 'the attempt is unsettled and locked');
    const at = timestamp(now);
    switch (effect) {
      case 'succeed':
        assert(answer.outcome === 'done');
        return await recordSuccess(deps, db, merchant, checkout, moved, answer.card, at);
      case 'fail':
        return await recordFailure(db, moved, at);
      case 'refuse':
        await invalidateCheckout(db, checkout, at);
    }
  });
}

async function recordSuccess(
  deps: QueueDeps,
  db: Handle,
  merchant: Merchant,
  checkout: Checkout,
  attempt: PaymentAttempt,
  card: HeldCard,
  at: Timestamp,
): Promise<void> {
  const { purpose, payment_ref, consent, number_of_payments } = attempt;
  assert(payment_ref !== null);
  if (purpose === 'first_payment') {
    const completed = await completeCheckout(deps, db, checkout, number_of_payments, at);
    assert(completed, 'the checkout is received and locked');
    const stored_card = number_of_payments > 1 ? cardToStore(attempt, card) : null;
    return await scheduleInstalments(deps, db, merchant, completed, { payment_ref, stored_card });
  }
  const isKept = consent !== null && card.card_ref !== null;
  if (isKept) await replaceCard(deps, db, merchant, attempt, cardToStore(attempt, card), at);
  if (purpose === 'plan_payment') await collectShopperPayment(deps, db, attempt, payment_ref, at);
}

function cardToStore({ customer_ref, consent }: PaymentAttempt, card: HeldCard) {
  const { card_ref } = card;
  assert(customer_ref !== null && consent !== null && card_ref !== null);
  return { ...card, customer_ref, card_ref, consent };
}

/** Nothing was charged or changed: the payments of the plan return to their earlier state. */
async function recordFailure(db: Handle, attempt: PaymentAttempt, at: Timestamp): Promise<void> {
  if (attempt.purpose !== 'plan_payment') return;
  const { decline_reason, may_retry, decline_code, network_decline_code, payment_ref } = attempt;
  const decline = {
    reason: decline_reason ?? 'processing_error',
    may_retry: may_retry ?? true,
    ...(decline_code !== null && { code: decline_code }),
    ...(network_decline_code !== null && { network_code: network_decline_code }),
  };
  await releaseShopperPayment(db, attempt, decline, payment_ref, at);
}
