import { sql } from 'kysely';
import { isOne, type Scope, scoped } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type {
  CardDecline,
  Instalment,
  InstalmentStatus,
} from '#purchases/instalments/instalment.ts';
import { type OfCheckout, unique } from './owner.sql.ts';
import { type Page, type PageOf, readRange } from './range.sql.ts';

/**
 * Lists overdue payments, the longest overdue first, and all others by checkout, the newest first.
 */
export async function listInstalmentsPage(
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
    // No index has a merchant's payments of these statuses in the order of their checkouts. With
    // this join the database can read the merchant's checkouts in order from an index.
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

export type Decline = CardDecline & {
  decline_reason: NonNullable<CardDecline['decline_reason']>;
};

/** The declines of these checkouts' payments, ordered by the number of the attempt. */
export async function listDeclines(
  db: Handle,
  scope: Scope,
  rows: OfCheckout[],
): Promise<Decline[]> {
  if (rows.length === 0) return [];
  const declines = await scoped(
    db
      .selectFrom('collections')
      .select(['checkout_id', 'instalment', 'card_ref', 'card_key', 'created_at'])
      .select(['decline_reason', 'decline_code', 'may_retry', 'wait_hours', 'settled_at']),
    scope,
  )
    .where('checkout_id', 'in', unique(rows.map(({ checkout_id }) => checkout_id)))
    .where('merchant_id', 'in', unique(rows.map(({ merchant_id }) => merchant_id)))
    .where('decline_reason', 'is not', null)
    .orderBy('number')
    .execute();
  return declines as Decline[];
}

export async function listCards(
  db: Handle,
  scope: Scope,
  rows: OfCheckout[],
): Promise<Map<string, Pick<CardDecline, 'checkout_id' | 'card_ref' | 'card_key'>>> {
  if (rows.length === 0) return new Map();
  const cards = await scoped(
    db.selectFrom('stored_cards').select(['checkout_id', 'card_ref', 'card_key']),
    scope,
  )
    .where('checkout_id', 'in', unique(rows.map(({ checkout_id }) => checkout_id)))
    .where('merchant_id', 'in', unique(rows.map(({ merchant_id }) => merchant_id)))
    .execute();
  return new Map(cards.map((card) => [card.checkout_id, card]));
}

export type Pause = 'dispute' | 'difference';

/**
 * Why the plans of these checkouts are paused, by checkout, apart from refunds and attempts by the
 * shopper.
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

/**
 * These payments, if they are in the scope. An id consists of the checkout's id and the payment's
 * number.
 */
export async function listInstalmentsWithin(
  db: Handle,
  scope: Scope,
  ids: string[],
): Promise<{ id: string; merchant_id: string }[]> {
  const pairs = ids.map((id) => id.split(':') as [string, string]);
  const rows = await scoped(
    db.selectFrom('instalments').select(['merchant_id', 'checkout_id', 'number']),
    scope,
  )
    .where(
      sql<boolean>`(checkout_id, number) in (select * from unnest(
        ${pairs.map(([checkout]) => checkout)}::uuid[], ${pairs.map(([, number]) => Number(number))}::int[]))`,
    )
    .execute();
  return rows.map(({ merchant_id, checkout_id, number }) => ({
    id: `${checkout_id}:${number}`,
    merchant_id,
  }));
}
