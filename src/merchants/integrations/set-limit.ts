import { endpointLimits } from '#platform/http/rate-limits.ts';
import type { Limit } from '#platform/shared/limit.ts';
import { type OperatorDeps, OperatorError, operate, personOf } from '#record/actions/operate.ts';
import { NotPermitted } from '#record/alerts/lift-review.ts';
import { insertLimit, listLimits } from './integration.sql.ts';
import { lockLiveIntegration } from './lock-integration.ts';

const requestsMax = 1_000_000_000;
const windowSecondsMax = 86_400;

/**
 * Replaces the usual limit for one endpoint of one integration (decision 0007). A window that has
 * begun keeps its end; the number of requests allowed in it changes at once. The service bears the
 * load, so only a person with `mayRaiseLimits` may raise a limit.
 */
export async function setLimit(
  deps: OperatorDeps,
  operator: string,
  wanted: Limit & { id: string; endpoint: string; mayRaiseLimits?: boolean },
): Promise<Limit & { id: string; endpoint: string }> {
  const { id, endpoint, max_requests, window_seconds } = wanted;
  if (!Object.hasOwn(endpointLimits, endpoint)) {
    const known = Object.keys(endpointLimits).map((one) => `  ${one}`);
    throw new OperatorError(
      `There is no endpoint "${endpoint}". Name one of these:\n${known.join('\n')}`,
    );
  }
  if (!Number.isInteger(max_requests) || max_requests < 0 || max_requests > requestsMax) {
    throw new OperatorError(
      `A limit is a whole number of requests from 0 to ${requestsMax}. 0 allows none.`,
    );
  }
  if (
    !Number.isInteger(window_seconds) ||
    window_seconds < 1 ||
    window_seconds > windowSecondsMax
  ) {
    throw new OperatorError(`A window is 1 to ${windowSecondsMax} seconds long (at most a day).`);
  }
  const usual = endpointLimits[endpoint as keyof typeof endpointLimits];
  return await operate(deps, operator, 'integrations limit', async (db) => {
    const integration = await lockLiveIntegration(db, id);
    const limit = { endpoint, max_requests, window_seconds };
    const earlier = (await listLimits(db, integration.id)).find((one) => one.endpoint === endpoint);
    const before = pickLimit(earlier ?? usual);
    if (isAbove(wanted, before) && personOf(deps) !== null && wanted.mayRaiseLimits !== true) {
      throw new NotPermitted(
        `Only an administrator of the payment service may raise this limit. It is ${before.max_requests} in ${before.window_seconds} s.`,
      );
    }
    await insertLimit(db, { integration_id: integration.id, ...limit });
    return {
      subject_id: integration.id,
      merchant_id: integration.merchant_id,
      details: { ...limit, before },
      result: { id: integration.id, ...limit },
    };
  });
}

/** Whether a limit allows more requests, at once or on average. */
const isAbove = (one: Limit, other: Limit) =>
  one.max_requests > other.max_requests ||
  one.max_requests * other.window_seconds > other.max_requests * one.window_seconds;

const pickLimit = ({ max_requests, window_seconds }: Limit): Limit => ({
  max_requests,
  window_seconds,
});
