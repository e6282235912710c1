import { sql, type Updateable } from 'kysely';
import type { Handle } from '../database/database.ts';
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

/** Merchants with an attempt to look at, the longest overdue first. */
export async function listMerchantsWithDueAttempts(
  db: Handle,
  now: Timestamp,
  most: number,
): Promise<string[]> {
  // The furthest clock bounds the index scan; the merchant's own decides.
  const { rows } = await sql<{ merchant_id: string }>`
    select a.merchant_id
    from payment_attempts a
    join merchants m on m.id = a.merchant_id
    where a.due_at <= ${now}::timestamptz
        + (select max(clock_ahead_ms) from merchants) * interval '1 millisecond'
      and a.due_at <= ${now}::timestamptz + m.clock_ahead_ms * interval '1 millisecond'
      and (a.leased_until is null or a.leased_until <= ${now}::timestamptz)
    group by a.merchant_id
    order by min(a.due_at)
    limit ${most}`.execute(db);
  return rows.map((row) => row.merchant_id);
}

/**
 * Takes some of a merchant's due attempts in hand. `merchantNow` is the merchant's time; leases
 * run on the real one.
 */
export async function claimDueAttempts(
  db: Handle,
  merchant_id: string,
  claim: { merchantNow: Timestamp; now: Timestamp; lease: string; leased_until: Timestamp },
  most: number,
): Promise<PaymentAttempt[]> {
  return await db
    .updateTable('payment_attempts')
    .set({ lease: claim.lease, leased_until: claim.leased_until })
    .where('merchant_id', '=', merchant_id)
    .where('id', 'in', (from) =>
      from
        .selectFrom('payment_attempts')
        .select('id')
        .where('merchant_id', '=', merchant_id)
        .where('due_at', '<=', claim.merchantNow)
        .where((where) =>
          where.or([where('leased_until', 'is', null), where('leased_until', '<=', claim.now)]),
        )
        .orderBy('due_at')
        .limit(most)
        .forUpdate()
        .skipLocked(),
    )
    .returningAll()
    .execute();
}

/** Takes one attempt in hand, unless somebody else has it. */
export async function claimAttempt(
  db: Handle,
  key: Key,
  claim: { now: Timestamp; lease: string; leased_until: Timestamp },
): Promise<PaymentAttempt | null> {
  const row = await db
    .updateTable('payment_attempts')
    .set({ lease: claim.lease, leased_until: claim.leased_until })
    .where('id', '=', key.id)
    .where('merchant_id', '=', key.merchant_id)
    .where('due_at', 'is not', null)
    .where((where) =>
      where.or([where('leased_until', 'is', null), where('leased_until', '<=', claim.now)]),
    )
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

/** When the next attempt of a merchant has to be looked at. */
export async function findNextDueAttempt(
  db: Handle,
  merchant_id: string,
): Promise<Timestamp | null> {
  const row = await db
    .selectFrom('payment_attempts')
    .select('due_at')
    .where('merchant_id', '=', merchant_id)
    .where('due_at', 'is not', null)
    .orderBy('due_at')
    .limit(1)
    .executeTakeFirst();
  return row?.due_at ?? null;
}
