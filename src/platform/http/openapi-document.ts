import assert from 'node:assert/strict';
import type { TSchema } from 'typebox';
import { Errors, RateLimitedBody } from './errors.schema.ts';
import {
  type ApiError,
  badRequest,
  notFound,
  presentErrors,
  rateLimitedText,
  unprocessable,
} from './errors.ts';
import {
  type Audience,
  type DescribedRoute,
  describeLimit,
  exampleSigningKey,
  type Json,
  type JsonObject,
  type OpenApiDocument,
  type Operation,
  type Refusal,
  signExample,
  type Webhook,
  type WebhookHeader,
} from './openapi.ts';
import {
  content,
  firstExample,
  hoist,
  quotaHeaders,
  requestId,
  sharedComponents,
  signatureDescription,
} from './openapi-components.ts';
import { endpointLimits } from './rate-limits.ts';
import { type SampleRequest, writeSamples } from './request-samples.ts';

/** The parts of a document besides its routes. */
type About = {
  audience: Audience;
  baseUrl: string;
  description: string;
  tags: { name: string; description: string }[];
  webhooks: Webhook[];
};

/** The schemas of a document, by name. `hoist` adds to them. */
type Schemas = { [name: string]: JsonObject };

/** The OpenAPI document of one audience: its routes, and the events that we send it. */
export function buildDocument(about: About, routes: DescribedRoute[]): OpenApiDocument {
  const schemas: Schemas = {};
  const errors = hoist(Errors, schemas);
  const rateLimited = hoist(RateLimitedBody, schemas);
  const paths: OpenApiDocument['paths'] = {};
  for (const route of routes) {
    const [method = '', path = ''] = route.endpoint.split(' ');
    const described = describeOperation(about, route, { schemas, errors, rateLimited });
    paths[path] = { ...paths[path], [method.toLowerCase()]: described };
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Tranche',
      version: 'v2',
      summary:
        about.audience === 'merchants'
          ? 'Instalment checkout and refunds: the merchant API.'
          : 'Instalment checkout and refunds: the API for intermediaries.',
      description: about.description,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: about.baseUrl }],
    security: [{ client_secret: [] }],
    tags: about.tags,
    paths,
    webhooks: Object.fromEntries(
      about.webhooks.map((webhook) => [webhook.name, describeWebhook(webhook, schemas)]),
    ),
    components: { schemas, ...sharedComponents(errors) },
  };
}

/** The schemas that all operations of a document share. */
type Shared = { schemas: Schemas; errors: Json; rateLimited: Json };

function describeOperation(about: About, route: DescribedRoute, shared: Shared): JsonObject {
  const { endpoint, operation, schemas: own } = route;
  const { schemas } = shared;
  const [method = '', path = ''] = endpoint.split(' ');
  const other = about.audience === 'intermediaries' ? operation.intermediary : undefined;
  const body = other?.body ?? own.body;
  const parameters = [
    ...describeParameters('path', own.params, schemas),
    ...describeParameters('query', other?.querystring, schemas),
    ...describeParameters('query', own.querystring, schemas),
  ];
  const responses = describeResponses(route, body, other, shared);
  assert.equal(method === 'POST', body !== undefined);
  const sample = sampleOf(`${about.baseUrl}${path}`, parameters, body);
  return {
    operationId: operation.operationId,
    tags: [operation.tag],
    summary: operation.summary,
    description: `${operation.description}\n\nLimit: ${describeLimit(endpoint)}.`,
    // Signing is optional until the integration's first signed request, then mandatory.
    security: body
      ? [{ client_secret: [], signature: [] }, { client_secret: [] }]
      : [{ client_secret: [] }],
    parameters: body ? [...parameters, ...postHeaders(firstExample(body))] : parameters,
    ...(body && {
      requestBody: {
        required: true,
        content: content(hoist(body, schemas), { example: firstExample(body) }),
      },
    }),
    responses,
    'x-codeSamples': writeSamples(sample),
  };
}

function describeResponses(
  { endpoint, operation, schemas: own }: DescribedRoute,
  body: TSchema | undefined,
  other: Operation['intermediary'],
  { schemas, errors, rateLimited }: Shared,
): JsonObject {
  const replayed: JsonObject = body
    ? { 'Idempotent-Replayed': { $ref: '#/components/headers/IdempotentReplayed' } }
    : {};
  const refusals = {
    400: [body ? signatureRefusal(firstExample(body)) : own.querystring && queryRefusal],
    404: [operation.refusals?.[404], other?.refusals?.[404]],
    422: [operation.refusals?.[422], other?.refusals?.[422]],
  };
  const responses: JsonObject = {
    200: {
      description: operation.answer.description,
      headers: { ...requestId, ...quotaHeaders, ...replayed },
      content: content(hoist(own.response[200], schemas), {
        example: operation.answer.example as Json,
      }),
    },
  };
  for (const status of ['400', '404', '422'] as const) {
    const parts = refusals[status].filter((part) => part !== undefined);
    if (parts.length === 0) continue;
    responses[status] = {
      description: parts.map(({ description }) => description).join(' '),
      headers: { ...requestId, ...quotaHeaders, ...(status === '422' ? replayed : {}) },
      content: content(errors, { examples: presentRefusals(status, parts) }),
    };
  }
  responses[401] = { $ref: '#/components/responses/Unauthorized' };
  responses[429] = {
    description: `More than ${describeLimit(endpoint)}. \`Retry-After\` says how many seconds of the window are left.`,
    headers: {
      ...requestId,
      ...quotaHeaders,
      'Retry-After': { $ref: '#/components/headers/RetryAfter' },
    },
    content: content(rateLimited, {
      example: { error: rateLimitedText(endpointLimits[endpoint].window_seconds) },
    }),
  };
  responses[500] = { $ref: '#/components/responses/InternalServerError' };
  responses[503] = { $ref: '#/components/responses/ServiceUnavailable' };
  return responses;
}

