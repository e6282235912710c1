import { type RawBuilder, type Selectable, sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Tables } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { isOne, type Scope, scoped } from './scope.sql.ts';

/** The IDs of a merchant's row, with that of the checkout that it belongs to. */
export type FoundRow<Checkout extends string | null = string> = {
  merchant_id: string;
  id: string;
  checkout_id: Checkout;
};
/** A row of a table. The event of a payout is a callback without a checkout. */
export type FoundIn<Table extends string> = FoundRow<
  Table extends 'callbacks' ? string | null : string
>;

/**
 * A search for the rows that belong to checkouts. It is one equality on the first column of an
 * index. The merchant and the number are the next columns, so that a limit stops the scan early in
 * any scope.
 */
type Search<Wanted = string> = (
  db: Handle,
  scope: Scope,
  wanted: Wanted,
  limit: number,
) => Promise<FoundRow[]>;

/** Checkouts with an order reference. Those of one merchant come newest first. */
export const findByReference: Search = (db, scope, reference, limit) =>
  selectCheckouts(db, scope)
    .where('client_reference_id', '=', reference)
    .orderBy('merchant_id')
    .orderBy('number', 'desc')
    .limit(sql.lit(limit))
    .execute();

/** Only this many of the newest checkouts are searched for open ones. */
const openWindow = 1_000;

/** Only this many of the newest checkouts are searched for references that begin alike. */
const alikeWindow = 200;

/** At most this many references with the same beginning are looked at, whatever the scope. */
const beginningsMax = 2_000;

/**
 * Checkouts whose order reference begins with a text: the last ones in the order of references. If
 * there are more, also those among the newest checkouts, because no index has both orders (decision
 * 0054).
 */
export const findByBeginningOfReference: Search = (db, scope, beginning, limit) => {
  const reference = sql.ref('client_reference_id');
  const begins = sql<boolean>`${reference} >= ${beginning}
    and ${reference} < ${beginning} || ${'\u{10ffff}'}`;
  const rows = db.selectFrom('checkouts').select(['merchant_id', 'id', 'client_reference_id']);
  const alikeMax = scope === 'all merchants' ? limit : beginningsMax;
  // The newest rows of several small merchants may be far apart, so the newest rows of all
  // merchants are read.
  const newest = isOne(scope)
    ? scoped(rows, scope).orderBy('number', 'desc')
    : rows.orderBy('id', 'desc');
  const columns = ['merchant_id', 'id', 'id as checkout_id'] as const;
  const isCut = sql<boolean>`(select count(*) from alike) >= ${limit}::integer`;
  return db
    .with('alike', () =>
      rows.where(begins).orderBy('client_reference_id', 'desc').limit(sql.lit(alikeMax)),
    )
    .selectFrom((from) =>
      scoped(from.selectFrom('alike').select(columns), scope).limit(sql.lit(limit)).as('last'),
    )
    .selectAll()
    .unionAll((from) =>
      from
        .selectFrom(
          scoped(
            from.selectFrom(newest.limit(sql.lit(alikeWindow)).as('newest')).select(columns),
            scope,
          )
            .where(begins)
            .where(isCut)
            .limit(sql.lit(limit))
            .as('first'),
        )
        .selectAll(),
    )
    .execute();
};

/** Ended checkouts with an amount in cents, sorted by merchant. */
export const findByAmount: Search<number> = (db, scope, amount, limit) =>
  selectEnded(db, scope)
    .where('amount', '=', amount)
    .orderBy('merchant_id', 'desc')
    .orderBy('number', 'desc')
    .limit(sql.lit(limit))
    .execute();

/** Ended checkouts with an e-mail address, ignoring case. */
export const findByEmail: Search = (db, scope, email, limit) =>
  selectEnded(db, scope)
    .where(sql<boolean>`lower(customer ->> 'email') = lower(${email})`)
    .orderBy('merchant_id')
    .orderBy('number', 'desc')
    .limit(sql.lit(limit))
    .execute();

