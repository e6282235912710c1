import type { FastifyInstance, FastifyRequest } from 'fastify';
import Type from 'typebox';
import type { Database } from '../database/database.ts';
import type { Callers } from '../integrations/callers.ts';
import type { Caller, Environment, SigningKey } from '../integrations/integration.ts';
import type { Merchant } from '../merchants/merchant.ts';
import type { Clock } from '../shared/clock.ts';
import type { Logger } from '../shared/logger.ts';
import type { Random } from '../shared/random.ts';
import { authenticate } from './authentication.ts';
import { ApiError, badRequest, notFound, unprocessable } from './errors.ts';
import type { KeyedRequest } from './idempotency.sql.ts';
import { readKey } from './idempotency.ts';
import { type JsonObject, MalformedJson, readJson } from './json.ts';
import type { Endpoint, RateLimits } from './rate-limits.ts';
import { rawBodyOf, takeRawBodies } from './raw-body.ts';
import { checkSignature } from './signed-body.ts';

export type MerchantApiDeps = {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
  environment: Environment;
  callers: Callers;
  rateLimits: RateLimits;
};

/** What the merchant API knows of a POST when its handler runs. */
export type Post = { caller: Caller; key: SigningKey | null; keyed: KeyedRequest | null };

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller;
    clientSecret: string;
    post: Post;
  }
  interface FastifyContextConfig {
    endpoint?: Endpoint;
    /** The top-level members that a POST takes. */
    members?: readonly string[];
    /** For an intermediary: which merchant the request is about, when that can be told. */
    target?(request: FastifyRequest): string | null | Promise<string | null>;
  }
}

/**
 * What every endpoint of the merchant API has in common, in the order in which it happens: who is
 * calling, how often, what the body says, who signed it. Only then schemas and handlers see it.
 */
export function useMerchantApi(api: FastifyInstance, deps: MerchantApiDeps): void {
  api.decorateRequest('caller');
  api.decorateRequest('clientSecret');
  api.decorateRequest('post');

  takeRawBodies(api, [json]);

  api.addHook('onRequest', async (request) => {
    const { caller, clientSecret } = await authenticate(deps, {
      authorization: request.headers.authorization,
      address: request.ip,
    });
    request.caller = caller;
    request.clientSecret = clientSecret;
  });

  api.addHook('preValidation', async (request) => {
    const { endpoint, members, target } = request.routeOptions.config;
    if (!endpoint) return;
    const isPost = members !== undefined;
    const body = isPost ? readBody(request) : null;
    // Counted whatever the answer will be; a body that cannot be read names no merchant.
    if (body && !(body instanceof Error)) request.body = body.value;
    const isReadable = !(body instanceof Error);
    const named =
      request.caller.intermediary && target && isReadable ? await target(request) : null;
    // Only a merchant that it manages has a window of its own: else every made-up ID would.
    const merchant = named && (await deps.callers.addressMerchant(request.caller, named));
    await deps.rateLimits.request(request.caller, endpoint, merchant ? merchant.id : null);
    if (!isPost || !body) return;
    if (body instanceof Error) throw body;
    const key = await checkSignature(
      { ...deps, log: request.log as Logger },
      {
        caller: request.caller,
        clientSecret: request.clientSecret,
        header: request.headers['x-signature'],
        value: body.value,
        raw: body.raw,
        compact: body.compact,
        members,
      },
    );
    request.post = {
      caller: request.caller,
      key,
      keyed: readKey(request.headers['idempotency-key'], request.caller.id, endpoint, body.compact),
    };
  });
}

const json = 'application/json';

type ReadBody = { value: JsonObject; compact: Buffer; raw: Buffer };

function readBody(request: FastifyRequest): ReadBody | Error {
  try {
    const { raw } = rawBodyOf(request, [json]);
    return { ...readJson(raw), raw };
  } catch (error) {
    if (error instanceof ApiError) return error;
    if (error instanceof MalformedJson) return badRequest(error.message);
    throw error;
  }
}

/** The merchant whose lists and configuration a plain integration sees. */
export async function ownMerchant(callers: Callers, caller: Caller): Promise<Merchant> {
  const merchant =
    caller.merchant_id && (await callers.addressMerchant(caller, caller.merchant_id));
  if (!merchant) throw notFound('This integration has no merchant of its own.');
  return merchant;
}

export const notManaged = () =>
  notFound('There is no merchant with that ID that this integration manages.');

const filterName = 'filter[merchant_id]';

/** How a list is another one for an intermediary. */
export const managedMerchantFilter = {
  querystring: Type.Object({
    [filterName]: Type.String({
      description: 'The managed merchant whose list it is.',
      examples: ['0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11'],
    }),
  }),
  refusals: {
    404: {
      description: 'The merchant is not managed by this integration.',
      details: { not_managed: notManaged().message },
    },
    422: {
      description: `\`${filterName}\` is required.`,
      details: { merchant_id: `Validation failed: ${filterName} is required.` },
    },
  },
};

/** The merchant that a list is about (D10). */
export async function listedMerchant(
  callers: Callers,
  request: FastifyRequest,
): Promise<{ merchant_id: string; filter: Record<string, string> }> {
  const { caller } = request;
  if (!caller.intermediary) {
    const merchant = await ownMerchant(callers, caller);
    return { merchant_id: merchant.id, filter: {} };
  }
  const merchant_id = listTarget(request);
  if (merchant_id === null) {
    throw unprocessable(`Validation failed: ${filterName} is required.`);
  }
  const merchant = await callers.addressMerchant(caller, merchant_id);
  if (!merchant) throw notManaged();
  return { merchant_id: merchant.id, filter: { [filterName]: merchant_id } };
}

export function listTarget(request: FastifyRequest): string | null {
  const value = (request.query as Record<string, unknown>)[filterName];
  return typeof value === 'string' && value !== '' ? value : null;
}
