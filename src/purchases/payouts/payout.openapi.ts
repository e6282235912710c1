import type Type from 'typebox';
import {
  managedMerchantFilter,
  managedMerchantOfRow,
} from '#merchants/integrations/merchant-api.ts';
import type { Operation } from '#platform/http/openapi.ts';
import { describeEvent } from '#purchases/callbacks/callback.openapi.ts';
import { exampleCheckout } from '#purchases/checkouts/checkout.openapi.ts';
import { PayoutResource } from './payout.schema.ts';

const examplePayout: Type.Static<typeof PayoutResource> = {
  id: '0199c2d4-5b1e-7f60-8a9c-3e2d1c0b9a88',
  type: 'payouts',
  attributes: {
    reference: 'TR20261117-12',
    business_date: '2026-11-17',
    amount: 140_862,
    currency: 'ZAR',
    status: 'paid',
    number_of_lines: 1,
    created_at: '2026-11-17T02:00:03.114Z',
    paid_at: '2026-11-17T09:30:00.000Z',
    bank_reference: 'FT26321K7',
  },
};

const linksTo = (path: string) => ({
  first: `https://pay.example${path}`,
  last: `https://pay.example${path}`,
  prev: null,
  next: null,
});

export const getPayoutOperation: Operation = {
  operationId: 'getPayout',
  tag: 'Payouts',
  summary: 'Get one payout',
  description:
    'A payout with one page of its lines: 1,000, or as many as `page[items]` asks for. Its amount, reference and lines never change. To read all lines, follow `links.next` until it is null.',
  answer: {
    description: 'The payout.',
    example: {
      data: {
        ...examplePayout,
        attributes: {
          ...examplePayout.attributes,
          lines: [
            {
              kind: 'sale',
              checkout_id: exampleCheckout.id,
              client_reference_id: 'order-1001',
              gross: 150_000,
              fee: 7_946,
              vat: 1_192,
              net: 140_862,
              at: '2026-11-16T00:00:01.482Z',
            },
          ],
        },
      },
      links: linksTo(
        '/api/payouts/0199c2d4-5b1e-7f60-8a9c-3e2d1c0b9a88?page%5Bnumber%5D=1&page%5Bitems%5D=1000',
      ),
    },
  },
  refusals: {
    404: {
      description: 'No payout with that ID is yours.',
      details: { not_found: 'There is no payout with that ID.' },
    },
  },
  intermediary: managedMerchantOfRow,
};

export const listPayoutsOperation: Operation = {
  operationId: 'listPayouts',
  tag: 'Payouts',
  summary: 'List payouts',
  description:
    'The newest first, without their lines. To read all pages, follow `links.next` until it is null.',
  answer: {
    description: 'One page of payouts. A page past the end is empty.',
    example: {
      data: [examplePayout],
      links: linksTo('/api/payouts?page%5Bnumber%5D=1&page%5Bitems%5D=10'),
    },
  },
  intermediary: managedMerchantFilter,
};

export const payoutUpdated = describeEvent({
  name: 'payout.updated',
  operationId: 'payoutUpdated',
  title: 'PayoutEvent',
  summary: 'A payout changed',
  description:
    'Sent when a payout is made and whenever its status changes. Its lines are not in the body: [Get one payout](#getPayout) has them.',
  resource: PayoutResource,
  example: examplePayout,
});
