import type { FastifyRequest } from 'fastify';
import type { Clock } from '#platform/shared/clock.ts';
import { clientAddress } from './authentication.ts';
import type { Metrics } from './metrics.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The `client_id` in a login, whether it exists or not. */
    claimedClientId?: string;
  }
}

const linesPerMinuteMax = 30;

/**
 * Logs refused authentications of the API as security events, and counts each. A flood does not
 * fill the log: it gets a limited number of lines a minute, and the next line says how many were
 * left out.
 */
export function noteRefusedAuthentications({
  clock,
  metrics,
}: {
  clock: Clock;
  metrics: Metrics;
}): (request: FastifyRequest) => void {
  let minute = -1;
  let lines = 0;
  let leftOut = 0;
  return (request) => {
    metrics.countSecurityEvent('authentication_refused');
    const now = Math.floor(clock.now().epochMilliseconds / 60_000);
    if (now !== minute) [minute, lines] = [now, 0];
    if (lines >= linesPerMinuteMax) {
      leftOut += 1;
      return;
    }
    lines += 1;
    request.log.warn(
      {
        security_event: 'authentication_refused',
        method: request.method,
        route: request.routeOptions.url ?? 'unknown',
        address: clientAddress(request),
        client_id: request.claimedClientId ?? null,
        ...(leftOut > 0 && { left_out: leftOut }),
      },
      'security event',
    );
    leftOut = 0;
  };
}
