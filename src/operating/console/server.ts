import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { mayUse } from '#operating/people/console-place.ts';
import { originOf, recogniseSession } from '#operating/people/console-session.ts';
import { permissionsOf } from '#operating/people/permission.ts';
import { startDeadline } from '#platform/database/deadline.ts';
import { clientAddress, networkOf } from '#platform/http/authentication.ts';
import { commonHeaders } from '#platform/http/common-headers.ts';
import { jsonBodyOf, takeRawBodies } from '#platform/http/raw-body.ts';
import { compileWhenUsed } from '#platform/http/serialisers.ts';
import { serverOptions, type TlsSettings } from '#platform/http/server-options.ts';
import { serveApplication } from './application.ts';
import { sessionTokenOf } from './cookie.ts';
import {
  answerConsoleError,
  ConsoleError,
  forbidden,
  notFound,
  notSignedIn,
  refusalOf,
} from './errors.ts';
import { inputReader } from './input.ts';
import { requireReauthentication } from './reauthentication.ts';
import type { ConsoleDeps, ConsoleRoute, Context, PublicContext } from './route.ts';
import { consoleRoutes } from './routes.ts';
import { merchantConsole } from './settings.ts';

const bodyBytesMax = 64 * 1024;

/**
 * A page that refreshes itself sends this header, so that its requests do not keep a session alive.
 */
const backgroundHeader = 'tranche-background';

/** Returns the dependencies with the settings for the console at the merchants' origin. */
export const atMerchants = (deps: ConsoleDeps, url: string): ConsoleDeps => ({
  ...deps,
  console: merchantConsole(url, deps.console),
  get draining() {
    return deps.draining;
  },
});

/** Builds the console, a separate application on its own origin. */
export function buildConsole(deps: ConsoleDeps, tls: TlsSettings | null = null): FastifyInstance {
  const app = Fastify({
    ...serverOptions(deps, { url: deps.console.url, tls }),
    // A path that cannot be decoded or is too long is counted, and answered as not found.
    frameworkErrors: (_error, request, reply) => {
      addHeaders(deps, request, reply);
      deps.rateLimits.consoleRequest(networkOf(request)).then(
        () => answerConsoleError(notFound(), request, reply),
        (error: Error) => answerConsoleError(error, request, reply),
      );
    },
    routerOptions: { maxParamLength: 200 },
  });
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(compileWhenUsed);
  app.setErrorHandler((error: Error, request, reply) => answerConsoleError(error, request, reply));
  app.setNotFoundHandler((request, reply) => answerConsoleError(notFound(), request, reply));
  takeRawBodies(app, ['application/json'], bodyBytesMax);

  app.addHook('onRequest', async (request, reply) => {
    startDeadline(deps.clock, deps.requestDeadlineSeconds * 1_000);
    addHeaders(deps, request, reply);
    if (deps.draining) reply.header('connection', 'close');
    // The limit is checked before any other work, even for paths that do not exist.
    await deps.rateLimits.consoleRequest(networkOf(request));
  });
  app.addHook('onResponse', async (request, reply) => {
    noteSecurityEvent(deps, request);
    request.log.info(
      {
        method: request.method,
        route: `console ${request.routeOptions.url ?? 'unknown'}`,
        status: reply.statusCode,
        milliseconds: Math.round(reply.elapsedTime * 10) / 10,
        session_id: sessionIdOf(contexts.get(request)),
      },
      'request',
    );
  });

  for (const route of consoleRoutes) addRoute(app, deps, route);
  serveApplication(app, deps);
  return app;
}

const contexts = new WeakMap<FastifyRequest, PublicContext | Context>();

const sessionIdOf = (context: PublicContext | Context | undefined) =>
  context && 'session' in context ? context.session.id : undefined;

const signInUrls = new Set(consoleRoutes.filter((one) => one.isSignIn).map(({ url }) => url));
const permissionCodes = ['forbidden', 'foreign_origin'];

/**
 * Logs and counts refused sign-ins, re-authentications and permissions. The log names the browser's
 * network address, the person and the session.
 */
