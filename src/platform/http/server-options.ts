import type { ServerOptions } from 'node:http';
import { type FastifyBaseLogger, LogController } from 'fastify';
import type { Logger } from '#platform/shared/logger.ts';
import { isLoopback } from '#platform/shared/loopback.ts';
import type { Random } from '#platform/shared/random.ts';
import { answerBrokenRequest } from './common-headers.ts';
import { trustedProxies } from './trusted-proxies.ts';

/** The certificate and the key that the service itself listens with, as PEM. */
export type TlsSettings = { cert: string; key: string };

/**
 * TLS is for connections that leave the machine. A console at `http://localhost` keeps its address.
 */
export const tlsAt = (tls: TlsSettings | null, host: string) => (isLoopback(host) ? null : tls);

type ServerDeps = {
  log: Logger;
  random: Random;
  trustProxy: Parameters<typeof trustedProxies>[0];
};

/** The options that the API's server and the console's share. `url` is the server's own address. */
export const serverOptions = (
  deps: ServerDeps,
  { url, tls }: { url: string; tls: TlsSettings | null },
  http: ServerOptions = {},
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
  // Slow clients are disconnected, so that they do not hold connections that others need.
  requestTimeout: 9_000,
  // Clients that do not read their answer are disconnected. The time is longer than any answer
  // takes: a request may wait while the database restarts.
  connectionTimeout: 60_000,
  ...listenerOptions(tls, {
    headersTimeout: 5_000,
    connectionsCheckingInterval: 1_000,
    ...http,
  }),
  clientErrorHandler: (error: Error, socket: Parameters<typeof answerBrokenRequest>[1]) =>
    answerBrokenRequest(error, socket, { url, requestId: deps.random.uuid() }),
  forceCloseConnections: 'idle' as const,
  // Requests that arrive while the process stops are served, and then their connections are closed.
  return503OnClosing: false,
  exposeHeadRoutes: true,
});

/** A client that stalls in the handshake is disconnected like one that stalls in its headers. */
export const tlsLimits = { minVersion: 'TLSv1.2', handshakeTimeout: 5_000 } as const;

/**
 * A server with TLS has the handlers and the limits of one without, so the types need not differ.
 */
function listenerOptions(tls: TlsSettings | null, http: ServerOptions): { http: ServerOptions } {
  if (tls === null) return { http };
  return { https: { ...http, ...tls, ...tlsLimits } } as never;
}
