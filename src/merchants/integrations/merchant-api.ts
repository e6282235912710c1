import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import Type from 'typebox';
import type { Merchant } from '#merchants/merchant.ts';
import { notManaged } from '#merchants/not-managed.ts';
import type { Database } from '#platform/database/database.ts';
import { matchesMax } from '#platform/database/merchant-lists.sql.ts';
import { transaction } from '#platform/database/transaction.ts';
import { networkOf } from '#platform/http/authentication.ts';
import { ApiError, badRequest, unprocessable } from '#platform/http/errors.ts';
import type { KeyedRequest } from '#platform/http/idempotency.sql.ts';
import { answerOnce, readKey } from '#platform/http/idempotency.ts';
import { unfaithfulText } from '#platform/http/json.ts';
import { givenTwice, type Page, PageQuery, readPage } from '#platform/http/pagination.ts';
import { showQuota } from '#platform/http/quota.ts';
import type { Endpoint, RateLimits } from '#platform/http/rate-limits.ts';
import { jsonBodyOf, takeRawBodies } from '#platform/http/raw-body.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import type { Environment } from '#platform/shared/environment.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import { acceptSignatures, needsAcceptance } from './accept-signatures.ts';
import { authenticate } from './authenticate.ts';
import type { Callers } from './callers.ts';
import { checkSignature } from './check-signature.ts';
import type { Caller, SigningKey } from './integration.ts';

export type MerchantApiDeps = {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
  environment: Environment;
  callers: Callers;
  rateLimits: RateLimits;
};

/** Facts about a POST that the hooks below determine before its handler runs. */
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
 * The steps of every endpoint of the merchant API before its handler, in this order: recognise the
 * caller, count the request, read the body, check the signature. For an intermediary's POST the
 * body is read before the request is counted, because the body names the merchant whose window
 * counts. Large bodies have a limit of their own, which is counted first.
 */
export function useMerchantApi(api: FastifyInstance, deps: MerchantApiDeps): void {
  api.decorateRequest('caller');
  api.decorateRequest('clientSecret');
  api.decorateRequest('post');

  takeRawBodies(api, ['application/json']);

  api.addHook('onRequest', async (request, reply) => {
    const { caller, clientSecret } = await authenticate(deps, {
      authorization: request.headers.authorization,
      network: networkOf(request),
    });
    request.caller = caller;
    request.clientSecret = clientSecret;
    // The request is counted before its body is read, unless the body names the merchant whose
    // window counts.
    if (!isTargetInBody(request)) await count(request, reply);
  });

  api.addHook('preValidation', async (request, reply) => {
    const { endpoint, members } = request.routeOptions.config;
    if (!endpoint || !members) return;
    if (isTargetInBody(request) && isLarge(request))
      await deps.rateLimits.largeBody(request.caller);
    const body = readBody(request);
    // A malformed body counts as a request too; it names no merchant.
    if (body instanceof Error) {
      if (isTargetInBody(request)) await count(request, reply, null);
      throw body;
    }
    request.body = body.value;
    if (isTargetInBody(request)) await count(request, reply);
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
        request: endpoint,
        userAgent: request.headers['user-agent'],
      },
    );
    request.post = {
      caller: request.caller,
      key,
      keyed: readKey(request.headers['idempotency-key'], request.caller.id, endpoint, body.compact),
    };
  });

  async function count(
    request: FastifyRequest,
    reply: FastifyReply,
    named?: string | null,
  ): Promise<void> {
    const { endpoint, target } = request.routeOptions.config;
    if (!endpoint) return;
    if (named === undefined && request.caller.intermediary && target) {
      named = await target(request);
    }
    // Only managed merchants have windows of their own. Otherwise an intermediary could open a
    // fresh window with every made-up ID.
    const merchant = named ? await deps.callers.addressMerchant(request.caller, named) : null;
    const counted = deps.rateLimits.request(request.caller, endpoint, merchant?.id ?? null);
    showQuota(reply, await counted);
  }
}

function isTargetInBody({ caller, routeOptions: { config } }: FastifyRequest): boolean {
  return caller.intermediary && config.target !== undefined && config.members !== undefined;
}

/**
 * A larger body is counted before it is parsed. Parsing a smaller one costs no more than the rest
 * of the request.
 */
const largeBytes = 32 * 1024;

const isLarge = ({ body }: FastifyRequest) => Buffer.isBuffer(body) && body.length > largeBytes;

/**
 * Answers a POST once per Idempotency-Key. A signed retry makes signing mandatory, like a first
 * POST.
 */
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

