import type { Updateable } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import { type DueWork, isFree, type Lease, released } from '#platform/database/due-work.sql.ts';
import type { Tables } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
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
    | 'card_expires'
    | 'authentication'
    | 'capture_before'
    | 'decline_reason'
    | 'may_retry'
    | 'decline_code'
    | 'network_decline_code'
    | 'asked_at'
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

/** More than can be in flight at one time. */
const inFlightMax = 10_000;

/** The attempts of all merchants that may still become the outcome, oldest first. */
export async function listInFlightAttempts(db: Handle): Promise<PaymentAttempt[]> {
  return await db
    .selectFrom('payment_attempts')
    .selectAll()
    .where('due_at', 'is not', null)
    .where('status', 'in', ['starting', 'challenged'])
    .orderBy('created_at')
    .orderBy('id')
    .limit(inFlightMax)
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

/**
 * Notes that the request to hold the amount is sent now. Returns false if the shopper cancelled, or
 * another process claimed the attempt. The request must not be sent then.
 */
export async function moveAsked(
  db: Handle,
  attempt: Pick<PaymentAttempt, 'merchant_id' | 'id' | 'lease'>,
  to: { customer_ref: string; asked_at: Timestamp },
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('payment_attempts')
    .set(to)
    .where('id', '=', attempt.id)
    .where('merchant_id', '=', attempt.merchant_id)
    .where('lease', '=', attempt.lease)
    .where('status', '=', 'starting')
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

/**
 * Gives up a claimed attempt that is in flight, and releases it: whatever the gateway holds for it
 * is voided. Returns false if it is no longer in flight, or another process claimed it.
 */
export async function moveGivenUp(
  db: Handle,
  attempt: Pick<PaymentAttempt, 'merchant_id' | 'id' | 'lease'>,
  due_at: Timestamp,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('payment_attempts')
    .set((set) => ({
      ...released,
      status: 'voiding',
      decline_reason: 'processing_error',
      may_retry: true,
      sealed_card_token: null,
      due_at,
      tries: set('tries', '+', 1),
    }))
    .where('id', '=', attempt.id)
    .where('merchant_id', '=', attempt.merchant_id)
    .where('lease', '=', attempt.lease)
    .where('status', 'in', ['starting', 'challenged'])
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

/**
 * Moves an attempt from one of the given statuses. Returns null if another process moved it first.
 */
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
    .set({ status: 'voiding', sealed_card_token: null, due_at, tries: 0 })
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('status', 'in', ['starting', 'challenged'])
    .execute();
}

export const dueAttempts: DueWork<'payment_attempts'> = {
  table: 'payment_attempts',
  due: 'due_at',
};

/** Claims one attempt. Returns null if it is settled, or another process has claimed it. */
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
