import type Type from 'typebox';
import {
  managedMerchantFilter,
  managedMerchantOfRow,
} from '#merchants/integrations/merchant-api.ts';
import type { Operation } from '#platform/http/openapi.ts';
import { describeEvent } from '#purchases/callbacks/callback.openapi.ts';
import { exampleCheckout } from '#purchases/checkouts/checkout.openapi.ts';
import { unknownCheckout } from './create-refund.ts';
import { IntermediaryCreateRefundBody, RefundResource } from './refund.schema.ts';

const exampleRefund: Type.Static<typeof RefundResource> = {
  id: '0199b3d0-64e8-7a1b-9c2f-8d7e6f5a4b31',
  type: 'refund_requests',
  attributes: {
    amount: 50000,
    currency: 'ZAR',
    status: 'requested',
    created_at: '2026-11-17T10:40:12.904Z',
    checkout_id: exampleCheckout.id,
  },
};

export const createRefundOperation: Operation = {
  operationId: 'createRefund',
  tag: 'Refunds',
  summary: 'Request a refund',
  description: `Requests a refund of all or part of a \`successful\` checkout. Several partial refunds may be requested, as long as they add up to no more than the checkout's amount.

Refunds are open for 100 days: the purchase date is day 0, day 100 is the last. An integration with automatic refunds cannot refund on the day of purchase; it can from 10:00 local time on the next day.

Read its status with [Get one refund request](#getRefund), or get every change as [an event](#refundUpdated).`,
  answer: {
    description: 'The refund was requested.',
    example: { data: exampleRefund },
  },
  refusals: {
    404: {
      description: 'No checkout with that `checkout_id` is yours.',
      details: { unknown_checkout: unknownCheckout().message },
    },
    422: {
      description:
        'The refund is too late or too early, exceeds what is left, the checkout was not paid, a field is not valid, or the `Idempotency-Key` was used with another body.',
      details: {
        too_late: 'Orders can only be refunded within 100 days of the purchase date.',
        day_of_purchase: "Order can't be refunded on the day of purchase.",
        remainder: 'Refund amount exceeds the refundable remainder of 100000 cents.',
        disputed:
          'The shopper disputes 50000 cents of this checkout with the bank. Until that is decided, at most 100000 cents can be refunded.',
        not_successful: 'Only successful checkouts can be refunded.',
        field: 'Validation failed: amount must be an integer.',
        idempotency_key:
          'Validation failed: the Idempotency-Key was already used with another request.',
      },
    },
  },
  intermediary: { body: IntermediaryCreateRefundBody },
};

export const getRefundOperation: Operation = {
  operationId: 'getRefund',
  tag: 'Refunds',
  summary: 'Get one refund request',
  description:
    'The status of a refund request. A `failed` one has a `reason`: the refund was declined after review, the gateway refused it, or the card network returned the money.',
  answer: {
    description: 'The refund request.',
    example: {
      data: { ...exampleRefund, attributes: { ...exampleRefund.attributes, status: 'complete' } },
    },
  },
  refusals: {
    404: {
      description: 'No refund request with that ID is yours.',
      details: { not_found: 'There is no refund request with that ID.' },
    },
  },
  intermediary: managedMerchantOfRow,
};

export const listRefundsOperation: Operation = {
  operationId: 'listRefunds',
  tag: 'Refunds',
  summary: 'List refund requests',
  description: 'The newest first. To read all pages, follow `links.next` until it is null.',
  answer: {
    description: 'One page of refund requests. A page past the end is empty.',
    example: {
      data: [exampleRefund],
      links: {
        first: 'https://pay.example/api/refunds?page%5Bnumber%5D=1&page%5Bitems%5D=10',
        last: 'https://pay.example/api/refunds?page%5Bnumber%5D=1&page%5Bitems%5D=10',
        prev: null,
        next: null,
      },
    },
  },
  intermediary: managedMerchantFilter,
};

export const refundUpdated = describeEvent({
  name: 'refund.updated',
  operationId: 'refundUpdated',
  title: 'RefundEvent',
  summary: 'A refund request changed',
  description:
    'Sent when a refund request of one of your checkouts is created, by you or by the operator, and whenever its status changes.',
  resource: RefundResource,
  example: exampleRefund,
});
