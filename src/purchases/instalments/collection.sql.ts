import assert from 'node:assert/strict';
import { type Insertable, sql } from 'kysely';
import { compileOnce, send, statement } from '#platform/database/compile-once.ts';
import type { Handle } from '#platform/database/database.ts';
import { asRows, together } from '#platform/database/read-together.ts';
import type { Tables } from '#platform/database/tables.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import {
  type CheckoutKey,
  isOneOfIds,
  type StoredCard,
  selectStoredCards,
} from './instalment.sql.ts';
import type { CardDecline, Collection } from './instalment.ts';

// Statements for the requests to the gateway.

type Key = { merchant_id: string; checkout_ids: string[] };
type DeclinesKey = Key & { since: Timestamp; rowsMax: number };

const insertCollectionRows = statement((db, collections: Insertable<Tables['collections']>[]) =>
  db.insertInto('collections').values(collections),
);

export async function insertCollections(db: Handle, collections: Collection[]): Promise<void> {
  const rows = collections.map(({ scheme, ...row }) => ({
    ...row,
    scheme: scheme && JSON.stringify(scheme),
  }));
  await send(db, insertCollectionRows(rows));
}

/** Records that a request is sent again. */
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

/** The numbers of the payments of a checkout that have a request in flight. */
export const selectOpenCollections = (db: Handle, { merchant_id, checkout_id }: CheckoutKey) =>
  db
    .selectFrom('collections')
    .select('instalment')
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('status', '=', 'open');

/** The newest request to the gateway for each payment of the checkouts that has one. */
const selectLast = (db: Handle, { merchant_id, checkout_ids }: Key) =>
  db
    .selectFrom('collections')
    .selectAll()
    .distinctOn(['checkout_id', 'instalment'])
    .where('merchant_id', '=', merchant_id)
    .where(isOneOfIds('checkout_id', checkout_ids))
    .orderBy('checkout_id')
    .orderBy('instalment')
    .orderBy('number', 'desc');

export async function listLastCollections(
  db: Handle,
  merchant_id: string,
  checkout_ids: string[],
): Promise<Collection[]> {
  return await selectLast(db, { merchant_id, checkout_ids }).execute();
}

/** A statement reads at most this many declines per checkout. No plan ever has that many. */
const declinesMax = 1_000;

/**
 * The declines that may forbid a charge, oldest first: those that forbid a retry or ask to wait,
 * and those of the last 24 hours. A decline of a card that was only verified belongs to no payment,
 * so its `instalment` is 0.
 */
const selectDeclines = (db: Handle, { merchant_id, checkout_ids, since, rowsMax }: DeclinesKey) =>
  db
    .selectFrom('collections')
    .select(['checkout_id', 'instalment', 'card_ref', 'card_key'])
    .select(['decline_reason', 'decline_code', 'may_retry', 'created_at'])
    .select(['wait_hours', 'settled_at'])
    .where('merchant_id', '=', merchant_id)
    .where(isOneOfIds('checkout_id', checkout_ids))
    .where('status', '=', 'declined')
    .where((is) =>
      is.or([
        is('may_retry', '=', false),
        is('wait_hours', 'is not', null),
        is('created_at', '>', since),
      ]),
    )
    .unionAll(
      db
        .selectFrom('payment_attempts')
        .select(['checkout_id', sql<number>`0`.as('instalment'), sql<null>`null`.as('card_ref')])
        .select(['card_key', 'decline_reason', 'decline_code', 'may_retry', 'created_at'])
        .select([sql<null>`null`.as('wait_hours'), sql<null>`null`.as('settled_at')])
        .where('merchant_id', '=', merchant_id)
        .where(isOneOfIds('checkout_id', checkout_ids))
        .where('purpose', '=', 'new_card')
        .where('status', '=', 'declined')
        .where('may_retry', '=', false),
    )
    .orderBy('created_at')
    .limit(sql<number>`${rowsMax}::integer`);

