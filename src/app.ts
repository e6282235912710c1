import type { Socket } from 'node:net';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import { type CheckoutDeps, checkoutRoutes } from './checkouts/checkout.routes.ts';
import type { Config } from './config.ts';
import { docsRoutes } from './docs/docs.routes.ts';
import {
  answerNotFound,
  badRequest,
  handleErrors,
  nothingHere,
  presentErrors,
} from './http/errors.ts';
import { healthRoutes } from './http/health.routes.ts';
import type { Metrics } from './http/metrics.ts';
import { collectRoutes } from './http/openapi.ts';
import { useMerchantApi } from './integrations/merchant-api.ts';
import { type LegacyDeps, legacyRoutes } from './legacy/legacy.routes.ts';
import { merchantRoutes } from './merchants/merchant.routes.ts';
import { type PaymentRouteDeps, paymentRoutes } from './payments/payment.routes.ts';
import { refundRoutes } from './refunds/refund.routes.ts';

export type AppDeps = CheckoutDeps &
  LegacyDeps &
  PaymentRouteDeps & {
    trustProxy: Config['trustProxy'];
    metrics: Metrics;
  };

/** The web side of the service: every slice registered by name. */
export function buildApp(deps: AppDeps): FastifyInstance {
  const app = Fastify({
    loggerInstance: deps.log as FastifyBaseLogger,
    // One line per request, at its end, without the address: a payment token is in it.
    logController: new LogController({
      disableRequestLogging: true,
      requestIdLogLabel: 'request_id',
    }),
    genReqId: () => deps.random.uuid(),
    requestIdHeader: false,
    trustProxy: trustedProxies(deps.trustProxy) as never,
    // A slow client is closed; it must not keep a connection from the others.
    requestTimeout: 9_000,
    // One that does not take its answers is closed too, but later than any answer may come: a
    // request outlives a database that restarts.
    connectionTimeout: 60_000,
    keepAliveTimeout: 60_000,
    http: {
      headersTimeout: 5_000,
      connectionsCheckingInterval: 1_000,
      // Its absence is answered like any other request, by us.
      requireHostHeader: false,
    },
    clientErrorHandler: (error, socket) => answerBrokenRequest(error, socket, deps.random.uuid()),
    // A path that cannot be decoded, or is longer than any of ours, is one that does not exist.
    frameworkErrors: (_error, request, reply) => {
      addCommonHeaders(request, reply);
      answerNotFound(reply);
    },
    forceCloseConnections: 'idle',
    // What reaches us while we stop is served like everything before it, and its connection closed.
    return503OnClosing: false,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: 500 },
  });

  // Bodies are validated in the handlers, inside what makes an answer repeatable; the schemas of
  // the routes describe and serialise.
  app.setValidatorCompiler(() => () => true);
  handleErrors(app);

  app.addHook('onRequest', async (request, reply) => {
    addCommonHeaders(request, reply);
    // Before anybody reads a body that is meant for nothing.
    if (request.is404) throw nothingHere();
  });
  app.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? 'unknown';
    deps.metrics.observeRequest(request.method, route, reply.statusCode, reply.elapsedTime);
    request.log.info(
      {
        method: request.method,
        route,
        status: reply.statusCode,
        milliseconds: Math.round(reply.elapsedTime * 10) / 10,
        integration_id: request.caller?.id,
      },
      'request',
    );
  });

  // An expectation that we do not know is none that we refuse.
  app.server.on('checkExpectation', (request, response) => app.routing(request, response));

  const described = collectRoutes(app);
  app.register((scope) => healthRoutes(scope, deps));
  app.register((scope) => docsRoutes(scope, deps, described));
  app.register((scope) => paymentRoutes(scope, deps));
  app.register((scope) => legacyRoutes(scope, deps));
  app.register(async (api) => {
    useMerchantApi(api, deps);
    await merchantRoutes(api, deps);
    await checkoutRoutes(api, deps);
    await refundRoutes(api, deps);
  });
  return app;
}

/** Fastify takes a number of proxies to mean none; the operator who gives one means it. */
function trustedProxies(trustProxy: Config['trustProxy']): unknown {
  if (typeof trustProxy !== 'number') return trustProxy;
  return (_address: string, hop: number) => hop < trustProxy;
}

function addCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-request-id', request.id);
  reply.header('cache-control', 'no-store');
  reply.header('x-content-type-options', 'nosniff');
}

/** What never became a request (no HTTP, too slow, too large a head) still gets our envelope. */
function answerBrokenRequest(
  error: Error & { code?: string },
  socket: Socket,
  requestId: string,
): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const detail =
    error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
      ? 'The request did not arrive in time.'
      : 'The request is not valid HTTP.';
  const body = JSON.stringify(presentErrors(badRequest(detail)));
  socket.end(
    `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `X-Request-Id: ${requestId}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    () => socket.destroy(),
  );
}
