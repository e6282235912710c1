import type { TSchema } from 'typebox';
import { invalidToken } from '#platform/http/authentication.ts';
import { Errors, RateLimitedBody } from '#platform/http/errors.schema.ts';
import {
  type ApiError,
  badRequest,
  presentErrors,
  rateLimitedText,
  unauthorized,
  unprocessable,
} from '#platform/http/errors.ts';
import {
  describeLimit,
  type Json,
  type JsonObject,
  type OpenApiDocument,
  showLimit,
} from '#platform/http/openapi.ts';
import {
  content,
  firstExample,
  hoist,
  quotaHeaders,
  requestId,
  sharedComponents,
} from '#platform/http/openapi-components.ts';
import { describeHeaders } from '#platform/http/openapi-document.ts';
import { endpointLimits, failedLogins } from '#platform/http/rate-limits.ts';
import { formHeaderDescriptions } from '#purchases/callbacks/callback.openapi.ts';
import { deprecationHeaders } from './deprecation.ts';
import {
  LegacyCallbackAnswer,
  LegacyCallbackBody,
  LegacyCheckoutAnswer,
  LegacyCheckoutBody,
  LoginAnswer,
  LoginBody,
} from './legacy.schema.ts';
import { tokenSeconds } from './legacy-credential.ts';

const form = 'application/x-www-form-urlencoded';

const guide = (about: {
  baseUrl: string;
}) => `The plugin API of version 1. **It is being retired**: write nothing new for it, and move what you have to version 2, described at [\`/docs\`](${about.baseUrl}/docs) and, for programs, at \`/docs/api/v2\`. Version 1 works at least until the date in the \`Sunset\` header of every answer.

1. Log in with the v1 credentials of your integration and a merchant's ID. The token is valid for an hour.
2. Send the checkout with the token, and keep \`transaction_verify\` with the order.
3. Send the shopper's browser to \`payment_url\`.
4. Receive the callback at \`merchant.notify_url\`, compare \`transaction_verify\`, fulfil the order.

A v1 checkout is read and refunded through version 2, by its \`id\`.

Bodies are JSON or \`${form}\` (\`purchase[order_id]=…\`), at most 256 KiB, and 4 KiB for a login. Errors are those of version 2 and name v1's fields. There is no \`Idempotency-Key\`: a repeated request creates another checkout.`;

/** The parts of the document that the operations share. Each operation adds its schemas. */
type Parts = {
  schemas: { [name: string]: JsonObject };
  errors: Json;
  rateLimited: Json;
  headers: JsonObject;
};

/** The description of v1, made from the schemas that validate it (decision 0040). */
export function describeLegacy(about: { baseUrl: string; legacySunset: string }): OpenApiDocument {
  const schemas: Parts['schemas'] = {};
  const errors = hoist(Errors, schemas);
  const rateLimited = hoist(RateLimitedBody, schemas);
  const headers: JsonObject = {
    ...requestId,
    ...quotaHeaders,
    Deprecation: { $ref: '#/components/headers/Deprecation' },
    Sunset: { $ref: '#/components/headers/Sunset' },
    Link: { $ref: '#/components/headers/Link' },
  };
  const parts = { schemas, errors, rateLimited, headers };
  return {
    openapi: '3.1.1',
    info: {
      title: 'Tranche',
      version: 'v1',
      summary: 'The legacy plugin API. Deprecated: use v2.',
      description: guide(about),
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: about.baseUrl }],
    tags: [{ name: 'Version 1', description: 'Deprecated.' }],
    paths: {
      '/login': operation(parts, describeLogin(parts)),
      '/payment/checkout': operation(parts, describeCheckout(parts)),
    },
    webhooks: { legacyPaymentResult: { post: describeCallback(parts) } },
    components: { schemas, ...components(about, errors, headers) },
  };
}

type Operation = {
  operationId: string;
  summary: string;
  description: string;
  security: Json[];
  limit: 'POST /login' | 'POST /api/checkouts';
  body: TSchema;
  answer: { description: string; schema: TSchema; example: Json };
  refusals: { 401: JsonObject; 422: JsonObject };
};

function operation(parts: Parts, own: Operation): { post: JsonObject } {
  const schema = hoist(own.body, parts.schemas);
  const example = firstExample(own.body);
  return {
    post: {
      operationId: own.operationId,
      tags: ['Version 1'],
      summary: own.summary,
      description: own.description,
      deprecated: true,
      security: own.security,
      requestBody: {
        required: true,
        content: {
          ...content(schema, { example }),
          [form]: {
            schema,
            example,
            encoding: encodingOf(own.body),
          },
        },
      },
      responses: {
        200: {
          description: own.answer.description,
          headers: parts.headers,
          content: content(hoist(own.answer.schema, parts.schemas), {
            example: own.answer.example,
          }),
        },
        400: refusal(parts, 'The body cannot be read.', {
          wrong_content_type: badRequest(
            `The Content-Type header must be application/json or ${form}.`,
          ),
          field_twice: badRequest('The body has the field "currency" twice.'),
        }),
        ...own.refusals,
        429: {
          description: 'Too many requests. `Retry-After` says how many seconds to wait.',
          headers: { ...parts.headers, 'Retry-After': { $ref: '#/components/headers/RetryAfter' } },
          content: content(parts.rateLimited, {
            example: {
              error: rateLimitedText(endpointLimits[own.limit].window_seconds),
            },
          }),
        },
        500: { $ref: '#/components/responses/InternalServerError' },
        503: { $ref: '#/components/responses/ServiceUnavailable' },
      },
    },
  };
}

