import type { Configuration } from 'openid-client';
import type { Handle } from '#platform/database/database.ts';
import { reading, transaction } from '#platform/database/transaction.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { operate } from '#record/actions/operate.ts';
import { insertChallenge, takeChallenge } from './challenge.sql.ts';
import { foldAddress } from './check-person.ts';
import { type ConsoleSession, findOpenSession } from './console-session.sql.ts';
import { hashToken, newToken, originOf, type SecondPersonSettings } from './console-session.ts';
import { listPasskeys } from './passkey.sql.ts';
import {
  findPersonByEmail,
  findPersonBySubject,
  listAccesses,
  listLiveAccesses,
  lockPerson,
  moveRegistered,
  type Person,
  updatePerson,
} from './person.sql.ts';
import { deleteUnusedLinks, listLiveInvitations } from './person-link.sql.ts';
import { queuePersonMail } from './queue-person-mail.ts';
import {
  accepting,
  type Browser,
  findAccess,
  type Opened,
  open,
  tellSignInMethod,
} from './sign-in.ts';
import { NotRecognised, type WebauthnDeps } from './webauthn.ts';

/** An OpenID Connect issuer that identifies people. Their rights are decided here. */
export type OidcSettings = {
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** The ID token's `acr` must be one of these. If the list is empty, any value is accepted. */
  acr: string[];
  /** The ID token's `amr` must have all of these. */
  amr: string[];
};

export type OidcDeps = WebauthnDeps &
  SecondPersonSettings & {
    sealing: Sealing;
    log: Logger;
    console: { url: string; oidc: OidcSettings | null };
  };

/** The account cannot be linked to the session's person. The session continues. */
export class NotTied extends Error {}

const answerMinutes = 10;
const requestSeconds = 10;
const callbackPath = '/api/sign-in/oidc/callback';
const sealContext = (state: string) => `oidc ${state}`;

const library = () => import('openid-client');
const configurations = new WeakMap<OidcSettings, Promise<Configuration>>();

/** The issuer's endpoints and keys. They are fetched once, and again if that failed. */
function discover(settings: OidcSettings): Promise<Configuration> {
  let found = configurations.get(settings);
  if (!found) {
    found = ask(settings);
    configurations.set(settings, found);
    found.catch(() => configurations.delete(settings));
  }
  return found;
}

async function ask({ issuer, clientId, clientSecret }: OidcSettings): Promise<Configuration> {
  const { allowInsecureRequests, discovery, enableNonRepudiationChecks } = await library();
  const url = new URL(issuer);
  // Without this option the library trusts TLS and does not verify the signature of an ID token.
  const execute = [enableNonRepudiationChecks];
  // The settings allow plain http only on this machine.
  if (url.protocol === 'http:') execute.push(allowInsecureRequests);
  const options = { execute, timeout: requestSeconds };
  return await discovery(url, clientId, clientSecret, undefined, options);
}

/**
 * Begins a sign-in at the issuer, and returns the URL to which the browser goes. The caller keeps
 * `state` in a cookie, so that the answer counts only in the browser that asked. `token` belongs to
 * a session that the browser already has. The new sign-in makes it invalid.
 */
export async function beginOidc(
  deps: OidcDeps,
  settings: OidcSettings,
  by: { token: string | null } | { person_id: string; session_id: string },
): Promise<{ url: string; state: string }> {
  const { buildAuthorizationUrl, calculatePKCECodeChallenge } = await library();
  const configuration = await discover(settings);
  const [state, nonce, verifier] = [1, 2, 3].map(() => newToken(deps.random)) as [
    string,
    string,
    string,
  ];
  const { token, person_id, session_id } = {
    token: null,
    person_id: null,
    session_id: null,
    ...by,
  };
  const secrets = JSON.stringify({ nonce, verifier, token });
  await insertChallenge(deps.database.db, {
    challenge_hash: hashToken(state),
    purpose: 'oidc',
    person_id,
    session_id,
    sealed_oidc: deps.sealing.seal(secrets, sealContext(state)),
    expires_at: timestamp(deps.clock.now().add({ minutes: answerMinutes })),
  });
  const url = buildAuthorizationUrl(configuration, {
    redirect_uri: `${deps.console.url}${callbackPath}`,
    scope: 'openid email profile',
    response_type: 'code',
    code_challenge: await calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state,
    nonce,
    ...(settings.acr.length > 0 && { acr_values: settings.acr.join(' ') }),
  });
  return { url: url.href, state };
}

/**
 * Begins to link an account at the issuer to a session's person, and returns the URL to which the
 * browser goes. The caller has required re-authentication. The session's cookie is not sent from
 * another site, so the challenge names the session.
 */
