import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Gateways } from '#gateway/gateways.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { transaction } from '#platform/database/transaction.ts';
import { networkOf } from '#platform/http/authentication.ts';
import { ApiError } from '#platform/http/errors.ts';
import type { JsonObject } from '#platform/http/json.ts';
import { showQuota } from '#platform/http/quota.ts';
import { rawBodyOf, takeRawBodies } from '#platform/http/raw-body.ts';
import { compileSchema, validationFailed } from '#platform/http/validation.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import type { Destinations } from '#purchases/callbacks/delivery/destination.ts';
import { type CommitCheckout, createCheckout } from '#purchases/checkouts/create-checkout.ts';
import { paymentToken } from '#purchases/checkouts/payment-token.ts';
import { deprecationHeaders } from './deprecation.ts';
import { LegacyCheckoutAnswer, LoginAnswer, LoginBody } from './legacy.schema.ts';
import { legacyMediaTypes, readLegacyBody } from './legacy-body.ts';
import { tokenSeconds } from './legacy-credential.ts';
import { advanceUsage } from './legacy-usage.sql.ts';
import { dayOf, type LoginDeps, logIn } from './log-in.ts';
import { recogniseToken } from './recognise-token.ts';
import { validateLegacyCheckout } from './translate-checkout.ts';

export type LegacyDeps = LoginDeps & {
  baseUrl: string;
  legacySunset: string;
  sealing: Sealing;
  callbackAllow: Destinations;
  commitCheckout: CommitCheckout;
  gateways: Pick<Gateways, 'choose'>;
};

declare module 'fastify' {
  interface FastifyRequest {
    /** The merchant that a v1 token is for. */
    tokenMerchant: Merchant;
  }
}

const explainLogin = compileSchema(LoginBody);

/** The plugin API of v1, which will be shut down. It translates requests to v2 (decision 0040). */
export async function legacyRoutes(api: FastifyInstance, deps: LegacyDeps): Promise<void> {
  api.decorateRequest('caller');
  api.decorateRequest('tokenMerchant');
  takeRawBodies(api, legacyMediaTypes);

  // Registered first, so that refusals carry the headers too.
  const headers = deprecationHeaders(deps);
  api.addHook('onRequest', async (_request, reply) => {
    reply.headers(headers);
  });

  const loginRoute = {
    schema: { response: { 200: LoginAnswer } },
    // Anyone can send a login, and its three values need far less space than other bodies.
    config: { bodyBytesMax: 4 * 1024 },
  };
  api.post('/login', loginRoute, async (request, reply) => {
    const network = networkOf(request);
    const login = await readLogin(deps, request, network);
    if (isUuid(login.client_id)) request.claimedClientId = login.client_id.toLowerCase();
    const { caller, token, quota } = await logIn(deps, login, network);
    showQuota(reply, quota);
    request.caller = caller;
    return { token, token_type: 'Bearer' as const, expires_in: tokenSeconds };
  });

  addCheckout(api, deps);
}

function addCheckout(api: FastifyInstance, deps: LegacyDeps): void {
  api.post(
    '/payment/checkout',
    {
      schema: { response: { 200: LegacyCheckoutAnswer } },
      // Authenticate before reading the body.
      onRequest: async (request) => {
        const { caller, merchant } = await recogniseToken(deps, {
          authorization: request.headers.authorization,
          network: networkOf(request),
        });
        request.caller = caller;
        request.tokenMerchant = merchant;
      },
    },
    async (request, reply) => {
      const { caller, tokenMerchant: merchant } = request;
      showQuota(reply, await deps.rateLimits.request(caller, 'POST /api/checkouts', merchant.id));
      // The use is counted before the checkout is created: if counting fails, the 500 truthfully
      // says that nothing was committed (decision 0013).
      await transaction(deps, async ({ db }, maybeCommitted) => {
        const day = dayOf(deps.clock.now());
        if (!maybeCommitted) await advanceUsage(db, caller.id, day, 'checkouts');
      });
      const body = validateLegacyCheckout(readBody(request), merchant, deps.callbackAllow);
      const transaction_verify = deps.random.bytes(32).toString('base64url');
      // v1 has neither signatures nor idempotency keys (decision 0040).
      const post = { caller, key: null, keyed: null };
      const created = await createCheckout(deps, post, merchant, body, transaction_verify);
      return {
        id: created.id,
        payment_url: `${deps.baseUrl}/pay/${paymentToken(deps.sealing, created)}`,
        transaction_verify,
      };
    },
  );
}

/** A malformed login counts as a failed one. */
async function readLogin(
  deps: LegacyDeps,
  request: FastifyRequest,
  network: string,
): Promise<LoginBody> {
  try {
    const body = readBody(request);
    const errors = explainLogin(body);
    if (errors.length > 0) throw validationFailed(errors);
    return body as LoginBody;
  } catch (error) {
    if (error instanceof ApiError) await deps.rateLimits.failedLogin(network, null);
    throw error;
  }
}

function readBody(request: FastifyRequest): JsonObject {
  const { raw, mediaType } = rawBodyOf(request, legacyMediaTypes);
  return readLegacyBody(raw, mediaType);
}