/** One way to read a text as a name. */
export type Name = { last: string; first: string | null };

/** Ended checkouts of a shopper, by last name and, if given, first name, ignoring case. */
export const findByName: Search<Name> = (db, scope, { first, last }, limit) => {
  let query = selectEnded(db, scope).where(
    sql<boolean>`lower(customer ->> 'last_name') = lower(${last})`,
  );
  if (first !== null) {
    query = query.where(sql<boolean>`lower(customer ->> 'first_name') = lower(${first})`);
  }
  // The query has the order of the index. Without this order, the planner may first collect all
  // rows with a common name.
  return query
    .orderBy(sql`lower(customer ->> 'first_name')`)
    .orderBy('merchant_id')
    .limit(sql.lit(limit))
    .execute();
};

/**
 * Open checkouts of a shopper, among the newest only: there is no index of open checkouts by
 * shopper, because every create would have to write it (decision 0054).
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
    .limit(sql.lit(openWindow))
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
    .where('status', '=', sql.lit('received'))
    .where(sql<boolean>`(${sql.join(conditions, sql` or `)})`)
    .execute();
}

const selectCheckouts = (db: Handle, scope: Scope) =>
  scoped(db.selectFrom('checkouts').select(['merchant_id', 'id', 'id as checkout_id']), scope);

/** Only ended checkouts are in the indexes by amount and by shopper. */
const selectEnded = (db: Handle, scope: Scope) =>
  selectCheckouts(db, scope).where('status', '<>', sql.lit('received'));

const ofCheckout = ['merchant_id', 'checkout_id as id', 'checkout_id'] as const;

/**
 * Checkouts for which a card with these last four digits was used, in the first payment or on the
 * plan. The stored card always comes from an attempt.
 */
export const findByLastFour: Search = (db, scope, digits, limit) =>
  scoped(db.selectFrom('payment_attempts').select(ofCheckout), scope)
    .where('card_last4', '=', digits)
    .orderBy('merchant_id')
    .orderBy('checkout_id', 'desc')
    .limit(sql.lit(limit))
    .execute();

/** The columns with the gateway's references, each with the column of the id to return. */
export const gatewayReferences = [
  { kind: 'checkout', table: 'payment_attempts', reference: 'payment_ref', id: 'checkout_id' },
  { kind: 'checkout', table: 'payment_attempts', reference: 'customer_ref', id: 'checkout_id' },
  { kind: 'checkout', table: 'collections', reference: 'payment_ref', id: 'checkout_id' },
  { kind: 'refund', table: 'refund_parts', reference: 'refund_ref', id: 'refund_id' },
  { kind: 'dispute', table: 'disputes', reference: 'dispute_ref', id: 'id' },
] as const;

/** Rows with this reference of the gateway in one of these columns. */
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
    .limit(sql.lit(limit))
    .execute();
}

/**
 * Payouts with this reference on the bank statement. Two merchants may have payouts with the same
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
    .limit(sql.lit(limit))
    .execute();
}

/** The tables whose rows a person finds by an id, with the kind of each. */
export const rowKinds = {
  checkouts: 'checkout',
  refund_requests: 'refund',
  callbacks: 'callback',
  disputes: 'dispute',
} as const;
type RowTable = keyof typeof rowKinds;

const selectRow = (db: Handle, scope: Scope, table: string) => {
  const hasCheckout = table !== 'checkouts' && table !== 'payouts';
  const checkout = (hasCheckout ? 'checkout_id' : 'id as checkout_id') as 'checkout_id';
  const query = db.selectFrom(table as 'refund_requests');
  return scoped(query.select(['merchant_id', 'id', checkout, 'created_at']), scope);
};

/** Finds a row by its id, with an index of its table. */
export async function findRowById<Table extends RowTable | 'payment_attempts' | 'collections'>(
  db: Handle,
  scope: Scope,
  table: Table,
  id: string,
): Promise<(FoundIn<Table> & { created_at: Timestamp }) | null> {
  const row = await selectRow(db, scope, table).where('id', '=', id).executeTakeFirst();
  return (row as (FoundIn<Table> & { created_at: Timestamp }) | undefined) ?? null;
}

