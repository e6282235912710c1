import { sql } from 'kysely';
import { recentDays } from '#operating/search/overview.sql.ts';
import { isOne, type Scope, scoped } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { firstIdAt } from '#platform/shared/uuid.ts';
import type { Callback, CallbackStatus } from '#purchases/callbacks/callback.ts';
import type { CheckoutStatus } from '#purchases/checkouts/checkout.ts';
import type { Dispute, DisputeStatus } from '#purchases/disputes/dispute.ts';
import type { Instalment, InstalmentStatus } from '#purchases/instalments/instalment.ts';
import type { RefundPart, RefundRequest, RefundStatus } from '#purchases/refunds/refund.ts';

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

/** `from` and `until` are instants; the second is not included. */
export type CheckoutFilter = {
  status?: CheckoutStatus | undefined;
  from?: Timestamp | undefined;
  until?: Timestamp | undefined;
};

/**
 * The newest checkouts first. Of one merchant the times are those on its clock. Of several they are
 * the real times, which the ids begin with.
 */
export async function pageCheckouts(
  db: Handle,
  scope: Scope,
  filter: CheckoutFilter,
  page: PageOf,
): Promise<Page<CheckoutRow>> {
  const columns = isOne(scope) ? ['number'] : ['id', 'merchant_id'];
  const { status, from, until } = filter;
  let query = db
    .selectFrom('checkouts')
    .select(['merchant_id', 'id', 'id as checkout_id', 'number']);
  if (status !== undefined) query = query.where('status', '=', status);
  // The predicate of the index by status.
  if (status !== undefined && status !== 'received')
    query = query.where('status', '<>', 'received');
  if (isOne(scope)) {
    const [merchant_id = ''] = (scope as { merchant_ids: string[] }).merchant_ids;
    const at = (time: Timestamp) => findNumberAt(db, merchant_id, time);
    if (from !== undefined) query = query.where('number', '>=', await at(from));
    if (until !== undefined) query = query.where('number', '<', await at(until));
  } else {
    if (from !== undefined)
      query = query.where('id', '>=', firstIdAt(Temporal.Instant.from(from).epochMilliseconds));
    if (until !== undefined)
      query = query.where('id', '<', firstIdAt(Temporal.Instant.from(until).epochMilliseconds));
  }
  const rows = await paged(scoped(query, scope), page, columns, 'desc').execute();
  return pageFrom(rows as CheckoutRow[], page.limit, columns);
}

/**
 * The number of a merchant's first checkout from a time on. Times ascend with the numbers, which
 * have no gaps, so this halves the range some twenty times instead of needing an index.
 */
