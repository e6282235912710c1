import { sql } from 'kysely';
import type { EventKind } from '#merchants/integrations/integration.ts';
import type { Handle } from '#platform/database/database.ts';

type Receiver = { integration_id: string; merchant_id: string; notify_url: string };

/**
 * The integration that created a checkout, with the URL for its events: its `events_url`, or else
 * the checkout's notify_url, unless that is a v1 receiver, which accepts only forms. Returns null
 * if the integration did not ask for this kind of event, is revoked or no longer acts for the
 * merchant, or if there is no such URL. The checkout of a payment link may have no notify_url.
 */
export async function findCheckoutReceiver(
  db: Handle,
  kind: EventKind,
  { merchant_id, checkout_id }: { merchant_id: string; checkout_id: string },
): Promise<Receiver | null> {
  const { rows } = await sql<Receiver>`
    select i.id as integration_id, c.merchant_id, coalesce(i.events_url, c.notify_url) as notify_url
    from checkouts c join integrations i on i.id = c.integration_id
    where c.merchant_id = ${merchant_id} and c.id = ${checkout_id}
      and i.revoked_at is null and ${kind} = any(i.events)
      and (i.merchant_id = c.merchant_id or exists (
        select from managed_merchants m
        where m.integration_id = i.id and m.merchant_id = c.merchant_id))
      and (i.events_url is not null or (c.notify_url is not null and c.sealed_verify is null))`.execute(
    db,
  );
  return rows[0] ?? null;
}

/**
 * An integration without an `events_url` gets the events of payouts at the notify_url of its newest
 * order. Only this many of the merchant's newest orders are searched.
 */
const recentOrders = 100;

/**
 * The notify_url of each integration's newest order among the merchant's recent ones, leaving out
 * orders without a notify_url or with a v1 receiver.
 */
export async function listNewestAddresses(
  db: Handle,
  of: { integration_id: string; merchant_id: string }[],
): Promise<Receiver[]> {
  const { rows } = await sql<Receiver>`
    select distinct on (c.merchant_id, c.integration_id)
      c.merchant_id, c.integration_id, c.notify_url
    from list_totals t join checkouts c on c.merchant_id = t.merchant_id
    where t.list = 'checkouts' and c.number > t.total - ${recentOrders}
      and t.merchant_id = any(${of.map(({ merchant_id }) => merchant_id)}::uuid[])
      and c.integration_id = any(${of.map(({ integration_id }) => integration_id)}::uuid[])
      and c.sealed_verify is null and c.notify_url is not null
    order by c.merchant_id, c.integration_id, c.number desc`.execute(db);
  return rows;
}
