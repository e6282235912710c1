import assert from 'node:assert/strict';
import { findCheckout } from '../checkouts/checkout.sql.ts';
import type { Checkout } from '../checkouts/checkout.ts';
import { paymentToken } from '../checkouts/payment-token.ts';
import type { Database } from '../database/database.ts';
import { reading } from '../database/transaction.ts';
import type { Gateway, MerchantTime } from '../gateway/gateway.ts';
import { isKeyRemembered } from '../gateway/retry-times.ts';
import { type Merchant, merchantTime } from '../merchants/merchant.ts';
import type { Clock } from '../shared/clock.ts';
import type { Sealing } from '../shared/sealing.ts';
import { moveCustomer } from './payment-attempt.sql.ts';
import { mayFinishUntil, type PaymentAttempt } from './payment-attempt.ts';
import type { Finding } from './record-outcome.ts';

export type AskDeps = {
  database: Database;
  clock: Clock;
  gateway: Gateway;
  sealing: Sealing;
  baseUrl: string;
};

/** Binds a sealed card token to its attempt: it does not open for another. */
export const cardTokenContext = (attempt: { id: string }) => `payment_attempts ${attempt.id}`;

/**
 * Calls the gateway for a claimed attempt, as its status requires: holds the amount (again under
 * the same key if an earlier request may have arrived), looks up a challenge, or voids a hold that
 * must not stay. Throws `OutcomeUnknown` like the gateway.
 */
export async function askGateway(
  deps: AskDeps,
  merchant: Merchant,
  attempt: PaymentAttempt,
): Promise<Finding> {
  const checkout = await reading(deps, (db) =>
    findCheckout(db, attempt.merchant_id, attempt.checkout_id),
  );
  assert(checkout);
  const time = merchantTime(deps.clock, merchant);
  if (attempt.payment_ref === null) {
    const finding = await authorise(deps, time, checkout, attempt);
    if (attempt.status !== 'voiding' || !('payment_ref' in finding) || !finding.payment_ref) {
      return finding;
    }
    if (finding.outcome === 'declined') return finding;
    return await voidHold(deps, time, attempt, finding.payment_ref);
  }
  if (attempt.status === 'voiding') return await voidHold(deps, time, attempt, attempt.payment_ref);
  const finding = await deps.gateway.payment(time, attempt.payment_ref);
  const isTooLate =
    Temporal.Instant.compare(time.now, mayFinishUntil(checkout.expires_at)) > 0 &&
    (finding.outcome === 'challenge' || finding.outcome === 'processing');
  // The shopper did not return in time. The bank must not be able to approve it tomorrow.
  return isTooLate ? await voidHold(deps, time, attempt, attempt.payment_ref) : finding;
}

async function authorise(
  deps: AskDeps,
  time: MerchantTime,
  checkout: Checkout,
  attempt: PaymentAttempt,
): Promise<Finding> {
  const customer_ref = await ensureCustomer(deps, time, checkout, attempt);
  if (!isKeyRemembered(attempt.created_at, time.now) || attempt.sealed_card_token === null) {
    const found = await deps.gateway.findPayment(time, { customer_ref, attempt_id: attempt.id });
    // The request never arrived, and its key is too old to be sent again: nothing is held.
    const decline = { reason: 'processing_error', may_retry: true } as const;
    return found ?? { outcome: 'declined', payment_ref: null, decline };
  }
  return await deps.gateway.authorise({
    key: `${attempt.checkout_id}:p${attempt.number}`,
    merchant: time,
    checkout_id: attempt.checkout_id,
    attempt_id: attempt.id,
    customer_ref,
    amount: attempt.amount,
    currency: attempt.currency,
    card_token: deps.sealing.open(attempt.sealed_card_token, cardTokenContext(attempt)),
    store_card: attempt.number_of_payments > 1,
    return_url: `${deps.baseUrl}/pay/${paymentToken(deps.sealing, checkout)}/return`,
  });
}

/** Creates the gateway's record of the shopper: one per checkout, before its first attempt. */
async function ensureCustomer(
  deps: AskDeps,
  merchant: MerchantTime,
  checkout: Checkout,
  attempt: PaymentAttempt,
): Promise<string> {
  if (attempt.customer_ref !== null) return attempt.customer_ref;
  const { email, first_name, last_name, phone_number } = checkout.customer;
  const name = [first_name, last_name].filter((part) => part !== undefined).join(' ');
  const { customer_ref } = await deps.gateway.createCustomer({
    key: `${checkout.id}:customer`,
    merchant,
    checkout_id: checkout.id,
    shopper: {
      email,
      ...(name !== '' && { name }),
      ...(phone_number !== undefined && { phone_number }),
    },
  });
  await moveCustomer(deps.database.db, attempt, customer_ref);
  attempt.customer_ref = customer_ref;
  return customer_ref;
}

async function voidHold(
  deps: AskDeps,
  merchant: MerchantTime,
  attempt: PaymentAttempt,
  payment_ref: string,
): Promise<Finding> {
  const key = `${attempt.checkout_id}:p${attempt.number}:void`;
  const { outcome } = await deps.gateway.void({ key, merchant, payment_ref });
  return outcome === 'voided'
    ? { outcome, payment_ref }
    : { outcome, payment_ref, amount: attempt.amount };
}
