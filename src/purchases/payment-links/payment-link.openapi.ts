import type Type from 'typebox';
import {
  managedMerchantFilter,
  managedMerchantOfRow,
} from '#merchants/integrations/merchant-api.ts';
import { exampleMerchant } from '#merchants/merchant.openapi.ts';
import { describeBands } from '#merchants/merchant.ts';
import { notManaged } from '#merchants/not-managed.ts';
import type { Operation } from '#platform/http/openapi.ts';
import { IntermediaryCreateLinkBody, type LinkResource } from './payment-link.schema.ts';
import { expiryDaysMax } from './payment-link.ts';

const url = 'https://pay.example/link/Zk3v0mQ7xT2nLr8sWb5cYd1fHg6jKp9uEa4oRi7t';

const exampleLink: Type.Static<typeof LinkResource> = {
  id: '0199c6a1-20b7-7d4e-9f3a-6b5c4d3e2f10',
  type: 'payment_links',
  attributes: {
    url,
    qr_svg_url: `${url}/qr.svg`,
    status: 'active',
    amount: 150000,
    currency: 'ZAR',
    client_reference_id: 'order-1001',
    reusable: false,
    created_at: '2026-11-15T08:00:00.000Z',
    expires_at: '2026-12-15T08:00:00.000Z',
    checkout_id: null,
  },
};

export const createLinkOperation: Operation = {
  operationId: 'createPaymentLink',
  tag: 'Payment links',
  summary: 'Create a payment link',
  description: `Creates a link that you send or print as a QR code. A shopper who opens it and continues gets a checkout, as if you had created it: the same page, the same callback to \`notify_url\` if you give one, the same refunds.

A link is for one payment: shoppers who open it at the same time share one checkout, and the link is used up once that checkout is paid. A shopper who cancels can open it again. A \`reusable\` link makes a checkout for each shopper, with a reference of its own.

Without \`customer\` the shopper types an e-mail address; with it, \`mail: true\` sends the link there. Following the link creates nothing. The checkout begins when the shopper presses the button on its page.`,
  answer: { description: 'The link was created.', example: { data: exampleLink } },
  refusals: {
    422: {
      description:
        'The amount lies outside the bands of the merchant config, the currency is not the territory’s, the expiry is in the past or too far in the future, a field is not valid, or the `Idempotency-Key` was used with another body. One error object per bad field.',
      details: {
        amount: `Validation failed: Amount has to be ${describeBands(exampleMerchant.attributes.rules)}.`,
        currency: 'Validation failed: currency must match merchant territory currency (ZAR).',
        expiry_past: 'Validation failed: expires_at must be in the future.',
        expiry_far: `Validation failed: expires_at must be at most ${expiryDaysMax} days from now.`,
        reusable:
          'Validation failed: customer must be left out of a reusable link, which many shoppers open.',
        mail: 'Validation failed: mail needs the address of the shopper.',
        field: 'Validation failed: client_reference_id is required.',
        idempotency_key:
          'Validation failed: the Idempotency-Key was already used with another request.',
      },
    },
  },
  intermediary: {
    body: IntermediaryCreateLinkBody,
    refusals: {
      404: {
        description: 'The merchant is not managed by this integration.',
        details: { not_managed: notManaged().message },
      },
      422: {
        description: '`merchant_id` is required.',
        details: { merchant_id: 'Validation failed: merchant_id is required.' },
      },
    },
  },
};

export const getLinkOperation: Operation = {
  operationId: 'getPaymentLink',
  tag: 'Payment links',
  summary: 'Get one payment link',
  description:
    'Its status and its newest checkout. If the link has a `notify_url`, the callback tells you of a payment, and you need not poll.',
  answer: {
    description: 'The payment link.',
    example: {
      data: {
        ...exampleLink,
        attributes: {
          ...exampleLink.attributes,
          status: 'paid',
          checkout_id: '0199a8f2-31b4-7c05-8e6d-5f0a9b3c7e24',
        },
      },
    },
  },
  refusals: {
    404: {
      description: 'No payment link with that ID is yours.',
      details: { not_found: 'There is no payment link with that ID.' },
    },
  },
  intermediary: managedMerchantOfRow,
};

const linksTo = 'https://pay.example/api/payment-links?page%5Bnumber%5D=1&page%5Bitems%5D=10';

export const listLinksOperation: Operation = {
  operationId: 'listPaymentLinks',
  tag: 'Payment links',
  summary: 'List payment links',
  description: 'The newest first. To read all pages, follow `links.next` until it is null.',
  answer: {
    description: 'One page of payment links. A page past the end is empty.',
    example: {
      data: [exampleLink],
      links: { first: linksTo, last: linksTo, prev: null, next: null },
    },
  },
  intermediary: managedMerchantFilter,
};
