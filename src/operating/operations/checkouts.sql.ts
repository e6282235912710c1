import { sql } from 'kysely';
import { isOne, type Scope, scoped } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { firstIdAt } from '#platform/shared/uuid.ts';
import type { CheckoutStatus } from '#purchases/checkouts/checkout.ts';
import { type OfCheckout, unique } from './owner.sql.ts';
import { findNumberAt, type Page, type PageOf, readRange, type Span } from './range.sql.ts';

export type CheckoutRow = { merchant_id: string; id: string; checkout_id: string; number: number };

export type CheckoutFilter = Span & {
  status?: CheckoutStatus | undefined;
  amount?: number | undefined;
  gateway?: string | undefined;
  /** Lists only these checkouts. */
  ids?: string[] | undefined;
};

/**
 * The newest checkouts first, or with an amount over several merchants, one merchant after another.
 * For one merchant, `from` and `until` are on the merchant's clock. For several, they are real
 * times and are compared with the ids, which begin with a real time.
 */
export async function listCheckoutsPage(
  db: Handle,
  scope: Scope,
  filter: CheckoutFilter,
  page: PageOf,
): Promise<Page<CheckoutRow>> {
  const { status, from, until, amount, gateway, ids } = filter;
  // The index by amount is sorted by merchant first.
  const ofAll = amount === undefined ? ['id', 'merchant_id'] : ['merchant_id', 'number'];
  const columns = isOne(scope) ? ['number'] : ofAll;
  let query = db
    .selectFrom('checkouts')
    .select(['merchant_id', 'id', 'id as checkout_id', 'number']);
  if (status !== undefined) query = query.where('status', '=', status);
  // Repeats the predicate of the partial index by status, so that the planner can use it.
  if (status !== undefined && status !== 'received')
    query = query.where('status', '<>', 'received');
  if (amount !== undefined)
    query = query.where('status', '<>', 'received').where('amount', '=', amount);
  if (gateway !== undefined)
    query = query.where('status', '<>', 'received').where(sql<boolean>`gateway = ${gateway}`);
  if (ids !== undefined) query = query.where(sql<boolean>`id = any(${ids}::uuid[])`);
  if (isOne(scope)) {
    const [merchant_id = ''] = (scope as { merchant_ids: string[] }).merchant_ids;
    const at = (time: Timestamp) => findNumberAt(db, 'checkouts', merchant_id, time);
    if (from !== undefined) query = query.where('number', '>=', await at(from));
    if (until !== undefined) query = query.where('number', '<', await at(until));
  } else {
    if (from !== undefined)
      query = query.where('id', '>=', firstIdAt(Temporal.Instant.from(from).epochMilliseconds));
    if (until !== undefined)
      query = query.where('id', '<', firstIdAt(Temporal.Instant.from(until).epochMilliseconds));
  }
  return await readRange(scoped(query, scope), page, columns, 'desc');
}

export type Collected = { collected: number; outstanding: number };

/** The amounts that were collected, and those still to be collected, by the id of the checkout. */
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
