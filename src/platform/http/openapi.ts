import assert from 'node:assert/strict';
import type { FastifyInstance } from 'fastify';
import type { TSchema } from 'typebox';
import type { Limit } from '#platform/shared/limit.ts';
import { sign } from '#platform/signing/signature.ts';
import { type Endpoint, endpointLimits } from './rate-limits.ts';

// How routes and webhooks describe themselves. openapi-document.ts writes the documents.

export type Audience = 'merchants' | 'intermediaries';

/** A refusal of an endpoint: when it happens, and example details by name. */
export type Refusal = { description: string; details: Record<string, string> };

/** How a route describes itself, beyond its schemas. */
export type Operation = {
  operationId: string;
  tag: 'Checkouts' | 'Payment links' | 'Refunds' | 'Payouts' | 'Configuration';
  summary: string;
  description: string;
  /** Who can call it. If absent, merchants and intermediaries can. */
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
  /** The headers besides the signature. */
  headers: WebhookHeader[];
  body: TSchema;
  answer: { description: string; schema?: TSchema };
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

/** Signs the examples, so that readers can check their own code. No integration uses this key. */
export const exampleSigningKey = 'sig_sandbox_ExampleKeyForTheDocumentationOnly0000000000';

/** The compact text of an example body, and its signature under the example key. */
export function signExample(body: unknown): { text: string; signature: string } {
  const text = JSON.stringify(body);
  return { text, signature: sign(exampleSigningKey, Buffer.from(text)) };
}

/** The routes of one audience, in the order of the contract's table. */
export function routesOf(audience: Audience, routes: DescribedRoute[]): DescribedRoute[] {
  const order = Object.keys(endpointLimits);
  return routes
    .filter(({ operation }) => (operation.audience ?? audience) === audience)
    .sort((a, b) => order.indexOf(a.endpoint) - order.indexOf(b.endpoint));
}

export function describeLimit(endpoint: Endpoint): string {
  const scope = endpoint.includes('{merchant_id}') ? ', per merchant' : '';
  return `${showLimit(endpointLimits[endpoint])}${scope}`;
}

/** `5 requests per hour` */
export function showLimit({ max_requests, window_seconds }: Limit): string {
  const units: Record<number, string> = { 1: 'second', 60: 'minute', 3600: 'hour' };
  const window = units[window_seconds] ?? `${window_seconds} seconds`;
  return `${max_requests} request${max_requests === 1 ? '' : 's'} per ${window}`;
}
