import Type from 'typebox';
import type { Sealing } from '#platform/shared/sealing.ts';
import { members, url } from '#purchases/checkouts/checkout.schema.ts';
import { linkUrls } from '#purchases/checkouts/link-token.ts';
import type { ReadLink } from './payment-link.ts';
import {
  expiryDaysMax,
  linkMailsPerDayMax,
  type PaymentLinkStatus,
  paymentLinkStatuses,
} from './payment-link.ts';

/** The members that the console and the API share. */
export const linkMembers = {
  amount: Type.Optional(
    Type.Integer({
      description:
        'Amount in cents, inside one band of the merchant config `rules`. Required, unless the link is reusable: without it each shopper types the amount.',
    }),
  ),
  currency: members.currency,
  client_reference_id: Type.String({
    minLength: 1,
    maxLength: 255,
    description:
      'Your identifier for the order. Each checkout of a reusable link adds a number to it: `till-1` becomes `till-1-1`, `till-1-2` and so on.',
  }),
  /** If absent, the shopper types an e-mail address. */
  customer: Type.Optional(members.customer),
  expires_at: Type.Optional(
    Type.String({
      format: 'date-time',
      description: `When the link expires, at most ${expiryDaysMax} days from now. Without it a link expires after ${expiryDaysMax} days, and a reusable one never does.`,
    }),
  ),
  reusable: Type.Optional(
    Type.Boolean({
      description: 'One link for many checkouts, for example a code at a till. False if absent.',
    }),
  ),
};

const apiMembers = {
  ...linkMembers,
  mail: Type.Optional(
    Type.Boolean({
      description: `Whether we send the link to \`customer.email\`, in your language and with your name. We send at most ${linkMailsPerDayMax} links per merchant in 24 hours. False if absent.`,
    }),
  ),
  notify_url: Type.Optional(
    url(
      'Public HTTPS endpoint that receives the signed callbacks of its checkouts. Without it there are no callbacks: see in the console, or with GET, who has paid.',
    ),
  ),
  success_url: Type.Optional(
    url(
      'Browser destination after successful payment. Without it the shopper stays on the payment page, which is their receipt.',
    ),
  ),
  cancel_url: Type.Optional(
    url(
      'Browser destination when the shopper cancels. Without it the shopper returns to the page of the link.',
    ),
  ),
};

const example = {
  amount: 150000,
  currency: 'ZAR',
  client_reference_id: 'order-1001',
  customer: { email: 'thandi@example.com' },
  notify_url: 'https://shop.example/tranche/callback',
  success_url: 'https://shop.example/orders/1001/paid',
  cancel_url: 'https://shop.example/cart',
};

export const CreateLinkBody = Type.Object(apiMembers, {
  title: 'PaymentLinkCreateRequest',
  examples: [example],
});
export type CreateLinkBody = Type.Static<typeof CreateLinkBody>;

/** An intermediary names the merchant in the signed body (decision 0020). */
export const IntermediaryCreateLinkBody = Type.Object(
  {
    merchant_id: Type.String({
      format: 'uuid',
      description: 'The managed merchant that the link is for.',
    }),
    ...apiMembers,
  },
  {
    title: 'PaymentLinkCreateRequest',
    examples: [{ merchant_id: '0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11', ...example }],
  },
);

export const LinkParams = Type.Object({
  id: Type.String({
    format: 'uuid',
    description: 'The payment link ID.',
    examples: ['0199c6a1-20b7-7d4e-9f3a-6b5c4d3e2f10'],
  }),
});

const orNull = <Schema extends Type.TSchema>(schema: Schema, description: string) =>
  Type.Union([schema, Type.Null()], { description });

export const LinkResource = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'Payment link ID.' }),
    type: Type.Literal('payment_links'),
    attributes: Type.Object({
      url: Type.String({ format: 'uri', description: 'The address that shoppers open.' }),
      qr_svg_url: Type.String({
        format: 'uri',
        description: 'The same address as a QR code, in an SVG image.',
      }),
      status: Type.Enum([...paymentLinkStatuses], {
        type: 'string',
        description:
          '`active` while a shopper can open it, then `paid`, `cancelled` or `expired`. A reusable link is never `paid`.',
      }),
      amount: orNull(Type.Integer(), 'Amount in cents; null if each shopper types it.'),
      currency: Type.String({ description: 'ISO 4217 code.' }),
      client_reference_id: Type.String({ description: 'As sent on creation.' }),
      reusable: Type.Boolean({ description: 'Whether it makes many checkouts.' }),
      created_at: Type.String({ format: 'date-time', description: 'Creation time.' }),
      expires_at: orNull(
        Type.String({ format: 'date-time' }),
        'When it expires; null if it never does.',
      ),
      checkout_id: orNull(
        Type.String({ format: 'uuid' }),
        'Its newest checkout; null until a shopper presses the button on the link’s page.',
      ),
    }),
  },
  { title: 'PaymentLink', description: 'A link or QR code that a shopper opens to pay.' },
);

export type PresentedLink = Pick<
  ReadLink,
  | 'merchant_id'
  | 'id'
  | 'amount'
  | 'currency'
  | 'client_reference_id'
  | 'reusable'
  | 'created_at'
  | 'expires_at'
  | 'checkout_id'
> & { status: PaymentLinkStatus };

export const linkResource = (
  deps: { baseUrl: string; sealing: Sealing },
  link: PresentedLink,
): Type.Static<typeof LinkResource> => ({
  id: link.id,
  type: 'payment_links',
  // The response schema of the route picks the attributes.
  attributes: { ...link, ...linkUrls(deps, link) },
});