function readBody(request: FastifyRequest): ReturnType<typeof jsonBodyOf> | ApiError {
  try {
    return jsonBodyOf(request);
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

export const merchantFilter = 'filter[merchant_id]';
const referenceFilter = 'filter[client_reference_id]';

/** Filters that both lists take. */
export const ListQuery = {
  ...PageQuery,
  [referenceFilter]: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      description: `Only those of the ${matchesMax} newest checkouts that have this \`client_reference_id\`.`,
    }),
  ),
};

/** The filter that an intermediary's list needs, and its refusals. */
export const managedMerchantFilter = {
  querystring: Type.Object({
    [merchantFilter]: Type.String({
      format: 'uuid',
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
      description: `\`${merchantFilter}\` is required.`,
      details: { merchant_id: `Validation failed: ${merchantFilter} is required.` },
    },
  },
};

/** An intermediary may also name the merchant of one row. */
export const managedMerchantOfRow = {
  querystring: Type.Object({
    [merchantFilter]: Type.Optional(
      Type.String({
        format: 'uuid',
        description: 'The managed merchant that must own it. If it does not, the answer is a 404.',
      }),
    ),
  }),
};

export type ListRequest = {
  merchant: Merchant;
  merchant_id: string;
  client_reference_id: string | null;
  page: Page;
  /** The filters, which the links to the other pages repeat. */
  filter: Record<string, string>;
};

/** Reads a list request: the owner of the list (decision 0020), the page, and the filters. */
export async function readListRequest(
  callers: Callers,
  request: FastifyRequest,
): Promise<ListRequest> {
  const query = request.query as Record<string, unknown>;
  const unknown = Object.keys(query).find(
    (name) => /^(filter|page|client_reference_id)\b/i.test(name) && !listParameters.includes(name),
  );
  if (unknown !== undefined) {
    throw badRequest(
      `There is no query parameter ${shown(unknown)}: a list takes ${listParameters.join(', ')}.`,
    );
  }
  const page = readPage(query);
  const named = readOnce(query, merchantFilter) || null;
  const client_reference_id = readOnce(query, referenceFilter);
  if (client_reference_id !== null && !isReference(client_reference_id)) {
    throw badRequest(`The query parameter ${referenceFilter} must have 1 to 255 characters.`);
  }
  const merchant = await listedMerchant(callers, request.caller, named);
  return {
    merchant,
    merchant_id: merchant.id,
    client_reference_id,
    page,
    filter: {
      ...(named !== null && { [merchantFilter]: named }),
      ...(client_reference_id !== null && { [referenceFilter]: client_reference_id }),
    },
  };
}

const listParameters = ['page[number]', 'page[items]', merchantFilter, referenceFilter];

function readOnce(query: Record<string, unknown>, name: string): string | null {
  const value = query[name];
  if (value === undefined) return null;
  if (typeof value !== 'string') throw givenTwice(name);
  return value;
}

function isReference(text: string): boolean {
  const length = text.length <= 510 ? [...text].length : text.length;
  return length >= 1 && length <= 255 && !unfaithfulText(text);
}

async function listedMerchant(
  callers: Callers,
  caller: Caller,
  named: string | null,
): Promise<Merchant> {
  if (!caller.intermediary) {
    const merchant = await callers.ownMerchant(caller);
    if (named === null || named.toLowerCase() === merchant.id) return merchant;
    throw unprocessable(
      `Validation failed: ${merchantFilter} must be the merchant of this integration, or be left out.`,
    );
  }
  if (named === null) throw unprocessable(`Validation failed: ${merchantFilter} is required.`);
  return await managedMerchant(callers, caller, named);
}

/**
 * The merchant that a POST is for: the caller's own, or the one that an intermediary names. Null
 * when an intermediary names none.
 */
export async function bodyMerchant(
  callers: Callers,
  caller: Caller,
  named: string | null,
): Promise<Merchant | null> {
  if (!caller.intermediary) return await callers.ownMerchant(caller);
  return named === null ? null : await managedMerchant(callers, caller, named);
}

async function managedMerchant(callers: Callers, caller: Caller, named: string): Promise<Merchant> {
  const merchant = await callers.addressMerchant(caller, named);
  if (!merchant) throw notManaged();
  return merchant;
}

export function listTarget(request: FastifyRequest): string | null {
  const value = (request.query as Record<string, unknown>)[merchantFilter];
  return typeof value === 'string' && value !== '' ? value : null;
}

// The caller chose the name, so it may be long.
function shown(name: string): string {
  return name.length > 60 ? `${name.slice(0, 60)}…` : name;
}
