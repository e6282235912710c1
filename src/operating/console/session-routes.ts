import { IdParams } from '#operating/operations/list.schema.ts';
import { listMerchantNames } from '#operating/operations/owner.sql.ts';
import { mayUse } from '#operating/people/console-place.ts';
import type { ConsoleSession } from '#operating/people/console-session.sql.ts';
import {
  closeConsoleSession,
  listSessions,
  reauthenticatedUntil,
  signedInAt,
} from '#operating/people/console-session.ts';
import { endOtherSessions, revokeSession } from '#operating/people/manage-people.ts';
import { beginTie } from '#operating/people/oidc.ts';
import { listPasskeys } from '#operating/people/passkey.sql.ts';
import { findPerson, listLiveAccesses } from '#operating/people/person.sql.ts';
import {
  acceptInvited,
  addPasskey,
  chooseAccess,
  offerPasskey,
  offerReauthentication,
  reauthenticateInSandbox,
  reauthenticateWithPasskey,
  removePasskey,
} from '#operating/people/sign-in.ts';
import { reading } from '#platform/database/transaction.ts';
import { clearSessionCookie, setSessionCookie, setStateCookie } from './cookie.ts';
import { ConsoleError, notFound } from './errors.ts';
import { requireReauthentication } from './reauthentication.ts';
import { actionRoute, browserOf, type ConsoleRoute, type Context, consoleRoute } from './route.ts';
import {
  AccessBody,
  AddPasskeyBody,
  AuthenticationBody,
  AuthenticationOptions,
  Done,
  IssuerAddress,
  LinkBody,
  Passkeys,
  Reauthentication,
  RegistrationOptions,
  Session,
  Sessions,
} from './session.schema.ts';

export const sessionRoutes: ConsoleRoute[] = [
  consoleRoute({
    url: '/api/session',
    permission: 'signed-in',
    schema: { response: Session },
    handle: async (context) => presentSession(context, await readAccesses(context)),
  }),
  actionRoute({
    url: '/api/session/access',
    permission: 'signed-in',
    schema: { body: AccessBody, response: Done },
    async run(context, { body }) {
      const { deps, session } = context;
      const { token } = await chooseAccess(deps, browserOf(context), session, body.id);
      setSessionCookie(context.reply, deps.console.url, token);
      return () => ({ done: true });
    },
  }),
  actionRoute({
    url: '/api/session/invitation',
    permission: 'signed-in',
    schema: { body: LinkBody, response: Done },
    async run(context, { body }) {
      const { deps, session } = context;
      const { token } = await acceptInvited(deps, browserOf(context), session, body.token);
      setSessionCookie(context.reply, deps.console.url, token);
      return () => ({ done: true });
    },
  }),
  actionRoute({
    method: 'DELETE',
    url: '/api/session',
    permission: 'signed-in',
    schema: { response: Done },
    async run({ deps, session, reply }) {
      await closeConsoleSession(deps, session.id);
      clearSessionCookie(reply, deps.console.url);
      // "cookies" is not cleared, because that would delete all cookies of the domain.
      reply.header('clear-site-data', '"cache", "storage"');
      return () => ({ done: true });
    },
  }),
  consoleRoute({
    url: '/api/sessions',
    permission: 'signed-in',
    schema: { response: Sessions },
    async handle(context) {
      return presentSessions(context, await listSessions(context.deps, personIn(context)));
    },
  }),
  actionRoute({
    method: 'DELETE',
    url: '/api/sessions/:id',
    permission: 'signed-in',
    fresh: true,
    schema: { params: IdParams, response: Done },
    run: (context, { params }) => endSession(context, personIn(context), params.id),
  }),
  // The console offers this after a change of passkeys, because other sessions outlive the change.
  actionRoute({
    url: '/api/sessions/end-others',
    permission: 'signed-in',
    fresh: true,
    schema: { response: Done },
    async run({ deps, operator, session }) {
      await endOtherSessions(deps, operator, session);
      return () => ({ done: true });
    },
  }),
  actionRoute({
    url: '/api/proof/options',
    permission: 'signed-in',
    schema: { response: AuthenticationOptions },
    async run({ deps, session }) {
      const options = await offerReauthentication(deps, session);
      return () => ({ options });
    },
  }),
  actionRoute({
    url: '/api/proof',
    permission: 'signed-in',
    schema: { body: AuthenticationBody, response: Reauthentication },
    async run(context, { body }) {
      const { deps, session, reply } = context;
      const token = await reauthenticateWithPasskey(
        deps,
        browserOf(context),
        session,
        body.response,
      );
      if (token !== null) setSessionCookie(reply, deps.console.url, token);
      return () => presentReauthentication(context);
    },
  }),
  // The demo administrator of a sandbox has no passkey. A click replaces the re-authentication.
  actionRoute({
    url: '/api/proof/sandbox',
    permission: 'signed-in',
    schema: { response: Reauthentication },
    async run(context) {
      const { deps, session } = context;
      const isAllowed = deps.console.allowsSignInLinks && session.method === 'sandbox_link';
      if (!isAllowed) throw notFound();
      await reauthenticateInSandbox(deps, session);
      return () => presentReauthentication(context);
    },
  }),
  consoleRoute({
    url: '/api/passkeys',
    permission: 'signed-in',
    schema: { response: Passkeys },
    async handle({ deps, person }) {
      return await reading(deps, async (db) => ({
        data: await listPasskeys(db, person.id),
        issuer: deps.console.oidc && {
          is_tied: (await findPerson(db, person.id))?.oidc_subject != null,
        },
      }));
    },
  }),
  actionRoute({
    url: '/api/issuer/tie',
    permission: 'signed-in',
    fresh: true,
    schema: { response: IssuerAddress },
    async run({ deps, session, reply }) {
      const { oidc } = deps.console;
      if (oidc === null) throw notFound();
      const { url, state } = await beginTie(deps, oidc, session);
      setStateCookie(reply, deps.console.url, state);
      return () => ({ url });
    },
  }),
  actionRoute({
    url: '/api/passkeys/options',
    permission: 'signed-in',
    schema: { response: RegistrationOptions },
    async run(context) {
      await requireAdding(context);
      const options = await offerPasskey(context.deps, context.person.id);
      return () => ({ options });
    },
  }),
  actionRoute({
    url: '/api/passkeys',
    permission: 'signed-in',
    schema: { body: AddPasskeyBody, response: Done },
    async run(context, { body }) {
      await requireAdding(context);
      const { deps, operator, session } = context;
      await addPasskey(deps, operator, session, body);
      return () => ({ done: true });
    },
  }),
  actionRoute({
    method: 'DELETE',
    url: '/api/passkeys/:id',
    permission: 'signed-in',
    fresh: true,
    schema: { params: IdParams, response: Done },
    async run({ deps, operator, person, session }, { params }) {
      const passkeys = await reading(deps, (db) => listPasskeys(db, person.id));
      if (!passkeys.some(({ id }) => id === params.id)) throw notFound();
      const session_id = session.id;
      await removePasskey(deps, operator, { person_id: person.id, session_id, id: params.id });
      return () => ({ done: true });
    },
  }),
];

