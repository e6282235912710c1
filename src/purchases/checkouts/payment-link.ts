import type { FastifyInstance, FastifyRequest } from 'fastify';
import { networkOf } from '#platform/http/authentication.ts';
import type { RateLimits } from '#platform/http/rate-limits.ts';
import { takeRawBodies } from '#platform/http/raw-body.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { checkoutOfToken } from './payment-token.ts';

/** The largest body, a consent to the longest plan, is smaller than this. */
const bodyBytesMax = 16 * 1024;

/**
 * The first steps of all routes below `/pay/:token`: open the token, then count the request, before
 * the body is parsed and before the database is read (decision 0007).
 */
export function usePaymentLinks(
  app: FastifyInstance,
  deps: { sealing: Sealing; rateLimits: RateLimits },
): void {
  takeRawBodies(app, ['application/json'], bodyBytesMax);
  app.addHook('onRequest', async (request) => {
    const { token } = request.params as { token?: string };
    if (token === undefined) return;
    const checkout = checkoutOfLink(deps.sealing, request);
    const isPage = request.routeOptions.url === '/pay/:token';
    await deps.rateLimits.paymentPage(networkOf(request), checkout?.id ?? null, isPage);
  });
}

type Key = { merchant_id: string; id: string };
const opened = new WeakMap<FastifyRequest, Key | null>();

/** The checkout of the request's token, which is opened once. Null if we did not make the token. */
export function checkoutOfLink(sealing: Sealing, request: FastifyRequest): Key | null {
  const known = opened.get(request);
  if (known !== undefined) return known;
  const { token } = request.params as { token: string };
  const key = checkoutOfToken(sealing, token);
  opened.set(request, key);
  return key;
}
