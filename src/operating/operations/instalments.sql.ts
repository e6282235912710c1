import { isOne, type Scope, scoped } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Instalment, InstalmentStatus } from '#purchases/instalments/instalment.ts';
import { type OfCheckout, unique } from './owner.sql.ts';
import { type Page, type PageOf, readRange } from './range.sql.ts';

/**
 * Lists overdue payments with the longest due first, and all others by checkout with the newest
 * first.
 */
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
    return await readRange(query, page, ['due_on', 'checkout_id', 'number'], 'asc');
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
    const columns = ['c.number', 'instalments.number'];
    return await readRange(merchant, page, columns, 'desc', ['checkout_number', 'number']);
  }
  return await readRange(query, page, ['checkout_id', 'number'], 'desc');
}

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
 * The reasons that pause the plans of these checkouts, by checkout. Refunds and attempts of the
 * shopper are not among them.
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
