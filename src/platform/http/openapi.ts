import assert from 'node:assert/strict';
import type { FastifyInstance } from 'fastify';
import type { TSchema } from 'typebox';
import { sign } from '#platform/signing/signature.ts';
import { Errors, RateLimitedBody } from './errors.schema.ts';
import {
  type ApiError,
  badRequest,
  notFound,
  presentErrors,
  rateLimitedText,
  unauthorized,
  unavailable,
  unprocessable,
} from './errors.ts';
import { type Endpoint, endpointLimits } from './rate-limits.ts';

export type Audience = 'merchants' | 'intermediaries';

/** A refusal of an endpoint: when it is given, and example details by name. */
type Refusal = { description: string; details: Record<string, string> };

/** How a route describes itself, beyond its schemas. */
export type Operation = {
  operationId: string;
  tag: 'Checkouts' | 'Refunds' | 'Payouts' | 'Configuration';
  summary: string;
  description: string;
  /** Who can call it; both when absent. */
  audience?: Audience;
  answer: { description: string; example: object };
  /** Refusals besides 400, 401, 429, 500 and 503, which `buildDocument` adds. */
  refusals?: { 404?: Refusal; 422?: Refusal };
  /** The differences for an intermediary (decision 0020). */
  intermediary?: {
    body?: TSchema;
    querystring?: TSchema;
    refusals?: { 404?: Refusal; 422?: Refusal };
  };
};

declare module 'fastify' {
  interface FastifySchema {
    operation?: Operation;
  }
}

type RouteSchemas = {
  body?: TSchema;
  querystring?: TSchema;
  params?: TSchema;
  response: { 200: TSchema };
};

export type DescribedRoute = { endpoint: Endpoint; operation: Operation; schemas: RouteSchemas };

/**
 * Collects the descriptions of API routes as they are registered, and refuses a route that has
 * none. So the published description cannot fall behind the code.
 */
export function collectRoutes(app: FastifyInstance): DescribedRoute[] {
  const routes: DescribedRoute[] = [];
  app.addHook('onRoute', ({ method, url, config, schema }) => {
    // Fastify adds a HEAD to every GET.
    if (!url.startsWith('/api/') || method === 'HEAD') return;
    const endpoint = `${method} ${url.replace(/:(\w+)/g, '{$1}')}`;
    assert.equal(config?.endpoint, endpoint, `${endpoint} must name itself in its config`);
    assert(schema?.operation, `${endpoint} must describe itself in its schema`);
    routes.push({
      endpoint: endpoint as Endpoint,
      operation: schema.operation,
      schemas: schema as RouteSchemas,
    });
  });
  return routes;
}

/** A header that every request of a webhook carries. */
export type WebhookHeader = {
  name: string;
  description: string;
  schema: JsonObject;
  example: string | number;
};

/** An event that we send; OpenAPI calls it a webhook. */
export type Webhook = {
  name: string;
  operationId: string;
  tag: string;
  summary: string;
  description: string;
  /** Besides the signature. */
  headers: WebhookHeader[];
  body: TSchema;
  answer: { description: string; schema: TSchema };
};

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

export type OpenApiDocument = JsonObject & {
  info: JsonObject & { version: string; description: string };
  tags: { name: string; description: string }[];
  paths: { [path: string]: { [method: string]: JsonObject } };
  webhooks: { [name: string]: { post: JsonObject } };
  components: { [kind: string]: { [name: string]: JsonObject } };
};

/** Signs the examples, so that readers can check their own code. No integration has this key. */
export const exampleSigningKey = 'sig_sandbox_ExampleKeyForTheDocumentationOnly0000000000';

/** The compact text of an example body, and its signature under the example key. */
export function signExample(body: unknown): { text: string; signature: string } {
  const text = JSON.stringify(body);
  return { text, signature: sign(exampleSigningKey, Buffer.from(text)) };
}

