import type { Static, TSchema } from 'typebox';
import { exampleSigningKey, type Webhook, type WebhookHeader } from '#platform/http/openapi.ts';
import { firstExample } from '#platform/http/openapi-components.ts';
import { callbackHeaders } from '#purchases/callbacks/delivery/callback-headers.ts';
import { CallbackAnswer, CallbackBody, eventBody } from './callback.schema.ts';
import type { EventName } from './callback.ts';

const exampleId = '0199a8f4-0d3b-7b90-a1c2-6e5d4c3b2a10';
const exampleSeconds = '1795000000';

/** The headers that v1's form and v2's JSON have in common. */
export const formHeaderDescriptions: WebhookHeader[] = [
  {
    name: 'X-Callback-Id',
    description: 'Names the callback. Every attempt to deliver it carries the same value.',
    schema: { type: 'string', format: 'uuid' },
    example: exampleId,
  },
  {
    name: 'X-Callback-Attempt',
    description: 'The number of this attempt, beginning with 1.',
    schema: { type: 'integer', minimum: 1 },
    example: 1,
  },
  {
    name: 'User-Agent',
    description: 'The program that sends callbacks.',
    schema: { type: 'string' },
    example: 'Tranche-Callback/1',
  },
];

/** The headers of a signed callback, with the signature of the example body. */
function headersFor(body: TSchema): WebhookHeader[] {
  const signed = callbackHeaders({
    id: exampleId,
    payload: Buffer.from(JSON.stringify(firstExample(body))),
    number: 1,
    key: exampleSigningKey,
    now: Temporal.Instant.fromEpochMilliseconds(1000 * Number(exampleSeconds)),
  });
  return [
    ...formHeaderDescriptions,
    {
      name: 'webhook-id',
      description: 'The same as X-Callback-Id, under its name in Standard Webhooks.',
      schema: { type: 'string', format: 'uuid' },
      example: exampleId,
    },
    {
      name: 'webhook-timestamp',
      description:
        'When this attempt was signed, in seconds since 1970. Refuse an old one to be safe from replays.',
      schema: { type: 'string', pattern: '^[0-9]+$' },
      example: exampleSeconds,
    },
    {
      name: 'webhook-signature',
      description:
        'The signature of Standard Webhooks: `v1,` and Base64( HMAC-SHA256( signing key, webhook-id + "." + webhook-timestamp + "." + raw body ) ).',
      schema: { type: 'string', pattern: '^v1,[A-Za-z0-9+/]{43}=$' },
      example: signed['webhook-signature'] ?? '',
    },
  ];
}

export const paymentResult: Webhook = {
  name: 'paymentResult',
  operationId: 'paymentResult',
  tag: 'Callback',
  summary: 'Payment result',
  description: `Sent as one POST to the checkout's \`notify_url\` when it becomes \`successful\` or \`cancelled\`. A declined card and an abandoned page send nothing.

Verify \`X-Signature\` over the raw bytes of the body, with a constant-time comparison, before you act on it.

Delivery is at least once: a second callback with the same \`client_reference_id\` and \`status\` is the same event. Answer well under 10 seconds with any 2xx status. Every other answer, and no answer, leads to a retry: up to 18, about 10 minutes apart. A \`Retry-After\` on a 429 or 503 may postpone the next retry. Redirects are not followed.

The first delivery happens while the shopper waits on the payment page. If it is answered with a \`redirect_url\`, the browser goes there; later deliveries cannot change that. If it fails, the browser goes to \`success_url\` or \`cancel_url\`.`,
  headers: headersFor(CallbackBody),
  body: CallbackBody,
  answer: { description: 'Delivered.', schema: CallbackAnswer },
};

/** Describes the event about an object that the API presents. */
export function describeEvent<const Resource extends TSchema>(event: {
  name: EventName;
  operationId: string;
  title: string;
  summary: string;
  /** When it is sent, and to which receiver. */
  description: string;
  resource: Resource;
  example: Static<Resource>;
}): Webhook {
  const { name, operationId, title, summary, description, resource, example } = event;
  const body = eventBody({ name, title, resource, example, id: exampleId });
  return {
    name: operationId,
    operationId,
    tag: 'Events',
    summary,
    description: `${description}

Sent only to an integration that asked for it: the operator enables it. It goes to the integration's address for events, or without one to the \`notify_url\` of the checkout; the event of a payout to that of your newest order.

Verify \`X-Signature\` over the raw bytes of the body before you act on it. Delivery is at least once: an \`id\` that you have seen is the same event again. Events may overtake each other: \`sequence\` counts the changes of one object, so one with a lower number than you have seen is older. Answer any 2xx well under 10 seconds; every other answer leads to retries, as with a payment's result.`,
    headers: headersFor(body),
    body,
    answer: { description: 'Delivered. The body is ignored.' },
  };
}
