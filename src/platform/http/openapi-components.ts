import assert from 'node:assert/strict';
import type { TSchema } from 'typebox';
import { presentErrors, unauthorized, unavailable } from './errors.ts';
import type { Json, JsonObject } from './openapi.ts';

// The parts of an OpenAPI document that its operations refer to.

export const requestId: JsonObject = { 'X-Request-Id': { $ref: '#/components/headers/RequestId' } };

/** The headers of every answer to a request that was counted against a limit. */
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

export const signatureDescription =
  'Base64( HMAC-SHA512( signing key, compact body ) ): standard Base64, 88 characters ending in `=`. Optional until the integration’s first correctly signed request; required from then on.';

/** The components that all documents share. */
export const sharedComponents = (errors: Json) => ({
  securitySchemes,
  parameters,
  headers,
  responses: sharedResponses(errors),
});

const securitySchemes = {
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
};

const parameters = {
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description:
      'Repeating a request with the same key and the same body within 24 hours gives the first answer again instead of a second effect. Another order, and another endpoint, needs another key.',
    schema: { type: 'string', minLength: 1, maxLength: 255 },
    example: 'order-1001-checkouts',
  },
};

const headers = {
  RequestId: {
    description: 'Names this request in our logs: quote it when you ask for help.',
    schema: { type: 'string', format: 'uuid' },
    example: '0199a8f4-0d3b-7b90-a1c2-6e5d4c3b2a10',
  },
  RateLimitLimit: {
    description: 'How many requests the window allows.',
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
};

const sharedResponses = (errors: Json) => ({
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
});