const signatureRefusal = (body: Json): Refusal => ({
  description:
    'Malformed request, signature mismatch, or an unsigned request after signing became mandatory. On a mismatch `detail` carries the signature that was expected.',
  details: {
    signature_mismatch: `The X-Signature header does not match the body. Expected ${signExample(body).signature}. The value is hex: encode the bytes of the digest as standard Base64 instead.`,
    signature_missing:
      'Signing has become mandatory for this integration: every POST must carry an X-Signature header.',
    wrong_content_type: 'The Content-Type header must be application/json.',
  },
});

const queryRefusal: Refusal = {
  description: 'A `page[...]` or `filter[...]` parameter is not valid, unknown, or given twice.',
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

/** The routes of one audience, in the order of the contract's table. */
export function routesOf(audience: Audience, routes: DescribedRoute[]): DescribedRoute[] {
  const order = Object.keys(endpointLimits);
  return routes
    .filter(({ operation }) => (operation.audience ?? audience) === audience)
    .sort((a, b) => order.indexOf(a.endpoint) - order.indexOf(b.endpoint));
}

/** The OpenAPI document of one audience: its routes, and the events that we send it. */
export function buildDocument(
  about: {
    audience: Audience;
    baseUrl: string;
    description: string;
    tags: { name: string; description: string }[];
    webhooks: Webhook[];
  },
  routes: DescribedRoute[],
): OpenApiDocument {
  const schemas: { [name: string]: JsonObject } = {};
  const errors = hoist(Errors, schemas);
  const rateLimited = hoist(RateLimitedBody, schemas);

  const paths: OpenApiDocument['paths'] = {};
  for (const { endpoint, operation, schemas: own } of routes) {
    const [method = '', path = ''] = endpoint.split(' ');
    const other = about.audience === 'intermediaries' ? operation.intermediary : undefined;
    const body = other?.body ?? own.body;
    const isPost = body !== undefined;
    const replayed: JsonObject = isPost
      ? { 'Idempotent-Replayed': { $ref: '#/components/headers/IdempotentReplayed' } }
      : {};
    const parameters = [
      ...describeParameters('path', own.params, schemas),
      ...describeParameters('query', other?.querystring, schemas),
      ...describeParameters('query', own.querystring, schemas),
    ];

    const responses: JsonObject = {
      200: {
        description: operation.answer.description,
        headers: { ...requestId, ...quotaHeaders, ...replayed },
        content: content(hoist(own.response[200], schemas), {
          example: operation.answer.example as Json,
        }),
      },
    };
    const refusals = {
      400: [isPost ? signatureRefusal(firstExample(body)) : own.querystring && queryRefusal],
      404: [operation.refusals?.[404], other?.refusals?.[404]],
      422: [operation.refusals?.[422], other?.refusals?.[422]],
    };
    for (const status of ['400', '404', '422'] as const) {
      const parts = refusals[status].filter((part) => part !== undefined);
      if (parts.length === 0) continue;
      const examples = parts.flatMap(({ details }) => Object.entries(details));
      responses[status] = {
        description: parts.map(({ description }) => description).join(' '),
        headers: { ...requestId, ...quotaHeaders, ...(status === '422' ? replayed : {}) },
        content: content(errors, {
          examples: Object.fromEntries(
            examples.map(([name, detail]) => [
              name,
              { value: presentErrors(refuse[status](detail)) as Json },
            ]),
          ),
        }),
      };
    }
    const limit = endpointLimits[endpoint];
    responses[401] = { $ref: '#/components/responses/Unauthorized' };
    responses[429] = {
      description: `More than ${describeLimit(endpoint)}. \`Retry-After\` says how many seconds of the window are left.`,
      headers: {
        ...requestId,
        ...quotaHeaders,
        'Retry-After': { $ref: '#/components/headers/RetryAfter' },
      },
      content: content(rateLimited, {
        example: { error: rateLimitedText(limit.window_seconds) },
      }),
    };
    responses[500] = { $ref: '#/components/responses/InternalServerError' };
    responses[503] = { $ref: '#/components/responses/ServiceUnavailable' };

    const described: JsonObject = {
      operationId: operation.operationId,
      tags: [operation.tag],
      summary: operation.summary,
      description: `${operation.description}\n\nLimit: ${describeLimit(endpoint)}.`,
      // Signing is optional until the integration's first signed request, then mandatory.
      security: isPost
        ? [{ client_secret: [], signature: [] }, { client_secret: [] }]
        : [{ client_secret: [] }],
      parameters: isPost
        ? [...parameters, ...postHeaders(firstExample(body))]
        : (parameters as Json[]),
      ...(isPost && {
        requestBody: {
          required: true,
          content: content(hoist(body, schemas), { example: firstExample(body) }),
        },
      }),
      responses,
      'x-codeSamples': [
        {
          lang: 'Shell',
          label: 'curl',
          source: writeCurl(about.baseUrl, method, path, parameters, body),
        },
      ],
    };
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

/** `5 requests per hour` */
export function describeLimit(endpoint: Endpoint): string {
  const { max_requests, window_seconds } = endpointLimits[endpoint];
  const units: Record<number, string> = { 1: 'second', 60: 'minute', 3600: 'hour' };
  const window = units[window_seconds] ?? `${window_seconds} seconds`;
  const whose = endpoint.includes('{merchant_id}') ? ', per merchant' : '';
  return `${max_requests} request${max_requests === 1 ? '' : 's'} per ${window}${whose}`;
}

export const requestId: JsonObject = { 'X-Request-Id': { $ref: '#/components/headers/RequestId' } };

/** On every answer that was counted. */
export const quotaHeaders: JsonObject = {
  'RateLimit-Limit': { $ref: '#/components/headers/RateLimitLimit' },
  'RateLimit-Remaining': { $ref: '#/components/headers/RateLimitRemaining' },
  'RateLimit-Reset': { $ref: '#/components/headers/RateLimitReset' },
};

export function content(schema: Json, examples: JsonObject): JsonObject {
  return { 'application/json': { schema, ...examples } };
}

export function firstExample(schema: TSchema): Json {
  const [example] = (schema as { examples?: Json[] }).examples ?? [];
  assert(example !== undefined, 'a body schema needs an example');
  return example;
}

/** A schema for the document: each part with a title becomes a component of that name. */
export function hoist(schema: TSchema, schemas: { [name: string]: JsonObject }): Json {
  const visit = (node: Json): Json => {
    if (Array.isArray(node)) return node.map(visit);
    if (typeof node !== 'object' || node === null) return node;
    const visited: JsonObject = {};
    for (const [name, value] of Object.entries(node)) {
      visited[name] = name === 'examples' ? value : visit(value);
    }
    const { title: name, ...component } = visited;
    if (typeof name !== 'string') return visited;
    if (schemas[name]) assert.deepEqual(component, schemas[name], `two schemas are named ${name}`);
    schemas[name] = component;
    return { $ref: `#/components/schemas/${name}` };
  };
  return visit(JSON.parse(JSON.stringify(schema)) as Json);
}

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

const signatureDescription =
  'Base64( HMAC-SHA512( signing key, compact body ) ): standard Base64, 88 characters ending in `=`. Optional until the integration’s first correctly signed request; required from then on.';

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
  return {
    post: {
      operationId: webhook.operationId,
      tags: [webhook.tag],
      summary: webhook.summary,
      description: webhook.description,
      // The signature takes the place of a bearer token.
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
          content: content(hoist(webhook.answer.schema, schemas), {
            example: firstExample(webhook.answer.schema),
          }),
        },
        default: {
          description:
            'Anything else, including a time-out or a redirect, is a failed delivery and is retried.',
        },
      },
    },
  };
}

