import Type, { type TSchema } from 'typebox';
import { CreateCheckoutBody } from '#purchases/checkouts/checkout.schema.ts';
import { tokenSeconds } from './legacy-credential.ts';
import { decimalPattern } from './translate-checkout.ts';

// v1's schemas, built from v2's: each field has the description and bounds of its v2 field.

export const LoginBody = Type.Object(
  {
    client_id: Type.String({ description: 'The client_id of your v1 credentials.' }),
    client_secret: Type.String({
      description: 'The client_secret of your v1 credentials, not your v2 client secret.',
    }),
    merchant_id: Type.String({
      description: 'The merchant that the token is for: your own, or one that you manage.',
    }),
  },
  {
    title: 'LoginRequest',
    examples: [
      {
        client_id: '0199a8f1-2a3b-7c4d-9e5f-6a7b8c9d0e1f',
        client_secret: 'v1s_sandbox_…',
        merchant_id: '0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11',
      },
    ],
  },
);
export type LoginBody = Type.Static<typeof LoginBody>;

export const LoginAnswer = Type.Object(
  {
    token: Type.String({ description: 'Send it in the Authorization header of the checkout.' }),
    token_type: Type.Literal('Bearer'),
    expires_in: Type.Literal(tokenSeconds, { description: 'Seconds.' }),
  },
  { title: 'Login', description: 'A token for one merchant.' },
);

const v2 = CreateCheckoutBody.properties.checkout.properties;
const v2Customer = v2.customer.properties;
const v2Item = v2.line_items.items.properties;
const referenceDescription = (v2.client_reference_id as { description?: string }).description;
const v2Items = v2.line_items as typeof v2.line_items & { maxItems: number; description: string };

/** A number, or a string of its decimal digits. */
const numeric = (schema: TSchema & { description?: string }) =>
  Type.Union([schema, Type.String({ pattern: decimalPattern.source })], {
    description: `${schema.description} As a number or in decimal digits.`,
  });

const dropped = () => Type.Optional(Type.Unknown({ description: 'Accepted and ignored.' }));

const LegacyItem = Type.Object(
  {
    description: v2Item.name,
    price: numeric(v2Item.amount),
    qty: numeric(v2Item.quantity),
  },
  { title: 'Item', description: 'One line of the cart.' },
);

export const LegacyCheckoutBody = Type.Object(
  {
    purchaseAmount: numeric(v2.amount),
    currency: v2.currency,
    merchant: Type.Object({
      notify_url: Type.String({
        ...v2.notify_url,
        description: 'Public HTTPS endpoint that receives the callback.',
      }),
      return_url: Type.String({
        ...v2.success_url,
        description: 'Browser destination after payment, and after cancelling.',
      }),
      merchantReference: dropped(),
      mode: dropped(),
    }),
    customer: Type.Object({
      name: v2Customer.first_name,
      lastName: v2Customer.last_name,
      emailAddress: v2Customer.email,
      telephoneNumber: v2Customer.phone_number,
      billingAddress: v2Customer.billing_address,
    }),
    purchase: Type.Object({
      order_id: Type.Union(
        [v2.client_reference_id, Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })],
        { description: `${referenceDescription} As a string or as a whole number.` },
      ),
      items: Type.Optional(
        Type.Union(
          [
            Type.String({ contentMediaType: 'application/json' }),
            Type.Array(LegacyItem, { maxItems: v2Items.maxItems }),
          ],
          { description: `${v2Items.description} An array, or its JSON text.` },
        ),
      ),
      purchaseDate: dropped(),
    }),
  },
  {
    title: 'PaymentCheckoutRequest',
    examples: [
      {
        purchaseAmount: 150000,
        currency: 'ZAR',
        merchant: {
          notify_url: 'https://shop.example/v1/callback',
          return_url: 'https://shop.example/orders/1001',
          merchantReference: 'shop-7',
          mode: 'live',
        },
        customer: {
          name: 'Thandi',
          lastName: 'Dlamini',
          emailAddress: 'thandi@example.com',
          telephoneNumber: '+27821234567',
        },
        purchase: {
          order_id: 'order-1001',
          items: '[{"description":"Hiking boots","price":150000,"qty":1}]',
          purchaseDate: '2026-11-15',
        },
      },
    ],
  },
);

export const LegacyCheckoutAnswer = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'Checkout ID, for v2 lookups and refunds.' }),
    payment_url: Type.String({ format: 'uri', description: 'Hosted payment page.' }),
    transaction_verify: Type.String({
      description: 'Keep it with the order. A genuine callback carries the same value.',
    }),
  },
  { title: 'PaymentCheckout', description: 'A checkout that was just created.' },
);

/** The callback that a v1 plugin receives at its `notify_url`. */
export const LegacyCallbackBody = Type.Object(
  {
    status: Type.Enum(['success', 'cancelled'], {
      type: 'string',
      description: 'How the checkout ended.',
    }),
    order_id: Type.String({ description: '`purchase.order_id`, echoed verbatim.' }),
    transaction_verify: Type.String({
      description: 'The value from the answer to `POST /payment/checkout`. Compare it.',
    }),
    number_of_payments: Type.String({
      pattern: '^[1-9][0-9]*$',
      description: 'Instalment term that the shopper chose; 1 is once-off.',
    }),
  },
  {
    title: 'LegacyCallback',
    description: 'The outcome of a checkout.',
    examples: [
      {
        status: 'success',
        order_id: 'order-1001',
        transaction_verify: 'q5mT0yXn3bVw8sKc1dRz7fHj2gLp6uAeWi9oQxYtBvE',
        number_of_payments: '3',
      },
    ],
  },
);

/** The members that the answer of a v1 plugin may have. Others are ignored. */
export const LegacyCallbackAnswer = Type.Object(
  {
    redirect: Type.Optional(
      Type.String({
        maxLength: 2048,
        description:
          'Absolute http or https URL. The shopper’s browser is sent there instead of `return_url`.',
      }),
    ),
  },
  {
    title: 'LegacyCallbackAnswer',
    description: 'Optional. The body may be empty.',
    examples: [{ redirect: 'https://shop.example/orders/1001/thank-you' }],
  },
);
