import type { Insertable } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import { advanceListTotal } from '#platform/database/merchant-lists.sql.ts';
import type { Tables } from '#platform/database/tables.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { CheckoutStatus } from '#purchases/checkouts/checkout.ts';
import type { PaymentLink, ReadLink } from './payment-link.ts';

type Key = { merchant_id: string; id: string };

export type NewLink = Omit<
  Insertable<Tables['payment_links']>,
  'number' | 'created_at' | 'cancelled_at' | 'checkouts' | 'checkout_id'
>;

/** Inserts a link at the end of its merchant's list. */
export async function insertLink(db: Handle, link: NewLink, now: Timestamp): Promise<PaymentLink> {
  const { total, last_created_at } = await advanceListTotal(
    db,
    link.merchant_id,
    'payment_links',
    1,
    now,
  );
  return await db
    .insertInto('payment_links')
    .values({
      ...link,
      number: total,
      created_at: last_created_at,
      cancelled_at: null,
      checkout_id: null,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
}

const selectLink = (db: Handle, { merchant_id, id }: Key) =>
  db
    .selectFrom('payment_links')
    .selectAll()
    .where('id', '=', id)
    .where('merchant_id', '=', merchant_id);

export async function findLink(db: Handle, merchant_id: string, id: string) {
  const link = await selectLink(db, { merchant_id, id }).executeTakeFirst();
  return link ? ((await withCheckouts(db, [link]))[0] as ReadLink) : null;
}

/** The link that a person's request made, or null. */
export async function findRequestedLink(
  db: Handle,
  merchant_id: string,
  request_id: string,
): Promise<PaymentLink | null> {
  const query = db.selectFrom('payment_links').selectAll().where('merchant_id', '=', merchant_id);
  return (await query.where('request_id', '=', request_id).executeTakeFirst()) ?? null;
}

export async function listLinks(
  db: Handle,
  merchant_id: string,
  ids: string[],
): Promise<Map<string, ReadLink>> {
  if (ids.length === 0) return new Map();
  const rows = await db
    .selectFrom('payment_links')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('id', 'in', ids)
    .execute();
  return new Map((await withCheckouts(db, rows)).map((link) => [link.id, link]));
}

/** Locks a link, so that opening it and ending it wait for each other. */
export async function lockLink(db: Handle, key: Key): Promise<PaymentLink | null> {
  return (await selectLink(db, key).forNoKeyUpdate().executeTakeFirst()) ?? null;
}

/** Adds to links the statuses of their newest checkouts, in one statement. */
export async function withCheckouts(db: Handle, links: PaymentLink[]): Promise<ReadLink[]> {
  const made = links.filter(({ checkout_id }) => checkout_id !== null);
  const of = (name: 'merchant_id' | 'checkout_id') => [...new Set(made.map((one) => one[name]))];
  const rows =
    made.length === 0
      ? []
      : await db
          .selectFrom('checkouts')
          .select(['id', 'status'])
          .where('id', 'in', of('checkout_id') as string[])
          .where('merchant_id', 'in', of('merchant_id') as string[])
          .execute();
  const statuses = new Map<string, CheckoutStatus>(rows.map(({ id, status }) => [id, status]));
  return links.map((link) => ({
    ...link,
    checkout_status: statuses.get(link.checkout_id ?? '') ?? null,
  }));
}

/** Moves a link, which the caller has locked, to another checkout. */
export async function moveLinkCheckout(
  db: Handle,
  { merchant_id, id }: Key,
  to: { checkout_id: string; checkouts?: number },
): Promise<void> {
  await db
    .updateTable('payment_links')
    .set(to)
    .where('id', '=', id)
    .where('merchant_id', '=', merchant_id)
    .execute();
}

export async function moveLinkCancelled(
  db: Handle,
  { merchant_id, id }: Key,
  cancelled_at: Timestamp,
): Promise<void> {
  await db
    .updateTable('payment_links')
    .set({ cancelled_at })
    .where('id', '=', id)
    .where('merchant_id', '=', merchant_id)
    .where('cancelled_at', 'is', null)
    .execute();
}
