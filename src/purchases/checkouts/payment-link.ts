import type { FastifyInstance } from 'fastify';
import { networkOf } from '#platform/http/authentication.ts';
import type { RateLimits } from '#platform/http/rate-limits.ts';
import { takeRawBodies } from '#platform/http/raw-body.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { checkoutOfToken } from './payment-token.ts';

/** Consent to the longest plan takes less. */
const bodyBytesMax = 16 * 1024;

/**
 * The first steps of all routes below `/pay/:token`: count the request per network and link, before
 * the body is parsed and before the database is asked (decision 0007).
 */
export function usePaymentLinks(
  app: FastifyInstance,
  deps: { sealing: Sealing; rateLimits: RateLimits },
): void {
  takeRawBodies(app, ['application/json'], bodyBytesMax);
  app.addHook('onRequest', async (request) => {
    const { token } = request.params as { token?: string };
    if (token === undefined) return;
    const checkout = checkoutOfToken(deps.sealing, token);
    await deps.rateLimits.paymentPage(networkOf(request), checkout?.id ?? null);
  });
}
