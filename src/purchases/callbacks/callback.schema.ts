import Type from 'typebox';

const example = {
  status: 'successful',
  amount: 150000,
  currency: 'ZAR',
  client_reference_id: 'order-1001',
  number_of_payments: 3,
};

/** The body that a merchant's `notify_url` receives. */
export const CallbackBody = Type.Object(
  {
    status: Type.Enum(['successful', 'cancelled'], {
      type: 'string',
      description: 'How the checkout ended. There is no `failed`.',
    }),
    amount: Type.Integer({ description: 'Full payable amount in cents, as sent on creation.' }),
    currency: Type.String({ description: 'ISO 4217 code, as sent on creation.' }),
    client_reference_id: Type.String({ description: "Merchant's reference, echoed verbatim." }),
    number_of_payments: Type.Integer({
      minimum: 1,
      description: 'Instalment term that the shopper chose; 1 is once-off.',
    }),
  },
  { title: 'Callback', description: 'The outcome of a checkout.', examples: [example] },
);

/** The members that a merchant may answer. Others are ignored. */
export const CallbackAnswer = Type.Object(
  {
    redirect_url: Type.Optional(
      Type.String({
        maxLength: 2048,
        description:
          'Absolute http or https URL. The shopper’s browser is sent there instead of `success_url` or `cancel_url`. Empty or malformed: ignored.',
      }),
    ),
  },
  {
    title: 'CallbackAnswer',
    description: 'Optional. The body may be empty.',
    examples: [{ redirect_url: 'https://shop.example/orders/1001/thank-you' }],
  },
);
