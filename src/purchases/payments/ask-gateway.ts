import { type Gateway, type MerchantTime, OutcomeUnknown } from '#gateway/gateway.ts';
import type { Gateways } from '#gateway/gateways.ts';
import { isMoneyStopped, type MoneyProblem, MoneyStopped } from '#gateway/guard-gateway.ts';
import { mayBeInFlight } from '#gateway/retry-times.ts';
import { type Merchant, statementOf } from '#merchants/merchant.ts';
import type { Database } from '#platform/database/database.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import type { Checkout } from '#purchases/checkouts/checkout.ts';
import { paymentToken } from '#purchases/checkouts/payment-token.ts';
import { type Answer, chooseRequest, mustEnd, type Outcome } from './choose-step.ts';
import { moveAsked, moveEnding } from './payment-attempt.sql.ts';
import { cardTokenContext, type PaymentAttempt } from './payment-attempt.ts';
import { type Ask, requestsOf } from './purpose-requests.ts';

export type AskDeps = {
  database: Database;
  clock: Clock;
  gateways: Gateways;
  money: MoneyProblem;
  sealing: Sealing;
  baseUrl: string;
};

/**
 * Makes the request to the gateway that `chooseRequest` chooses for a claimed attempt, and ends
 * what must not stay. Throws if the gateway refuses the request, if the outcome is unknown, or if
 * money is stopped.
 */
export async function askGateway(
  deps: AskDeps,
  merchant: Merchant,
  checkout: Checkout,
  attempt: PaymentAttempt,
): Promise<Outcome> {
  const gateway = deps.gateways.of(attempt.gateway);
  const requests = requestsOf(attempt);
  const ask = { gateway, time: merchant.forGateway(), attempt };
  const { payment_ref } = attempt;
  const request = chooseRequest(attempt, checkout, merchant.now());
  const sealed = (answer: Answer) => sealSession(deps.sealing, attempt, answer);
  if (payment_ref !== null && request === 'end') {
    return sealed(await requests.end(ask, payment_ref));
  }
  const answer =
    payment_ref !== null
      ? await requests.lookUp(ask, payment_ref)
      : ((request === 'send' ? await send(deps, merchant, checkout, ask) : null) ??
        (await findSent(deps, ask)));
  if (!mustEnd(attempt, checkout, answer, merchant.now())) return sealed(answer);
  await beginEnding(deps, attempt, answer.payment_ref);
  return sealed(await requests.end(ask, answer.payment_ref));
}

/**
 * Records that the attempt is being voided. Throws if another process has claimed the attempt: this
 * process may have been suspended since its own claim, and the other one may have recorded the same
 * hold as the purchase.
 */
async function beginEnding(
  deps: AskDeps,
  attempt: PaymentAttempt,
  payment_ref: string,
): Promise<void> {
  await refuseIfStopped(deps, attempt);
  if (attempt.status === 'voiding') return;
  if (await moveEnding(deps.database.db, attempt, payment_ref)) return;
  throw new OutcomeUnknown('another process has claimed the attempt');
}

/**
 * Refuses to end an attempt while money is stopped: after a restore, an attempt whose time is over
 * may be a purchase that the backup lacks.
 */
async function refuseIfStopped(
  { money }: Pick<AskDeps, 'money'>,
  { gateway }: PaymentAttempt,
): Promise<void> {
  if (await isMoneyStopped(money, gateway)) {
    throw new MoneyStopped('attempts are not ended while money is stopped');
  }
}

/** The secret of a session is kept with the attempt, in case the page is loaded again. */
function sealSession(sealing: Sealing, attempt: PaymentAttempt, answer: Answer): Outcome {
  if (answer.outcome !== 'begun') return answer;
  const { session, ...begun } = answer;
  const sealed_session = sealing.seal(session.client_secret, cardTokenContext(attempt));
  return { ...begun, sealed_session };
}

/**
 * Asks the gateway what it knows about an attempt, without sending or ending anything. Returns null
 * if the gateway knows nothing, or if nothing can have been sent.
 */
export async function lookUpAttempt(
  gateway: Gateway,
  time: MerchantTime,
  attempt: PaymentAttempt,
): Promise<Answer | null> {
  const { payment_ref, customer_ref } = attempt;
  const requests = requestsOf(attempt);
  const ask = { gateway, time, attempt };
  if (payment_ref !== null) return await requests.lookUp(ask, payment_ref);
  return customer_ref === null ? null : await requests.find(ask, customer_ref);
}

/** Returns null if the attempt must no longer be sent. */
async function send(
  deps: AskDeps,
  merchant: Merchant,
  checkout: Checkout,
  ask: Ask,
): Promise<Answer | null> {
  const { gateway, attempt, time } = ask;
  const requests = requestsOf(attempt);
  const customer_ref = attempt.customer_ref ?? (await createCustomer(gateway, time, checkout));
  const earlier = await requests.findEarlier(ask, customer_ref, deps.database.db);
  if (earlier !== null) return earlier;
  // The calls above took time, and another process may have moved the attempt in the meantime.
  const now = merchant.now();
  const asked = { customer_ref, asked_at: timestamp(deps.clock.now()) };
  const maySend =
    chooseRequest(attempt, checkout, now) === 'send' &&
    (await moveAsked(deps.database.db, attempt, asked));
  if (!maySend) return null;
  const { sealed_card_token, instalments, number_of_payments } = attempt;
  return await requests.send(ask, {
    customer_ref,
    card_token:
      sealed_card_token && deps.sealing.open(sealed_card_token, cardTokenContext(attempt)),
    statement: statementOf(merchant, instalments, number_of_payments),
    return_url: `${deps.baseUrl}/pay/${paymentToken(deps.sealing, checkout)}/return`,
  });
}

/** Finds the outcome of a request that may have been sent under an earlier claim. */
async function findSent(deps: AskDeps, ask: Ask): Promise<Answer> {
  const { customer_ref, asked_at } = ask.attempt;
  // Every request names a customer, and the customer is written before the request is sent.
  if (customer_ref !== null) {
    const found = await requestsOf(ask.attempt).find(ask, customer_ref);
    if (found) return found;
    if (asked_at !== null && mayBeInFlight(asked_at, deps.clock.now())) {
      throw new OutcomeUnknown('a request that was not found may be in flight');
    }
  }
  await refuseIfStopped(deps, ask.attempt);
  const decline = { reason: 'processing_error', may_retry: true } as const;
  return { outcome: 'declined', payment_ref: null, decline };
}

/**
 * Creates the gateway's record of the shopper: one per checkout, before the first request to pay
 * it.
 */
async function createCustomer(
  gateway: Gateway,
  merchant: MerchantTime,
  checkout: Checkout,
): Promise<string> {
  const { email, first_name, last_name, phone_number } = checkout.customer;
  const name = [first_name, last_name].filter((part) => part !== undefined).join(' ');
  const { customer_ref } = await gateway.createCustomer({
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
