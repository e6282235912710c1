import assert from 'node:assert/strict';
import {
  type DeliveryDeps,
  deliverFirst,
  leaveFirst,
} from '../callbacks/delivery/deliver-callback.ts';
import { lockCheckout } from '../checkouts/checkout.sql.ts';
import type { Checkout } from '../checkouts/checkout.ts';
import { transaction } from '../database/transaction.ts';
import { OutcomeUnknown } from '../gateway/gateway.ts';
import { leaseSeconds, nextLook } from '../gateway/patience.ts';
import { planPayments } from '../instalments/instalment.ts';
import { localDate, type Merchant, merchantNow } from '../merchants/merchant.ts';
import { secondsAfter, timestamp } from '../shared/clock.ts';
import { type AskDeps, askGateway, cardTokenContext } from './ask-gateway.ts';
import type { PayRequest } from './pay-page.ts';
import {
  insertAttempt,
  listAttempts,
  moveInFlightToVoiding,
  movePutDown,
} from './payment-attempt.sql.ts';
import type { PaymentAttempt } from './payment-attempt.ts';
import { recordOutcome } from './record-outcome.ts';

export type PaymentDeps = AskDeps & DeliveryDeps;

/**
 * A shopper pays. The attempt is written before the gateway hears of it, so that whatever happens
 * to this process, somebody will find out what became of it. Where the outcome is not known in
 * time, the attempt stays open and due work settles it; the page asks until it has.
 */
export async function startPayment(
  deps: PaymentDeps,
  merchant: Merchant,
  checkout: { merchant_id: string; id: string },
  request: PayRequest,
): Promise<void> {
  const attempt = await openAttempt(deps, merchant, checkout, request);
  if (attempt) await settleAttempt(deps, merchant, attempt, true);
}

/**
 * Finds out about an attempt in hand, and writes it down or puts the attempt down. Never throws:
 * the attempt is on record whatever happens here, and whoever looks at it next finds out. The
 * merchant is told while a shopper's request waits, else as soon as somebody gets to it.
 */
export async function settleAttempt(
  deps: PaymentDeps,
  merchant: Merchant,
  attempt: PaymentAttempt,
  isAwaited: boolean,
): Promise<void> {
  try {
    await recordOutcome(deps, merchant, attempt, await askGateway(deps, merchant, attempt));
    const tell = isAwaited ? deliverFirst : leaveFirst;
    await tell(deps, merchant, attempt.checkout_id);
  } catch (error) {
    const about = { err: error, attempt_id: attempt.id };
    if (error instanceof OutcomeUnknown) {
      deps.log.warn(about, 'the outcome of a payment is not known yet');
    } else {
      deps.log.error(about, 'a payment attempt could not be settled');
    }
    await putDown(deps, merchant, attempt);
  }
}

async function putDown(
  deps: PaymentDeps,
  merchant: Merchant,
  attempt: PaymentAttempt,
): Promise<void> {
  assert(attempt.lease !== null);
  const again = timestamp(nextLook(merchantNow(deps.clock, merchant), attempt.tries));
  try {
    await movePutDown(deps.database.db, attempt, attempt.lease, again);
  } catch (error) {
    // Its lease will run out all the same.
    deps.log.error({ err: error, attempt_id: attempt.id }, 'a payment attempt was not put down');
  }
}

/** Null when there is nothing to start: the checkout has ended, expired, or is being paid. */
async function openAttempt(
  deps: PaymentDeps,
  merchant: Merchant,
  key: { merchant_id: string; id: string },
  { number_of_payments, card_token, consent }: PayRequest,
): Promise<PaymentAttempt | null> {
  const id = deps.random.uuid();
  const lease = deps.random.uuid();
  return await transaction(deps, async ({ db }, maybeCommitted) => {
    const checkout = await lockCheckout(db, key.merchant_id, key.id);
    assert(checkout);
    const attempts = await listAttempts(db, key.merchant_id, key.id);
    const committed = maybeCommitted && attempts.find((attempt) => attempt.id === id);
    if (committed) return committed;
    const now = merchantNow(deps.clock, merchant);
    if (checkout.status !== 'received' || !isOpen(checkout, now)) return null;
    if (attempts.some(({ status }) => status === 'starting') || !mayTryAgain(attempts)) return null;
    // The shopper turned away from their bank's question: that attempt is over (D18).
    await moveInFlightToVoiding(db, key.merchant_id, key.id, timestamp(now));

    const [first] = planPayments(checkout.amount, number_of_payments, localDate(merchant, now));
    assert(first);
    const attempt = {
      merchant_id: checkout.merchant_id,
      id,
      checkout_id: checkout.id,
      number: (attempts[0]?.number ?? 0) + 1,
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
    };
    await insertAttempt(db, attempt);
    const [inserted] = await listAttempts(db, key.merchant_id, key.id);
    assert(inserted?.id === id);
    return inserted;
  });
}

/** Whether the page may still be used: for half an hour (D17). */
export function isOpen(checkout: Checkout, now: Temporal.Instant): boolean {
  return Temporal.Instant.compare(now, checkout.expires_at) < 0;
}

/** Nobody needs so many; who tries out stolen numbers does. */
const mostAttempts = 20;

export function mayTryAgain(attempts: PaymentAttempt[]): boolean {
  return attempts.length < mostAttempts;
}
