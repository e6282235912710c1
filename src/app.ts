import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { useMerchantApi } from '#merchants/integrations/merchant-api.ts';
import { merchantRoutes } from '#merchants/merchant.routes.ts';
import { docsRoutes } from '#operating/docs/docs.routes.ts';
import { startDeadline } from '#platform/database/deadline.ts';
import { commonHeaders } from '#platform/http/common-headers.ts';
import { answerNotFound, handleErrors, nothingHere } from '#platform/http/errors.ts';
import { healthRoutes } from '#platform/http/health.routes.ts';
import type { Metrics } from '#platform/http/metrics.ts';
import type { AccessDeps } from '#platform/http/open-access.ts';
import { collectRoutes } from '#platform/http/openapi.ts';
import { noteRefusedAuthentications } from '#platform/http/refused-authentications.ts';
import { compileWhenUsed } from '#platform/http/serialisers.ts';
import { serverOptions } from '#platform/http/server-options.ts';
import type { Tracer } from '#platform/tracing/trace.ts';
import { traceRequests } from '#platform/tracing/trace-requests.ts';
import { type CheckoutDeps, checkoutRoutes } from '#purchases/checkouts/checkout.routes.ts';
import { gatewayEventRoutes } from '#purchases/disputes/gateway-event.routes.ts';
import { type LegacyDeps, legacyRoutes } from '#purchases/legacy/legacy.routes.ts';
import type { MerchantMailDeps } from '#purchases/messages/mail-merchant.ts';
import { linkRoutes } from '#purchases/payment-links/link.routes.ts';
import { paymentLinkRoutes } from '#purchases/payment-links/payment-link.routes.ts';
import { payoutRoutes } from '#purchases/payouts/payout.routes.ts';
import { refundRoutes } from '#purchases/refunds/refund.routes.ts';
import type { PageDeps } from '#purchases/shoppers/open-page.ts';
import type { ShopperDeps } from '#purchases/shoppers/open-plan.ts';
import { pageRoutes } from '#purchases/shoppers/page.routes.ts';
import { paymentRoutes } from '#purchases/shoppers/payment.routes.ts';
import { planRoutes } from '#purchases/shoppers/plan.routes.ts';
import { receiptRoutes } from '#purchases/shoppers/receipt.routes.ts';
import { shopperRoutes } from '#purchases/shoppers/shopper.routes.ts';
import type { Config } from './config.ts';

export type AppDeps = CheckoutDeps &
  LegacyDeps &
  PageDeps &
  MerchantMailDeps &
  ShopperDeps & {
    trustProxy: Config['trustProxy'];
    tls: Config['tls'];
    requestDeadlineSeconds: Config['requestDeadlineSeconds'];
    metrics: Metrics;
    /** Null if no trace collector is set. */
    tracer: Tracer | null;
    /**
     * Whether the process is about to stop. It still serves, but asks clients to open new
     * connections.
     */
    draining: boolean;
    /** Why the time cannot be trusted, or null. */
    clockProblem(): string | null;
    money: AccessDeps['money'] & { stopReason(): Promise<string | null> };
  };

/** Builds the web side of the service, with the routes of every slice. */
export function buildApp(deps: AppDeps): FastifyInstance {
  const headers = commonHeaders(deps.baseUrl);
  const app = createServer(deps, headers);

  // Handlers validate bodies, inside `answerOnce`, so that a refusal can be replayed (decision
  // 0008). Route schemas only describe and serialise.
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(compileWhenUsed);
  handleErrors(app, deps.metrics);
  if (deps.tracer) traceRequests(app, deps.tracer);
  addHooks(app, deps, headers);

  // An unknown Expect header is ignored. Node would refuse the request.
  app.server.on('checkExpectation', (...exchange) => app.server.emit('request', ...exchange));

  const described = collectRoutes(app);
  app.register((scope) => healthRoutes(scope, deps));
  app.register((scope) => docsRoutes(scope, deps, described));
  app.register((scope) => pageRoutes(scope, deps));
  app.register((scope) => paymentRoutes(scope, deps));
  app.register((scope) => planRoutes(scope, deps));
  app.register((scope) => receiptRoutes(scope, deps));
  app.register((scope) => linkRoutes(scope, deps));
  app.register((scope) => shopperRoutes(scope, deps));
  app.register((scope) => legacyRoutes(scope, deps));
  app.register((scope) => gatewayEventRoutes(scope, deps));
  app.register(async (api) => {
    useMerchantApi(api, deps);
    await merchantRoutes(api, deps);
    await checkoutRoutes(api, deps);
    await paymentLinkRoutes(api, deps);
    await refundRoutes(api, deps);
    await payoutRoutes(api, deps);
  });
  return app;
}

function createServer(deps: AppDeps, headers: Record<string, string>): FastifyInstance {
  return Fastify({
    // Node would answer a missing Host header itself, without our envelope.
    ...serverOptions(deps, { url: deps.baseUrl, tls: deps.tls }, { requireHostHeader: false }),
    keepAliveTimeout: 60_000,
    // A path that cannot be decoded or is too long is answered as not found.
    frameworkErrors: (_error, request, reply) => {
      addCommonHeaders(headers, request, reply);
      answerNotFound(reply);
    },
    routerOptions: { maxParamLength: 500 },
  });
}

/** Adds to every request its deadline, its headers, its metrics and its log line. */
function addHooks(app: FastifyInstance, deps: AppDeps, headers: Record<string, string>): void {
  const noteRefused = noteRefusedAuthentications(deps);
  app.addHook('onRequest', (request, reply, next) => {
    startDeadline(deps.clock, deps.requestDeadlineSeconds * 1_000);
    addCommonHeaders(headers, request, reply);
    if (deps.draining) reply.header('connection', 'close');
    // An unknown path is refused before its body is read.
    next(request.is404 ? nothingHere() : undefined);
  });
  // This hook is async, so that what it throws is logged. An error thrown from a hook with a
  // callback would end the process.
  app.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? 'unknown';
    deps.metrics.observeRequest(request.method, route, reply.statusCode, reply.elapsedTime);
    if (reply.statusCode === 401) noteRefused(request);
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
}

function addCommonHeaders(
  headers: Record<string, string>,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  reply.header('x-request-id', request.id);
  reply.headers(headers);
}