function presentRefusals(status: keyof typeof refuse, refusals: Refusal[]): JsonObject {
  const details = refusals.flatMap(({ details }) => Object.entries(details));
  return Object.fromEntries(
    details.map(([name, detail]) => [
      name,
      { value: presentErrors(refuse[status](detail)) as Json },
    ]),
  );
}

const signatureRefusal = (body: Json): Refusal => ({
  description:
    'Malformed request, signature mismatch, or an unsigned request after signing became mandatory. On a mismatch `detail` carries the signature that was expected, if the body has no top-level member that the endpoint does not name.',
  details: {
    signature_mismatch: `The X-Signature header does not match the body. Expected ${signExample(body).signature}. The value is hex: encode the bytes of the digest as standard Base64 instead.`,
    signature_missing:
      'Signing has become mandatory for this integration: every POST must carry an X-Signature header.',
    wrong_content_type: 'The Content-Type header must be application/json.',
  },
});

const queryRefusal: Refusal = {
  description: 'A `page[...]` or `filter[...]` parameter is invalid, unknown or given twice.',
  details: {
    bad_page: 'The query parameter page[number] must be an integer of at least 1.',
    repeated: 'The query parameter page[number] is given more than once: give it once.',
  },
};

const refuse: Record<'400' | '404' | '422', (detail: string) => ApiError> = {
  400: badRequest,
  404: notFound,
  422: unprocessable,
};

function describeParameters(
  place: 'path' | 'query',
  schema: TSchema | undefined,
  schemas: { [name: string]: JsonObject },
): JsonObject[] {
  const { properties = {}, required = [] } = (schema ?? {}) as {
    properties?: Record<string, TSchema>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, property]) => {
    const { description, examples, ...rest } = hoist(property, schemas) as JsonObject;
    const [example] = (examples as Json[] | undefined) ?? [];
    return {
      name,
      in: place,
      required: required.includes(name),
      ...(description !== undefined && { description }),
      schema: rest,
      ...(example !== undefined && { example }),
    };
  });
}

function postHeaders(body: Json): JsonObject[] {
  return [
    {
      name: 'X-Signature',
      in: 'header',
      required: false,
      description: `${signatureDescription} The example signs the example body with \`${exampleSigningKey}\`.`,
      schema: { type: 'string', minLength: 88, maxLength: 88 },
      example: signExample(body).signature,
    },
    { $ref: '#/components/parameters/IdempotencyKey' },
  ];
}

export const describeHeaders = (headers: WebhookHeader[]): JsonObject[] =>
  headers.map((header) => ({ ...header, in: 'header', required: true }));

function describeWebhook(
  webhook: Webhook,
  schemas: { [name: string]: JsonObject },
): { post: JsonObject } {
  const example = firstExample(webhook.body);
  const { schema: answer } = webhook.answer;
  return {
    post: {
      operationId: webhook.operationId,
      tags: [webhook.tag],
      summary: webhook.summary,
      description: webhook.description,
      // The signature replaces a bearer token.
      security: [{ signature: [] }],
      parameters: [
        {
          name: 'X-Signature',
          in: 'header',
          required: true,
          description: `Base64( HMAC-SHA512( signing key, raw body ) ). The example signs the example body with \`${exampleSigningKey}\`.`,
          schema: { type: 'string', minLength: 88, maxLength: 88 },
          example: signExample(example).signature,
        },
        ...describeHeaders(webhook.headers),
      ],
      requestBody: { required: true, content: content(hoist(webhook.body, schemas), { example }) },
      responses: {
        '2XX': {
          description: webhook.answer.description,
          ...(answer && {
            content: content(hoist(answer, schemas), { example: firstExample(answer) }),
          }),
        },
        default: {
          description:
            'Anything else, including a timeout or a redirect, is a failed delivery and is retried.',
        },
      },
    },
  };
}

/** The request that the samples make, from the examples of the parameters. */
function sampleOf(
  address: string,
  parameters: JsonObject[],
  body: TSchema | undefined,
): SampleRequest {
  const examples = (place: string) =>
    parameters.filter((one) => one.in === place && 'example' in one);
  const filled = examples('path').reduce(
    (text, { name, example }) => text.replace(`{${name}}`, String(example)),
    address,
  );
  const query = examples('query').map(({ name, example }) => ({
    name: String(name),
    value: String(example),
  }));
  if (!body) return { address: filled, query };
  // A key belongs to one request, so a reader who tries a checkout and then its refund needs two.
  const idempotencyKey = `order-1001-${filled.split('/').at(-1)}`;
  return { address: filled, query, post: { body: firstExample(body), idempotencyKey } };
}
