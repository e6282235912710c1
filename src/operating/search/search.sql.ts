import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { CheckoutStatus, Customer } from '#purchases/checkouts/checkout.ts';
import { isOne, type Scope, scoped } from './scope.sql.ts';

/** The IDs of a merchant's row, with the checkout that it belongs to. */
export type FoundRow = { merchant_id: string; id: string; checkout_id: string };

// Each of the following searches is one equality on the first column of an index. The index goes on
// with the merchant and the number, so that a limit stops it early in any scope.

/** Checkouts with an order reference. Of one merchant the newest comes first. */
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
  // In the order of the index. Without one the planner may gather all of a common name first.
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

/** Checkouts whose payments, customers or charges have a reference of the gateway. */
export async function findByPaymentReference(
  db: Handle,
  scope: Scope,
  reference: string,
  limit: number,
): Promise<FoundRow[]> {
  const tables = ['payment_attempts', 'collections'] as const;
  const found = await Promise.all([
    ...tables.map((table) =>
      scoped(db.selectFrom(table as 'payment_attempts').select(ofCheckout), scope)
        .where('payment_ref', '=', reference)
        .limit(limit)
        .execute(),
    ),
    scoped(db.selectFrom('payment_attempts').select(ofCheckout), scope)
      .where('customer_ref', '=', reference)
      .limit(limit)
      .execute(),
  ]);
  return found.flat();
}

/** Refunds with a reference of the gateway. */
export function findByRefundReference(
  db: Handle,
  scope: Scope,
  reference: string,
  limit: number,
): Promise<FoundRow[]> {
  return scoped(
    db.selectFrom('refund_parts').select(['merchant_id', 'refund_id as id', 'checkout_id']),
    scope,
  )
    .where('refund_ref', '=', reference)
    .limit(limit)
    .execute();
}

/** Disputes with a reference of the gateway. */
export function findByDisputeReference(
  db: Handle,
  scope: Scope,
  reference: string,
  limit: number,
): Promise<FoundRow[]> {
  return scoped(db.selectFrom('disputes').select(['merchant_id', 'id', 'checkout_id']), scope)
    .where('dispute_ref', '=', reference)
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
export async function findRowById(
  db: Handle,
  scope: Scope,
  table:
    | 'checkouts'
    | 'refund_requests'
    | 'callbacks'
    | 'disputes'
    | 'payment_attempts'
    | 'collections',
  id: string,
): Promise<FoundRow | null> {
  const checkout = table === 'checkouts' ? 'id as checkout_id' : 'checkout_id';
  const row = await scoped(
    db
      .selectFrom(table as 'refund_requests')
      .select(['merchant_id', 'id', checkout as 'checkout_id']),
    scope,
  )
    .where('id', '=', id)
    .executeTakeFirst();
  return row ?? null;
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
  rows: Pick<FoundRow, 'merchant_id' | 'checkout_id'>[],
): Promise<Map<string, FoundCheckout>> {
  if (rows.length === 0) return new Map();
  const unique = (values: string[]) => [...new Set(values)];
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
    .where('id', 'in', unique(rows.map(({ checkout_id }) => checkout_id)))
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
