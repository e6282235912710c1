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

/** All attempts of a checkout, newest first. */
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

/** Moves an attempt from one of the given statuses. Null: another process moved it first. */
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

/** Marks the attempt in flight to be voided: its checkout has ended, or a new attempt starts. */
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

export const dueAttempts: DueWork<'payment_attempts'> = {
  table: 'payment_attempts',
  due: 'due_at',
};

/** Claims one attempt. Null: it is settled, or another process has claimed it. */
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
