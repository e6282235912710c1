import type { FastifyInstance } from 'fastify';
import { isMoneyStopped, type MoneyProblem } from '#gateway/guard-gateway.ts';
import { findMerchant } from '#merchants/merchant.sql.ts';
import { networkOf } from '#platform/http/authentication.ts';
import { ApiError, badRequest } from '#platform/http/errors.ts';
import type { RateLimits } from '#platform/http/rate-limits.ts';
import { rawBodyOf, takeRawBodies } from '#platform/http/raw-body.ts';
import { type DisputeDeps, findNewDisputes, readAgain } from './check-disputes.ts';
import { findDisputeOfAny } from './dispute.sql.ts';

const json = ['application/json'] as const;
const bodyBytesMax = 256 * 1024;

/**
 * The gateway announces changes of disputes. An announcement is a hint: its signature is checked, and
 * the dispute is read again at the gateway, whatever the announcement says of it (decision 0082).
 */
export async function gatewayEventRoutes(
  api: FastifyInstance,
  deps: DisputeDeps & { rateLimits: RateLimits; money: MoneyProblem },
): Promise<void> {
  takeRawBodies(api, json, bodyBytesMax);
  api.post('/gateway/events', async (request) => {
    const { raw } = rawBodyOf(request, json);
    const signature = request.headers['stripe-signature'];
    const hint = await deps.gateway.readEvent(raw, String(signature ?? ''));
    if (hint === null) {
      await deps.rateLimits.failedAuthentication(networkOf(request));
      throw badRequest('The signature does not fit the body.');
    }
    // `recordLost` records payments before disputes, which pause plans. The gateway asks again.
    if (await isMoneyStopped(deps.money)) {
      throw new ApiError(503, 'service_unavailable', ['Events are not read now. Try again later.']);
    }
    if (hint.dispute_ref !== null) await readAnnounced(deps, hint.dispute_ref);
    return { received: true };
  });
}

async function readAnnounced(deps: DisputeDeps, dispute_ref: string): Promise<void> {
  const { db } = deps.database;
  const known = await findDisputeOfAny(db, { dispute_ref });
  const merchant = known && (await findMerchant(db, deps.clock, known.merchant_id));
  if (known && merchant) await readAgain(deps, merchant, known);
  else await findNewDisputes(deps);
}
