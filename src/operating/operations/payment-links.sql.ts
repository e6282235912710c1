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

export function listOrdersOf(
  db: Handle,
  { merchant_id, id }: Pick<PaymentLink, 'merchant_id' | 'id'>,
  limit: number,
) {
  return db
    .selectFrom('checkouts')
    .select([
      'id',
      'client_reference_id',
      'status',
      'amount',
      'customer',
      'created_at',
      'completed_at',
    ])
    .where('merchant_id', '=', merchant_id)
    .where('payment_link_id', '=', id)
    .orderBy('number', 'desc')
    .limit(limit)
    .execute();
}
