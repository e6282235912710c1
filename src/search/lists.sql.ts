import { sql } from 'kysely';
import type { Callback, CallbackStatus } from '../callbacks/callback.ts';
import type { Handle } from '../database/database.ts';
import type { Instalment, InstalmentStatus } from '../instalments/instalment.ts';
import type { RefundRequest, RefundStatus } from '../refunds/refund.ts';
import { isOne, type Scope, scoped } from './scope.sql.ts';

// Pages of rows for operators. Each page is a range of an index, whatever the list's length: a key
// says where the page before it ended, and there is neither an offset nor a count. Ids ascend with
// time, so the order of ids is the order of creation.

/** Where a page ended: the values of the order's columns in its last row. */
export type Key = string[];

export type Page<Row> = { rows: Row[]; last: Key | null };

export type PageOf = { after: Key | null; limit: number };

/** The key is not one of this list. */
export class BadKey extends Error {}

/** The rows after a key, in the order of the columns. */
// biome-ignore lint/suspicious/noExplicitAny: it pages queries of any shape.
function paged(query: any, page: PageOf, columns: string[], order: 'asc' | 'desc') {
  let ordered = query.limit(page.limit);
  for (const column of columns) ordered = ordered.orderBy(column, order);
  if (page.after === null) return ordered;
  if (page.after.length !== columns.length) throw new BadKey();
  const names = sql.join(columns.map((column) => sql.ref(column)));
  const values = sql.join(page.after.map((value) => sql`${value}`));
  return ordered.where(
    order === 'asc'
      ? sql<boolean>`(${names}) > (${values})`
      : sql<boolean>`(${names}) < (${values})`,
  );
}

function pageFrom<Row extends object>(rows: Row[], limit: number, columns: string[]): Page<Row> {
  const last = rows.at(-1) as Record<string, unknown> | undefined;
  if (!last || rows.length < limit) return { rows, last: null };
  return { rows, last: columns.map((column) => String(last[column])) };
}

export type CheckoutRow = { merchant_id: string; id: string; checkout_id: string; number: number };

/** The newest checkouts first. */
export async function pageCheckouts(
  db: Handle,
  scope: Scope,
  page: PageOf,
): Promise<Page<CheckoutRow>> {
  const columns = isOne(scope) ? ['number'] : ['id', 'merchant_id'];
  const query = db
    .selectFrom('checkouts')
    .select(['merchant_id', 'id', 'id as checkout_id', 'number']);
  const rows = await paged(scoped(query, scope), page, columns, 'desc').execute();
  return pageFrom(rows as CheckoutRow[], page.limit, columns);
}

export type CallbackRow = Omit<Callback, 'payload' | 'sealed_verify'> & {
  /** Why the last attempt failed; null if it did not, or if there is none. */
  reason: string | null;
  response_status: number | null;
};

/** Pending callbacks by their next attempt. All others the newest first. */
export async function pageCallbacks(
  db: Handle,
  scope: Scope,
  status: CallbackStatus | null,
  page: PageOf,
): Promise<Page<CallbackRow>> {
  let query = db
    .selectFrom('callbacks')
    .leftJoin('callback_attempts as a', (on) =>
      on
        .onRef('a.merchant_id', '=', 'callbacks.merchant_id')
        .onRef('a.callback_id', '=', 'callbacks.id')
        .onRef('a.number', '=', 'callbacks.attempts'),
    )
    .select([
      'callbacks.merchant_id',
      'callbacks.id',
      'callbacks.checkout_id',
      'callbacks.integration_id',
      'callbacks.notify_url',
      'callbacks.status',
      'callbacks.created_at',
      'callbacks.due_at',
      'callbacks.attempts',
      'callbacks.attempts_expired',
      'callbacks.run',
      'callbacks.run_attempts',
      'callbacks.host',
      'callbacks.redirect_url',
      'callbacks.delivered_at',
      'callbacks.lease',
      'callbacks.leased_until',
      'a.reason',
      'a.response_status',
    ]);
  if (status !== null) query = query.where('callbacks.status', '=', status);
  // The predicate of the index by due time.
  if (status === 'pending') query = query.where('callbacks.due_at', 'is not', null);
  const ofOne = isOne(scope) && status !== 'exhausted';
  const columns = status === 'pending' ? ['due_at', 'id'] : [ofOne ? 'checkout_id' : 'id'];
  const rows = await paged(
    scoped(query, scope, 'callbacks.merchant_id'),
    page,
    columns.map((column) => `callbacks.${column}`),
    status === 'pending' ? 'asc' : 'desc',
  ).execute();
  return pageFrom(rows as CallbackRow[], page.limit, columns);
}

