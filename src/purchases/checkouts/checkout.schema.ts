import Type from 'typebox';
import { Integer } from '#platform/http/validation.ts';
import { type Checkout, checkoutStatuses, paymentUrlMinutes } from './checkout.ts';

const example = {
  checkout: {
    amount: 150000,
    currency: 'ZAR',
    client_reference_id: 'order-1001',
    notify_url: 'https://shop.example/tranche/callback',
    success_url: 'https://shop.example/orders/1001/paid',
    cancel_url: 'https://shop.example/cart',
    customer: { email: 'thandi@example.com', first_name: 'Thandi', phone_number: '+27821234567' },
    line_items: [{ name: 'Hiking boots', amount: 150000, quantity: 1 }],
  },
};

export const lineItemsMax = 500;

export const url = (description: string) =>
  Type.String({ format: 'uri', maxLength: 2048, description });

const CustomerSchema = Type.Object(
  {
    email: Type.String({ format: 'email', description: 'Shopper e-mail address.' }),
    first_name: Type.Optional(Type.String({ maxLength: 255, description: 'First name.' })),
    last_name: Type.Optional(Type.String({ maxLength: 255, description: 'Last name.' })),
    phone_number: Type.Optional(
      Type.String({
        pattern: '^[+0-9][0-9.()/-]{7,25}$',
        description: 'Phone number, without spaces.',
      }),
    ),
    billing_address: Type.Optional(Type.String({ maxLength: 2000, description: 'Free text.' })),
  },
  { title: 'Customer', description: 'The shopper.' },
);

const LineItemSchema = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 1000, description: 'Display name.' }),
    amount: Integer({
      minimum: Number.MIN_SAFE_INTEGER,
      description: 'Unit price in cents. A discount is a line with a negative amount.',
    }),
    quantity: Integer({ minimum: 1, description: 'Number of units.' }),
  },
  { title: 'LineItem', description: 'One line of the cart.' },
);

/** The members of a new checkout. A payment link takes most of them. */
export const members = {
  // There is no `minimum`, because an amount outside the bands is refused with a text that names
  // the bands.
  amount: Type.Integer({
    description:
      'Total payable amount in cents. Must fall inside one band of the merchant config `rules`.',
  }),
  currency: Type.String({
    description: 'ISO 4217 code; must equal the merchant territory currency (`ZAR`).',
  }),
  client_reference_id: Type.String({
    minLength: 1,
    maxLength: 255,
    description: "Merchant's identifier for the order; echoed verbatim in the callback.",
  }),
  notify_url: url('Public HTTPS endpoint that receives the signed callback.'),
  success_url: url('Browser destination after successful payment.'),
  cancel_url: url('Browser destination when the shopper cancels.'),
  customer: CustomerSchema,
  line_items: Type.Optional(
    Type.Array(LineItemSchema, {
      maxItems: lineItemsMax,
      description: 'Cart contents shown on the payment summary.',
    }),
  ),
};

export const CreateCheckoutBody = Type.Object(
  { checkout: Type.Object(members, { description: 'Wrapper for all fields.' }) },
  { title: 'CheckoutCreateRequest', examples: [example] },
);

/** An intermediary names the merchant in the signed body (decision 0020). */
export const IntermediaryCreateCheckoutBody = Type.Object(
  {
    checkout: Type.Object(
      {
        merchant_id: Type.String({
          format: 'uuid',
          description: 'The managed merchant that the checkout is for.',
        }),
        ...members,
      },
      { description: 'Wrapper for all fields.' },
    ),
  },
  {
    title: 'CheckoutCreateRequest',
    examples: [
      {
        checkout: { merchant_id: '0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11', ...example.checkout },
      },
    ],
  },
);

export type CreateCheckoutBody = Type.Static<typeof CreateCheckoutBody>;

export const CreatedCheckout = Type.Object({
  data: Type.Object(
    {
      id: Type.String({
        format: 'uuid',
        description: 'Checkout ID. Keep it: the callback does not carry it.',
      }),
      payment_url: Type.String({
        format: 'uri',
        description: `Hosted payment page. Can be opened for ${paymentUrlMinutes} minutes.`,
      }),
    },
    { title: 'CreatedCheckout', description: 'A checkout that was just created.' },
  ),
});

export const CheckoutParams = Type.Object({
  id: Type.String({
    format: 'uuid',
    description: 'The checkout ID.',
    examples: ['0199a8f2-31b4-7c05-8e6d-5f0a9b3c7e24'],
  }),
});

export const CheckoutResource = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'Checkout ID.' }),
    type: Type.Literal('checkouts'),
    attributes: Type.Object({
      amount: Type.Integer({ description: 'Amount in cents.' }),
      currency: Type.String({ description: 'ISO 4217 code.' }),
      status: Type.Enum([...checkoutStatuses], {
        type: 'string',
        description: 'Status of the checkout.',
      }),
      created_at: Type.String({ format: 'date-time', description: 'Creation time.' }),
      client_reference_id: Type.String({ description: 'As sent on creation.' }),
      number_of_payments: Type.Union([Type.Integer(), Type.Null()], {
        description: 'The instalment term that the shopper chose; null until then.',
      }),
      expires_at: Type.String({
        format: 'date-time',
        description: 'When the payment page expires.',
      }),
    }),
  },
  { title: 'Checkout', description: 'One order to be paid in instalments.' },
);

/** Presents a row with all its columns. The route's response schema picks the attributes. */
export const checkoutResource = (checkout: Checkout): Type.Static<typeof CheckoutResource> => ({
  id: checkout.id,
  type: 'checkouts',
  attributes: checkout,
});
