import { type Insertable, type RawBuilder, sql } from 'kysely';
import type { GatewayName } from '#gateway/gateway-name.ts';
import { compileOnce, statement } from '#platform/database/compile-once.ts';
import type { Handle } from '#platform/database/database.ts';
import { type DueWork, released } from '#platform/database/due-work.sql.ts';
import type { Tables } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Instalment, InstalmentStatus } from './instalment.ts';

export type CheckoutKey = { merchant_id: string; checkout_id: string };

export const insertInstalments = statement((db, instalments: Insertable<Tables['instalments']>[]) =>
  db.insertInto('instalments').values(instalments),
);

type NewCard = Omit<Insertable<Tables['stored_cards']>, 'consent'>;

const insertCardRow = statement((db, card: NewCard & { consent: string }) =>
  db.insertInto('stored_cards').values(card),
);

export const insertStoredCard = ({ consent, ...card }: NewCard & { consent: object }) =>
  insertCardRow({ ...card, consent: JSON.stringify(consent) });

/** The card that later payments are charged to. */
export type StoredCard = {
  checkout_id: string;
  customer_ref: string;
  card_ref: string;
  card_key: string | null;
};

/** A condition with the same text for any number of ids: the database server plans it once. */
export const isOneOfIds = (column: string, ids: string[]) =>
  sql<boolean>`${sql.ref(column)} = any (${ids}::uuid[])`;

type ListKey = { merchant_id: string; checkout_ids: string[] };

export const selectStoredCards = (db: Handle, { merchant_id, checkout_ids }: ListKey) =>
  db
    .selectFrom('stored_cards')
    .select(['checkout_id', 'customer_ref', 'card_ref', 'card_key'])
    .where('merchant_id', '=', merchant_id)
    .where(isOneOfIds('checkout_id', checkout_ids));

export async function listStoredCards(
  db: Handle,
  merchant_id: string,
  checkout_ids: string[],
): Promise<StoredCard[]> {
  return await selectStoredCards(db, { merchant_id, checkout_ids }).execute();
}

/** The payments of a checkout in order. */
export const selectInstalments = (db: Handle, { merchant_id, checkout_id }: CheckoutKey) =>
  db
    .selectFrom('instalments')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .orderBy('number');

