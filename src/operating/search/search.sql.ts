import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { CheckoutStatus, Customer } from '#purchases/checkouts/checkout.ts';
import { isOne, type Scope, scoped } from './scope.sql.ts';

/** The IDs of a merchant's row, with the checkout that it belongs to. */
export type FoundRow<Checkout extends string | null = string> = {
  merchant_id: string;
  id: string;
  checkout_id: Checkout;
};
/** A row of a table. The event of a payout, which is a callback, has no checkout. */
export type FoundIn<Table extends string> = FoundRow<
  Table extends 'callbacks' ? string | null : string
>;

// Each of the following searches is one equality on the first column of an index. The index goes on
// with the merchant and the number, so that a limit stops it early in any scope.

/** Checkouts with an order reference. Those of one merchant come newest first. */
export function findByReference(
  db: Handle,
  scope: Scope,
  reference: string,
  limit: number,
): Promise<FoundRow[]> {
  return scoped(selectCheckouts(db), scope)
    .where('client_reference_id', '=', reference)
    .orderBy('merchant_id')
    .orderBy('number', 'desc')
    .limit(limit)
    .execute();
}

/** So many of the references that begin alike are looked at, whatever the scope. */
const beginningsMax = 2_000;

/** Checkouts whose order reference begins with a text, in the order of references. */
export async function findByBeginningOfReference(
  db: Handle,
  scope: Scope,
  beginning: string,
  limit: number,
): Promise<FoundRow[]> {
  const reference = sql.ref('client_reference_id');
  const alike = db
    .selectFrom('checkouts')
    .select(['merchant_id', 'id', 'id as checkout_id', 'client_reference_id'])
    .where(
      sql<boolean>`${reference} >= ${beginning} and ${reference} < ${beginning} || ${'\u{10ffff}'}`,
    )
    .orderBy('client_reference_id')
    .limit(scope === 'all merchants' ? limit : beginningsMax)
    .as('alike');
  return await scoped(db.selectFrom(alike).select(['merchant_id', 'id', 'checkout_id']), scope)
    .limit(limit)
    .execute();
}

/** Ended checkouts over an amount in cents, of one merchant after another. */
export function findByAmount(
  db: Handle,
  scope: Scope,
  amount: number,
  limit: number,
): Promise<FoundRow[]> {
  return scoped(selectCheckouts(db), scope)
    .where('status', '<>', 'received')
    .where('amount', '=', amount)
    .orderBy('merchant_id', 'desc')
    .orderBy('number', 'desc')
    .limit(limit)
    .execute();
}

/** Ended checkouts of an e-mail address, in upper or lower case. */
export function findByEmail(
  db: Handle,
  scope: Scope,
  email: string,
  limit: number,
): Promise<FoundRow[]> {
  return scoped(selectCheckouts(db), scope)
    .where('status', '<>', 'received')
    .where(sql<boolean>`lower(customer ->> 'email') = lower(${email})`)
    .orderBy('merchant_id')
    .orderBy('number', 'desc')
    .limit(limit)
    .execute();
}

/** A name in one of the ways that it can be read. */
export type Name = { last: string; first: string | null };

/** Ended checkouts of a shopper by last name, and by first name if it is given, in any case. */
export function findByName(
  db: Handle,
  scope: Scope,
  name: Name,
  limit: number,
): Promise<FoundRow[]> {
  let query = scoped(selectCheckouts(db), scope)
    .where('status', '<>', 'received')
    .where(sql<boolean>`lower(customer ->> 'last_name') = lower(${name.last})`);
  if (name.first !== null) {
    query = query.where(sql<boolean>`lower(customer ->> 'first_name') = lower(${name.first})`);
  }
  // Use the order of the index. Without an order the planner may gather all of a common name first.
  return query
    .orderBy(sql`lower(customer ->> 'first_name')`)
    .orderBy('merchant_id')
    .limit(limit)
    .execute();
}

/** This many of the newest checkouts are searched for open ones. */
const openWindow = 1_000;

/**
 * Open checkouts of a shopper, of the newest ones only: no index has open checkouts by shopper,
 * because it would be written with every create (decision 0054).
 */
export async function findOpenByShopper(
  db: Handle,
  scope: Scope,
  shopper: { email: string | null; names: Name[] },
): Promise<FoundRow[]> {
  const newest = scoped(
    db.selectFrom('checkouts').select(['merchant_id', 'id', 'status', 'customer']),
    scope,
  )
    .orderBy(isOne(scope) ? 'number' : 'id', 'desc')
    .limit(openWindow)
    .as('newest');
  const conditions = shopper.names.map(({ last, first }) =>
    first === null
      ? sql`lower(customer ->> 'last_name') = lower(${last})`
      : sql`(lower(customer ->> 'last_name') = lower(${last})
          and lower(customer ->> 'first_name') = lower(${first}))`,
  );
  if (shopper.email !== null) {
    conditions.push(sql`lower(customer ->> 'email') = lower(${shopper.email})`);
  }
  if (conditions.length === 0) return [];
  return await db
    .selectFrom(newest)
    .select(['merchant_id', 'id', 'id as checkout_id'])
    .where('status', '=', 'received')
    .where(sql<boolean>`(${sql.join(conditions, sql` or `)})`)
    .execute();
}