export async function beginTie(
  deps: OidcDeps,
  settings: OidcSettings,
  { id: session_id, person_id }: ConsoleSession,
): Promise<{ url: string; state: string }> {
  return await beginOidc(deps, settings, { person_id, session_id });
}

/**
 * Signs in the person whom the issuer's answer names, or links the account to a session's person.
 * Linking opens no new session. `query` comes from the callback's URL.
 */
export async function finishOidc(
  deps: OidcDeps,
  settings: OidcSettings,
  returning: Browser,
  answer: { query: string; stateOfBrowser: string | null },
): Promise<Opened | 'tied'> {
  const url = new URL(`${deps.console.url}${callbackPath}${answer.query}`);
  const state = url.searchParams.get('state');
  if (state === null || state !== answer.stateOfBrowser) throw new NotRecognised('another browser');
  const now = timestamp(deps.clock.now());
  const challenge = await transaction(deps, ({ db }) =>
    takeChallenge(db, hashToken(state), 'oidc', now),
  );
  if (!challenge?.sealed_oidc) throw new NotRecognised('an unknown or used state');
  const { nonce, verifier, token } = JSON.parse(
    deps.sealing.open(challenge.sealed_oidc, sealContext(state)),
  );
  // The browser sent its session's cookie when it left for the issuer. It sends no cookie on its
  // return.
  const browser = { ...returning, token: returning.token ?? token ?? null };
  const claims = await exchange(settings, url, { state, nonce, verifier });
  const subject = `${settings.issuer} ${claims.sub}`;
  if (challenge.session_id !== null) {
    const wanted = { session_id: challenge.session_id, subject, claims };
    await tie(deps, settings, browser, wanted).catch((cause) => {
      throw new NotTied('', { cause });
    });
    return 'tied';
  }
  const person = await findPersonOf(deps, subject, claims);
  const access = await findAccess(deps, person.id);
  if (person.oidc_subject === subject && access !== null) {
    return await open(deps, browser, access, 'oidc', 'console sign-in', async (db) => {
      const current = await lockPerson(db, person.id);
      // We found the person by the subject. Since then an invitation may have removed it.
      if (current?.oidc_subject !== subject) throw new NotRecognised('tied to another subject');
      return { passkey_id: null, details: { issuer: settings.issuer } };
    });
  }
  return await acceptByIssuer(deps, settings, browser, { person, subject, claims });
}

/**
 * The first sign-in accepts an invitation, as the registration of a passkey would (decision 0072).
 * Without an invitation, an account at the issuer would give access that no administrator agreed
 * to.
 */
async function acceptByIssuer(
  deps: OidcDeps,
  settings: OidcSettings,
  browser: Browser,
  { person, subject, claims }: { person: Person; subject: string; claims: Claims },
): Promise<Opened> {
  // The person's account at the issuer may belong to an earlier holder of the e-mail address.
  if (addressOf(claims) !== person.email) {
    throw new NotRecognised('the issuer gave another address, or one that is not verified');
  }
  const invited = await findInvitedAccess(deps, person);
  return await open(deps, browser, invited, 'oidc', accepting, async (db, at) => {
    const current = await lockPerson(db, person.id);
    const isUsed = (await listLiveAccesses(db, person.id)).length > 0;
    if (isUsed && current?.oidc_subject !== null)
      throw new NotRecognised('tied to another subject');
    if (current?.oidc_subject !== person.oidc_subject)
      throw new NotRecognised('tied to another subject in the meantime');
    const links = await listLiveInvitations(db, [invited.id], at);
    if (links.length === 0) throw new NotRecognised('no live invitation');
    // Another merchant's invitation does not reopen accesses whose sign-in methods were revoked.
    if (isUsed && invited.registered_at === null && !links.some(({ by_staff }) => by_staff))
      throw new NotRecognised('the person also has access elsewhere');
    // A person with passkeys must link the account themselves, from a session with a recent
    // re-authentication.
    if ((await listPasskeys(db, person.id)).length > 0) {
      throw new NotRecognised(
        'the person has passkeys: they must sign in with one and link the issuer on their own page',
      );
    }
    await writeTie(deps, db, settings, browser, { person_id: person.id, subject, at });
    await moveRegistered(db, invited.id, at);
    await deleteUnusedLinks(db, [invited.id]);
    return { passkey_id: null, details: {} };
  });
}

async function writeTie(
  deps: OidcDeps,
  db: Handle,
  { issuer }: OidcSettings,
  { address }: Browser,
  { person_id, subject, at }: { person_id: string; subject: string; at: Timestamp },
): Promise<void> {
  await updatePerson(db, person_id, { oidc_subject: subject });
  const facts = { issuer, address };
  await queuePersonMail(deps, db, { person_id, kind: 'issuer_tied', facts, at });
}

