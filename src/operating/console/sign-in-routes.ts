import type { FastifyReply, FastifyRequest } from 'fastify';
import Type from 'typebox';
import { beginOidc, finishOidc, NotTied } from '#operating/people/oidc.ts';
import {
  type Browser,
  findInvited,
  offerInvited,
  offerSignIn,
  registerInvited,
  signInByLink,
  signInByPasskey,
} from '#operating/people/sign-in.ts';
import { NotRecognised } from '#operating/people/webauthn.ts';
import { setSessionCookie, setStateCookie, stateOf } from './cookie.ts';
import { noteRefusal, notFound } from './errors.ts';
import { type ConsoleRoute, type PublicContext, publicRoute } from './route.ts';
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

/** No body: the answer is a redirect. */
const Redirect = Type.Null();

/** The ways to get a session. Each sets the cookie and answers without the token. */
export const signInRoutes: ConsoleRoute[] = [
  publicRoute({
    method: 'GET',
    url: '/api/sign-in',
    isSignIn: false,
    schema: { response: SignInWays },
    handle: async ({ deps }) => ({
      oidc: deps.console.oidc !== null,
      sandbox: deps.console.allowsSignInLinks,
    }),
  }),
  publicRoute({
    method: 'POST',
    url: '/api/sign-in/options',
    isSignIn: true,
    schema: { response: AuthenticationOptions },
    handle: async ({ deps }) => ({ options: await offerSignIn(deps) }),
  }),
  publicRoute({
    method: 'POST',
    url: '/api/sign-in',
    isSignIn: true,
    schema: { body: AuthenticationBody, response: Done },
    async handle(context, { body }) {
      const { deps } = context;
      const { token } = await signInByPasskey(deps, browserOf(context), body.response);
      return signedIn(context, token);
    },
  }),
  publicRoute({
    method: 'POST',
    url: '/api/sign-in/link',
    isSignIn: true,
    schema: { body: LinkBody, response: Done },
    async handle(context, { body }) {
      const { deps } = context;
      if (!deps.console.allowsSignInLinks) throw notFound();
      const { token } = await signInByLink(deps, browserOf(context), body.token);
      return signedIn(context, token);
    },
  }),
  publicRoute({
    method: 'GET',
    url: '/api/sign-in/oidc',
    isSignIn: true,
    schema: { response: Redirect },
    async handle({ deps, request, reply }) {
      const { oidc } = deps.console;
      if (oidc === null) throw notFound();
      // A link on another site must not sign a person in: they press the button here.
      if (isFromElsewhere(request)) return reply.redirect('/sign-in', 303);
      try {
        const { url, state } = await beginOidc(deps, oidc);
        setStateCookie(reply, deps.console.url, state);
        return reply.redirect(url, 303);
      } catch (error) {
        return refuseOidc(request, reply, error);
      }
    },
  }),
  publicRoute({
    method: 'GET',
    url: '/api/sign-in/oidc/callback',
    isSignIn: true,
    schema: { response: Redirect },
    async handle(context) {
      const { deps, request, reply } = context;
      const { oidc, url } = deps.console;
      if (oidc === null) throw notFound();
      const stateOfBrowser = stateOf(request, url);
      setStateCookie(reply, url, null);
      try {
        const query = URL.parse(request.url, url)?.search ?? '';
        const answer = { query, stateOfBrowser };
        const opened = await finishOidc(deps, oidc, browserOf(context), answer);
        if (opened === 'tied') return reply.redirect('/me', 303);
        setSessionCookie(reply, url, opened.token);
        return reply.redirect('/', 303);
      } catch (error) {
        return refuseOidc(request, reply, error);
      }
    },
  }),
  publicRoute({
    method: 'POST',
    url: '/api/invitation',
    isSignIn: true,
    schema: { body: LinkBody, response: Invited },
    async handle({ deps }, { body }) {
      const { person, expires_at } = await findInvited(deps, body.token, 'register');
      const { email, name, roles } = person;
      return { email, name, roles, expires_at };
    },
  }),
  publicRoute({
    method: 'POST',
    url: '/api/invitation/options',
    isSignIn: true,
    schema: { body: LinkBody, response: RegistrationOptions },
    handle: async ({ deps }, { body }) => ({ options: await offerInvited(deps, body.token) }),
  }),
  publicRoute({
    method: 'POST',
    url: '/api/invitation/register',
    isSignIn: true,
    schema: { body: RegisterBody, response: Done },
    async handle(context, { body }) {
      const { token } = await registerInvited(context.deps, browserOf(context), body);
      return signedIn(context, token);
    },
  }),
];

/** Browsers say where a navigation began. `none` means the address bar or a bookmark. */
function isFromElsewhere({ headers }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site'];
  return site !== undefined && site !== 'same-origin' && site !== 'none';
}

/** The browser has left the console's pages, so the sign-in page says what happened. */
function refuseOidc(request: FastifyRequest, reply: FastifyReply, error: unknown): FastifyReply {
  const isSignedIn = error instanceof NotTied;
  const cause = isSignedIn || error instanceof NotRecognised ? (error.cause ?? error) : error;
  noteRefusal(request, isSignedIn ? 'not_tied' : 'not_recognised');
  request.log.warn({ err: cause }, 'a sign-in at the issuer was refused');
  if (isSignedIn) return reply.redirect('/me?refused=issuer', 303);
  return reply.redirect('/sign-in?refused=oidc', 303);
}

function browserOf({ address, request }: PublicContext): Browser {
  return { address, user_agent: String(request.headers['user-agent'] ?? '') };
}

function signedIn({ deps, reply }: PublicContext, token: string): { done: boolean } {
  setSessionCookie(reply, deps.console.url, token);
  return { done: true };
}