/** The components that all documents share. */
export function sharedComponents(errors: Json) {
  return {
    securitySchemes: {
      client_secret: {
        type: 'http',
        scheme: 'bearer',
        description: 'The client secret of the integration, as it was issued.',
      },
      signature: {
        type: 'apiKey',
        in: 'header',
        name: 'X-Signature',
        description: signatureDescription,
      },
    },
    parameters: {
      IdempotencyKey: {
        name: 'Idempotency-Key',
        in: 'header',
        required: false,
        description:
          'Repeating a request with the same key and the same body within 24 hours gives the first answer again instead of a second effect.',
        schema: { type: 'string', minLength: 1, maxLength: 255 },
        example: 'order-1001-attempt-1',
      },
    },
    headers: {
      RequestId: {
        description: 'Names this request in our logs: quote it when you ask for help.',
        schema: { type: 'string', format: 'uuid' },
        example: '0199a8f4-0d3b-7b90-a1c2-6e5d4c3b2a10',
      },
      RateLimitLimit: {
        description: 'How many requests fit into the window.',
        schema: { type: 'integer', minimum: 0 },
        example: 5,
      },
      RateLimitRemaining: {
        description: 'How many requests are left in the window.',
        schema: { type: 'integer', minimum: 0 },
        example: 4,
      },
      RateLimitReset: {
        description: 'Seconds until the window is over.',
        schema: { type: 'integer', minimum: 1 },
        example: 60,
      },
      RetryAfter: {
        description: 'Seconds until the window is over.',
        schema: { type: 'integer', minimum: 1 },
        example: 1,
      },
      IdempotentReplayed: {
        description: 'Present, and `true`, when this is the stored answer of an earlier request.',
        schema: { type: 'string', const: 'true' },
        example: 'true',
      },
    },
    responses: {
      Unauthorized: {
        description: 'Missing or invalid Bearer token.',
        headers: { ...requestId, ...quotaHeaders },
        content: content(errors, {
          example: presentErrors(
            unauthorized('Provide a valid Bearer token in the Authorization header.'),
          ) as Json,
        }),
      },
      InternalServerError: {
        description: 'A fault on our side. Nothing was changed: safe to retry with backoff.',
        headers: requestId,
        content: content(errors, {
          example: {
            errors: [
              {
                status: '500',
                code: 'internal_server_error',
                title: 'Internal server error',
                detail:
                  'Something went wrong on our side and nothing was changed. Try again with backoff.',
              },
            ],
          },
        }),
      },
      ServiceUnavailable: {
        description:
          'The database did not answer in time. Nothing was changed: safe to retry after `Retry-After` seconds.',
        headers: { ...requestId, 'Retry-After': { $ref: '#/components/headers/RetryAfter' } },
        content: content(errors, { example: presentErrors(unavailable()) as Json }),
      },
    },
  };
}

