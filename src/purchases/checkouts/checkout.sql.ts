import { type Insertable, sql } from 'kysely';
import type pg from 'pg';
import type { GatewayName } from '#gateway/gateway-name.ts';
import { compileOnce, statement } from '#platform/database/compile-once.ts';
import type { Handle } from '#platform/database/database.ts';
import { rowGroup } from '#platform/database/row-group.ts';
import type { Tables } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Language } from '#platform/shared/language.ts';
import { type Checkout, type CheckoutStatus, paymentUrlMinutes } from './checkout.ts';

type Key = { merchant_id: string; id: string };

/** The columns of a new checkout whose values the caller gives, with their types. */
const newColumns = {
  merchant_id: 'uuid',
  id: 'uuid',
  integration_id: 'uuid',
  amount: 'bigint',
  currency: 'text',
  client_reference_id: 'text',
  notify_url: 'text',
  success_url: 'text',
  cancel_url: 'text',
  customer: 'jsonb',
  line_items: 'jsonb',
  terms: 'int[]',
  signed: 'bool',
  sealed_verify: 'bytea',
  payment_link_id: 'uuid',
  gateway: 'text',
} as const;
const newNames = Object.keys(newColumns) as (keyof typeof newColumns)[];

/** A new checkout without its number, status and times, which the insert assigns. */
export type NewCheckout = Pick<Checkout, keyof typeof newColumns>;

const created = rowGroup({ ...newColumns, behind: 'int' });

/**
 * `$1` holds the ids of the merchants, which are also in the rows. The condition on `$1` makes
 * Citus contact only the nodes of these merchants.
 */
const insertCreated = `
  insert into checkouts (${newNames.join(', ')}, number, status, created_at, expires_at)
  select ${created.select(newNames)}, l.total - i.behind, 'received', l.last_created_at,
    l.last_created_at + interval '${paymentUrlMinutes} minutes'
  from ${created.from}
  join list_totals l on l.merchant_id = i.merchant_id and l.list = 'checkouts'
    and l.merchant_id = any($1)`;

/**
 * Inserts checkouts with the numbers that `advanceListTotals` reserved in the same transaction.
 * `behind` is how many checkouts of the same merchant follow in this batch: the last one gets the
 * list's total as its number.
 */
export function insertCheckouts(
  client: pg.ClientBase,
  checkouts: (NewCheckout & { behind: number })[],
): Promise<unknown> {
  return client.query({
    name: 'checkouts-insert',
    text: insertCreated,
    values: created.values(checkouts),
  });
}

export async function listExisting(
  db: Handle,
  checkouts: { merchant_id: string; id: string }[],
): Promise<Set<string>> {
  const rows = await db
    .selectFrom('checkouts')
    .select('id')
    .where(
      'merchant_id',
      'in',
      checkouts.map(({ merchant_id }) => merchant_id),
    )
    .where(
      'id',
      'in',
      checkouts.map(({ id }) => id),
    )
    .execute();
  return new Set(rows.map((row) => row.id));
}

export const selectCheckout = (db: Handle, merchant_id: string, id: string) =>
  db
    .selectFrom('checkouts')
    .selectAll()
    .where('id', '=', id)
    .where('merchant_id', '=', merchant_id);

export async function findCheckout(
  db: Handle,
  merchant_id: string,
  id: string,
): Promise<Checkout | null> {
  const [row] = await selectOne(db, { merchant_id, id });
  return row ?? null;
}

const selectOne = compileOnce((db, { merchant_id, id }: Key) =>
  selectCheckout(db, merchant_id, id),
);

/** The merchant's newest checkout that matches the filter and was not created through v1. */
export async function findNewestCheckout(
  db: Handle,
  merchant_id: string,
  filter: { client_reference_id?: string; notify_url?: string; openAt?: Timestamp },
): Promise<Checkout | null> {
  const { client_reference_id, notify_url, openAt } = filter;
  let query = db
    .selectFrom('checkouts')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('sealed_verify', 'is', null);
  if (client_reference_id !== undefined) {
    query = query.where('client_reference_id', '=', client_reference_id);
  }
  if (notify_url !== undefined) query = query.where('notify_url', '=', notify_url);
  if (openAt !== undefined) {
    query = query.where('status', '=', 'received').where('expires_at', '>', openAt);
  }
  return (await query.orderBy('number', 'desc').limit(1).executeTakeFirst()) ?? null;
}

