import { closeConsoleSession, proofUntil } from '../operators/console-session.ts';
import { clearSessionCookie } from './cookie.ts';
import { type ConsoleRoute, type Context, consoleRoute } from './route.ts';
import { Done, Session } from './session.schema.ts';

function presentSession({ deps, person, session }: Context): Session {
  const { id, name, email, roles, permissions, scope } = person;
  return {
    person: { id, name, email, roles },
    permissions,
    scope: scope === 'all merchants' ? 'all' : scope.merchant_ids,
    session: {
      id: session.id,
      method: session.method,
      created_at: session.created_at,
      expires_at: session.expires_at,
    },
    proof_until: proofUntil(session, deps.clock.now()),
    sandbox: deps.environment === 'sandbox',
  };
}

export const sessionRoutes: ConsoleRoute[] = [
  consoleRoute({
    method: 'GET',
    url: '/api/session',
    permission: 'signed-in',
    schema: { response: Session },
    handle: async (context) => presentSession(context),
  }),
  consoleRoute({
    method: 'DELETE',
    url: '/api/session',
    permission: 'signed-in',
    schema: { response: Done },
    async handle({ deps, session, reply }) {
      await closeConsoleSession(deps, session.id);
      clearSessionCookie(reply, deps.console.url);
      return { done: true };
    },
  }),
];
