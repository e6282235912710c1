import assert from 'node:assert/strict';
import type { Authorisation, HeldCard, PaymentState } from '#gateway/gateway.ts';
import { nextRetryAt } from '#gateway/retry-times.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Database, Handle } from '#platform/database/database.ts';
import { released } from '#platform/database/due-work.sql.ts';
import { transaction } from '#platform/database/transaction.ts';
import { type Clock, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import { lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { completeCheckout, invalidateCheckout } from '#purchases/checkouts/end-checkout.ts';
import { scheduleInstalments } from '#purchases/instalments/schedule-instalments.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { lockAttempt, moveAttempt } from './payment-attempt.sql.ts';
import {
  isPastDeadline,
  mayFinishUntil,
  nextChallengeLookUp,
  type PaymentAttempt,
} from './payment-attempt.ts';

/** The gateway's answer about an attempt, at once or when it was asked later. */
export type Finding = Authorisation | PaymentState;

const inFlight = ['starting', 'challenged'] as const;

/**
 * Writes the gateway's answer about an attempt, and everything that follows from it, in one
 * transaction. An answer counts only under the lease under which it was asked for. Every
 * transaction locks the checkout first, so that the lock's holder decides the outcome, once.
 */
export async function recordOutcome(
  deps: { database: Database; clock: Clock } & QueueDeps,
  merchant: Merchant,
  attempt: PaymentAttempt,
  finding: Finding,
): Promise<void> {
  await transaction(deps, async ({ db }) => {
    const checkout = await lockCheckout(db, attempt.merchant_id, attempt.checkout_id);
    assert(checkout);
    const current = await lockAttempt(db, attempt);
    // Another process claimed it, or an earlier run of this transaction was committed.
    if (current?.lease !== attempt.lease) return;
    const now = merchant.now();
    switch (finding.outcome) {
      case 'authorised':
        return await recordAuthorised(deps, db, merchant, checkout, current, finding, now);
      case 'challenge':
        return await recordChallenge(db, checkout, current, finding, now);
      case 'declined':
        return await recordDecline(db, current, finding, now);
      case 'refused':
        return await recordRefusal(db, checkout, current, timestamp(now));
      case 'processing':
        return await lookUpLater(db, current, finding.payment_ref, now);
      case 'voided':
        return await recordVoided(db, current, finding.payment_ref, now);
      case 'captured':
        // Only an outcome is ever captured, and an outcome is not looked up here.
        throw new Error(`payment attempt ${attempt.id} was captured without being the outcome`);
    }
  });
}

async function recordAuthorised(
  deps: QueueDeps,
  db: Handle,
  merchant: Merchant,
  checkout: Checkout,
  attempt: PaymentAttempt,
  held: Extract<Finding, { outcome: 'authorised' }>,
  now: Temporal.Instant,
): Promise<void> {
  const at = timestamp(now);
  const isOutcome =
    attempt.status !== 'voiding' &&
    checkout.status === 'received' &&
    !isPastDeadline(checkout, now);
  if (!isOutcome) {
    await moveAttempt(db, attempt, [...inFlight, 'voiding'], {
      ...released,
      status: 'voiding',
      payment_ref: held.payment_ref,
      due_at: at,
      tries: 0,
    });
    return;
  }
  await moveAttempt(db, attempt, [...inFlight], {
    ...released,
    status: 'authorised',
    payment_ref: held.payment_ref,
    card_ref: held.card.card_ref,
    card_brand: held.card.brand,
    card_last4: held.card.last4,
    card_expires: held.card.expires,
    authentication: held.authentication && JSON.stringify(held.authentication),
    capture_before: held.capture_before,
    sealed_card_token: null,
    settled_at: at,
    due_at: null,
  });
  const completed = await completeCheckout(deps, db, checkout, attempt.number_of_payments, at);
  assert(completed, 'the checkout is received and locked');
  const { payment_ref } = held;
  const stored_card = attempt.number_of_payments > 1 ? storedCard(attempt, held.card) : null;
  await scheduleInstalments(deps, db, merchant, completed, { payment_ref, stored_card });
}

function storedCard({ customer_ref, consent }: PaymentAttempt, card: HeldCard) {
  const { card_ref, brand, last4, expires } = card;
  assert(customer_ref !== null && consent !== null && card_ref !== null);
  return { customer_ref, card_ref, brand, last4, expires, consent };
}

async function recordChallenge(
  db: Handle,
  checkout: Checkout,
  attempt: PaymentAttempt,
  challenge: Extract<Finding, { outcome: 'challenge' }>,
  now: Temporal.Instant,
): Promise<void> {
  const known = { ...released, payment_ref: challenge.payment_ref, sealed_card_token: null };
  if (attempt.status === 'voiding') {
    await moveAttempt(db, attempt, ['voiding'], { ...known, due_at: timestamp(now), tries: 0 });
    return;
  }
  const tries = attempt.status === 'challenged' ? attempt.tries + 1 : 0;
  await moveAttempt(db, attempt, [...inFlight], {
    ...known,
    status: 'challenged',
    challenge_url: challenge.url,
    due_at: timestamp(nextChallengeLookUp(now, tries, mayFinishUntil(checkout.expires_at))),
    tries,
  });
}

async function recordDecline(
  db: Handle,
  attempt: PaymentAttempt,
  { payment_ref, decline }: Extract<Finding, { outcome: 'declined' }>,
  now: Temporal.Instant,
): Promise<void> {
  await moveAttempt(db, attempt, [...inFlight, 'voiding'], {
    ...released,
    // A decline leaves nothing to void.
    status: attempt.status === 'voiding' ? 'voided' : 'declined',
    payment_ref: payment_ref ?? attempt.payment_ref,
    decline_reason: decline.reason,
    may_retry: decline.may_retry,
    decline_code: decline.code ?? null,
    network_decline_code: decline.network_code ?? null,
    sealed_card_token: null,
    settled_at: timestamp(now),
    due_at: null,
  });
}

async function recordRefusal(
  db: Handle,
  checkout: Checkout,
  attempt: PaymentAttempt,
  at: Timestamp,
): Promise<void> {
  await moveAttempt(db, attempt, [...inFlight, 'voiding'], {
    ...released,
    status: attempt.status === 'voiding' ? 'voided' : 'refused',
    sealed_card_token: null,
    settled_at: at,
    due_at: null,
  });
  if (attempt.status !== 'voiding') await invalidateCheckout(db, checkout, at);
}

async function lookUpLater(
  db: Handle,
  attempt: PaymentAttempt,
  payment_ref: string,
  now: Temporal.Instant,
): Promise<void> {
  await moveAttempt(db, attempt, [...inFlight, 'voiding'], {
    ...released,
    payment_ref,
    due_at: timestamp(nextRetryAt(now, attempt.tries)),
    tries: attempt.tries + 1,
  });
}

async function recordVoided(
  db: Handle,
  attempt: PaymentAttempt,
  payment_ref: string,
  now: Temporal.Instant,
): Promise<void> {
  await moveAttempt(db, attempt, [...inFlight, 'voiding'], {
    ...released,
    status: 'voided',
    payment_ref,
    sealed_card_token: null,
    settled_at: timestamp(now),
    due_at: null,
  });
}
