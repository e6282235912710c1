import assert from 'node:assert/strict';
import type { Decline } from '#gateway/gateway.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { type QueueDeps, queueMessages } from '#purchases/messages/queue-messages.ts';
import { postMovements } from '#record/ledger/post-movements.ts';
import { insertCollections, listLastCollections, moveCollections } from './collection.sql.ts';
import {
  type CheckoutKey,
  listFinishedPlans,
  moveFromShopper,
  moveSettled,
  moveToShopper,
} from './instalment.sql.ts';
import { type Collection, collectionId, declinedKey, type Instalment } from './instalment.ts';

// Applies a shopper's own payment to the payments of the plan, in the transaction of the shopper's
// attempt, which holds the checkout's lock.

type Attempt = CheckoutKey & { id: string };

/**
 * Opens a collection for each payment. The collector leaves the payments alone until the attempt
 * has ended.
 */
export async function openShopperPayment(
  db: Handle,
  attempt: Attempt,
  payments: Instalment[],
  card: { customer_ref: string; card_ref: string | null; card_key: string | null },
  { at, asked_at }: { at: Timestamp; asked_at: Timestamp },
): Promise<void> {
  const { merchant_id, checkout_id } = attempt;
  const last = new Map(
    (await listLastCollections(db, merchant_id, [checkout_id])).map((one) => [one.instalment, one]),
  );
  await insertCollections(
    db,
    payments.map(({ number: instalment, amount, reduced, currency }): Collection => {
      const number = (last.get(instalment)?.number ?? 0) + 1;
      return {
        merchant_id,
        id: collectionId(checkout_id, instalment, number),
        checkout_id,
        instalment,
        number,
        kind: 'shopper',
        status: 'open',
        amount: amount - reduced,
        currency,
        ...card,
        payment_ref: null,
        decline_reason: null,
        may_retry: null,
        decline_code: null,
        network_decline_code: null,
        wait_hours: null,
        scheme: null,
        created_at: at,
        asked_at,
        settled_at: null,
      };
    }),
  );
  const numbers = payments.map(({ number }) => number);
  await moveToShopper(db, attempt, numbers, attempt.id);
}

/** Records that the gateway charged the shopper's card, once for all payments of the attempt. */
export async function collectShopperPayment(
  deps: QueueDeps,
  db: Handle,
  attempt: Attempt & {
    amount: number;
    uses_stored_card: boolean;
    /** The shopper's consent to store the card that was charged. */
    consent: object | null;
    /** The stored card that was charged, or the one that this payment stored. Null if neither. */
    card_ref: string | null;
  },
  payment_ref: string,
  at: Timestamp,
): Promise<void> {
  const { merchant_id, checkout_id, uses_stored_card, consent, card_ref } = attempt;
  const { payments, open } = await endAttempt(db, attempt, (collection) => ({
    ...collection,
    status: 'collected',
    payment_ref,
    settled_at: at,
  }));
  await moveSettled(
    db,
    merchant_id,
    payments.map(({ number, declines }) => ({
      checkout_id,
      number,
      status: 'collected',
      payment_ref,
      collected_at: at,
      declines,
      due_at: null,
    })),
  );
  await postMovements(
    deps,
    db,
    at,
    open.map(({ instalment, amount, currency }) => ({
      merchant_id,
      checkout_id,
      currency,
      instalment,
      kind: 'collected',
      amount,
    })),
  );
  const numbers = payments.map(({ number }) => number);
  const key = { merchant_id, checkout_id, at };
  const [first, last] = [numbers[0] ?? 1, numbers.at(-1) ?? 1];
  const isFinished = (await listFinishedPlans(db, merchant_id, [checkout_id])).length > 0;
  // The gateway may be unable to store a card, although the shopper agreed to it.
  const isStored = uses_stored_card || (consent !== null && card_ref !== null);
  await queueMessages(deps, db, [
    {
      ...key,
      // One mail announces the last charge and the end of the plan.
      ...(isFinished
        ? { kind: 'plan_finished' as const }
        : { kind: 'charged' as const, about: `payment ${first}` }),
      facts: {
        instalment: first,
        ...(last !== first && { instalments: numbers }),
        amount: attempt.amount,
        ...(!isStored && { other_card: true }),
        ...(isStored && card_ref && { card_ref }),
      },
    },
  ]);
}

/** Restores the earlier state of the payments of an attempt that charged nothing. */
export async function releaseShopperPayment(
  db: Handle,
  attempt: Attempt,
  decline: Decline,
  payment_ref: string | null,
  at: Timestamp,
): Promise<void> {
  await endAttempt(db, attempt, (collection) => ({
    ...collection,
    status: 'declined',
    payment_ref,
    decline_reason: decline.reason,
    may_retry: decline.may_retry,
    decline_code: decline.code ?? null,
    network_decline_code: decline.network_code ?? null,
    wait_hours: decline.wait_hours ?? null,
    card_key: declinedKey(collection, decline),
    settled_at: at,
  }));
}

async function endAttempt(
  db: Handle,
  attempt: Attempt,
  settle: (collection: Collection) => Collection,
): Promise<{ payments: Instalment[]; open: Collection[] }> {
  const { merchant_id, checkout_id } = attempt;
  const payments = (await moveFromShopper(db, attempt, attempt.id)).sort(
    (one, other) => one.number - other.number,
  );
  const numbers = payments.map(({ number }) => number);
  const open = (await listLastCollections(db, merchant_id, [checkout_id])).filter(
    ({ kind, status, instalment }) =>
      kind === 'shopper' && status === 'open' && numbers.includes(instalment),
  );
  assert.equal(open.length, payments.length, 'each payment of the attempt has an open collection');
  assert(open.length > 0, 'an attempt to pay has payments');
  await moveCollections(db, merchant_id, open.map(settle));
  return { payments, open };
}