const selectCheckouts = (db: Handle) =>
  db.selectFrom('checkouts').select(['merchant_id', 'id', 'id as checkout_id']);

const ofCheckout = ['merchant_id', 'checkout_id as id', 'checkout_id'] as const;

/**
 * Checkouts for which a card with these last four digits was used, in the first payment or on the
 * plan. The stored card always comes from an attempt.
 */
export async function findByLastFour(
  db: Handle,
  scope: Scope,
  digits: string,
  limit: number,
): Promise<FoundRow[]> {
  return await scoped(db.selectFrom('payment_attempts').select(ofCheckout), scope)
    .where('card_last4', '=', digits)
    .orderBy('merchant_id')
    .orderBy('checkout_id', 'desc')
    .limit(limit)
    .execute();
}

/** The columns with references of the gateway, and those with the id of the row that is found. */
export const gatewayReferences = [
  { kind: 'checkout', table: 'payment_attempts', reference: 'payment_ref', id: 'checkout_id' },
  { kind: 'checkout', table: 'payment_attempts', reference: 'customer_ref', id: 'checkout_id' },
  { kind: 'checkout', table: 'collections', reference: 'payment_ref', id: 'checkout_id' },
  { kind: 'refund', table: 'refund_parts', reference: 'refund_ref', id: 'refund_id' },
  { kind: 'dispute', table: 'disputes', reference: 'dispute_ref', id: 'id' },
] as const;

/** Rows that have a reference of the gateway in one of these columns. */
export function findByGatewayReference(
  db: Handle,
  scope: Scope,
  { table, reference, id }: (typeof gatewayReferences)[number],
  text: string,
  limit: number,
): Promise<FoundRow[]> {
  const columns = ['merchant_id', `${id} as id`, 'checkout_id'] as const;
  const query = db.selectFrom(table as 'payment_attempts');
  return scoped(query.select(columns as typeof ofCheckout), scope)
    .where(reference as 'payment_ref', '=', text)
    .limit(limit)
    .execute();
}

/**
 * Payouts with the reference of their line at the bank. Payouts of two merchants may have the same
 * reference.
 */
export function findPayoutsByReference(
  db: Handle,
  scope: Scope,
  reference: string,
  limit: number,
): Promise<{ id: string; merchant_id: string; created_at: Timestamp }[]> {
  return scoped(db.selectFrom('payouts').select(['id', 'merchant_id', 'created_at']), scope)
    .where('reference', '=', reference)
    .orderBy('merchant_id')
    .limit(limit)
    .execute();
}

/** The row of a merchant with this id, by an index of its table. */
export async function findRowById<
  Table extends
    | 'checkouts'
    | 'refund_requests'
    | 'callbacks'
    | 'disputes'
    | 'payment_attempts'
    | 'collections',
>(
  db: Handle,
  scope: Scope,
  table: Table,
  id: string,
): Promise<(FoundIn<Table> & { created_at: Timestamp }) | null> {
  const checkout = table === 'checkouts' ? 'id as checkout_id' : 'checkout_id';
  const row = await scoped(
    db
      .selectFrom(table as 'refund_requests')
      .select(['merchant_id', 'id', checkout as 'checkout_id', 'created_at']),
    scope,
  )
    .where('id', '=', id)
    .executeTakeFirst();
  return (row as (FoundIn<Table> & { created_at: Timestamp }) | undefined) ?? null;
}

/** The rows whose ids begin with these hexadecimal digits, by the same index. */
export async function findRowsByBeginningOfId(
  db: Handle,
  scope: Scope,
  table: 'checkouts' | 'refund_requests' | 'callbacks' | 'disputes' | 'payouts',
  digits: string,
  limit: number,
): Promise<(FoundRow<string | null> & { created_at: Timestamp })[]> {
  const checkout = table === 'refund_requests' || table === 'callbacks' || table === 'disputes';
  const [first, last] = ['0', 'f'].map((rest) => digits.padEnd(32, rest)) as [string, string];
  return await scoped(
    db
      .selectFrom(table as 'refund_requests')
      .select([
        'merchant_id',
        'id',
        (checkout ? 'checkout_id' : 'id as checkout_id') as 'checkout_id',
        'created_at',
      ]),
    scope,
  )
    .where('id', '>=', first)
    .where('id', '<=', last)
    .orderBy('id', 'desc')
    .limit(limit)
    .execute();
}

/** The ids of the refunds, callbacks or disputes of checkouts, the newest first. */
export async function listOfCheckouts(
  db: Handle,
  scope: Scope,
  table: 'refund_requests' | 'callbacks' | 'disputes',
  checkout_ids: string[],
): Promise<string[]> {
  // An order number names the result of its payment, not one of its events.
  const of = sql.ref(table === 'callbacks' ? 'listed_id' : 'checkout_id');
  const rows = await scoped(
    db
      .selectFrom(table as 'refund_requests')
      .select('id')
      .where(sql<boolean>`${of} = any(${checkout_ids}::uuid[])`),
    scope,
  )
    .orderBy('id', 'desc')
    .execute();
  return rows.map(({ id }) => id);
}

