import { isOne, type Scope, scoped } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { PaymentLink } from '#purchases/payment-links/payment-link.ts';
import { type Page, type PageOf, readRange } from './range.sql.ts';

/** The newest links first: ids ascend with time. */
export async function listPaymentLinksPage(
  db: Handle,
  scope: Scope,
  page: PageOf,
): Promise<Page<PaymentLink>> {
  const query = scoped(db.selectFrom('payment_links').selectAll(), scope);
  return await readRange(query, page, [isOne(scope) ? 'number' : 'id'], 'desc');
}

export async function findPaymentLinkWithin(
  db: Handle,
  scope: Scope,
  id: string,
): Promise<PaymentLink | null> {
  const query = scoped(db.selectFrom('payment_links').selectAll(), scope).where('id', '=', id);
  return (await query.executeTakeFirst()) ?? null;
}

/** This many of a link's newest orders are searched for those that were paid. */
const ordersSortedMax = 1_000;

/**
 * The newest orders of a link. Those that were paid come first, so that shoppers who only open the
 * link do not push them off the page.
 */
export function listOrdersOf(
  db: Handle,
  { merchant_id, id }: Pick<PaymentLink, 'merchant_id' | 'id'>,
  limit: number,
) {
  return db
    .selectFrom((from) =>
      from
        .selectFrom('checkouts')
        .select([
          ...(['id', 'number', 'client_reference_id', 'status', 'amount'] as const),
          ...(['customer', 'created_at', 'completed_at'] as const),
        ])
        .where('merchant_id', '=', merchant_id)
        .where('payment_link_id', '=', id)
        .orderBy('number', 'desc')
        .limit(ordersSortedMax)
        .as('newest'),
    )
    .selectAll()
    .orderBy((of) => of('status', '=', 'successful'), 'desc')
    .orderBy('number', 'desc')
    .limit(limit)
    .execute();
}
