import assert from 'node:assert/strict';
import { type Insertable, sql } from 'kysely';
import { compileOnce, send, statement } from '#platform/database/compile-once.ts';
import type { Handle } from '#platform/database/database.ts';
import { type DueWork, isFree, type Lease, released } from '#platform/database/due-work.sql.ts';
import type { Tables } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import {
  type AttemptChanges,
  type AttemptStatus,
  live,
  type PaymentAttempt,
  unsettled,
} from './payment-attempt.ts';

type Key = { merchant_id: string; id: string };
type Claimed = Key & { lease: string | null };
type CheckoutKey = { merchant_id: string; checkout_id: string };

export async function insertAttempt(
  db: Handle,
  attempt: Insertable<Tables['payment_attempts']>,
): Promise<PaymentAttempt> {
  const [row] = await send(db, insertAttemptRow(attempt));
  assert(row);
  return row;
}

const insertAttemptRow = statement((db, attempt: Insertable<Tables['payment_attempts']>) =>
  db.insertInto('payment_attempts').values(attempt).returningAll(),
);

/**
 * The attempts of a checkout: its first payments, then the attempts on its plan, each newest first.
 */
export const selectAttempts = (db: Handle, { merchant_id, checkout_id }: CheckoutKey) =>
  db
    .selectFrom('payment_attempts')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .orderBy((is) => is('purpose', '=', 'first_payment'), 'desc')
    .orderBy('number', 'desc');

export async function listAttempts(db: Handle, key: CheckoutKey): Promise<PaymentAttempt[]> {
  return await selectAttempts(db, key).execute();
}

/**
 * In practice far fewer attempts than this are unsettled at once. If there are more, the newest are
 * left to the workers, which settle them when they are due.
 */
const unsettledMax = 10_000;

/** All merchants' attempts that have not ended, oldest first. */
export async function listUnsettledAttempts(db: Handle): Promise<PaymentAttempt[]> {
  return await db
    .selectFrom('payment_attempts')
    .selectAll()
    .where('due_at', 'is not', null)
    .orderBy('created_at')
    .orderBy('id')
    .limit(unsettledMax)
    .execute();
}

export async function lockAttempt(db: Handle, key: Key): Promise<PaymentAttempt | null> {
  const [row] = await lockOne(db, { merchant_id: key.merchant_id, id: key.id });
  return row ?? null;
}

const lockOne = compileOnce((db, { merchant_id, id }: Key) =>
  db
    .selectFrom('payment_attempts')
    .selectAll()
    .where('id', '=', id)
    .where('merchant_id', '=', merchant_id)
    .forUpdate(),
);

/**
 * Records that the request is about to be sent. Returns false if the attempt is no longer
 * `starting`, or if another process has claimed it: then the request must not be sent.
 */
export async function moveAsked(
  db: Handle,
  attempt: Claimed,
  to: { customer_ref: string; asked_at: Timestamp },
): Promise<boolean> {
  const { merchant_id, id, lease } = attempt;
  const moved = await updateAsked(db, { merchant_id, id, lease, ...to });
  return moved.length > 0;
}

const updateAsked = compileOnce((db, to: Claimed & { customer_ref: string; asked_at: Timestamp }) =>
  db
    .updateTable('payment_attempts')
    .set({ customer_ref: to.customer_ref, asked_at: to.asked_at })
    .where('id', '=', to.id)
    .where('merchant_id', '=', to.merchant_id)
    .where('lease', '=', to.lease)
    .where('status', '=', 'starting')
    .returning('id'),
);

/**
 * Records that whatever the gateway has for a claimed attempt is about to be voided. Returns false
 * if the attempt has ended or is already being voided, or if another process has claimed it.
 */
