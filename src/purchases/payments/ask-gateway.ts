import { type Gateway, type MerchantTime, OutcomeUnknown } from '#gateway/gateway.ts';
import { isKeyRemembered, mayBeInFlight } from '#gateway/retry-times.ts';
import { type Merchant, statementOf } from '#merchants/merchant.ts';
import type { Database } from '#platform/database/database.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { paymentToken } from '#purchases/checkouts/payment-token.ts';
import { moveAsked } from './payment-attempt.sql.ts';
import { isPastDeadline, type PaymentAttempt } from './payment-attempt.ts';
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
 * the same key if an earlier request may have arrived), looks up what was sent, or voids a hold
 * that must not stay. Throws like the gateway.
 */
export async function askGateway(
  deps: AskDeps,
  merchant: Merchant,
  checkout: Checkout,
  attempt: PaymentAttempt,
): Promise<Finding> {
  const time = merchant.forGateway();
  const { payment_ref } = attempt;
  if (payment_ref !== null && attempt.status === 'voiding') {
    return await voidHold(deps, time, attempt, payment_ref);
  }
  const finding =
    payment_ref === null
      ? await holdOrFind(deps, merchant, checkout, attempt)
      : await deps.gateway.payment(time, payment_ref);
  const isOver = attempt.status === 'voiding' || isPastDeadline(checkout, merchant.now());
  // The bank must not be able to approve it tomorrow.
  return isOver && isLive(finding)
    ? await voidHold(deps, time, attempt, finding.payment_ref)
    : finding;
}

type Live = Extract<Finding, { outcome: 'authorised' | 'challenge' | 'processing' }>;

const isLive = (finding: Finding): finding is Live =>
  ['authorised', 'challenge', 'processing'].includes(finding.outcome);

/**
 * Holds the amount while the attempt can still be the outcome. Otherwise it never sends anything,
 * and only looks up what was sent (decision 0023).
 */
async function holdOrFind(
  deps: AskDeps,
  merchant: Merchant,
  checkout: Checkout,
  attempt: PaymentAttempt,
): Promise<Finding> {
  const { sealed_card_token } = attempt;
  const maySend = () => {
    const now = merchant.now();
    return (
      attempt.status === 'starting' &&
      isKeyRemembered(attempt.created_at, timestamp(now)) &&
      !isPastDeadline(checkout, now)
    );
  };
  if (sealed_card_token !== null && maySend()) {
    const time = merchant.forGateway();
    const customer_ref = await ensureCustomer(deps, time, checkout, attempt);
    const asked_at = timestamp(deps.clock.now());
    const { db } = deps.database;
    if (maySend() && (await moveAsked(db, attempt, { customer_ref, asked_at }))) {
      return await deps.gateway.authorise({
        key: `${attempt.checkout_id}:p${attempt.number}`,
        merchant: time,
        checkout_id: attempt.checkout_id,
        attempt_id: attempt.id,
        customer_ref,
        amount: attempt.amount,
        currency: attempt.currency,
        statement: statementOf(merchant, [1], attempt.number_of_payments),
        card_token: deps.sealing.open(sealed_card_token, cardTokenContext(attempt)),
        store_card: attempt.number_of_payments > 1,
        return_url: `${deps.baseUrl}/pay/${paymentToken(deps.sealing, checkout)}/return`,
      });
    }
  }
  return await findSent(deps, merchant, attempt);
}

/** The outcome of a request that may have been sent by an earlier claim. */
async function findSent(
  deps: AskDeps,
  merchant: Merchant,
  attempt: PaymentAttempt,
): Promise<Finding> {
  const { id: attempt_id, customer_ref, asked_at } = attempt;
  // Every request names a customer, and the customer is written before the request is sent.
  if (customer_ref !== null) {
    const time = merchant.forGateway();
    const found = await deps.gateway.findPayment(time, { customer_ref, attempt_id });
    if (found) return found;
    if (asked_at !== null && mayBeInFlight(asked_at, deps.clock.now())) {
      throw new OutcomeUnknown('a hold that was not found may be in flight');
    }
  }
  const decline = { reason: 'processing_error', may_retry: true } as const;
  return { outcome: 'declined', payment_ref: null, decline };
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
    : await deps.gateway.payment(merchant, payment_ref);
}
