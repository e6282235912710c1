import { isOne, type Scope, scoped } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Instalment } from '#purchases/instalments/instalment.ts';
import type { RefundPart, RefundRequest, RefundStatus } from '#purchases/refunds/refund.ts';
import { listRecentSums, type OfCheckout, unique } from './owner.sql.ts';
import { findNumberAt, type Page, type PageOf, readRange, type Span } from './range.sql.ts';

/** A status; `review` (requested and not approved); or `approved` (approved and not begun). */
export type RefundView = RefundStatus | 'review' | 'approved';

/** The views of refunds that have not begun show the oldest first, all others the newest first. */
export async function listRefundsPage(
  db: Handle,
  scope: Scope,
  { view, from, until }: Span & { view: RefundView | null },
  page: PageOf,
): Promise<Page<RefundRequest>> {
  const isRequested = view === 'requested' || view === 'review' || view === 'approved';
  const status = isRequested ? 'requested' : view;
  let query = db.selectFrom('refund_requests').selectAll();
  if (status !== null) query = query.where('status', '=', status);
  if (view === 'review') query = query.where('approved_at', 'is', null);
  if (view === 'approved') query = query.where('approved_at', 'is not', null);
  const byNumber = isOne(scope) && status === null;
  if (byNumber) {
    const [merchant_id = ''] = scope.merchant_ids;
    const at = (time: Timestamp) => findNumberAt(db, 'refund_requests', merchant_id, time);
    if (from !== undefined) query = query.where('number', '>=', await at(from));
    if (until !== undefined) query = query.where('number', '<', await at(until));
  } else {
    if (from !== undefined) query = query.where('created_at', '>=', from);
    if (until !== undefined) query = query.where('created_at', '<', until);
  }
  const columns = byNumber ? ['number'] : ['created_at', 'id'];
  return await readRange(scoped(query, scope), page, columns, isRequested ? 'asc' : 'desc');
}

/** Refunds by their ids, if they are in the scope. */
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

/**
 * Refunds as a share of sales, in a merchant's last `recentDays`. Merchants that sold nothing are
 * left out.
 */
export async function listRefundRates(
  db: Handle,
  scope: Scope,
  rows: { merchant_id: string }[],
  now: Timestamp,
): Promise<Map<string, number>> {
  const sums = await listRecentSums(
    db,
    scope,
    rows.map(({ merchant_id }) => merchant_id),
    now,
  );
  return new Map(
    [...sums].flatMap(([id, { sold, refunded }]) => (sold > 0 ? [[id, refunded / sold]] : [])),
  );
}

type RefundSources = {
  instalments: Instalment[];
  /** The amounts that were refunded to the card or are in flight there, by payment. */
  returned: Map<number, number>;
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
  for (const id of checkout_ids)
    sources.set(id, { instalments: [], returned: new Map(), open: null });
  const instalments = await scoped(db.selectFrom('instalments').selectAll(), scope)
    .where('checkout_id', 'in', checkout_ids)
    .where('merchant_id', 'in', merchant_ids)
    .orderBy('number')
    .execute();
  for (const one of instalments) sources.get(one.checkout_id)?.instalments.push(one);
  const returned = await scoped(
    db
      .selectFrom('refund_parts')
      .select((select) => [
        'checkout_id',
        'instalment',
        select.fn.sum<number>('amount').as('amount'),
      ]),
    scope,
  )
    .where('checkout_id', 'in', checkout_ids)
    .where('merchant_id', 'in', merchant_ids)
    .where('kind', '=', 'card')
    .where('status', '<>', 'failed')
    .groupBy(['checkout_id', 'instalment'])
    .execute();
  for (const { checkout_id, instalment, amount } of returned) {
    sources.get(checkout_id)?.returned.set(instalment, Number(amount));
  }
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

/** The parts of these refunds, ordered by refund, round and number. */
export async function listPartsOf(
  db: Handle,
  refunds: { merchant_id: string; id: string }[],
): Promise<RefundPart[]> {
  if (refunds.length === 0) return [];
  const of = (name: 'merchant_id' | 'id') => unique(refunds.map((refund) => refund[name]));
  return await db
    .selectFrom('refund_parts')
    .selectAll()
    .where('merchant_id', 'in', of('merchant_id'))
    .where('refund_id', 'in', of('id'))
    .orderBy('refund_id')
    .orderBy('round')
    .orderBy('number')
    .execute();
}