function noteSecurityEvent(deps: ConsoleDeps, request: FastifyRequest): void {
  const refusal = refusalOf(request);
  if (refusal === null) return;
  const { url = 'unknown' } = request.routeOptions;
  const isSignIn = signInUrls.has(url) || refusal === 'not_recognised';
  if (!isSignIn && !permissionCodes.includes(refusal)) return;
  const security_event = isSignIn ? 'sign_in_refused' : 'permission_refused';
  const context = contexts.get(request);
  deps.metrics.countSecurityEvent(security_event);
  request.log.warn(
    {
      security_event,
      refusal,
      method: request.method,
      route: `console ${url}`,
      address: clientAddress(request),
      person_id: context && 'person' in context ? context.person.id : null,
      session_id: sessionIdOf(context),
    },
    'security event',
  );
}

/** The checks are made in the order of these statements. */
function addRoute(app: FastifyInstance, deps: ConsoleDeps, route: ConsoleRoute): void {
  const { params, query, body } = route.schema;
  const readParams = inputReader(params, 'params');
  const readQuery = inputReader(query, 'query');
  const readBody = inputReader(body, 'body');

  app.route({
    method: route.method,
    url: route.url,
    schema: { response: { 200: route.schema.response } },
    ...(route.bodyBytesMax && { config: { bodyBytesMax: route.bodyBytesMax } }),
    async onRequest(request, reply) {
      const address = clientAddress(request);
      const open: PublicContext = { deps, address, request, reply };
      const { permission } = route;
      if (permission !== 'public' || route.isSignIn) await refuseClosed(deps);
      const context = permission === 'public' ? null : await recognise(open);
      contexts.set(request, context ?? open);
      if (route.method !== 'GET') refuseForeignOrigin(deps, request);
      if (route.isSignIn) await deps.rateLimits.consoleSignIn(networkOf(request));
      if (context === null || permission === 'public') return;
      if (permission !== 'signed-in' && !context.may(permission)) throw forbidden();
      if (route.fresh) requireReauthentication(context);
    },
    async handler(request) {
      const input = {
        params: readParams(request.params),
        query: readQuery(request.query),
        body: body === undefined ? undefined : readBody(jsonBodyOf(request).value),
      };
      return await route.handle(contexts.get(request), input);
    },
  });
}

/**
 * Refuses access while the database may be a restored backup, in which revoked people could sign
 * in. Access opens once the gateways were compared, or an operator has confirmed it.
 */
async function refuseClosed({ money }: ConsoleDeps): Promise<void> {
  const problem = await money.accessProblem();
  if (problem !== null) throw new ConsoleError(503, 'access_waits', problem);
}

async function recognise(open: PublicContext): Promise<Context> {
  const { deps, address, request } = open;
  const token = sessionTokenOf(request, deps.console.url);
  if (token === null) throw notSignedIn();
  const isActive = request.headers[backgroundHeader] === undefined;
  const found = await recogniseSession(deps, token, isActive);
  // The token of a staff session is worthless at the merchants' origin.
  if (!found || !mayUse(deps.console, found.person)) throw notSignedIn();
  const { session, person } = found;
  const { id, name, email, roles, merchant_ids } = person;
  const permissions = permissionsOf(roles, merchant_ids === null);
  const origin = originOf(deps, found, address);
  return {
    ...open,
    deps: { ...deps, origin },
    operator: email,
    session,
    scope: merchant_ids === null ? 'all merchants' : { merchant_ids },
    may: (permission) => permissions.includes(permission),
    requireReauthentication: () => requireReauthentication({ deps: { ...deps, origin }, session }),
    person: { id, name, email, roles, permissions },
  };
}

/** Browsers send the origin with every request that can change something. */
function refuseForeignOrigin(deps: ConsoleDeps, request: FastifyRequest): void {
  if (request.headers.origin === deps.console.url) return;
  throw new ConsoleError(403, 'foreign_origin', 'This request comes from another site.');
}

function addHeaders(deps: ConsoleDeps, request: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-request-id', request.id);
  reply.headers(commonHeaders(deps.console.url));
  reply.header('x-frame-options', 'DENY');
  reply.header('cross-origin-opener-policy', 'same-origin');
  reply.header('cross-origin-resource-policy', 'same-origin');
  reply.header(
    'permissions-policy',
    'publickey-credentials-get=(self), publickey-credentials-create=(self), camera=(), microphone=(), geolocation=(), payment=()',
  );
}
