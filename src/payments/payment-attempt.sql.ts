import type { Updateable } from 'kysely';
import type { Handle } from '../database/database.ts';
import { type DueWork, isFree, type Lease } from '../database/due-work.sql.ts';
import type { Tables } from '../database/tables.ts';
import type { Timestamp } from '../shared/clock.ts';
import type { AttemptStatus, PaymentAttempt } from './payment-attempt.ts';

type Key = { merchant_id: string; id: string };

export async function insertAttempt(
  db: Handle,
  attempt: Omit<
    PaymentAttempt,
    | 'payment_ref'
    | 'challenge_url'
    | 'card_ref'
    | 'card_brand'
    | 'card_last4'
    | 'capture_before'
    | 'decline_reason'
    | 'may_retry'
    | 'settled_at'
    | 'tries'
  >,
): Promise<void> {
  await db
    .insertInto('payment_attempts')
    .values({ ...attempt, consent: attempt.consent && JSON.stringify(attempt.consent) })
    .execute();
}

/** All attempts of a checkout, the newest first. */
export async function listAttempts(
  db: Handle,
  merchant_id: string,
  checkout_id: string,
): Promise<PaymentAttempt[]> {
  return await db
    .selectFrom('payment_attempts')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .orderBy('number', 'desc')
    .execute();
}

export async function lockAttempt(db: Handle, key: Key): Promise<PaymentAttempt | null> {
  const row = await db
    .selectFrom('payment_attempts')
    .selectAll()
    .where('id', '=', key.id)
    .where('merchant_id', '=', key.merchant_id)
    .forUpdate()
    .executeTakeFirst();
  return row ?? null;
}

export async function moveCustomer(db: Handle, key: Key, customer_ref: string): Promise<void> {
  await db
    .updateTable('payment_attempts')
    .set({ customer_ref })
    .where('id', '=', key.id)
    .where('merchant_id', '=', key.merchant_id)
    .execute();
}

/** From one of the given statuses to what is now known. Null: another actor moved it first. */
export async function moveAttempt(
  db: Handle,
  key: Key,
  from: AttemptStatus[],
  to: Updateable<Tables['payment_attempts']>,
): Promise<PaymentAttempt | null> {
  const row = await db
    .updateTable('payment_attempts')
    .set(to)
    .where('id', '=', key.id)
    .where('merchant_id', '=', key.merchant_id)
    .where('status', 'in', from)
    .returningAll()
    .executeTakeFirst();
  return row ?? null;
}

/** Whatever is in flight for a checkout that has ended, or starts anew, must be let go. */
export async function moveInFlightToVoiding(
  db: Handle,
  merchant_id: string,
  checkout_id: string,
  due_at: Timestamp,
): Promise<void> {
  await db
    .updateTable('payment_attempts')
    .set({ status: 'voiding', due_at, tries: 0 })
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('status', 'in', ['starting', 'challenged'])
    .execute();
}

/** Attempts that have to be looked at. */
export const dueAttempts: DueWork<'payment_attempts'> = {
  table: 'payment_attempts',
  due: 'due_at',
};

/** Takes one attempt in hand, unless somebody else has it. */
export async function claimAttempt(
  db: Handle,
  key: Key,
  claim: Lease,
): Promise<PaymentAttempt | null> {
  const row = await db
    .updateTable('payment_attempts')
    .set({ lease: claim.lease, leased_until: claim.leased_until })
    .where('id', '=', key.id)
    .where('merchant_id', '=', key.merchant_id)
    .where('due_at', 'is not', null)
    .where(isFree(claim.now))
    .returningAll()
    .executeTakeFirst();
  return row ?? null;
}

/** Puts an attempt down that could not be settled, to be looked at again later. */
export async function movePutDown(
  db: Handle,
  key: Key,
  lease: string,
  due_at: Timestamp,
): Promise<void> {
  await db
    .updateTable('payment_attempts')
    .set((set) => ({ due_at, lease: null, leased_until: null, tries: set('tries', '+', 1) }))
    .where('id', '=', key.id)
    .where('merchant_id', '=', key.merchant_id)
    .where('lease', '=', lease)
    .where('due_at', 'is not', null)
    .execute();
}
