import type { Configuration } from 'openid-client';
import { reading, transaction } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { insertChallenge, takeChallenge } from './challenge.sql.ts';
import { hashToken, newToken } from './console-session.ts';
import { endAccess, foldAddress } from './manage-people.ts';
import {
  findPersonByEmail,
  findPersonBySubject,
  lockPerson,
  moveRegistered,
  type Person,
  updatePerson,
} from './person.sql.ts';
import { hasLiveInvitation } from './person-link.sql.ts';
import { queuePersonMail } from './queue-person-mail.ts';
import { type Browser, type Opened, open } from './sign-in.ts';
import { NotRecognised, type WebauthnDeps } from './webauthn.ts';

/** An OpenID Connect issuer that says who people are. What they may do is ours to say. */
export type OidcSettings = { issuer: string; clientId: string; clientSecret: string };

export type OidcDeps = WebauthnDeps & {
  sealing: Sealing;
  console: { url: string; oidc: OidcSettings | null };
};

const answerMinutes = 10;
const requestSeconds = 10;
const callbackPath = '/api/sign-in/oidc/callback';
const sealContext = (state: string) => `oidc ${state}`;

const library = () => import('openid-client');
const configurations = new WeakMap<OidcSettings, Promise<Configuration>>();

/** The issuer's addresses and keys, asked for once. A failure is asked for again. */
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
  // Without it the library trusts TLS and does not verify the signature of an ID token.
  const execute = [enableNonRepudiationChecks];
  // The settings allow plain http on this machine only.
  if (url.protocol === 'http:') execute.push(allowInsecureRequests);
  const options = { execute, timeout: requestSeconds };
  return await discovery(url, clientId, clientSecret, undefined, options);
}

/**
 * Where the browser goes to sign in at the issuer. The caller keeps `state` in a cookie, so that the
 * answer counts only in the browser that asked.
 */
export async function beginOidc(
  deps: OidcDeps,
  settings: OidcSettings,
): Promise<{ url: string; state: string }> {
  const { buildAuthorizationUrl, calculatePKCECodeChallenge } = await library();
  const configuration = await discover(settings);
  const [state, nonce, verifier] = [1, 2, 3].map(() => newToken(deps.random)) as [
    string,
    string,
    string,
  ];
  const secrets = JSON.stringify({ nonce, verifier });
  await insertChallenge(deps.database.db, {
    challenge_hash: hashToken(state),
    purpose: 'oidc',
    person_id: null,
    session_id: null,
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
  });
  return { url: url.href, state };
}

/** Signs in the person that the issuer's answer names. `query` is that of the callback's address. */
export async function finishOidc(
  deps: OidcDeps,
  settings: OidcSettings,
  browser: Browser,
  answer: { query: string; stateOfBrowser: string | null },
): Promise<Opened> {
  const url = new URL(`${deps.console.url}${callbackPath}${answer.query}`);
  const state = url.searchParams.get('state');
  if (state === null || state !== answer.stateOfBrowser) throw new NotRecognised('another browser');
  const now = timestamp(deps.clock.now());
  const challenge = await transaction(deps, ({ db }) =>
    takeChallenge(db, hashToken(state), 'oidc', now),
  );
  if (!challenge?.sealed_oidc) throw new NotRecognised('an unknown or used state');
  const { nonce, verifier } = JSON.parse(
    deps.sealing.open(challenge.sealed_oidc, sealContext(state)),
  );
  const claims = await exchange(settings, url, { state, nonce, verifier });
  const subject = `${settings.issuer} ${claims.sub}`;
  const person = await findPersonOf(deps, subject, claims);
  return await open(deps, browser, person, 'oidc', 'console sign-in', async (db, at) => {
    const current = await lockPerson(db, person.id);
    // An invitation may have released the subject since the person was found by it.
    const isFirst = current?.oidc_subject === null && person.oidc_subject === null;
    if (!isFirst) {
      if (current?.oidc_subject !== subject) throw new NotRecognised('tied to another subject');
      return { passkey_id: null, details: { issuer: settings.issuer } };
    }
    // This sign-in accepts the invitation, as the registration of a passkey would (decision 0072).
    // Without one, an account at the issuer would become a second way in that no one agreed to.
    if (!(await hasLiveInvitation(db, person.id, at)))
      throw new NotRecognised('no live invitation');
    await updatePerson(db, person.id, { oidc_subject: subject });
    await moveRegistered(db, person.id, at);
    const facts = { issuer: settings.issuer, address: browser.address };
    await queuePersonMail(deps, db, { person_id: person.id, kind: 'issuer_tied', facts, at });
    const ended = await endAccess(db, person.id, at);
    return { passkey_id: null, details: { issuer: settings.issuer, ...ended } };
  });
}

type Claims = { sub: string; email?: unknown; email_verified?: unknown };

/** The library checks state, nonce, PKCE, issuer, audience, signature and times. */
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
    if (claims.email !== undefined) return claims;
    return await fetchUserInfo(configuration, tokens.access_token, claims.sub);
  } catch (cause) {
    throw new NotRecognised('', { cause });
  }
}

/** The person of a subject. At the first sign-in, the person with the issuer's verified address. */
async function findPersonOf(deps: OidcDeps, subject: string, claims: Claims): Promise<Person> {
  const { email, email_verified } = claims;
  const person = await reading(deps, async (db) => {
    const known = await findPersonBySubject(db, subject);
    if (known || typeof email !== 'string' || email_verified !== true) return known;
    return await findPersonByEmail(db, foldAddress(email));
  });
  if (!person) throw new NotRecognised('no person was invited with this verified address');
  return person;
}
