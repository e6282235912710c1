import { type FastifyBaseLogger, LogController } from 'fastify';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import { answerBrokenRequest } from './common-headers.ts';
import { trustedProxies } from './trusted-proxies.ts';

/** The options that the API's server and the console's share. `url` is the server's own address. */
export const serverOptions = (
  deps: { log: Logger; random: Random; trustProxy: Parameters<typeof trustedProxies>[0] },
  url: string,
) => ({
  loggerInstance: deps.log as FastifyBaseLogger,
  // We log one line per request ourselves, without its URL, which can contain a payment token or a
  // search term.
  logController: new LogController({
    disableRequestLogging: true,
    requestIdLogLabel: 'request_id',
  }),
  genReqId: () => deps.random.uuid(),
  requestIdHeader: false as const,
  trustProxy: trustedProxies(deps.trustProxy) as never,
  // Slow clients are closed, so that they do not hold connections that others need.
  requestTimeout: 9_000,
  // Clients that do not read their answer are closed. The time is longer than any answer takes: a
  // request may wait while the database restarts.
  connectionTimeout: 60_000,
  http: { headersTimeout: 5_000, connectionsCheckingInterval: 1_000 },
  clientErrorHandler: (error: Error, socket: Parameters<typeof answerBrokenRequest>[1]) =>
    answerBrokenRequest(error, socket, { url, requestId: deps.random.uuid() }),
  forceCloseConnections: 'idle' as const,
  // Requests that arrive while the process stops are served, and then their connections are closed.
  return503OnClosing: false,
  exposeHeadRoutes: true,
});