export async function listInstalments(db: Handle, key: CheckoutKey): Promise<Instalment[]> {
  return await selectInstalments(db, key).execute();
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
 * Locks and returns the payments that are still claimed under the lease. Call this with their
 * checkouts locked: a refund that began in the meantime has released the payments of its checkout.
 */
export async function lockLeased(
  db: Handle,
  merchant_id: string,
  lease: string,
  checkout_ids: string[],
): Promise<Instalment[]> {
  return await lockClaimed(db, { merchant_id, lease, checkout_ids });
}

const lockClaimed = compileOnce((db, key: ListKey & { lease: string }) =>
  db
    .selectFrom('instalments')
    .selectAll()
    .where('merchant_id', '=', key.merchant_id)
    .where(isOneOfIds('checkout_id', key.checkout_ids))
    .where('lease', '=', key.lease)
    .where('paused', '=', false)
    .orderBy('checkout_id')
    .orderBy('number')
    .forUpdate(),
);

/** Whether a dispute or a block (block-checkout.ts) pauses the checkout. */
const isHeldUp = ({
  merchant_id,
  checkout_id,
}: Record<keyof CheckoutKey, string | RawBuilder<unknown>>) => sql<boolean>`(exists (
  select from disputes d
  where d.merchant_id = ${merchant_id} and d.checkout_id = ${checkout_id} and d.is_pausing)
  or exists (
  select from gateway_blocks b
  where b.merchant_id = ${merchant_id} and b.checkout_id = ${checkout_id}
    and b.cleared_at is null))`;

/** The state of a payment after one of its collections is settled. */
export type Settled = Pick<
  Instalment,
  'checkout_id' | 'number' | 'status' | 'payment_ref' | 'collected_at' | 'declines' | 'due_at'
>;

/**
 * Moves many payments of one merchant at once, and releases them. Pauses those whose checkout was
 * disputed or blocked while the request was in flight.
 */
export async function moveSettled(
  db: Handle,
  merchant_id: string,
  payments: Settled[],
): Promise<void> {
  await updateSettled(db, { merchant_id, payments: JSON.stringify(payments) });
}

const updateSettled = compileOnce(
  (_db, { merchant_id, payments }: { merchant_id: string; payments: string }) => sql`
    update instalments i
    set status = v.status, payment_ref = v.payment_ref, collected_at = v.collected_at,
      declines = v.declines, due_at = v.due_at, attempts = 0,
      lease = null, leased_until = null,
      paused = i.paused or ${isHeldUp({ merchant_id: sql`i.merchant_id`, checkout_id: sql`i.checkout_id` })}
    from jsonb_to_recordset(${payments}::jsonb) as v(
      checkout_id uuid, number integer, status text, payment_ref text, collected_at timestamptz,
      declines integer, due_at timestamptz)
    where i.merchant_id = ${merchant_id} and i.checkout_id = v.checkout_id
      and i.number = v.number`,
);

type Reduced = Pick<Instalment, 'number' | 'status' | 'reduced' | 'due_at'>;

const writeTaken = statement((db, values: CheckoutKey & { payments: string }) =>
  db
    .updateTable('instalments as i')
    .from(
      sql<Reduced>`jsonb_to_recordset(${values.payments}::jsonb)`.as<'v'>(
        sql`v(number integer, status text, reduced bigint, due_at timestamptz)`,
      ),
    )
    .set({
      status: sql<InstalmentStatus>`coalesce(v.status, i.status)`,
      reduced: sql<number>`coalesce(v.reduced, i.reduced)`,
      due_at: sql<Timestamp | null>`case when v.status is null then i.due_at else v.due_at end`,
      paused: true,
      ...released,
    })
    .where('i.merchant_id', '=', values.merchant_id)
    .where('i.checkout_id', '=', values.checkout_id)
    .whereRef('i.number', '=', 'v.number')
    .returning('i.number'),
);

/**
 * Pauses payments on behalf of a refund. An entry with only a number leaves the amount of its
 * payment as it is.
 */
export const updateTaken = (
  { merchant_id, checkout_id }: CheckoutKey,
  payments: (Reduced | Pick<Instalment, 'number'>)[],
) => writeTaken({ merchant_id, checkout_id, payments: JSON.stringify(payments) });

/** Pauses collecting from a checkout, and releases its payments. */
export const updatePaused = statement((db, key: CheckoutKey) =>
  db
    .updateTable('instalments')
    .set({ paused: true, ...released })
    .where('merchant_id', '=', key.merchant_id)
    .where('checkout_id', '=', key.checkout_id)
    .where('paused', '=', false),
);

/** Restores or cancels a payment on behalf of a refund. */
export const updateAmount = statement(
  (db, { merchant_id, checkout_id, number, ...to }: CheckoutKey & Reduced) =>
    db
      .updateTable('instalments')
      .set(to)
      .where('merchant_id', '=', merchant_id)
      .where('checkout_id', '=', checkout_id)
      .where('number', '=', number)
      .returning('number'),
);

/** Passes payments to an attempt of the shopper. The collector loses its claim on them. */
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

/**
 * Releases the payments of an attempt that has ended. They return to their earlier state, unless a
 * dispute or a block has paused them by now.
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

/**
 * Pauses collecting, except for a payment with a request in flight, whose outcome must be known
 * first.
 */
export async function movePausedUnlessAsked(db: Handle, key: CheckoutKey): Promise<void> {
  await sql`
    update instalments i set paused = true, lease = null, leased_until = null
    where i.merchant_id = ${key.merchant_id} and i.checkout_id = ${key.checkout_id} and not i.paused
      and not exists (
        select from collections k
        where k.merchant_id = i.merchant_id and k.checkout_id = i.checkout_id
          and k.instalment = i.number and k.status = 'open')`.execute(db);
}

/** Resumes only the payments with a request in flight, so that its outcome becomes known. */
export async function moveResumedIfAsked(db: Handle, key: CheckoutKey): Promise<void> {
  await sql`
    update instalments i set paused = false
    where i.merchant_id = ${key.merchant_id} and i.checkout_id = ${key.checkout_id} and i.paused
      and i.shopper_attempt is null
      and exists (
        select from collections k
        where k.merchant_id = i.merchant_id and k.checkout_id = i.checkout_id
          and k.instalment = i.number and k.status = 'open')`.execute(db);
}

type Resumed = CheckoutKey & { ended_id: string | null };

const writeResumed = statement((db, key: Resumed) =>
  db
    .updateTable('instalments as i')
    .set({ paused: false, ...released })
    .where('i.merchant_id', '=', key.merchant_id)
    .where('i.checkout_id', '=', key.checkout_id)
    .where('i.paused', '=', true)
    .where('i.shopper_attempt', 'is', null)
    .where(
      sql<boolean>`not exists (
        select from refund_requests r
        where r.merchant_id = ${key.merchant_id} and r.checkout_id = ${key.checkout_id}
          and r.status = 'pending' and r.id is distinct from ${key.ended_id}::uuid)`,
    )
    .where(sql<boolean>`not ${isHeldUp(key)}`),
);

/**
 * Resumes collecting, unless a pending refund, a dispute or a block still pauses the checkout. A
 * refund that the same statement ends (`ended_id`) no longer counts. A payment that the shopper is
 * paying stays paused.
 */
export const updateResumed = ({ merchant_id, checkout_id }: CheckoutKey, ended_id?: string) =>
  writeResumed({ merchant_id, checkout_id, ended_id: ended_id ?? null });

/**
 * Moves an overdue payment to `scheduled`, claimed by the caller. Returns null if it is not
 * overdue, or is paused.
 */
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

export async function listFinishedPlans(
  db: Handle,
  merchant_id: string,
  checkout_ids: string[],
): Promise<string[]> {
  const rows = await selectFinished(db, { merchant_id, checkout_ids });
  return rows.map((row) => row.checkout_id);
}

const selectFinished = compileOnce((db, { merchant_id, checkout_ids }: ListKey) =>
  db
    .selectFrom('instalments')
    .select('checkout_id')
    .where('merchant_id', '=', merchant_id)
    .where(isOneOfIds('checkout_id', checkout_ids))
    .groupBy('checkout_id')
    .having(sql<boolean>`bool_and(status in ('collected', 'cancelled'))`),
);

/**
 * Deletes the row of the stored card, because the card `by` replaces it, and makes the old card due
 * to be detached at the gateway. If the shopper has entered a card again, `by` may be a reference
 * that we already know. If it is the stored card's, no card becomes due. If it belongs to a card
 * that was replaced earlier, that card is not due any more.
 */
export async function moveCardReplaced(
  db: Handle,
  { merchant_id, checkout_id, gateway }: CheckoutKey & { gateway: GatewayName },
  by: string,
  at: Timestamp,
): Promise<void> {
  const card = await db
    .deleteFrom('stored_cards')
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .returning(['card_ref', 'customer_ref', 'brand', 'last4', 'expires', 'card_key'])
    .returning(['consent', 'created_at'])
    .executeTakeFirstOrThrow();
  if (card.card_ref === by) return;
  await db
    .deleteFrom('replaced_cards')
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('card_ref', '=', by)
    .execute();
  await db
    .insertInto('replaced_cards')
    .values({
      ...card,
      merchant_id,
      checkout_id,
      gateway,
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

/** Whether the gateway may be detaching a card of the checkout now. `now` is on the real clock. */
export async function isDetaching(
  db: Handle,
  { merchant_id, checkout_id }: CheckoutKey,
  now: Timestamp,
): Promise<boolean> {
  const row = await db
    .selectFrom('replaced_cards')
    .select('card_ref')
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('leased_until', '>', now)
    .executeTakeFirst();
  return row !== undefined;
}

type Claimed = CheckoutKey & { card_ref: string; lease: string | null };

/**
 * Whether nothing needs a replaced card any more: no open request may charge it, and no attempt of
 * the shopper may store it again. The card's row must still be claimed: a card that was stored
 * again has lost its row. Call this function with the checkout locked.
 */
export async function mayDetach(db: Handle, card: Claimed): Promise<boolean> {
  const { merchant_id, checkout_id, card_ref, lease } = card;
  const of = sql`merchant_id = ${merchant_id} and checkout_id = ${checkout_id}`;
  const { rows } = await sql`
    select from replaced_cards
    where ${of} and card_ref = ${card_ref} and lease = ${lease}
      and not exists (
        select from collections where ${of} and status = 'open' and card_ref = ${card_ref})
      and not exists (
        select from payment_attempts
        where ${of} and due_at is not null and consent is not null)`.execute(db);
  return rows.length > 0;
}

export async function moveDetached(
  db: Handle,
  card: Claimed,
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

/** The details of the stored card that may be shown. */
export const selectStoredCardFace = (db: Handle, { merchant_id, checkout_id }: CheckoutKey) =>
  db
    .selectFrom('stored_cards')
    .select(['brand', 'last4'])
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id);

export async function findStoredCardFace(
  db: Handle,
  key: CheckoutKey,
): Promise<{ brand: string | null; last4: string | null } | null> {
  return (await selectStoredCardFace(db, key).executeTakeFirst()) ?? null;
}
