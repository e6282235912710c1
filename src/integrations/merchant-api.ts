import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import Type from 'typebox';
import type { Database } from '../database/database.ts';
import { transaction } from '../database/transaction.ts';
import { ApiError, badRequest, unprocessable } from '../http/errors.ts';
import type { KeyedRequest } from '../http/idempotency.sql.ts';
import { answerOnce, readKey } from '../http/idempotency.ts';
import { type JsonObject, MalformedJson, readJson } from '../http/json.ts';
import type { Endpoint, RateLimits } from '../http/rate-limits.ts';
import { rawBodyOf, takeRawBodies } from '../http/raw-body.ts';
import { notManaged } from '../merchants/not-managed.ts';
import { type Clock, timestamp } from '../shared/clock.ts';
import type { Logger } from '../shared/logger.ts';
import type { Random } from '../shared/random.ts';
import { acceptSignatures, needsAcceptance } from './accept-signatures.ts';
import { authenticate } from './authenticate.ts';
import type { Callers } from './callers.ts';
import { checkSignature } from './check-signature.ts';
import type { Caller, Environment, SigningKey } from './integration.ts';

export type MerchantApiDeps = {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
  environment: Environment;
  callers: Callers;
  rateLimits: RateLimits;
};

/** What the hooks below found out about a POST before its handler runs. */
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
    /** For an intermediary: the merchant that the request names, or null if it names none. */
    target?(request: FastifyRequest): string | null | Promise<string | null>;
  }
}

/**
 * What every endpoint of the merchant API does before its handler, in this order: recognise the
 * caller, read the body, count the request, check the signature.
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
    // A malformed body counts as a request too; it names no merchant.
    if (body && !(body instanceof Error)) request.body = body.value;
    const isReadable = !(body instanceof Error);
    const named =
      request.caller.intermediary && target && isReadable ? await target(request) : null;
    // Only managed merchants have windows of their own. Otherwise an intermediary could open a
    // fresh window with every made-up ID.
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

/** Answers a POST once per Idempotency-Key. A signed retry makes signing sticky like a first POST. */
export async function answerPost<T extends object>(
  deps: MerchantApiDeps,
  { post }: FastifyRequest,
  reply: FastifyReply,
  work: () => Promise<T>,
): Promise<T> {
  const { answer, replayed } = await answerOnce(deps, post.keyed, work);
  if (!replayed) return answer;
  if (post.key !== null && needsAcceptance([post])) {
    const now = timestamp(deps.clock.now());
    await transaction(deps, ({ db }) => acceptSignatures(db, [post], now));
  }
  reply.header('idempotent-replayed', 'true');
  return answer;
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

const filterName = 'filter[merchant_id]';

/** What an intermediary's list takes and refuses beyond a merchant's. */
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

/** The merchant whose list is asked for (decision 0010). */
export async function listedMerchant(
  callers: Callers,
  request: FastifyRequest,
): Promise<{ merchant_id: string; filter: Record<string, string> }> {
  const { caller } = request;
  if (!caller.intermediary) {
    const merchant = await callers.ownMerchant(caller);
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
