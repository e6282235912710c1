import assert from 'node:assert/strict';
import {
  type Decline,
  type Gateway,
  type MerchantTime,
  OutcomeUnknown,
  type PaymentState,
  RequestRefused,
  type SchemeData,
} from '#gateway/gateway.ts';
import type { Gateways } from '#gateway/gateways.ts';
import { isKeyRemembered, mayBeInFlight } from '#gateway/retry-times.ts';
import { isUnconfirmed, voidUnconfirmed } from '#gateway/void-unconfirmed.ts';
import { type Merchant, statementOf } from '#merchants/merchant.ts';
import type { Database } from '#platform/database/database.ts';
import { type Clock, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { StoredCard } from './instalment.sql.ts';
import { type Collection, collectsAt, type Instalment } from './instalment.ts';
import { leaveOutUsed } from './unused-payments.ts';

export type AskedCollection = {
  instalment: Instalment;
  collection: Collection;
  card: StoredCard | null;
  number_of_payments: number;
};

export type Answer =
  | { outcome: 'collected'; payment_ref: string; scheme?: SchemeData | null }
  | { outcome: 'declined'; payment_ref: string | null; decline: Decline }
  | { outcome: 'lapsed' }
  /**
   * The request never arrived and its key is too old to be sent again. A request with a new key may
   * be sent.
   */
  | { outcome: 'lost' };

type AskDeps = { database: Database; clock: Clock; gateways: Gateways };

/**
 * Captures or charges a payment. If the gateway may have forgotten the key of an earlier request,
 * looks up the outcome of that request instead. Throws `OutcomeUnknown` like the gateway.
 */
export async function askGateway(
  deps: AskDeps,
  merchant: Merchant,
  { instalment, collection, card, number_of_payments }: AskedCollection,
): Promise<Answer> {
  const gateway = deps.gateways.of(instalment.gateway);
  const time = merchant.forGateway();
  const isSafe = isKeyRemembered(collection.created_at, time.now);
  const key = `${collection.checkout_id}:i${collection.instalment}:a${collection.number}`;
  if (collection.kind === 'capture') {
    const { payment_ref } = instalment;
    assert(payment_ref !== null, 'a hold has a reference');
    if (!isSafe) {
      const answer = await lookUpCapture(gateway, time, collection, payment_ref);
      return unlessInFlight(deps, collection, answer);
    }
    const { amount } = collection;
    const { outcome } = await gateway.capture({ key, merchant: time, payment_ref, amount });
    return outcome === 'captured' ? { outcome: 'collected', payment_ref } : { outcome };
  }
  // A once-off payment has no stored card (decision 0027).
  if (card === null) {
    const decline = { reason: 'generic', may_retry: false } as const;
    return { outcome: 'declined', payment_ref: null, decline };
  }
  const { customer_ref, card_ref } = card;
  if (!isSafe) {
    const answer = await lookUpCharge(deps, gateway, time, collection, customer_ref);
    return unlessInFlight(deps, collection, answer);
  }
  if (mayBeCharged(merchant, instalment, collection, time.now)) {
    const answer = await findCharge(deps, gateway, time, collection, customer_ref);
    if (answer !== null) return answer;
  }
  const charge = await gateway.charge({
    key,
    merchant: time,
    checkout_id: collection.checkout_id,
    instalment: collection.instalment,
    attempt_id: collection.id,
    customer_ref,
    card_ref,
    amount: collection.amount,
    currency: collection.currency,
    statement: statementOf(merchant, [collection.instalment], number_of_payments),
  });
  return charge.outcome === 'charged' ? { ...charge, outcome: 'collected' } : charge;
}

/**
 * Whether the payment may have been charged under a key that the gateway has forgotten. This
 * happens if the service charged it before the database was lost and restored. A first charge soon
 * after the due date needs no look-up, because the gateway still remembers the key. A retry is
 * rare, so it is always looked up.
 */
function mayBeCharged(
  { territory: { time_zone } }: Merchant,
  { due_on, attempts }: Instalment,
  { number }: Collection,
  now: Timestamp,
): boolean {
  return (
    number > 1 || attempts > 0 || !isKeyRemembered(timestamp(collectsAt(due_on, time_zone)), now)
  );
}

/**
 * The gateway's charge for the payment, whichever request made it. If there is none, returns the
 * decline of this request, if any: a restored database may have lost the row of a declined request,
 * and then uses its number and id again.
 */
async function findCharge(
  deps: AskDeps,
  gateway: Gateway,
  time: MerchantTime,
  collection: Collection,
  customer_ref: string,
): Promise<Answer | null> {
  const { id, checkout_id, instalment, amount } = collection;
  const wanted = { customer_ref, checkout_id, instalments: [instalment] };
  const listed = await gateway.listInstalmentPayments(time, wanted);
  const row = { ...collection, instalments: [instalment] };
  const states = await leaveOutUsed(deps.database.db, row, listed);
  // Declined charges took nothing, and holds of the first payment are not charges.
  for (const state of states) {
    if (state.outcome === 'processing' && !isUnconfirmed(state)) {
      throw new OutcomeUnknown('a charge of the instalment is processing');
    }
    if (state.outcome !== 'captured') continue;
    assertAmount(state.amount, amount);
    return { outcome: 'collected', payment_ref: state.payment_ref, scheme: state.scheme };
  }
  // The collector does not touch a payment while an attempt of the shopper in this database is in
  // flight. So the other unconfirmed payments belong to attempts that a restored database has lost.
  const others = states.filter(({ attempt_id }) => attempt_id !== id);
  await voidUnconfirmed(gateway, time, others);
  const own = states.find(({ attempt_id }) => attempt_id === id);
  return own === undefined ? null : await declineOfCharge(deps, gateway, time, collection, own);
}

/**
 * The decline of a charge that took nothing. A gateway may save a charge and then fail before it
 * asks the acquirer. Such a charge is voided, but not while its request may be in flight: the
 * gateway could still ask the acquirer afterwards, and take the money. `asked_at` is the time of
 * the last attempt to ask, before the present one.
 */
async function declineOfCharge(
  { clock }: AskDeps,
  gateway: Gateway,
  time: MerchantTime,
  { asked_at }: Collection,
  state: PaymentState,
): Promise<Answer> {
  switch (state.outcome) {
    case 'declined':
      return state;
    case 'begun':
    case 'challenge':
    case 'processing':
      if (!isUnconfirmed(state)) {
        throw new OutcomeUnknown('a charge without the shopper is processing');
      }
      if (mayBeInFlight(asked_at, clock.now())) {
        throw new OutcomeUnknown('a charge that was not made yet may be in flight');
      }
      await voidUnconfirmed(gateway, time, [state]);
      return declinedByVoid(state);
    case 'voided':
      return declinedByVoid(state);
    default:
      throw new OutcomeUnknown(`a charge without the shopper is ${state.outcome}`);
  }
}

/** A request that has had no effect may still have one while it may be in flight. */
function unlessInFlight({ clock }: AskDeps, { asked_at }: Collection, answer: Answer) {
  if (answer.outcome === 'lost' && mayBeInFlight(asked_at, clock.now())) {
    throw new OutcomeUnknown('a collection that was not found may be in flight');
  }
  return answer;
}

function assertAmount(taken: number, wanted: number): void {
  if (taken === wanted) return;
  throw new RequestRefused(`the gateway took ${taken} cents for a payment of ${wanted} cents`);
}

async function lookUpCapture(
  gateway: Gateway,
  time: MerchantTime,
  collection: Collection,
  payment_ref: string,
): Promise<Answer> {
  const state = await gateway.payment(time, payment_ref);
  switch (state.outcome) {
    case 'captured':
      assertAmount(state.amount, collection.amount);
      return { outcome: 'collected', payment_ref };
    case 'authorised':
      return { outcome: 'lost' };
    case 'voided':
      return { outcome: 'lapsed' };
    default:
      // The acquirer refused the capture, and no hold lasts longer than `holdDays`.
      if (state.outcome === 'declined' && isHoldOver(gateway, collection, time.now)) {
        return { outcome: 'lapsed' };
      }
      throw new OutcomeUnknown(`a hold to be captured is ${state.outcome}`);
  }
}

const isHoldOver = (
  { capabilities: { holdDays } }: Gateway,
  { created_at }: Collection,
  now: Timestamp,
): boolean => Temporal.Instant.from(now).since(created_at).total('hours') >= holdDays * 24;

async function lookUpCharge(
  deps: AskDeps,
  gateway: Gateway,
  time: MerchantTime,
  collection: Collection,
  customer_ref: string,
): Promise<Answer> {
  const state = await gateway.findPayment(time, { customer_ref, attempt_id: collection.id });
  if (state === null) return { outcome: 'lost' };
  if (state.outcome !== 'captured') {
    return await declineOfCharge(deps, gateway, time, collection, state);
  }
  assertAmount(state.amount, collection.amount);
  return { outcome: 'collected', payment_ref: state.payment_ref, scheme: state.scheme };
}

function declinedByVoid({ payment_ref }: { payment_ref: string }): Answer {
  const decline = { reason: 'processing_error', may_retry: true } as const;
  return { outcome: 'declined', payment_ref, decline };
}
