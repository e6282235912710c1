import type Type from 'typebox';
import {
  managedMerchantFilter,
  managedMerchantOfRow,
} from '#merchants/integrations/merchant-api.ts';
import { exampleMerchant } from '#merchants/merchant.openapi.ts';
import { describeBands } from '#merchants/merchant.ts';
import { notManaged } from '#merchants/not-managed.ts';
import type { Operation } from '#platform/http/openapi.ts';
import { type CheckoutResource, IntermediaryCreateCheckoutBody } from './checkout.schema.ts';
import { paymentUrlMinutes } from './checkout.ts';

export const exampleCheckout: Type.Static<typeof CheckoutResource> = {
  id: '0199a8f2-31b4-7c05-8e6d-5f0a9b3c7e24',
  type: 'checkouts',
  attributes: {
    amount: 150000,
    currency: 'ZAR',
    status: 'successful',
    created_at: '2026-11-15T08:00:00.000Z',
    client_reference_id: 'order-1001',
    number_of_payments: 3,
    expires_at: '2026-11-15T08:30:00.000Z',
  },
};

const newerCheckout: typeof exampleCheckout = {
  id: '0199a8f9-9b27-7e3a-b4d1-0c8e7f6a5b42',
  type: 'checkouts',
  attributes: {
    amount: 45990,
    currency: 'ZAR',
    status: 'received',
    created_at: '2026-11-15T08:08:05.415Z',
    client_reference_id: 'order-1002',
    number_of_payments: null,
    expires_at: '2026-11-15T08:38:05.415Z',
  },
};

export const createCheckoutOperation: Operation = {
  operationId: 'createCheckout',
  tag: 'Checkouts',
  summary: 'Create a checkout',
  description: `Creates a checkout and answers with its ID and its \`payment_url\`. Send the shopper's browser to that address: it can be opened for ${paymentUrlMinutes} minutes, after which a new checkout is needed.

Keep the ID with your order: status lookups and refunds need it, and the callback does not carry it.

\`line_items\` need not add up to \`amount\` (shipping, discounts). Members that are not listed here are ignored.`,
  answer: {
    description: 'The checkout was created; its status is `received`.',
    example: {
      data: {
        id: exampleCheckout.id,
        payment_url: 'https://pay.example/pay/Zk3v0mQ7xT2nLr8sWb5cYd1fHg6jKp9u',
      },
    },
  },
  refusals: {
    422: {
      description:
        'The amount lies outside the bands of the merchant config, the currency is not the territory’s, a field is not valid, or the `Idempotency-Key` was used with another body. One error object per bad field.',
      details: {
        amount: `Validation failed: Amount has to be ${describeBands(exampleMerchant.attributes.rules)}.`,
        currency:
          'Validation failed: checkout.currency must match merchant territory currency (ZAR).',
        field: 'Validation failed: checkout.customer.email must be an e-mail address.',
        phone_number:
          'Validation failed: checkout.customer.phone_number must match ^[+0-9][0-9.()/-]{7,25}$.',
        idempotency_key:
          'Validation failed: the Idempotency-Key was already used with another request.',
      },
    },
  },
  intermediary: {
    body: IntermediaryCreateCheckoutBody,
    refusals: {
      404: {
        description: 'The merchant is not managed by this integration.',
        details: { not_managed: notManaged().message },
      },
      422: {
        description: '`checkout.merchant_id` is required.',
        details: { merchant_id: 'Validation failed: checkout.merchant_id is required.' },
      },
    },
  },
};

export const getCheckoutOperation: Operation = {
  operationId: 'getCheckout',
  tag: 'Checkouts',
  summary: 'Get one checkout',
  description:
    'For targeted reconciliation, for example of an order that is still waiting for its callback after an hour. Not for polling in bulk.',
  answer: { description: 'The checkout.', example: { data: exampleCheckout } },
  refusals: {
    404: {
      description: 'No checkout with that ID is yours.',
      details: { not_found: 'There is no checkout with that ID.' },
    },
  },
  intermediary: managedMerchantOfRow,
};

export const listCheckoutsOperation: Operation = {
  operationId: 'listCheckouts',
  tag: 'Checkouts',
  summary: 'List checkouts',
  description: 'The newest first. To read all pages, follow `links.next` until it is null.',
  answer: {
    description: 'One page of checkouts. A page past the end is empty.',
    example: {
      data: [newerCheckout, exampleCheckout],
      links: {
        first: 'https://pay.example/api/checkouts?page%5Bnumber%5D=1&page%5Bitems%5D=2',
        last: 'https://pay.example/api/checkouts?page%5Bnumber%5D=7&page%5Bitems%5D=2',
        prev: null,
        next: 'https://pay.example/api/checkouts?page%5Bnumber%5D=2&page%5Bitems%5D=2',
      },
    },
  },
  intermediary: managedMerchantFilter,
};