/** People of the console whose name or address begins with a text. They are few. */
export async function findPeopleByBeginning(
  db: Handle,
  scope: Scope,
  beginning: string,
  limit: number,
): Promise<OperatorsRow[]> {
  if (scope !== 'all merchants') return [];
  const text = beginning.toLowerCase();
  const found = await db
    .selectFrom('people')
    .select(['id', 'name', 'email', 'created_at'])
    .where(sql<boolean>`starts_with(lower(name), ${text}) or starts_with(lower(email), ${text})`)
    .orderBy('id', 'desc')
    .limit(limit)
    .execute();
  return found.map((row) => ({ ...row, merchant_id: null }));
}

/**
 * The merchant, integration, alert or payout with this id. An intermediary belongs to no merchant.
 */
export async function findSharedRowById(
  db: Handle,
  scope: Scope,
  table: 'merchants' | 'integrations' | 'alerts' | 'payouts',
  id: string,
): Promise<{ id: string; merchant_id: string | null; created_at: Timestamp } | null> {
  const columns = {
    merchants: ['id', 'id as merchant_id', 'created_at'],
    integrations: ['id', 'merchant_id', 'created_at'],
    alerts: ['id', 'merchant_id', 'at as created_at'],
    payouts: ['id', 'merchant_id', 'created_at'],
  }[table] as ['id', 'merchant_id', 'created_at'];
  const row = await scoped(
    db.selectFrom(table as 'integrations').select(columns),
    scope,
    table === 'merchants' ? 'id' : 'merchant_id',
  )
    .where('id', '=', id)
    .executeTakeFirst();
  return row ?? null;
}

/**
 * The person or the bulk action with this id. They belong to no merchant: only a scope of all
 * merchants has them.
 */
export async function findOperatorsRowById(
  db: Handle,
  scope: Scope,
  table: 'people' | 'bulk_actions',
  id: string,
): Promise<OperatorsRow | null> {
  if (scope !== 'all merchants') return null;
  const found =
    table === 'people'
      ? await db
          .selectFrom('people')
          .select(['id', 'name', 'email', 'created_at'])
          .where('id', '=', id)
          .executeTakeFirst()
      : await db
          .selectFrom('bulk_actions')
          .select(['id', 'kind as name', sql<null>`null`.as('email'), 'created_at'])
          .where('id', '=', id)
          .executeTakeFirst();
  return found ? { ...found, merchant_id: null } : null;
}

export type OperatorsRow = {
  id: string;
  merchant_id: null;
  /** The kind of a bulk action. */
  name: string;
  email: string | null;
  created_at: Timestamp;
};

export type FoundCheckout = {
  merchant_id: string;
  id: string;
  status: CheckoutStatus;
  amount: number;
  currency: string;
  number_of_payments: number | null;
  client_reference_id: string;
  customer: Customer;
  created_at: Timestamp;
  completed_at: Timestamp | null;
};

/** The checkouts that rows belong to, by their ids. */
export async function listFoundCheckouts(
  db: Handle,
  scope: Scope,
  rows: Pick<FoundRow<string | null>, 'merchant_id' | 'checkout_id'>[],
): Promise<Map<string, FoundCheckout>> {
  const unique = (values: string[]) => [...new Set(values)];
  const ids = unique(rows.flatMap(({ checkout_id }) => checkout_id ?? []));
  if (ids.length === 0) return new Map();
  const found = await scoped(
    db
      .selectFrom('checkouts')
      .select([
        'merchant_id',
        'id',
        'status',
        'amount',
        'currency',
        'number_of_payments',
        'client_reference_id',
        'customer',
        'created_at',
        'completed_at',
      ]),
    scope,
  )
    .where('id', 'in', ids)
    .where('merchant_id', 'in', unique(rows.map(({ merchant_id }) => merchant_id)))
    .execute();
  return new Map(found.map((checkout) => [checkout.id, checkout as FoundCheckout]));
}

export type FoundMerchant = { id: string; name: string; time_zone: string; created_at: Timestamp };

/** Merchants whose names begin with a text in any case, in the order of names. */
export async function findMerchantsByName(
  db: Handle,
  scope: Scope,
  beginning: string,
  limit: number,
): Promise<FoundMerchant[]> {
  // The index has this expression, in the order of bytes. So a search by the beginning of a name is
  // one range of it, from the text itself to the text followed by the last character of Unicode.
  const name = sql<string>`(lower(merchants.name) collate "C")`;
  const text = beginning.replaceAll('\u0000', '').trim();
  return await scoped(
    db
      .selectFrom('merchants')
      .innerJoin('territories', 'territories.code', 'merchants.territory')
      .select(['merchants.id', 'merchants.name', 'merchants.created_at', 'territories.time_zone']),
    scope,
    'merchants.id',
  )
    .where(sql<boolean>`${name} >= lower(${text}) and ${name} < lower(${text}) || ${'\u{10ffff}'}`)
    .orderBy(name)
    .orderBy('merchants.id')
    .limit(limit)
    .execute();
}