export async function moveEnding(
  db: Handle,
  attempt: Claimed,
  payment_ref: string,
): Promise<boolean> {
  const { numUpdatedRows } = await updateClaimed(db, attempt)
    .set({ status: 'voiding', payment_ref, sealed_card_token: null })
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

/**
 * Gives up a claimed attempt and releases it. Anything that the gateway has for it will be voided.
 * Returns false if the attempt has ended or is being voided, or if another process has claimed it.
 */
export async function moveGivenUp(
  db: Handle,
  attempt: Claimed,
  due_at: Timestamp,
): Promise<boolean> {
  const { numUpdatedRows } = await updateClaimed(db, attempt)
    .set((set) => ({
      ...released,
      status: 'voiding',
      decline_reason: 'processing_error',
      may_retry: true,
      sealed_card_token: null,
      due_at,
      attempts: set('attempts', '+', 1),
    }))
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

/** Updates a claimed attempt, unless it has ended or is being voided. */
const updateClaimed = (db: Handle, { merchant_id, id, lease }: Claimed) =>
  db
    .updateTable('payment_attempts')
    .where('id', '=', id)
    .where('merchant_id', '=', merchant_id)
    .where('lease', '=', lease)
    .where('status', 'in', live);

/**
 * Moves an attempt. Returns null if its status is not in `from`, because another process moved it.
 */
export async function moveAttempt(
  db: Handle,
  key: Key,
  to: AttemptChanges,
  from: readonly AttemptStatus[] = unsettled,
): Promise<PaymentAttempt | null> {
  const row = await db
    .updateTable('payment_attempts')
    .set(columnsOf(to))
    .where('id', '=', key.id)
    .where('merchant_id', '=', key.merchant_id)
    .where('status', 'in', from)
    .returningAll()
    .executeTakeFirst();
  return row ?? null;
}

const updateSettled = statement(
  (db, { merchant_id, id, ...to }: Key & { status?: AttemptStatus }) =>
    db
      .updateTable('payment_attempts')
      .set(to)
      .where('id', '=', id)
      .where('merchant_id', '=', merchant_id)
      .where('status', 'in', unsettled)
      .returning('id'),
);

/** Moves an attempt that has not ended and is locked. */
export const updateState = ({ merchant_id, id }: Key, to: AttemptChanges) =>
  updateSettled({ merchant_id, id, ...columnsOf(to) });

const columnsOf = ({ authentication, scheme, ...to }: AttemptChanges) => ({
  ...to,
  ...(authentication && { authentication: JSON.stringify(authentication) }),
  ...(scheme && { scheme: JSON.stringify(scheme) }),
});

/**
 * Starts voiding the first payment in flight, because its checkout has ended or a new attempt
 * begins.
 */
export async function moveInFlightToVoiding(
  db: Handle,
  { merchant_id, checkout_id }: CheckoutKey,
  due_at: Timestamp,
): Promise<void> {
  await db
    .updateTable('payment_attempts')
    .set({ status: 'voiding', sealed_card_token: null, due_at, attempts: 0 })
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('purpose', '=', 'first_payment')
    .where('status', 'in', live)
    .execute();
}

export const dueAttempts: DueWork<'payment_attempts'> = {
  table: 'payment_attempts',
  due: 'due_at',
};

/** Claims one attempt. Returns null if it has ended, or if another process has claimed it. */
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

/**
 * The gateway's references for the shopper and for the stored card of a plan. Both are null if the
 * checkout has not been paid, and `card_ref` is null if no card is stored.
 */
export async function findGatewayRefs(
  db: Handle,
  { merchant_id, checkout_id }: CheckoutKey,
): Promise<{ customer_ref: string | null; card_ref: string | null }> {
  const { rows } = await sql<{ customer_ref: string | null; card_ref: string | null }>`
    select coalesce(s.customer_ref, a.customer_ref) as customer_ref, s.card_ref
    from payment_attempts a
    left join stored_cards s on s.checkout_id = a.checkout_id and s.merchant_id = a.merchant_id
    where a.merchant_id = ${merchant_id} and a.checkout_id = ${checkout_id}
      and a.status = 'authorised'`.execute(db);
  return rows[0] ?? { customer_ref: null, card_ref: null };
}
