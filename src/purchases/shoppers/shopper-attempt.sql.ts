import { sql, type Updateable } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import { type DueWork, isFree, type Lease, released } from '#platform/database/due-work.sql.ts';
import type { Tables } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { PlanKey } from './plan-proof.sql.ts';
import type { ShopperAttempt, ShopperAttemptStatus } from './shopper-attempt.ts';

type Key = { merchant_id: string; id: string };
type Claimed = Key & { lease: string | null };

export async function insertShopperAttempt(
  db: Handle,
  attempt: Omit<
    ShopperAttempt,
    | 'payment_ref'
    | 'challenge_url'
    | 'card_brand'
    | 'card_last4'
    | 'card_expires'
    | 'authentication'
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
    .insertInto('shopper_attempts')
    .values({ ...attempt, consent: attempt.consent && JSON.stringify(attempt.consent) })
    .execute();
}

/** Writes an attempt to pay that has charged the card, as far as the gateway knows it. */
export async function insertSettledAttempt(
  db: Handle,
  attempt: Pick<
    ShopperAttempt,
    | 'merchant_id'
    | 'id'
    | 'checkout_id'
    | 'number'
    | 'instalments'
    | 'amount'
    | 'currency'
    | 'customer_ref'
  > & { payment_ref: string; at: Timestamp },
): Promise<void> {
  const { at, ...known } = attempt;
  await db
    .insertInto('shopper_attempts')
    .values({
      ...known,
      purpose: 'pay',
      status: 'charged',
      sealed_card_token: null,
      uses_stored_card: true,
      keeps_card: false,
      consent: null,
      card_ref: null,
      created_at: at,
      asked_at: at,
      settled_at: at,
      due_at: null,
      lease: null,
      leased_until: null,
    })
    .execute();
}

/** The newest attempt of a shopper to act on the plan. */
export async function findNewestAttempt(
  db: Handle,
  { merchant_id, checkout_id }: PlanKey,
): Promise<ShopperAttempt | null> {
  const row = await db
    .selectFrom('shopper_attempts')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .orderBy('number', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row ?? null;
}

/** All attempts of a shopper to act on the plan, in order. */
export async function listShopperAttempts(
  db: Handle,
  { merchant_id, checkout_id }: PlanKey,
): Promise<ShopperAttempt[]> {
  return await db
    .selectFrom('shopper_attempts')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .orderBy('number')
    .execute();
}

/** More than can be in flight at one time. */
const inFlightMax = 10_000;

/** The attempts of all merchants' shoppers that have not ended, oldest first. */
export async function listActsInFlight(db: Handle): Promise<ShopperAttempt[]> {
  return await db
    .selectFrom('shopper_attempts')
    .selectAll()
    .where('due_at', 'is not', null)
    .orderBy('created_at')
    .orderBy('id')
    .limit(inFlightMax)
    .execute();
}

export async function lockShopperAttempt(db: Handle, key: Key): Promise<ShopperAttempt | null> {
  const row = await db
    .selectFrom('shopper_attempts')
    .selectAll()
    .where('id', '=', key.id)
    .where('merchant_id', '=', key.merchant_id)
    .forUpdate()
    .executeTakeFirst();
  return row ?? null;
}

/**
 * Notes that the request is sent now. Returns false if the attempt is being voided, or another
 * process claimed it. The request must not be sent then.
 */
export async function moveAttemptAsked(
  db: Handle,
  attempt: Claimed,
  asked_at: Timestamp,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('shopper_attempts')
    .set({ asked_at })
    .where('id', '=', attempt.id)
    .where('merchant_id', '=', attempt.merchant_id)
    .where('lease', '=', attempt.lease)
    .where('status', '=', 'starting')
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

/**
 * Moves an attempt from one of the given statuses. Returns null if another process moved it first.
 */
export async function moveShopperAttempt(
  db: Handle,
  key: Key,
  from: ShopperAttemptStatus[],
  to: Updateable<Tables['shopper_attempts']>,
): Promise<ShopperAttempt | null> {
  const row = await db
    .updateTable('shopper_attempts')
    .set(to)
    .where('id', '=', key.id)
    .where('merchant_id', '=', key.merchant_id)
    .where('status', 'in', from)
    .returningAll()
    .executeTakeFirst();
  return row ?? null;
}

/**
 * Gives up a claimed attempt that the gateway refused, and releases it. Returns false if another
 * process claimed it, or it is no longer `starting`.
 */
export async function moveAttemptGivenUp(
  db: Handle,
  attempt: Claimed,
  due_at: Timestamp,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('shopper_attempts')
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
    .where('status', '=', 'starting')
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

export const dueShopperAttempts: DueWork<'shopper_attempts'> = {
  table: 'shopper_attempts',
  due: 'due_at',
};

/** Claims one attempt. Returns null if it has ended, or another process has claimed it. */
export async function claimShopperAttempt(
  db: Handle,
  key: Key,
  claim: Lease,
): Promise<ShopperAttempt | null> {
  const row = await db
    .updateTable('shopper_attempts')
    .set({ lease: claim.lease, leased_until: claim.leased_until })
    .where('id', '=', key.id)
    .where('merchant_id', '=', key.merchant_id)
    .where('due_at', 'is not', null)
    .where(isFree(claim.now))
    .returningAll()
    .executeTakeFirst();
  return row ?? null;
}

/** The gateway's ID of the shopper, and the stored card. Null if no card is stored. */
export async function findGatewayRefs(
  db: Handle,
  { merchant_id, checkout_id }: PlanKey,
): Promise<{ customer_ref: string | null; card_ref: string | null }> {
  const { rows } = await sql<{ customer_ref: string | null; card_ref: string | null }>`
    select coalesce(s.customer_ref, a.customer_ref) as customer_ref, s.card_ref
    from payment_attempts a
    left join stored_cards s on s.checkout_id = a.checkout_id and s.merchant_id = a.merchant_id
    where a.merchant_id = ${merchant_id} and a.checkout_id = ${checkout_id}
      and a.status = 'authorised'`.execute(db);
  return rows[0] ?? { customer_ref: null, card_ref: null };
}
