import type { FastifyRequest } from 'fastify';
import Type, { type Static, type TSchema } from 'typebox';
import { beginOidc, finishOidc, NotTied, type OidcSettings } from '#operating/people/oidc.ts';
import {
  type Browser,
  findInvited,
  type Opened,
  offerInvited,
  offerSignIn,
  registerInvited,
  signInByLink,
  signInByPasskey,
} from '#operating/people/sign-in.ts';
import { NotRecognised } from '#operating/people/webauthn.ts';
import { setSessionCookie, setStateCookie, stateOf } from './cookie.ts';
import { noteRefusal, notFound } from './errors.ts';
import {
  browserOf,
  type ConsoleDeps,
  type ConsoleRoute,
  type PublicContext,
  publicRoute,
} from './route.ts';
import {
  AuthenticationBody,
  AuthenticationOptions,
  Done,
  Invited,
  LinkBody,
  RegisterBody,
  RegistrationOptions,
  SignInWays,
} from './session.schema.ts';

export const signInRoutes: ConsoleRoute[] = [
  publicRoute({
    method: 'GET',
    url: '/api/sign-in',
    isSignIn: false,
    schema: { response: SignInWays },
    handle: async ({ deps }) => ({
      oidc: deps.console.oidc !== null,
      sandbox: deps.console.allowsSignInLinks,
      is_for_merchants: deps.console.isForMerchants,
    }),
  }),
  publicRoute({
    method: 'POST',
    url: '/api/sign-in/options',
    schema: { response: AuthenticationOptions },
    handle: async ({ deps }) => ({ options: await offerSignIn(deps) }),
  }),
  openingRoute('/api/sign-in', AuthenticationBody, (deps, browser, { response }) =>
    signInByPasskey(deps, browser, response),
  ),
  openingRoute('/api/sign-in/link', LinkBody, async (deps, browser, { token }) => {
    if (!deps.console.allowsSignInLinks) throw notFound();
    return await signInByLink(deps, browser, token);
  }),
  issuerRoute('/api/sign-in/oidc', async (context, oidc) => {
    const { deps, request, reply } = context;
    // A link on another site must not sign a person in: they have to press the button here.
    if (isFromElsewhere(request)) return '/sign-in';
    const { url, state } = await beginOidc(deps, oidc, { token: browserOf(context).token });
    setStateCookie(reply, deps.console.url, state);
    return url;
  }),
  issuerRoute('/api/sign-in/oidc/callback', async (context, oidc) => {
    const { deps, request, reply } = context;
    const { url } = deps.console;
    const stateOfBrowser = stateOf(request, url);
    setStateCookie(reply, url, null);
    const query = URL.parse(request.url, url)?.search ?? '';
    const opened = await finishOidc(deps, oidc, browserOf(context), { query, stateOfBrowser });
    if (opened === 'tied') return '/me';
    setSessionCookie(reply, url, opened.token);
    return '/';
  }),
  publicRoute({
    method: 'POST',
    url: '/api/invitation',
    schema: { body: LinkBody, response: Invited },
    async handle({ deps }, { body }) {
      const { person, ...link } = await findInvited(deps, body.token, 'register');
      return { ...person, ...link };
    },
  }),
  publicRoute({
    method: 'POST',
    url: '/api/invitation/options',
    schema: { body: LinkBody, response: RegistrationOptions },
    handle: async ({ deps }, { body }) => ({ options: await offerInvited(deps, body.token) }),
  }),
  openingRoute('/api/invitation/register', RegisterBody, registerInvited),
];

/**
 * Makes a route that opens a session. It sets the cookie, and its answer does not contain the
 * token.
 */
function openingRoute<const Body extends TSchema>(
  url: string,
  body: Body,
  open: (deps: ConsoleDeps, browser: Browser, body: Static<Body>) => Promise<Opened>,
): ConsoleRoute {
  return publicRoute({
    method: 'POST',
    url,
    schema: { body, response: Done },
    async handle(context, input) {
      const { deps, reply } = context;
      const { token } = await open(deps, browserOf(context), input.body as Static<Body>);
      setSessionCookie(reply, deps.console.url, token);
      return { done: true };
    },
  });
}

/** Makes a route on the way to the issuer and back. `handle` returns where the browser goes. */
function issuerRoute(
  url: string,
  handle: (context: PublicContext, oidc: OidcSettings) => Promise<string>,
): ConsoleRoute {
  return publicRoute({
    method: 'GET',
    url,
    // The answer is a redirect without a body.
    schema: { response: Type.Null() },
    async handle(context) {
      const { oidc } = context.deps.console;
      if (oidc === null) throw notFound();
      const target = await handle(context, oidc).catch((error) => refuseOidc(context, error));
      return context.reply.redirect(target, 303);
    },
  });
}

/** Browsers say where a navigation began. `none` means the address bar or a bookmark. */
function isFromElsewhere({ headers }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site'];
  return site !== undefined && site !== 'same-origin' && site !== 'none';
}

/**
 * The browser is navigating, so it would show the body of an error as it is. Returns the path of
 * the console's page that explains what happened.
 */
function refuseOidc({ request }: PublicContext, error: unknown): string {
  const isSignedIn = error instanceof NotTied;
  const cause = isSignedIn || error instanceof NotRecognised ? (error.cause ?? error) : error;
  noteRefusal(request, isSignedIn ? 'not_tied' : 'not_recognised');
  request.log.warn({ err: cause }, 'a sign-in through the OIDC issuer failed');
  return isSignedIn ? '/me?refused=issuer' : '/sign-in?refused=oidc';
}
