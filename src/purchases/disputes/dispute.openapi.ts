import { describeEvent } from '#purchases/callbacks/callback.openapi.ts';
import { exampleCheckout } from '#purchases/checkouts/checkout.openapi.ts';
import { DisputeResource } from './dispute.schema.ts';

export const disputeUpdated = describeEvent({
  name: 'dispute.updated',
  operationId: 'disputeUpdated',
  title: 'DisputeEvent',
  summary: 'A dispute changed',
  description:
    'Sent when a cardholder disputes a payment of one of your checkouts, and whenever the status, the amount or the deadline changes. Whatever you can prove about the order, such as its delivery, helps the operator to answer in time.',
  resource: DisputeResource,
  example: {
    id: '0199c1a7-90d3-7e42-b5f6-7a8b9c0d1e2f',
    type: 'disputes',
    attributes: {
      amount: 50_000,
      currency: 'ZAR',
      status: 'needs_response',
      reason: 'product_not_received',
      created_at: '2026-12-02T06:15:40.118Z',
      checkout_id: exampleCheckout.id,
      respond_by: '2026-12-12T21:59:59.000Z',
    },
  },
});
