import { type Insertable, sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { DueWork } from '#platform/database/due-work.sql.ts';
import type { Tables } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { CardDecline, Collection, Instalment } from './instalment.ts';

export type CheckoutKey = { merchant_id: string; checkout_id: string };

export async function insertInstalments(
  db: Handle,
  instalments: Insertable<Tables['instalments']>[],
): Promise<void> {
  await db.insertInto('instalments').values(instalments).execute();
}

export async function insertStoredCard(
  db: Handle,
  card: CheckoutKey & {
    customer_ref: string;
    card_ref: string;
    brand: string | null;
    last4: string | null;
    expires: string | null;
    consent: object;
    created_at: Timestamp;
  },
): Promise<void> {
  await db
    .insertInto('stored_cards')
    .values({ ...card, consent: JSON.stringify(card.consent) })
    .execute();
}

/** The card that later payments are charged to. */
export type StoredCard = { checkout_id: string; customer_ref: string; card_ref: string };

export async function listStoredCards(
  db: Handle,
  merchant_id: string,
  checkout_ids: string[],
): Promise<StoredCard[]> {
  return await db
    .selectFrom('stored_cards')
    .select(['checkout_id', 'customer_ref', 'card_ref'])
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', 'in', checkout_ids)
    .execute();
}

/** The payments of a checkout in order. */
export async function listInstalments(
  db: Handle,
  { merchant_id, checkout_id }: CheckoutKey,
): Promise<Instalment[]> {
  return await db
    .selectFrom('instalments')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .orderBy('number')
    .execute();
}

export async function findInstalment(
  db: Handle,
  { merchant_id, checkout_id }: CheckoutKey,
  number: number,
): Promise<Instalment | null> {
  const row = await db
    .selectFrom('instalments')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('number', '=', number)
    .executeTakeFirst();
  return row ?? null;
}

export const dueInstalments: DueWork<'instalments'> = {
  table: 'instalments',
  due: 'due_at',
  where: sql`not paused`,
};

/**
 * Which payments are still claimed under the lease. Read under the locks of their checkouts: a
 * refund that began meanwhile has released its payments.
 */
export async function lockLeased(
  db: Handle,
  merchant_id: string,
  lease: string,
  checkout_ids: string[],
): Promise<Instalment[]> {
  return await db
    .selectFrom('instalments')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', 'in', checkout_ids)
    .where('lease', '=', lease)
    .where('paused', '=', false)
    .orderBy('checkout_id')
    .orderBy('number')
    .forUpdate()
    .execute();
}

/** The state of a payment after a collection of it is settled. */
export type Settled = Pick<
  Instalment,
  'checkout_id' | 'number' | 'status' | 'payment_ref' | 'collected_at' | 'declines' | 'due_at'
>;

/** Moves many payments of one merchant at once, and releases them. */
export async function moveSettled(
  db: Handle,
  merchant_id: string,
  payments: Settled[],
): Promise<void> {
  await sql`
    update instalments i
    set status = v.status, payment_ref = v.payment_ref, collected_at = v.collected_at,
      declines = v.declines, due_at = v.due_at, attempts = 0,
      lease = null, leased_until = null
    from jsonb_to_recordset(${JSON.stringify(payments)}::jsonb) as v(
      checkout_id uuid, number integer, status text, payment_ref text, collected_at timestamptz,
      declines integer, due_at timestamptz)
    where i.merchant_id = ${merchant_id} and i.checkout_id = v.checkout_id
      and i.number = v.number`.execute(db);
}

/** Reduces or restores a payment on behalf of a refund. */
export async function moveReduced(
  db: Handle,
  one: CheckoutKey & { number: number },
  to: Pick<Instalment, 'status' | 'reduced' | 'due_at'>,
): Promise<void> {
  await db
    .updateTable('instalments')
    .set(to)
    .where('merchant_id', '=', one.merchant_id)
    .where('checkout_id', '=', one.checkout_id)
    .where('number', '=', one.number)
    .execute();
}

/** Pauses collecting from a checkout, and releases its payments. */
export async function movePaused(db: Handle, key: CheckoutKey): Promise<void> {
  await db
    .updateTable('instalments')
    .set({ paused: true, lease: null, leased_until: null })
    .where('merchant_id', '=', key.merchant_id)
    .where('checkout_id', '=', key.checkout_id)
    .where('paused', '=', false)
    .execute();
}

/** Leaves payments to an attempt of the shopper. The collector loses its claim on them. */
export async function moveToShopper(
  db: Handle,
  key: CheckoutKey,
  numbers: number[],
  shopper_attempt: string,
): Promise<void> {
  await db
    .updateTable('instalments')
    .set({ shopper_attempt, paused: true, lease: null, leased_until: null })
    .where('merchant_id', '=', key.merchant_id)
    .where('checkout_id', '=', key.checkout_id)
    .where('number', 'in', numbers)
    .where('paused', '=', false)
    .execute();
}

/** Whether a dispute, or a difference of the reconciliation, pauses the checkout. */
const isHeldUp = ({ merchant_id, checkout_id }: CheckoutKey) => sql<boolean>`(exists (
  select from disputes d
  where d.merchant_id = ${merchant_id} and d.checkout_id = ${checkout_id} and d.is_pausing)
  or exists (
  select from gateway_blocks b
  where b.merchant_id = ${merchant_id} and b.checkout_id = ${checkout_id}
    and b.cleared_at is null))`;

/**
 * The attempt has ended. Its payments return to their earlier state, unless a dispute or a block
 * came meanwhile.
 */
export async function moveFromShopper(
  db: Handle,
  key: CheckoutKey,
  shopper_attempt: string,
): Promise<Instalment[]> {
  return await db
    .updateTable('instalments')
    .set({ shopper_attempt: null, paused: isHeldUp(key) })
    .where('merchant_id', '=', key.merchant_id)
    .where('checkout_id', '=', key.checkout_id)
    .where('shopper_attempt', '=', shopper_attempt)
    .returningAll()
    .execute();
}

/** Locks the payments of a checkout, in order. */
export async function lockInstalments(
  db: Handle,
  { merchant_id, checkout_id }: CheckoutKey,
): Promise<Instalment[]> {
  return await db
    .selectFrom('instalments')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .orderBy('number')
    .forUpdate()
    .execute();
}

/** Pauses collecting, except for a payment with a request in flight, whose outcome comes first. */
export async function movePausedUnlessAsked(db: Handle, key: CheckoutKey): Promise<void> {
  await sql`
    update instalments i set paused = true, lease = null, leased_until = null
    where i.merchant_id = ${key.merchant_id} and i.checkout_id = ${key.checkout_id} and not i.paused
      and not exists (
        select from collections k
        where k.merchant_id = i.merchant_id and k.checkout_id = i.checkout_id
          and k.instalment = i.number and k.status = 'open')`.execute(db);
}

/** Resumes collecting, unless a pending refund or a dispute of the checkout still pauses it. */
export async function moveResumed(db: Handle, key: CheckoutKey): Promise<void> {
  await sql`
    update instalments i set paused = false, lease = null, leased_until = null
    where i.merchant_id = ${key.merchant_id} and i.checkout_id = ${key.checkout_id} and i.paused
      and i.shopper_attempt is null
      and not exists (
        select from refund_requests r
        where r.merchant_id = i.merchant_id and r.checkout_id = i.checkout_id
          and r.status = 'pending')
      and not ${isHeldUp(key)}`.execute(db);
}

/** overdue → scheduled, claimed by the caller. Returns null if it is not overdue, or is paused. */
export async function moveRetried(
  db: Handle,
  one: CheckoutKey & { number: number },
  to: { at: Timestamp; declines: number; lease: string; leased_until: Timestamp },
): Promise<Instalment | null> {
  const { at, ...rest } = to;
  const row = await db
    .updateTable('instalments')
    .set({ ...rest, status: 'scheduled', due_at: at, attempts: 0 })
    .where('merchant_id', '=', one.merchant_id)
    .where('checkout_id', '=', one.checkout_id)
    .where('number', '=', one.number)
    .where('status', '=', 'overdue')
    .where('paused', '=', false)
    .returningAll()
    .executeTakeFirst();
  return row ?? null;
}

export async function insertCollections(db: Handle, collections: Collection[]): Promise<void> {
  await db.insertInto('collections').values(collections).execute();
}

/** Notes that a request is sent again. */
export async function moveAsked(
  db: Handle,
  one: Pick<Collection, 'merchant_id' | 'checkout_id' | 'instalment' | 'number'>,
  asked_at: Timestamp,
): Promise<void> {
  await db
    .updateTable('collections')
    .set({ asked_at })
    .where('merchant_id', '=', one.merchant_id)
    .where('checkout_id', '=', one.checkout_id)
    .where('instalment', '=', one.instalment)
    .where('number', '=', one.number)
    .execute();
}

/** The newest request to the gateway of every payment of the checkouts. */
export async function listLastCollections(
  db: Handle,
  merchant_id: string,
  checkout_ids: string[],
): Promise<Collection[]> {
  return await db
    .selectFrom('collections')
    .selectAll()
    .distinctOn(['checkout_id', 'instalment'])
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', 'in', checkout_ids)
    .orderBy('checkout_id')
    .orderBy('instalment')
    .orderBy('number', 'desc')
    .execute();
}

/** The declines of stored cards, the oldest first. */
export async function listCardDeclines(
  db: Handle,
  merchant_id: string,
  checkout_ids: string[],
): Promise<CardDecline[]> {
  return await db
    .selectFrom('collections')
    .select(['checkout_id', 'instalment', 'card_ref', 'decline_reason', 'may_retry', 'created_at'])
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', 'in', checkout_ids)
    .where('status', '=', 'declined')
    .where('card_ref', 'is not', null)
    .orderBy('number')
    .execute();
}

export async function listCollections(
  db: Handle,
  { merchant_id, checkout_id }: CheckoutKey,
): Promise<Collection[]> {
  return await db
    .selectFrom('collections')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .orderBy('created_at')
    .orderBy('instalment')
    .orderBy('number')
    .execute();
}

/** open → an outcome, many at once. Returns how many were open. */
export async function moveCollections(
  db: Handle,
  merchant_id: string,
  settled: Pick<
    Collection,
    | 'checkout_id'
    | 'instalment'
    | 'number'
    | 'status'
    | 'payment_ref'
    | 'decline_reason'
    | 'may_retry'
    | 'decline_code'
    | 'network_decline_code'
    | 'settled_at'
  >[],
): Promise<number> {
  const { numAffectedRows } = await sql`
    update collections c
    set status = v.status, payment_ref = v.payment_ref, decline_reason = v.decline_reason,
      may_retry = v.may_retry, decline_code = v.decline_code,
      network_decline_code = v.network_decline_code, settled_at = v.settled_at
    from jsonb_to_recordset(${JSON.stringify(settled)}::jsonb) as v(
      checkout_id uuid, instalment integer, number integer, status text, payment_ref text,
      decline_reason text, may_retry boolean, decline_code text, network_decline_code text,
      settled_at timestamptz)
    where c.merchant_id = ${merchant_id} and c.checkout_id = v.checkout_id
      and c.instalment = v.instalment and c.number = v.number and c.status = 'open'`.execute(db);
  return Number(numAffectedRows);
}

/** Finds the checkouts whose plan has nothing left to collect. */
export async function listFinishedPlans(
  db: Handle,
  merchant_id: string,
  checkout_ids: string[],
): Promise<string[]> {
  const rows = await db
    .selectFrom('instalments')
    .select('checkout_id')
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', 'in', checkout_ids)
    .groupBy('checkout_id')
    .having(sql<boolean>`bool_and(status in ('collected', 'cancelled'))`)
    .execute();
  return rows.map((row) => row.checkout_id);
}

/** stored → replaced, and due to be detached at the gateway. */
export async function moveCardReplaced(
  db: Handle,
  { merchant_id, checkout_id }: CheckoutKey,
  at: Timestamp,
): Promise<void> {
  const card = await db
    .deleteFrom('stored_cards')
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .returning(['card_ref', 'customer_ref', 'brand', 'last4', 'expires', 'consent', 'created_at'])
    .executeTakeFirstOrThrow();
  await db
    .insertInto('replaced_cards')
    .values({
      ...card,
      merchant_id,
      checkout_id,
      consent: JSON.stringify(card.consent),
      replaced_at: at,
      detached_at: null,
      due_at: at,
    })
    .execute();
}

export const dueReplacedCards: DueWork<'replaced_cards'> = {
  table: 'replaced_cards',
  due: 'due_at',
};

/** Whether a request that is open may still charge the card. */
export async function isCardInUse(
  db: Handle,
  { merchant_id, checkout_id }: CheckoutKey,
  card_ref: string,
): Promise<boolean> {
  const row = await db
    .selectFrom('collections')
    .select('number')
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('status', '=', 'open')
    .where((where) =>
      where.or([
        where('card_ref', '=', card_ref),
        // Earlier versions pinned no card.
        where.and([where('card_ref', 'is', null), where('kind', '=', 'charge')]),
      ]),
    )
    .executeTakeFirst();
  return row !== undefined;
}

export async function moveDetached(
  db: Handle,
  card: { merchant_id: string; checkout_id: string; card_ref: string; lease: string | null },
  detached_at: Timestamp,
): Promise<void> {
  await db
    .updateTable('replaced_cards')
    .set({ detached_at, due_at: null, lease: null, leased_until: null })
    .where('merchant_id', '=', card.merchant_id)
    .where('checkout_id', '=', card.checkout_id)
    .where('card_ref', '=', card.card_ref)
    .where('lease', '=', card.lease)
    .execute();
}

/** The facts of a stored card that may be shown, or null if no card is stored. */
export async function findStoredCardFace(
  db: Handle,
  { merchant_id, checkout_id }: CheckoutKey,
): Promise<{ brand: string | null; last4: string | null } | null> {
  const row = await db
    .selectFrom('stored_cards')
    .select(['brand', 'last4'])
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .executeTakeFirst();
  return row ?? null;
}