/** At most this many merchants of an access are named. */
const namesMax = 3;

const enrolMinutes = 5;

/**
 * A person with a passkey re-authenticates before adding another one. A person whom an issuer signs
 * in may have none, and adds the first one right after signing in.
 */
async function requireAdding(context: Context): Promise<void> {
  const { deps, person, session } = context;
  const passkeys = await reading(deps, (db) => listPasskeys(db, person.id));
  if (passkeys.length > 0) return requireReauthentication(context);
  const until = signedInAt(session).add({ minutes: enrolMinutes });
  if (Temporal.Instant.compare(deps.clock.now(), until) < 0) return;
  throw new ConsoleError(
    403,
    'sign_in_again',
    'Sign in again, then add your first passkey within five minutes.',
  );
}

/** The accesses that the person can choose from, if they have several. */
async function readAccesses({ deps, person, session }: Context): Promise<Session['accesses']> {
  return await reading(deps, async (db) => {
    const rows = await listLiveAccesses(db, person.id);
    const accesses = rows.filter((one) => mayUse(deps.console, one));
    if (accesses.length < 2) return [];
    const ids = accesses.flatMap(({ merchant_ids }) => merchant_ids?.slice(0, namesMax) ?? []);
    const names = await listMerchantNames(db, 'all merchants', ids);
    return accesses.map(({ id, roles, merchant_ids }) => ({
      ...{ id, roles, current: id === session.access_id },
      merchants: (merchant_ids ?? []).slice(0, namesMax).map((one) => names.get(one)?.name ?? one),
      merchant_count: merchant_ids?.length ?? null,
    }));
  });
}

function presentSession(
  { deps, person, scope, session }: Context,
  accesses: Session['accesses'],
): Session {
  return {
    accesses,
    person,
    permissions: person.permissions,
    scope: scope === 'all merchants' ? 'all' : scope.merchant_ids,
    session,
    proof_until: reauthenticatedUntil(session, deps.clock.now()),
    sandbox: deps.environment === 'sandbox',
    sends_mail: deps.sendsMessages,
    other_console_url: scope === 'all merchants' ? null : deps.console.otherUrl,
    is_for_merchants: deps.console.isForMerchants,
  };
}

function presentReauthentication({ deps, session }: Context): { proof_until: string } {
  const now = deps.clock.now();
  const proof_until = reauthenticatedUntil({ ...session, proof_at: now.toString() }, now) as string;
  return { proof_until };
}

const personIn = ({ person }: Context) => ({ person_id: person.id });

/** Ends a live session of a person, or of one of their accesses. */
export async function endSession(
  { deps, operator }: Context,
  of: { person_id: string } | { access_id: string },
  id: string,
): Promise<() => { done: boolean }> {
  const live = await listSessions(deps, of);
  if (!live.some((session) => session.id === id)) throw notFound();
  await revokeSession(deps, operator, { ...of, id });
  return () => ({ done: true });
}

export function presentSessions({ session }: Context, sessions: ConsoleSession[]): Sessions {
  return {
    data: sessions.map((one) => ({
      ...one,
      current: one.id === session.id,
    })),
  };
}
