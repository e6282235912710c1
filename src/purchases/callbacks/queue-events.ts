import { type EventReceiver, listEventReceivers } from '#merchants/integrations/integration.sql.ts';
import type { EventKind } from '#merchants/integrations/integration.ts';
import type { Merchant } from '#merchants/merchant.ts';
import type { Handle } from '#platform/database/database.ts';
import { timestamp } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';
import { insertCallbacks, listSequences } from './callback.sql.ts';
import { eventNames, eventPayload, newCallback, undelivered } from './callback.ts';
import { findCheckoutReceiver, listNewestAddresses } from './event-receiver.sql.ts';

/** An object that changed, as the API presents it. */
type Changed = { merchant: Merchant; data: { id: string } };

type Deps = { random: Random };

/** The integration that gets an event, and the URL for it. */
type Receiver = { integration_id: string; merchant_id: string; notify_url: string };

/**
 * Writes the event of a refund or a dispute for the integration that created the checkout. The
 * transaction that makes the change writes the event, so that none is lost and none is made twice.
 * It holds the checkout's lock, which gives the changes their order. Reads nothing if no
 * integration of the merchant asked for events.
 */
export async function queueCheckoutEvent(
  deps: Deps,
  db: Handle,
  kind: Exclude<EventKind, 'payouts'>,
  changed: Changed & { checkout_id: string },
): Promise<void> {
  const { merchant, checkout_id } = changed;
  if (!merchant.has_events) return;
  const receiver = await findCheckoutReceiver(db, kind, { merchant_id: merchant.id, checkout_id });
  if (receiver) await write(deps, db, kind, [{ ...changed, receiver }]);
}

/** Writes an event for each payout and each integration of its merchant that asked for payouts. */
export async function queuePayoutEvents(deps: Deps, db: Handle, payouts: Changed[]): Promise<void> {
  const told = payouts.filter(({ merchant }) => merchant.has_events);
  if (told.length === 0) return;
  const merchant_ids = [...new Set(told.map(({ merchant }) => merchant.id))];
  const receivers = await withAddresses(db, await listEventReceivers(db, 'payouts', merchant_ids));
  const events = told.flatMap((changed) =>
    receivers
      .filter(({ merchant_id }) => merchant_id === changed.merchant.id)
      .map((receiver) => ({ ...changed, checkout_id: null, receiver })),
  );
  for (let from = 0; from < events.length; from += rowsMax) {
    await write(deps, db, 'payouts', events.slice(from, from + rowsMax));
  }
}

/** One INSERT writes at most this many rows: PostgreSQL allows 65,535 parameters. */
const rowsMax = 1_000;

/**
 * The URL for each integration: its own, or that of the newest order that it sent for the merchant.
 * An integration without either is left out.
 */
async function withAddresses(db: Handle, found: EventReceiver[]): Promise<Receiver[]> {
  const without = found.filter(({ events_url }) => events_url === null);
  const newest = without.length === 0 ? [] : await listNewestAddresses(db, without);
  return found.flatMap(({ integration_id, merchant_id, events_url }) => {
    const isOwn = (one: Receiver) =>
      one.merchant_id === merchant_id && one.integration_id === integration_id;
    const notify_url = events_url ?? newest.find(isOwn)?.notify_url;
    return notify_url === undefined ? [] : [{ integration_id, merchant_id, notify_url }];
  });
}

async function write(
  deps: Deps,
  db: Handle,
  kind: EventKind,
  events: (Changed & { checkout_id: string | null; receiver: Receiver })[],
): Promise<void> {
  if (events.length === 0) return;
  const unique = (ids: string[]) => [...new Set(ids)];
  const earlier = await listSequences(
    db,
    unique(events.map(({ merchant }) => merchant.id)),
    unique(events.map(({ data }) => data.id)),
  );
  const keyOf = (integration_id: string, subject_id: string | null) =>
    `${integration_id} ${subject_id}`;
  const last = new Map(
    earlier.map((one) => [keyOf(one.integration_id, one.subject_id), one.sequence]),
  );
  const rows = events.map(({ merchant, data, checkout_id, receiver }) => {
    const { integration_id, notify_url } = receiver;
    const at = timestamp(merchant.now());
    const callback = newCallback({
      ...undelivered,
      merchant_id: merchant.id,
      id: deps.random.uuid(),
      checkout_id,
      integration_id,
      notify_url,
      payload: Buffer.alloc(0),
      sealed_verify: null,
      event: eventNames[kind],
      subject_id: data.id,
      sequence: (last.get(keyOf(integration_id, data.id)) ?? 0) + 1,
      created_at: at,
      // No shopper waits for an event, so a worker delivers it.
      due_at: at,
    });
    return { ...callback, payload: eventPayload(callback, data) };
  });
  await insertCallbacks(db, rows);
}