/** Overdue payments, the longest due first. All others by their checkout, the newest first. */
export async function pageInstalments(
  db: Handle,
  scope: Scope,
  status: InstalmentStatus,
  page: PageOf,
): Promise<Page<Instalment>> {
  const query = scoped(
    db.selectFrom('instalments').selectAll('instalments').where('instalments.status', '=', status),
    scope,
    'instalments.merchant_id',
  );
  if (status === 'overdue') {
    const columns = ['due_on', 'checkout_id', 'number'];
    const rows = await paged(query, page, columns, 'asc').execute();
    return pageFrom(rows as Instalment[], page.limit, columns);
  }
  if (isOne(scope) && status !== 'cancelled') {
    // No index has a merchant's payments in an order, but its checkouts have one.
    const joined = query
      .innerJoin('checkouts as c', (on) =>
        on
          .onRef('c.id', '=', 'instalments.checkout_id')
          .onRef('c.merchant_id', '=', 'instalments.merchant_id'),
      )
      .select('c.number as checkout_number');
    const merchant = scoped(joined, scope, 'c.merchant_id');
    const rows = await paged(merchant, page, ['c.number', 'instalments.number'], 'desc').execute();
    return pageFrom(rows as Instalment[], page.limit, ['checkout_number', 'number']);
  }
  const columns = ['checkout_id', 'number'];
  const rows = await paged(query, page, columns, 'desc').execute();
  return pageFrom(rows as Instalment[], page.limit, columns);
}

/** Refunds that wait for review or have not begun, the oldest first. All others the newest first. */
export async function pageRefunds(
  db: Handle,
  scope: Scope,
  status: RefundStatus | null,
  page: PageOf,
): Promise<Page<RefundRequest>> {
  let query = db.selectFrom('refund_requests').selectAll();
  if (status !== null) query = query.where('status', '=', status);
  const columns = isOne(scope) && status === null ? ['number'] : ['created_at', 'id'];
  const order = status === 'requested' ? 'asc' : 'desc';
  const rows = await paged(scoped(query, scope), page, columns, order).execute();
  return pageFrom(rows as RefundRequest[], page.limit, columns);
}

type OfCheckout = { merchant_id: string; checkout_id: string };
const unique = (values: string[]) => [...new Set(values)];

/** The last decline of each payment, by checkout and number. */
export async function listDeclines(
  db: Handle,
  scope: Scope,
  rows: OfCheckout[],
): Promise<Map<string, string>> {
  if (rows.length === 0) return new Map();
  const declines = await scoped(
    db.selectFrom('collections').select(['checkout_id', 'instalment', 'decline_reason']),
    scope,
  )
    .where('checkout_id', 'in', unique(rows.map(({ checkout_id }) => checkout_id)))
    .where('merchant_id', 'in', unique(rows.map(({ merchant_id }) => merchant_id)))
    .where('decline_reason', 'is not', null)
    .orderBy('number')
    .execute();
  return new Map(
    declines.map((one) => [`${one.checkout_id}:${one.instalment}`, one.decline_reason as string]),
  );
}

export type Collected = { collected: number; outstanding: number };

/** What was collected of checkouts and what is still to be, by their ids. */
export async function listCollected(
  db: Handle,
  scope: Scope,
  rows: OfCheckout[],
): Promise<Map<string, Collected>> {
  if (rows.length === 0) return new Map();
  const sums = await scoped(
    db
      .selectFrom('instalments')
      .select((select) => [
        'checkout_id',
        select.fn
          .sum<number>(sql`case when status = 'collected' then amount - reduced else 0 end`)
          .as('collected'),
        select.fn
          .sum<number>(
            sql`case when status in ('authorised', 'scheduled', 'overdue') then amount - reduced else 0 end`,
          )
          .as('outstanding'),
      ]),
    scope,
  )
    .where('checkout_id', 'in', unique(rows.map(({ checkout_id }) => checkout_id)))
    .where('merchant_id', 'in', unique(rows.map(({ merchant_id }) => merchant_id)))
    .groupBy('checkout_id')
    .execute();
  return new Map(
    sums.map(({ checkout_id, collected, outstanding }) => [
      checkout_id,
      { collected: Number(collected), outstanding: Number(outstanding) },
    ]),
  );
}

export type MerchantName = { name: string; locale: string };

/** The names and locales of merchants, by their ids. */
export async function listMerchantNames(
  db: Handle,
  scope: Scope,
  ids: string[],
): Promise<Map<string, MerchantName>> {
  if (ids.length === 0) return new Map();
  const rows = await scoped(
    db
      .selectFrom('merchants')
      .innerJoin('territories', 'territories.code', 'merchants.territory')
      .select(['merchants.id', 'merchants.name', 'territories.locale']),
    scope,
    'merchants.id',
  )
    .where('merchants.id', 'in', unique(ids))
    .execute();
  return new Map(rows.map(({ id, name, locale }) => [id, { name, locale }]));
}