/**
 * The account must have the person's own e-mail address, so that a stranger's account never gives
 * access.
 */
async function tie(
  deps: OidcDeps,
  settings: OidcSettings,
  browser: Browser,
  { session_id, subject, claims }: { session_id: string; subject: string; claims: Claims },
): Promise<void> {
  const now = timestamp(deps.clock.now());
  const found = await reading(deps, (db) => findOpenSession(db, session_id, now));
  if (!found) throw new NotRecognised('the session has ended');
  const { email, id: person_id } = found.person;
  const origin = originOf(deps, found, browser.address);
  const acting = { ...deps, origin };
  await operate(acting, email, 'issuer tie', async (db, at) => {
    const person = await lockPerson(db, person_id);
    if (!person || !(await findOpenSession(db, session_id, at)))
      throw new NotRecognised('the session has ended');
    const other = await findPersonBySubject(db, subject);
    if (other !== null && other.id !== person_id) throw new NotRecognised('tied to another person');
    if (person.oidc_subject !== null && person.oidc_subject !== subject)
      throw new NotRecognised('tied to another subject');
    if (addressOf(claims) !== email)
      throw new NotRecognised('the issuer gave another address, or one that is not verified');
    await writeTie(deps, db, settings, browser, { person_id, subject, at });
    const { access_id } = found.session;
    const did = `linked an account at ${settings.issuer}`;
    await tellSignInMethod(acting, db, { operator: email, access_id, did });
    return { subject_id: access_id, details: { issuer: settings.issuer }, result: undefined };
  });
}

/**
 * The access that a first sign-in accepts. Another merchant may also have invited the e-mail
 * address, and must not divert the sign-in: among the accesses with an invitation, one that was
 * accepted before is chosen, or else the first. Without an invitation, it is the person's first
 * access.
 */
async function findInvitedAccess(deps: OidcDeps, person: Person): Promise<Person> {
  const now = timestamp(deps.clock.now());
  return await reading(deps, async (db) => {
    const accesses = await listAccesses(db, person.id);
    const ids = accesses.map(({ id }) => id);
    const links = await listLiveInvitations(db, ids, now);
    const invited = accesses.filter(({ id }) => links.some(({ person_id }) => person_id === id));
    return invited.find(({ registered_at }) => registered_at !== null) ?? invited[0] ?? person;
  });
}

/** Why a sign-in at the issuer is too weak for the settings, or null. */
export function explainWeakSignIn(
  { acr, amr }: Pick<OidcSettings, 'acr' | 'amr'>,
  claims: Record<string, unknown>,
): string | null {
  if (acr.length > 0 && !acr.includes(claims.acr as string)) return 'the ID token has another acr';
  const used = Array.isArray(claims.amr) ? claims.amr : [];
  const missing = amr.filter((method) => !used.includes(method));
  return missing.length > 0 ? `the ID token lacks the amr ${missing.join(', ')}` : null;
}

type Claims = { sub: string; email?: unknown; email_verified?: unknown };

/** The library checks the state, nonce, PKCE, issuer, audience, signature and times. */
async function exchange(
  settings: OidcSettings,
  url: URL,
  { state, nonce, verifier }: { state: string; nonce: string; verifier: string },
): Promise<Claims> {
  const { authorizationCodeGrant, fetchUserInfo } = await library();
  try {
    const configuration = await discover(settings);
    const tokens = await authorizationCodeGrant(configuration, url, {
      expectedState: state,
      expectedNonce: nonce,
      pkceCodeVerifier: verifier,
      idTokenExpected: true,
    });
    const claims = tokens.claims();
    if (!claims) throw new NotRecognised('no ID token');
    const weak = explainWeakSignIn(settings, claims);
    if (weak !== null) throw new NotRecognised(weak);
    if (claims.email !== undefined) return claims;
    return await fetchUserInfo(configuration, tokens.access_token, claims.sub);
  } catch (cause) {
    throw new NotRecognised('', { cause });
  }
}

/** The e-mail address that the issuer has verified, or null. */
const addressOf = ({ email, email_verified }: Claims): string | null =>
  typeof email === 'string' && email_verified === true ? foldAddress(email) : null;

/**
 * The person with this subject; at the first sign-in, the person with the issuer's verified
 * address.
 */
async function findPersonOf(deps: OidcDeps, subject: string, claims: Claims): Promise<Person> {
  const address = addressOf(claims);
  const person = await reading(deps, async (db) => {
    const known = await findPersonBySubject(db, subject);
    return known || address === null ? known : await findPersonByEmail(db, address);
  });
  if (!person) {
    throw new NotRecognised(
      address === null
        ? 'the issuer gave no verified e-mail address'
        : 'no person has the e-mail address that the issuer verified',
    );
  }
  return person;
}