/** A command to paste, with the secrets in variables. */
function writeCurl(
  baseUrl: string,
  method: string,
  path: string,
  parameters: JsonObject[],
  body: TSchema | undefined,
): string {
  const examples = (place: string) =>
    parameters.filter((one) => one.in === place && 'example' in one);
  const filled = examples('path').reduce(
    (text, { name, example }) => text.replace(`{${name}}`, String(example)),
    path,
  );
  const query = examples('query').map(({ name, example }) => `${name}=${example}`);
  const address = `${baseUrl}${filled}${query.length > 0 ? `?${query.join('&')}` : ''}`;
  const bearer = `-H "Authorization: Bearer $CLIENT_SECRET"`;
  if (!body) return `curl -g '${address}' \\\n  ${bearer}`;
  assert.equal(method, 'POST');
  return [
    `body='${signExample(firstExample(body)).text}'`,
    `signature=$(printf %s "$body" | openssl dgst -sha512 -hmac "$SIGNING_KEY" -binary | openssl base64 -A)`,
    '',
    `curl '${address}' \\`,
    `  ${bearer} \\`,
    `  -H "Content-Type: application/json" \\`,
    `  -H "X-Signature: $signature" \\`,
    `  -H "Idempotency-Key: order-1001-attempt-1" \\`,
    `  --data-raw "$body"`,
  ].join('\n');
}
