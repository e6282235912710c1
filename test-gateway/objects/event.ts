import type Stripe from 'stripe';
import type { Kept } from '../store.ts';
import { type Made, newId } from './made.ts';

/** The few of Stripe's event types that the gateway models. */
export const eventTypes = [
  'charge.dispute.created',
  'charge.dispute.updated',
  'charge.dispute.closed',
  'charge.dispute.funds_withdrawn',
  'charge.dispute.funds_reinstated',
] as const;
export type EventType = (typeof eventTypes)[number];

/** An event as Stripe's `EventBase` declares it. */
export type EventObject = Omit<Stripe.EventBase, 'type' | 'data'> & {
  type: EventType;
  data: { object: Stripe.Dispute };
};

export function makeEvent(
  { merchant, now }: Made,
  given: { type: EventType; object: Stripe.Dispute; hasWebhook: boolean },
): Kept<'event'> {
  return {
    object: {
      id: newId('evt'),
      object: 'event',
      api_version: null,
      created: now,
      data: { object: given.object },
      livemode: false,
      pending_webhooks: given.hasWebhook ? 1 : 0,
      request: null,
      type: given.type,
    },
    hidden: {},
    merchant,
  };
}