async function findNumberAt(db: Handle, merchant_id: string, time: Timestamp): Promise<number> {
  const { rows } = await sql<{ number: number }>`
    with recursive range (low, high) as (
      select 1::bigint, total + 1 from list_totals
      where merchant_id = ${merchant_id} and list = 'checkouts'
      union all
      select case when c.created_at < ${time}::timestamptz then c.number + 1 else r.low end,
        case when c.created_at < ${time}::timestamptz then r.high else c.number end
      from range r
      join checkouts c on c.merchant_id = ${merchant_id} and c.number = (r.low + r.high) / 2
      where r.low < r.high
    )
    select low as number from range where low >= high`.execute(db);
  return rows[0]?.number ?? 1;
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
  host: string | null,
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
  if (host !== null) query = query.where('callbacks.host', '=', host);
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

/** A status; or `review`: requested and not approved; or `approved`: past its review, not begun. */
export type RefundView = RefundStatus | 'review' | 'approved';

/** Refunds that wait for review or have not begun, the oldest first. All others the newest first. */
export async function pageRefunds(
  db: Handle,
  scope: Scope,
  view: RefundView | null,
  page: PageOf,
): Promise<Page<RefundRequest>> {
  const isRequested = view === 'requested' || view === 'review' || view === 'approved';
  const status = isRequested ? 'requested' : view;
  let query = db.selectFrom('refund_requests').selectAll();
  if (status !== null) query = query.where('status', '=', status);
  if (view === 'review') query = query.where('approved_at', 'is', null);
  if (view === 'approved') query = query.where('approved_at', 'is not', null);
  const columns = isOne(scope) && status === null ? ['number'] : ['created_at', 'id'];
  const order = isRequested ? 'asc' : 'desc';
  const rows = await paged(scoped(query, scope), page, columns, order).execute();
  return pageFrom(rows as RefundRequest[], page.limit, columns);
}

/** The newest disputes first. */
export async function pageDisputes(
  db: Handle,
  scope: Scope,
  status: DisputeStatus | null,
  page: PageOf,
): Promise<Page<Dispute>> {
  let query = db.selectFrom('disputes').selectAll();
  if (status !== null) query = query.where('status', '=', status);
  const columns = ['created_at', 'id'];
  const rows = await paged(scoped(query, scope), page, columns, 'desc').execute();
  return pageFrom(rows as Dispute[], page.limit, columns);
}

/** Disputes by their ids, of those that the scope contains. */
export async function listDisputesById(
  db: Handle,
  scope: Scope,
  ids: string[],
): Promise<Dispute[]> {
  return await scoped(db.selectFrom('disputes').selectAll(), scope)
    .where('id', 'in', ids)
    .execute();
}

/** Refunds by their ids, of those that the scope contains. */
export async function listRefundsById(
  db: Handle,
  scope: Scope,
  ids: string[],
): Promise<RefundRequest[]> {
  if (ids.length === 0) return [];
  return await scoped(db.selectFrom('refund_requests').selectAll(), scope)
    .where('id', 'in', ids)
    .execute();
}

/** Refunded of sold in the last days that a merchant has sums of. Absent if nothing was sold. */
export async function listRefundRates(
  db: Handle,
  scope: Scope,
  rows: { merchant_id: string }[],
): Promise<Map<string, number>> {
  const sums = await listRecentSums(
    db,
    scope,
    rows.map(({ merchant_id }) => merchant_id),
  );
  return new Map(
    [...sums].flatMap(([id, { sold, refunded }]) => (sold > 0 ? [[id, refunded / sold]] : [])),
  );
}

export type RecentSums = { sold: number; collected: number; refunded: number };

/** Sums of the last days of merchants, by merchant, back from the newest day of each. */
export async function listRecentSums(
  db: Handle,
  scope: Scope,
  merchant_ids: string[],
): Promise<Map<string, RecentSums>> {
  if (merchant_ids.length === 0) return new Map();
  // The last rows of each merchant, not the days until today: a sandbox merchant's clock may be
  // months ahead of the real one.
  const newest = scoped(
    db
      .selectFrom('merchant_days')
      .select(['merchant_id', (select) => select.fn.max('day').as('day')]),
    scope,
  )
    .where('merchant_id', 'in', unique(merchant_ids))
    .groupBy('merchant_id');
  const rows = await scoped(
    db
      .with('newest', () => newest)
      .selectFrom('merchant_days as d')
      .innerJoin('newest as n', 'n.merchant_id', 'd.merchant_id')
      .select((select) => [
        'd.merchant_id',
        select.fn.sum<number>('d.sold').as('sold'),
        select.fn.sum<number>('d.collected').as('collected'),
        select.fn.sum<number>('d.refunded').as('refunded'),
      ]),
    scope,
    'd.merchant_id',
  )
    .where('d.merchant_id', 'in', unique(merchant_ids))
    .where(sql<boolean>`d.day > n.day - ${recentDays}::integer`)
    .groupBy('d.merchant_id')
    .execute();
  return new Map(
    rows.map(({ merchant_id, sold, collected, refunded }) => [
      merchant_id,
      { sold: Number(sold), collected: Number(collected), refunded: Number(refunded) },
    ]),
  );
}

type OfCheckout = { merchant_id: string; checkout_id: string };
const unique = (values: string[]) => [...new Set(values)];

export type Decline = { reason: string; may_retry: boolean | null; settled_at: Timestamp | null };

/** The last decline of each payment, by checkout and number. */
export async function listDeclines(
  db: Handle,
  scope: Scope,
  rows: OfCheckout[],
): Promise<Map<string, Decline>> {
  if (rows.length === 0) return new Map();
  const declines = await scoped(
    db
      .selectFrom('collections')
      .select(['checkout_id', 'instalment', 'decline_reason', 'may_retry', 'settled_at']),
    scope,
  )
    .where('checkout_id', 'in', unique(rows.map(({ checkout_id }) => checkout_id)))
    .where('merchant_id', 'in', unique(rows.map(({ merchant_id }) => merchant_id)))
    .where('decline_reason', 'is not', null)
    .orderBy('number')
    .execute();
  return new Map(
    declines.map(({ checkout_id, instalment, decline_reason, may_retry, settled_at }) => [
      `${checkout_id}:${instalment}`,
      { reason: decline_reason as string, may_retry, settled_at },
    ]),
  );
}

export type Collected = { collected: number; outstanding: number };

/** The amounts of checkouts that were collected and that are still to be, by their ids. */
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

/** The checkouts of rows that have a stored card. */
export async function listWithCard(
  db: Handle,
  scope: Scope,
  rows: OfCheckout[],
): Promise<Set<string>> {
  if (rows.length === 0) return new Set();
  const cards = await scoped(db.selectFrom('stored_cards').select('checkout_id'), scope)
    .where('checkout_id', 'in', unique(rows.map(({ checkout_id }) => checkout_id)))
    .where('merchant_id', 'in', unique(rows.map(({ merchant_id }) => merchant_id)))
    .execute();
  return new Set(cards.map(({ checkout_id }) => checkout_id));
}

export type Pause = 'dispute' | 'difference';

/**
 * The reasons that pause the plans of these checkouts, besides a refund and the shopper, by
 * checkout.
 */
export async function listPauses(
  db: Handle,
  scope: Scope,
  rows: OfCheckout[],
): Promise<Map<string, Pause>> {
  if (rows.length === 0) return new Map();
  const checkouts = unique(rows.map(({ checkout_id }) => checkout_id));
  const merchants = unique(rows.map(({ merchant_id }) => merchant_id));
  const blocks = await scoped(db.selectFrom('gateway_blocks').select('checkout_id'), scope)
    .where('checkout_id', 'in', checkouts)
    .where('merchant_id', 'in', merchants)
    .where('cleared_at', 'is', null)
    .execute();
  const disputes = await scoped(db.selectFrom('disputes').select('checkout_id'), scope)
    .where('checkout_id', 'in', checkouts)
    .where('merchant_id', 'in', merchants)
    .where('is_pausing', '=', true)
    .execute();
  return new Map([
    ...blocks.map(({ checkout_id }) => [checkout_id, 'difference'] as const),
    ...disputes.map(({ checkout_id }) => [checkout_id, 'dispute'] as const),
  ]);
}

export type RefundSources = {
  instalments: Instalment[];
  parts: RefundPart[];
  /** The payment that is being collected. */
  open: number | null;
};

/** The payments that refunds of these checkouts are taken from, by checkout. */
export async function listRefundSources(
  db: Handle,
  scope: Scope,
  rows: OfCheckout[],
): Promise<Map<string, RefundSources>> {
  const sources = new Map<string, RefundSources>();
  if (rows.length === 0) return sources;
  const checkout_ids = unique(rows.map(({ checkout_id }) => checkout_id));
  const merchant_ids = unique(rows.map(({ merchant_id }) => merchant_id));
  for (const id of checkout_ids) sources.set(id, { instalments: [], parts: [], open: null });
  const instalments = await scoped(db.selectFrom('instalments').selectAll(), scope)
    .where('checkout_id', 'in', checkout_ids)
    .where('merchant_id', 'in', merchant_ids)
    .orderBy('number')
    .execute();
  for (const one of instalments) sources.get(one.checkout_id)?.instalments.push(one);
  const parts = await scoped(db.selectFrom('refund_parts').selectAll(), scope)
    .where('checkout_id', 'in', checkout_ids)
    .where('merchant_id', 'in', merchant_ids)
    .orderBy('round')
    .orderBy('number')
    .execute();
  for (const one of parts) sources.get(one.checkout_id)?.parts.push(one);
  const open = await scoped(
    db.selectFrom('collections').select(['checkout_id', 'instalment']),
    scope,
  )
    .where('checkout_id', 'in', checkout_ids)
    .where('merchant_id', 'in', merchant_ids)
    .where('status', '=', 'open')
    .execute();
  for (const { checkout_id, instalment } of open) {
    const source = sources.get(checkout_id);
    if (source) source.open = instalment;
  }
  return sources;
}

export type MerchantName = {
  name: string;
  locale: string;
  time_zone: string;
  payment_min: number;
  clock_ahead_ms: number;
  four_eyes_above: number | null;
};

/** The names, locales, zones and clocks of merchants, by their ids. */
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
      .select([
        'merchants.id',
        'merchants.name',
        'merchants.clock_ahead_ms',
        'merchants.four_eyes_above',
        'territories.locale',
        'territories.time_zone',
        'territories.payment_min',
      ]),
    scope,
    'merchants.id',
  )
    .where('merchants.id', 'in', unique(ids))
    .execute();
  return new Map(rows.map(({ id, ...merchant }) => [id, merchant]));
}
