import type { SchemeData } from '#gateway/gateway.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import { CannotRecord } from '#platform/shared/cannot-record.ts';
import { type Clock, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';
import { type Movement, postMovements } from '#record/ledger/post-movements.ts';
import { insertCollections, listLastCollections } from './collection.sql.ts';
import { type CheckoutKey, lockInstalments, moveSettled } from './instalment.sql.ts';
import {
  type Collection,
  capturesAt,
  collectionId,
  type Instalment,
  type InstalmentStatus,
} from './instalment.ts';

// Records payments that the gateway took before the database was restored (decision 0098). The
// caller's transaction holds the checkout's lock.

type RecordingDeps = { clock: Clock; random: Random };

/** An id is compared with the ids of at most this many attempts. No payment ever has that many. */
const numbersMax = 100;

/** Records a charge of the stored card. `id` is our id for the request. */
export async function recordLostCharge(
  deps: RecordingDeps,
  db: Handle,
  key: CheckoutKey,
  charge: {
    id: string;
    instalment: number;
    amount: number;
    payment_ref: string;
    scheme: SchemeData | null;
    at: Timestamp;
  },
): Promise<void> {
  const { instalment, amount, payment_ref, scheme, at } = charge;
  const payment = await lockPayment(db, key, instalment, ['scheduled', 'overdue'], amount);
  const number = findNumber((one) => collectionId(key.checkout_id, instalment, one) === charge.id);
  if (number === null) throw new CannotRecord('its request is not one of ours');
  const row = collectedRow(payment, number, 'charge', payment_ref, at);
  await insertCollections(db, [{ ...row, scheme }]);
  await settle(deps, db, payment, payment_ref, at, [{ kind: 'collected', amount }]);
}

/** Records the capture of the hold. */
export async function recordLostCapture(
  deps: RecordingDeps,
  db: Handle,
  merchant: Merchant,
  key: CheckoutKey,
  { payment_ref, amount }: { payment_ref: string; amount: number },
): Promise<void> {
  const payment = await lockPayment(db, key, 1, ['authorised'], amount);
  if (payment.payment_ref !== payment_ref) throw new CannotRecord('another payment is held');
  const now = merchant.now();
  const due = capturesAt(payment.due_on, merchant.territory.time_zone);
  if (Temporal.Instant.compare(now, due) < 0) {
    throw new CannotRecord('it was captured before the capture was due');
  }
  const [last] = await listLastCollections(db, key.merchant_id, [key.checkout_id]);
  const number = (last?.instalment === 1 ? last.number : 0) + 1;
  // The gateway does not say when the hold was captured, so record when the capture was due. A
  // refund uses these times to decide which payment it takes first.
  const at = timestamp(due);
  await insertCollections(db, [collectedRow(payment, number, 'capture', payment_ref, at)]);
  await settle(deps, db, payment, payment_ref, at, [
    { kind: 'captured', amount },
    { kind: 'used', amount: payment.amount },
  ]);
}

export function findNumber(isNumber: (number: number) => boolean): number | null {
  for (let number = 1; number <= numbersMax; number += 1) if (isNumber(number)) return number;
  return null;
}

/** Locks the payment. Throws `CannotRecord` unless the lost request can have collected it. */
async function lockPayment(
  db: Handle,
  key: CheckoutKey,
  number: number,
  statuses: InstalmentStatus[],
  amount: number,
): Promise<Instalment> {
  const payment = (await lockInstalments(db, key)).find((one) => one.number === number);
  if (!payment) throw new CannotRecord(`the plan has no payment ${number}`);
  if (!statuses.includes(payment.status)) {
    throw new CannotRecord(`payment ${number} is ${payment.status}`);
  }
  if (payment.paused) throw new CannotRecord(`payment ${number} is paused`);
  if (payment.amount - payment.reduced !== amount) {
    throw new CannotRecord(`payment ${number} is for ${payment.amount - payment.reduced} cents`);
  }
  const collections = await listLastCollections(db, key.merchant_id, [key.checkout_id]);
  if (collections.some((one) => one.instalment === number && one.status === 'open')) {
    throw new CannotRecord(`payment ${number} is being collected`);
  }
  return payment;
}

function collectedRow(
  payment: Instalment,
  number: number,
  kind: 'charge' | 'capture',
  payment_ref: string,
  at: Timestamp,
): Collection {
  const { merchant_id, checkout_id, number: instalment, currency } = payment;
  return {
    merchant_id,
    id: collectionId(checkout_id, instalment, number),
    checkout_id,
    instalment,
    number,
    kind,
    status: 'collected',
    amount: payment.amount - payment.reduced,
    currency,
    card_ref: null,
    customer_ref: null,
    card_key: null,
    payment_ref,
    decline_reason: null,
    may_retry: null,
    decline_code: null,
    network_decline_code: null,
    wait_hours: null,
    scheme: null,
    created_at: at,
    asked_at: at,
    settled_at: at,
  };
}

async function settle(
  deps: RecordingDeps,
  db: Handle,
  payment: Instalment,
  payment_ref: string,
  at: Timestamp,
  movements: Pick<Movement, 'kind' | 'amount'>[],
): Promise<void> {
  const { merchant_id, checkout_id, number, currency, declines } = payment;
  const to = { status: 'collected', payment_ref, collected_at: at, due_at: null } as const;
  await moveSettled(db, merchant_id, [{ checkout_id, number, declines, ...to }]);
  const of = { merchant_id, checkout_id, currency, instalment: number };
  await postMovements(
    deps,
    db,
    at,
    movements.map((movement) => ({ ...of, ...movement })),
  );
}
