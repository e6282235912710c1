import Type, { type TSchema } from 'typebox';
import type { EventName } from './callback.ts';

const example = {
  status: 'successful',
  amount: 150000,
  currency: 'ZAR',
  client_reference_id: 'order-1001',
  number_of_payments: 3,
};

/** The body that is sent to a merchant's `notify_url`. */
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

/** The members that a merchant may answer with. Others are ignored. */
export const CallbackAnswer = Type.Object(
  {
    redirect_url: Type.Optional(
      Type.String({
        maxLength: 2048,
        description:
          'Absolute http or https URL. The shopper’s browser is sent there instead of `success_url` or `cancel_url`. An empty or malformed URL is ignored.',
      }),
    ),
  },
  {
    title: 'CallbackAnswer',
    description: 'Optional. The body may be empty.',
    examples: [{ redirect_url: 'https://shop.example/orders/1001/thank-you' }],
  },
);

/**
 * The body of an event: the object that changed, how many times it has changed, and its new state.
 */
export const eventBody = (event: {
  name: EventName;
  title: string;
  resource: TSchema;
  example: unknown;
  id: string;
}) =>
  Type.Object(
    {
      event: Type.Literal(event.name),
      id: Type.String({
        format: 'uuid',
        description: 'Names the event. Every attempt to deliver it carries the same value.',
      }),
      sequence: Type.Integer({
        minimum: 1,
        description: 'Counts the events about this object, beginning with 1.',
      }),
      created_at: Type.String({ format: 'date-time', description: 'When the object changed.' }),
      merchant_id: Type.String({ format: 'uuid', description: 'The merchant that it belongs to.' }),
      data: event.resource,
    },
    {
      title: event.title,
      description: 'An object changed.',
      examples: [
        {
          event: event.name,
          id: event.id,
          sequence: 1,
          created_at: '2026-11-17T10:40:12.904Z',
          merchant_id: '0199a8e0-11f2-7c3d-8b4e-2f1a0b9c8d77',
          data: event.example,
        },
      ],
    },
  );
