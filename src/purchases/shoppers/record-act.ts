import assert from 'node:assert/strict';
import type { Decline } from '#gateway/gateway.ts';
import { nextRetryAt } from '#gateway/retry-times.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Database, Handle } from '#platform/database/database.ts';
import { released } from '#platform/database/due-work.sql.ts';
import { transaction } from '#platform/database/transaction.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import { lockCheckout } from '#purchases/checkouts/checkout.sql.ts';
import { replaceCard } from '#purchases/instalments/replace-card.ts';
import {
  collectShopperPayment,
  releaseShopperPayment,
} from '#purchases/instalments/shopper-payment.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import type { Finding } from './ask-gateway.ts';
import { lockShopperAttempt, moveShopperAttempt } from './shopper-attempt.sql.ts';
import { nextChallengeLookUp, type ShopperAttempt } from './shopper-attempt.ts';

const inFlight = ['starting', 'challenged', 'voiding'] as const;

/**
 * Writes the gateway's answer about an attempt, and everything that follows from it, in one
 * transaction. An answer counts only under the lease under which it was asked for.
 */
export async function recordAct(
  deps: { database: Database; clock: Clock } & QueueDeps,
  merchant: Merchant,
  attempt: ShopperAttempt,
  finding: Finding,
): Promise<void> {
  await transaction(deps, async ({ db }) => {
    await lockCheckout(db, attempt.merchant_id, attempt.checkout_id);
    const current = await lockShopperAttempt(db, attempt);
    // Another process claimed it, or an earlier run of this transaction was committed.
    if (current === null || current.lease !== attempt.lease || current.due_at === null) return;
    const now = merchant.now();
    switch (finding.outcome) {
      case 'done':
        return await recordDone(deps, db, merchant, current, finding, now);
      case 'challenge':
        return await recordChallenge(db, current, finding, now);
      case 'declined':
        return await recordEnd(db, current, finding.payment_ref, finding.decline, now);
      case 'voided':
        return await recordEnd(db, current, finding.payment_ref, null, now);
      case 'processing':
        await moveShopperAttempt(db, current, [...inFlight], {
          ...released,
          payment_ref: finding.payment_ref,
          due_at: timestamp(nextRetryAt(now, current.tries)),
          tries: current.tries + 1,
        });
    }
  });
}

async function recordDone(
  deps: QueueDeps,
  db: Handle,
  merchant: Merchant,
  attempt: ShopperAttempt,
  { payment_ref, card, authentication }: Extract<Finding, { outcome: 'done' }>,
  now: Temporal.Instant,
): Promise<void> {
  const at = timestamp(now);
  const card_ref = card.card_ref ?? attempt.card_ref;
  await moveShopperAttempt(db, attempt, [...inFlight], {
    ...released,
    status: attempt.purpose === 'pay' ? 'charged' : 'verified',
    payment_ref,
    challenge_url: null,
    card_ref,
    card_brand: card.brand,
    card_last4: card.last4,
    card_expires: card.expires,
    authentication: authentication && JSON.stringify(authentication),
    decline_reason: null,
    may_retry: null,
    sealed_card_token: null,
    settled_at: at,
    due_at: null,
  });
  const { keeps_card, consent, customer_ref } = attempt;
  if (keeps_card && card.card_ref !== null) {
    assert(consent !== null);
    const kept = { ...card, card_ref: card.card_ref, customer_ref, consent };
    await replaceCard(deps, db, merchant, attempt, kept, at);
  }
  if (attempt.purpose === 'pay') {
    await collectShopperPayment(deps, db, { ...attempt, card_ref }, payment_ref, at);
  }
}

async function recordChallenge(
  db: Handle,
  attempt: ShopperAttempt,
  { payment_ref, url }: { payment_ref: string; url: string },
  now: Temporal.Instant,
): Promise<void> {
  const known = { ...released, payment_ref, sealed_card_token: null };
  if (attempt.status === 'voiding') {
    // It was given up while the request was in flight.
    await moveShopperAttempt(db, attempt, ['voiding'], {
      ...known,
      due_at: timestamp(now),
      tries: 0,
    });
    return;
  }
  const tries = attempt.status === 'challenged' ? attempt.tries + 1 : 0;
  await moveShopperAttempt(db, attempt, ['starting', 'challenged'], {
    ...known,
    status: 'challenged',
    challenge_url: url,
    due_at: timestamp(nextChallengeLookUp(attempt, now, tries)),
    tries,
  });
}

/** Nothing was charged or changed. Without a decline the attempt was ended before its outcome. */
async function recordEnd(
  db: Handle,
  attempt: ShopperAttempt,
  payment_ref: string | null,
  decline: Decline | null,
  now: Temporal.Instant,
): Promise<void> {
  const at = timestamp(now);
  const isUnanswered = attempt.challenge_url !== null;
  const reason =
    decline?.reason ??
    attempt.decline_reason ??
    (isUnanswered ? 'authentication_failed' : 'processing_error');
  const may_retry = decline?.may_retry ?? true;
  const ref = payment_ref ?? attempt.payment_ref;
  await moveShopperAttempt(db, attempt, [...inFlight], {
    ...released,
    status: decline === null || attempt.status === 'voiding' ? 'voided' : 'declined',
    payment_ref: ref,
    challenge_url: null,
    decline_reason: reason,
    may_retry,
    decline_code: decline?.code ?? null,
    network_decline_code: decline?.network_code ?? null,
    sealed_card_token: null,
    settled_at: at,
    due_at: null,
  });
  if (attempt.purpose === 'pay') {
    await releaseShopperPayment(db, attempt, { ...decline, reason, may_retry }, ref, at);
  }
}