/** The merchant of a checkout, for operators, who may read every merchant's checkouts. */
export async function findCheckoutMerchant(db: Handle, id: string): Promise<string | null> {
  const row = await db
    .selectFrom('checkouts')
    .select('merchant_id')
    .where('id', '=', id)
    .executeTakeFirst();
  return row?.merchant_id ?? null;
}

export async function lockCheckout(
  db: Handle,
  merchant_id: string,
  id: string,
): Promise<Checkout | null> {
  const [row] = await lockOne(db, { merchant_id, id });
  return row ?? null;
}

const lockOne = compileOnce((db, { merchant_id, id }: Key) =>
  selectCheckout(db, merchant_id, id).forNoKeyUpdate(),
);

/** Locks in the order of the ids, so that two transactions cannot deadlock. */
export async function lockCheckouts(
  db: Handle,
  merchant_id: string,
  ids: string[],
): Promise<Pick<Checkout, 'id' | 'number_of_payments'>[]> {
  return await lockAll(db, { merchant_id, ids });
}

const lockAll = compileOnce((db, { merchant_id, ids }: { merchant_id: string; ids: string[] }) =>
  db
    .selectFrom('checkouts')
    .select(['id', 'number_of_payments'])
    .where('merchant_id', '=', merchant_id)
    .where(sql<boolean>`id = any (${ids}::uuid[])`)
    .orderBy('id')
    .forNoKeyUpdate(),
);

/** The columns that change when a checkout ends. */
type End = Pick<Checkout, 'number_of_payments' | 'completed_at'> & {
  status: Exclude<CheckoutStatus, 'received'>;
};

/** Moves a checkout from `received` to its outcome. Returns no row if another actor won. */
export const updateEnded = statement((db, end: Key & End) =>
  db
    .updateTable('checkouts')
    .set({
      status: end.status,
      number_of_payments: end.number_of_payments,
      completed_at: end.completed_at,
    })
    .where('id', '=', end.id)
    .where('merchant_id', '=', end.merchant_id)
    .where('status', '=', 'received')
    .returning('id'),
);

export const insertMove = statement((db, move: Insertable<Tables['checkout_moves']>) =>
  db.insertInto('checkout_moves').values(move),
);

export const updateLanguage = statement((db, to: Key & { language: Language }) =>
  db
    .updateTable('checkouts')
    .set({ language: to.language })
    .where('id', '=', to.id)
    .where('merchant_id', '=', to.merchant_id),
);

export async function moveGateway(db: Handle, checkout: Key, gateway: GatewayName): Promise<void> {
  await db
    .updateTable('checkouts')
    .set({ gateway })
    .where('id', '=', checkout.id)
    .where('merchant_id', '=', checkout.merchant_id)
    .where('status', '=', 'received')
    .execute();
}

/** The move that ended a checkout. Null while it has not ended. */
export async function findMove(
  db: Handle,
  merchant_id: string,
  checkout_id: string,
): Promise<{ to_status: Exclude<CheckoutStatus, 'received'>; at: Timestamp } | null> {
  const row = await db
    .selectFrom('checkout_moves')
    .select(['to_status', 'at'])
    .where('checkout_id', '=', checkout_id)
    .where('merchant_id', '=', merchant_id)
    .executeTakeFirst();
  return row ?? null;
}

/** Lets an open checkout expire at `now`, unless it has expired already. */
export async function moveExpired(
  db: Handle,
  { merchant_id, id }: Key,
  now: Timestamp,
): Promise<void> {
  await sql`
    update checkouts set expires_at = least(expires_at, ${now})
    where id = ${id} and merchant_id = ${merchant_id} and status = 'received'`.execute(db);
}