const declinesKey = (merchant_id: string, checkout_ids: string[], now: Temporal.Instant) => ({
  ...{ merchant_id, checkout_ids },
  since: timestamp(now.subtract({ hours: 24 })),
  rowsMax: declinesMax * checkout_ids.length,
});

export async function listCardDeclines(
  db: Handle,
  merchant_id: string,
  checkout_ids: string[],
  now: Temporal.Instant,
): Promise<CardDecline[]> {
  return await selectDeclines(db, declinesKey(merchant_id, checkout_ids, now)).execute();
}

const selectOpening = compileOnce((db, key: DeclinesKey) =>
  together({
    last: selectLast(db, key),
    cards: selectStoredCards(db, key),
    declines: selectDeclines(db, key),
  }),
);

/** Everything that decides how payments are requested, in one statement. */
export async function readOpening(
  db: Handle,
  merchant_id: string,
  checkout_ids: string[],
  now: Temporal.Instant,
): Promise<{ last: Collection[]; cards: StoredCard[]; declines: CardDecline[] }> {
  const [rows] = await selectOpening(db, declinesKey(merchant_id, checkout_ids, now));
  assert(rows);
  return { last: asRows(rows.last), cards: rows.cards, declines: asRows(rows.declines) };
}

export const selectTellingCollections = (db: Handle, { merchant_id, checkout_id }: CheckoutKey) =>
  db
    .selectFrom('collections')
    .selectAll()
    .distinctOn(['instalment', 'kind', 'status'])
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('status', 'in', ['collected', 'declined', 'lapsed'])
    .orderBy('instalment')
    .orderBy('kind')
    .orderBy('status')
    .orderBy('number', 'desc');

/** The references that already pay for a collection or attempt other than the one with this id. */
export async function listPaidElsewhere(
  db: Handle,
  { merchant_id, id, instalments }: { merchant_id: string; id: string; instalments: number[] },
  payment_refs: string[],
): Promise<string[]> {
  // The hold of the first payment pays for that payment, even if it counted as lapsed for a time.
  const paid: ('authorised' | 'charged')[] = instalments.includes(1)
    ? ['charged']
    : ['authorised', 'charged'];
  const rows = await db
    .selectFrom('collections')
    .select('payment_ref')
    .where('merchant_id', '=', merchant_id)
    .where('payment_ref', 'in', payment_refs)
    .where('id', '<>', id)
    .where('status', '=', 'collected')
    .union(
      db
        .selectFrom('payment_attempts')
        .select('payment_ref')
        .where('merchant_id', '=', merchant_id)
        .where('payment_ref', 'in', payment_refs)
        .where('id', '<>', id)
        .where('status', 'in', paid),
    )
    .execute();
  return rows.flatMap(({ payment_ref }) => payment_ref ?? []);
}

/** Moves open requests to their outcomes, many at once. Returns how many were open. */
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
    | 'wait_hours'
    | 'scheme'
    | 'card_key'
    | 'settled_at'
  >[],
): Promise<number> {
  const moved = await updateCollections(db, { merchant_id, settled: JSON.stringify(settled) });
  return moved.length;
}

const updateCollections = compileOnce(
  (_db, { merchant_id, settled }: { merchant_id: string; settled: string }) => sql`
    update collections c
    set status = v.status, payment_ref = v.payment_ref, decline_reason = v.decline_reason,
      may_retry = v.may_retry, decline_code = v.decline_code,
      network_decline_code = v.network_decline_code, wait_hours = v.wait_hours,
      scheme = v.scheme, card_key = v.card_key,
      settled_at = v.settled_at
    from jsonb_to_recordset(${settled}::jsonb) as v(
      checkout_id uuid, instalment integer, number integer, status text, payment_ref text,
      decline_reason text, may_retry boolean, decline_code text, network_decline_code text,
      wait_hours integer, scheme jsonb,
      card_key text, settled_at timestamptz)
    where c.merchant_id = ${merchant_id} and c.checkout_id = v.checkout_id
      and c.instalment = v.instalment and c.number = v.number and c.status = 'open'
    returning c.id`,
);
