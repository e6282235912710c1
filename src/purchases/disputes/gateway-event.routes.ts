import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type GatewayName, mainGateway } from '#gateway/gateway-name.ts';
import { isMoneyStopped, type MoneyProblem } from '#gateway/guard-gateway.ts';
import { networkOf } from '#platform/http/authentication.ts';
import { ApiError, badRequest } from '#platform/http/errors.ts';
import type { RateLimits } from '#platform/http/rate-limits.ts';
import { rawBodyOf, takeRawBodies } from '#platform/http/raw-body.ts';
import { findNewDisputesAt, readKnown } from './check-disputes.ts';
import type { DisputeDeps } from './record-dispute.ts';

type EventDeps = DisputeDeps & { rateLimits: RateLimits; money: MoneyProblem };

const json = ['application/json'] as const;
const bodyBytesMax = 256 * 1024;

/**
 * The gateway announces changes to disputes. An announcement is a hint: its signature is checked,
 * and the dispute is read again at the gateway, whatever the announcement says (decision 0082).
 */
export async function gatewayEventRoutes(api: FastifyInstance, deps: EventDeps): Promise<void> {
  takeRawBodies(api, json, bodyBytesMax);
  const receiving = deps.gateways.names.filter(
    (name) => deps.gateways.of(name).capabilities.sendsEvents,
  );
  // The path without a gateway's name belongs to the main gateway, or else to the first in the
  // settings.
  const { names } = deps.gateways;
  const single = names.includes(mainGateway) ? mainGateway : names[0];
  for (const name of receiving) {
    const receive = receiver(deps, name);
    api.post(`/gateway/events/${name}`, receive);
    if (name === single) api.post('/gateway/events', receive);
  }
}

function receiver(deps: EventDeps, gateway: GatewayName) {
  const seen = new Set<string>();
  return async (request: FastifyRequest) => {
    const { raw } = rawBodyOf(request, json);
    const header = (name: string) => String(request.headers[name] ?? '');
    const hint = await deps.gateways.of(gateway).readEvent(raw, header);
    if (hint === null) {
      await deps.rateLimits.failedAuthentication(networkOf(request));
      throw badRequest('The signature does not match the body.');
    }
    // Money is stopped after a restore until `recordLost` has run. It must record payments before
    // disputes, because a dispute pauses its plan, and a paused payment cannot be recorded. The
    // gateway will send the event again.
    if (await isMoneyStopped(deps.money, gateway)) {
      throw new ApiError(503, 'service_unavailable', ['Events are not read now. Try again later.']);
    }
    const { event_id, dispute_ref } = hint;
    // A gateway repeats an event until it gets an answer.
    if (event_id !== null && seen.has(event_id)) return { received: true };
    const isKnown = dispute_ref === null || (await readKnown(deps, gateway, dispute_ref)) !== null;
    if (!isKnown) await findNewDisputesAt(deps, gateway);
    if (event_id !== null) remember(seen, event_id);
    return { received: true };
  };
}

/**
 * How many of the newest events a process remembers. A repeated event that reaches another process
 * is handled again.
 */
const seenMax = 1_000;

function remember(seen: Set<string>, event_id: string): void {
  seen.add(event_id);
  const [oldest] = seen;
  if (seen.size > seenMax && oldest !== undefined) seen.delete(oldest);
}