/** Finds the rows whose ids begin with these hexadecimal digits, with the same index. */
export async function listRowsByIdPrefix(
  db: Handle,
  scope: Scope,
  table: RowTable | 'payouts',
  digits: string,
  limit: number,
): Promise<(FoundRow<string | null> & { created_at: Timestamp })[]> {
  const [first, last] = ['0', 'f'].map((rest) => digits.padEnd(32, rest)) as [string, string];
  return await selectRow(db, scope, table)
    .where('id', '>=', first)
    .where('id', '<=', last)
    .orderBy('id', 'desc')
    .limit(sql.lit(limit))
    .execute();
}

/** The ids of the refunds, callbacks or disputes of checkouts, the newest first. */
export async function listOfCheckouts(
  db: Handle,
  scope: Scope,
  table: Exclude<RowTable, 'checkouts'>,
  checkout_ids: string[],
): Promise<string[]> {
  // Only the callback about the checkout itself has the checkout's id as its `listed_id`. An order
  // number does not find the callbacks about events.
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

/** People of the console whose name or e-mail address begins with a text: two ranges of indexes. */
export async function findPeopleByBeginning(
  db: Handle,
  scope: Scope,
  beginning: string,
  limit: number,
): Promise<OperatorsRow[]> {
  if (scope !== 'all merchants') return [];
  const text = beginning.replaceAll('\u0000', '');
  const by = (column: RawBuilder<string>, start: RawBuilder<string>) => sql`(
    select id, name, email, created_at from people
    where ${column} >= ${start} and ${column} < ${start} || ${'\u{10ffff}'}
    order by ${column}, id limit ${sql.lit(limit)})`;
  const byName = by(sql`(lower(name) collate "C")`, sql`lower(${text})`);
  // E-mail addresses are stored with A to Z in lower case and other letters unchanged.
  const byEmail = by(sql`email`, sql`lower(${text} collate "C")`);
  const { rows } = await sql<Omit<OperatorsRow, 'merchant_id'>>`
    ${byName} union all ${byEmail}`.execute(db);
  const found = new Map(rows.map((row) => [row.id, { ...row, merchant_id: null }]));
  return [...found.values()].slice(0, limit);
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
 * The person or the bulk action with this id. They belong to no merchant, so only a scope of all
 * merchants includes them.
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
  /** A person's name, or the kind of a bulk action. */
  name: string;
  email: string | null;
  created_at: Timestamp;
};

const checkoutColumns = [
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
] as const;
export type FoundCheckout = Pick<Selectable<Tables['checkouts']>, (typeof checkoutColumns)[number]>;

/** The checkouts that rows belong to, by their ids. */
export async function listFoundCheckouts(
  db: Handle,
  scope: Scope,
  rows: Pick<FoundRow<string | null>, 'merchant_id' | 'checkout_id'>[],
): Promise<Map<string, FoundCheckout>> {
  const unique = (values: string[]) => [...new Set(values)];
  const ids = unique(rows.flatMap(({ checkout_id }) => checkout_id ?? []));
  if (ids.length === 0) return new Map();
  const found = await scoped(db.selectFrom('checkouts').select(checkoutColumns), scope)
    .where('id', 'in', ids)
    .where('merchant_id', 'in', unique(rows.map(({ merchant_id }) => merchant_id)))
    .execute();
  return new Map(found.map((checkout) => [checkout.id, checkout]));
}

/** Merchants whose names begin with a text, ignoring case, ordered by name. */
export async function findMerchantsByName(
  db: Handle,
  scope: Scope,
  beginning: string,
  limit: number,
) {
  // The index has this expression in byte order. So a search by the beginning of a name is one
  // range, from the text itself to the text followed by the last character of Unicode.
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
    .limit(sql.lit(limit))
    .execute();
}