const refusal = (
  { errors, headers }: Parts,
  description: string,
  examples: Record<string, ApiError>,
): JsonObject => ({
  description,
  headers,
  content: content(errors, {
    examples: Object.fromEntries(
      Object.entries(examples).map(([name, error]) => [
        name,
        { value: presentErrors(error) as Json },
      ]),
    ),
  }),
});

const describeLogin = (parts: Parts): Operation => ({
  operationId: 'legacyLogin',
  summary: 'Log in',
  description: `Gives a token for one merchant, valid for ${tokenSeconds} seconds.\n\nLimit: ${describeLimit('POST /login')}, per \`client_id\`, merchant and address. Failed logins are limited to ${showLimit(failedLogins)}, per address and per \`client_id\`.`,
  security: [],
  limit: 'POST /login',
  body: LoginBody,
  answer: {
    description: 'Logged in.',
    schema: LoginAnswer,
    example: { token: 'v1t_sandbox_…', token_type: 'Bearer', expires_in: tokenSeconds },
  },
  refusals: {
    401: refusal(parts, 'The credentials are not valid, or not for this merchant.', {
      credentials: unauthorized('The client_id and client_secret are not valid.'),
      merchant: unauthorized(
        'The merchant_id is not the merchant of these credentials, nor one that they manage.',
      ),
    }),
    422: refusal(parts, 'A field is missing or is not a string.', {
      field: unprocessable('Validation failed: client_id is required.'),
    }),
  },
});

const describeCheckout = (parts: Parts): Operation => ({
  operationId: 'legacyCheckout',
  summary: 'Create a payment checkout',
  description: `Creates a checkout that is like a checkout of version 2, except for its callback.\n\nLimit: ${describeLimit('POST /api/checkouts')}, shared with \`POST /api/checkouts\`.`,
  security: [{ token: [] }],
  limit: 'POST /api/checkouts',
  body: LegacyCheckoutBody,
  answer: {
    description: 'The checkout was created.',
    schema: LegacyCheckoutAnswer,
    example: {
      id: '0199a8f2-31b4-7c05-8e6d-5f0a9b3c7e24',
      payment_url: 'https://pay.example/pay/Zk3v0mQ7xT2nLr8sWb5cYd1fHg6jKp9u',
      transaction_verify: 'q5mT0yXn3bVw8sKc1dRz7fHj2gLp6uAeWi9oQxYtBvE',
    },
  },
  refusals: {
    401: refusal(parts, 'Missing, invalid or expired token.', {
      token: unauthorized(
        `${invalidToken} A token is what POST /login answers; after an hour another one is needed.`,
      ),
    }),
    422: refusal(parts, 'A field is not valid. One error object per bad field, by its v1 name.', {
      amount: unprocessable('Validation failed: Amount has to be between 10000 and 2000000 cents.'),
      field: unprocessable('Validation failed: customer.emailAddress is required.'),
    }),
  },
});

const describeCallback = ({ schemas }: Parts): JsonObject => ({
  operationId: 'legacyPaymentResult',
  tags: ['Version 1'],
  summary: 'Payment result',
  description:
    'Sent to `merchant.notify_url` when a v1 checkout is paid or cancelled, on the schedule of version 2: first while the shopper waits, then up to 18 times about 10 minutes apart until the receiver answers 2xx. It is not signed: compare `transaction_verify`. `redirect` in the answer to the first delivery sends the browser elsewhere.',
  deprecated: true,
  security: [],
  parameters: describeHeaders(formHeaderDescriptions),
  requestBody: {
    required: true,
    content: {
      [form]: {
        schema: hoist(LegacyCallbackBody, schemas),
        example: firstExample(LegacyCallbackBody),
      },
    },
  },
  responses: {
    '2XX': {
      description: 'Delivered.',
      content: content(hoist(LegacyCallbackAnswer, schemas), {
        example: firstExample(LegacyCallbackAnswer),
      }),
    },
    default: { description: 'Any other answer is a failed delivery and is retried.' },
  },
});

/** Writes groups of fields as PHP does: `purchase[order_id]`. */
function encodingOf(body: TSchema): JsonObject {
  const { properties = {} } = body as { properties?: Record<string, { type?: string }> };
  return Object.fromEntries(
    Object.entries(properties)
      .filter(([, { type }]) => type === 'object')
      .map(([name]) => [name, { style: 'deepObject', explode: true }]),
  );
}

function components(
  about: { baseUrl: string; legacySunset: string },
  errors: Json,
  headers: JsonObject,
): OpenApiDocument['components'] {
  const shared = sharedComponents(errors);
  const { InternalServerError, ServiceUnavailable } = shared.responses;
  const { deprecation, sunset, link } = deprecationHeaders(about);
  const header = (description: string, example: string) => ({
    description,
    schema: { type: 'string' },
    example,
  });
  return {
    securitySchemes: {
      token: { type: 'http', scheme: 'bearer', description: 'The token from `POST /login`.' },
    },
    headers: {
      RequestId: shared.headers.RequestId,
      RateLimitLimit: shared.headers.RateLimitLimit,
      RateLimitRemaining: shared.headers.RateLimitRemaining,
      RateLimitReset: shared.headers.RateLimitReset,
      RetryAfter: shared.headers.RetryAfter,
      Deprecation: header('When version 1 was deprecated (RFC 9745).', deprecation),
      Sunset: header('Version 1 works at least until then (RFC 8594).', sunset),
      Link: header('The description of version 2, its successor (RFC 5829).', link),
    },
    responses: {
      InternalServerError: { ...InternalServerError, headers },
      ServiceUnavailable: {
        ...ServiceUnavailable,
        headers: { ...headers, ...ServiceUnavailable.headers },
      },
    },
  };
}
