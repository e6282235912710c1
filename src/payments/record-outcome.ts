import assert from 'node:assert/strict';
import { lockCheckout } from '../checkouts/checkout.sql.ts';
import type { Checkout } from '../checkouts/checkout.ts';
import { completeCheckout, invalidateCheckout } from '../checkouts/end-checkout.ts';
import type { Database, Handle } from '../database/database.ts';
import { transaction } from '../database/transaction.ts';
import type { Authorisation, PaymentState } from '../gateway/gateway.ts';
import { nextLook } from '../gateway/patience.ts';
import { insertStoredCard } from '../instalments/instalment.sql.ts';
import { scheduleInstalments } from '../instalments/schedule-instalments.ts';
import { type Merchant, merchantNow } from '../merchants/merchant.ts';
import { type Clock, type Timestamp, timestamp } from '../shared/clock.ts';
import type { Random } from '../shared/random.ts';
import { lockAttempt, moveAttempt } from './payment-attempt.sql.ts';
import { mayFinishUntil, nextChallengeLook, type PaymentAttempt } from './payment-attempt.ts';

/** What the gateway said about an attempt, now or when it was asked later. */
export type Finding = Authorisation | PaymentState;

const inFlight = ['starting', 'challenged'] as const;
const putDown = { lease: null, leased_until: null };

/**
 * Writes what was found out about an attempt, and everything that follows from it, in one
 * transaction. It counts only under the lease that it was found out with. The checkout is locked
 * first, by everyone: its outcome is decided by whoever gets that lock, once.
 */
export async function recordOutcome(
  deps: { database: Database; clock: Clock; random: Random },
  merchant: Merchant,
  attempt: PaymentAttempt,
  finding: Finding,
): Promise<void> {
  await transaction(deps, async ({ db }) => {
    const checkout = await lockCheckout(db, attempt.merchant_id, attempt.checkout_id);
    assert(checkout);
    const current = await lockAttempt(db, attempt);
    // Another actor took it over, or this very result is committed already.
    if (current?.lease !== attempt.lease) return;
    const now = merchantNow(deps.clock, merchant);
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
        return await lookAgain(db, current, finding.payment_ref, now);
      case 'voided':
        return await recordVoided(db, current, finding.payment_ref, now);
      case 'captured':
        // Only what became the outcome is ever captured, and that is not looked at here.
        throw new Error(`payment attempt ${attempt.id} was captured without being the outcome`);
    }
  });
}

async function recordAuthorised(
  deps: { random: Random },
  db: Handle,
  merchant: Merchant,
  checkout: Checkout,
  attempt: PaymentAttempt,
  held: Extract<Finding, { outcome: 'authorised' }>,
  now: Temporal.Instant,
): Promise<void> {
  const at = timestamp(now);
  const inTime = Temporal.Instant.compare(now, mayFinishUntil(checkout.expires_at)) <= 0;
  const isOutcome = attempt.status !== 'voiding' && checkout.status === 'received' && inTime;
  if (!isOutcome) {
    await moveAttempt(db, attempt, [...inFlight, 'voiding'], {
      ...putDown,
      status: 'voiding',
      payment_ref: held.payment_ref,
      due_at: at,
      tries: 0,
    });
    return;
  }
  await moveAttempt(db, attempt, [...inFlight], {
    ...putDown,
    status: 'authorised',
    payment_ref: held.payment_ref,
    card_ref: held.card.card_ref,
    card_brand: held.card.brand,
    card_last4: held.card.last4,
    capture_before: held.capture_before,
    sealed_card_token: null,
    settled_at: at,
    due_at: null,
  });
  const completed = await completeCheckout(deps, db, checkout, attempt.number_of_payments, at);
  assert(completed, 'the checkout is received and locked');
  await scheduleInstalments(deps, db, merchant, completed, held);
  if (attempt.number_of_payments > 1) {
    // Later payments are promised to the merchant: without a card to take them from, they are not.
    assert(held.card.card_ref !== null && attempt.customer_ref !== null && attempt.consent);
    await insertStoredCard(db, {
      merchant_id: checkout.merchant_id,
      checkout_id: checkout.id,
      customer_ref: attempt.customer_ref,
      card_ref: held.card.card_ref,
      brand: held.card.brand,
      last4: held.card.last4,
      consent: attempt.consent,
      created_at: at,
    });
  }
}

async function recordChallenge(
  db: Handle,
  checkout: Checkout,
  attempt: PaymentAttempt,
  challenge: Extract<Finding, { outcome: 'challenge' }>,
  now: Temporal.Instant,
): Promise<void> {
  const known = { ...putDown, payment_ref: challenge.payment_ref, sealed_card_token: null };
  if (attempt.status === 'voiding') {
    await moveAttempt(db, attempt, ['voiding'], { ...known, due_at: timestamp(now), tries: 0 });
    return;
  }
  const tries = attempt.status === 'challenged' ? attempt.tries + 1 : 0;
  await moveAttempt(db, attempt, [...inFlight], {
    ...known,
    status: 'challenged',
    challenge_url: challenge.url,
    due_at: timestamp(nextChallengeLook(now, tries, mayFinishUntil(checkout.expires_at))),
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
    ...putDown,
    // What was to be let go has let go by itself.
    status: attempt.status === 'voiding' ? 'voided' : 'declined',
    payment_ref: payment_ref ?? attempt.payment_ref,
    decline_reason: decline.reason,
    may_retry: decline.may_retry,
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
    ...putDown,
    status: attempt.status === 'voiding' ? 'voided' : 'refused',
    sealed_card_token: null,
    settled_at: at,
    due_at: null,
  });
  if (attempt.status !== 'voiding') await invalidateCheckout(db, checkout, at);
}

async function lookAgain(
  db: Handle,
  attempt: PaymentAttempt,
  payment_ref: string,
  now: Temporal.Instant,
): Promise<void> {
  await moveAttempt(db, attempt, [...inFlight, 'voiding'], {
    ...putDown,
    payment_ref,
    due_at: timestamp(nextLook(now, attempt.tries)),
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
    ...putDown,
    status: 'voided',
    payment_ref,
    sealed_card_token: null,
    settled_at: timestamp(now),
    due_at: null,
  });
}
