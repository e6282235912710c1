import { endpointLimits } from '../http/rate-limits.ts';
import { type OperatorDeps, OperatorError, operate } from '../operators/operate.ts';
import type { Limit } from '../shared/limit.ts';
import { insertLimit } from './integration.sql.ts';
import { lockLiveIntegration } from './lock-integration.ts';

const largestCount = 1_000_000_000;
const longestWindowSeconds = 86_400;

/**
 * Another limit than the spec's for one endpoint of one integration (D16). A window that has
 * begun keeps its end; how many requests fit into it changes at once.
 */
export async function setLimit(
  deps: OperatorDeps,
  operator: string,
  wanted: Limit & { id: string; endpoint: string },
): Promise<Limit & { id: string; endpoint: string }> {
  const { id, endpoint, max_requests, window_seconds } = wanted;
  if (!Object.hasOwn(endpointLimits, endpoint)) {
    const known = Object.keys(endpointLimits).map((one) => `  ${one}`);
    throw new OperatorError(
      `There is no endpoint "${endpoint}". Limits are per one of these:\n${known.join('\n')}`,
    );
  }
  if (!Number.isInteger(max_requests) || max_requests < 0 || max_requests > largestCount) {
    throw new OperatorError(
      `A limit is a whole number of requests from 0 (none at all) to ${largestCount}.`,
    );
  }
  if (
    !Number.isInteger(window_seconds) ||
    window_seconds < 1 ||
    window_seconds > longestWindowSeconds
  ) {
    throw new OperatorError(`A window has 1 to ${longestWindowSeconds} seconds, a day.`);
  }
  return await operate(deps, operator, 'integrations limit', async (db) => {
    const integration = await lockLiveIntegration(db, id);
    const limit = { endpoint, max_requests, window_seconds };
    await insertLimit(db, { integration_id: integration.id, ...limit });
    return {
      subject_id: integration.id,
      details: limit,
      result: { id: integration.id, ...limit },
    };
  });
}
