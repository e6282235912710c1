import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from '@simplewebauthn/server';
import { transaction } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { type Challenge, insertChallenge, takeChallenge } from './challenge.sql.ts';
import { hashToken, type SessionDeps } from './console-session.ts';
import { findPasskey, type Passkey } from './passkey.sql.ts';
import type { Person } from './person.sql.ts';

export type WebauthnDeps = SessionDeps &
  QueueDeps & { console: { url: string; isForMerchants: boolean } };

/** The answer from an authenticator or an issuer does not identify the person. */
export class NotRecognised extends Error {}

const challengeMinutes = 5;

// The library is loaded when it is first used, because it loads many packages and most processes
// never need it.
const library = () => import('@simplewebauthn/server');

/**
 * EdDSA, ES256 and RS256, which every browser supports. The library's default depends on the
 * runtime.
 */
const supportedAlgorithmIDs = [-8, -7, -257];

const rpName = 'Tranche';
const rpIdOf = (url: string) => new URL(url).hostname;
const uuidBytes = (id: string) => Uint8Array.from(Buffer.from(id.replaceAll('-', ''), 'hex'));

async function keepChallenge(
  deps: SessionDeps,
  challenge: string,
  about: Pick<Challenge, 'purpose'> & Partial<Pick<Challenge, 'person_id' | 'session_id'>>,
): Promise<void> {
  const expires_at = timestamp(deps.clock.now().add({ minutes: challengeMinutes }));
  await insertChallenge(deps.database.db, {
    person_id: null,
    session_id: null,
    ...about,
    challenge_hash: hashToken(challenge),
    sealed_oidc: null,
    expires_at,
  });
}

/** The options that a browser needs to create a passkey for a person. */
export async function offerRegistration(
  deps: WebauthnDeps,
  person: Person,
  existing: Passkey[],
): Promise<PublicKeyCredentialCreationOptionsJSON> {
  const { generateRegistrationOptions } = await library();
  const options = await generateRegistrationOptions({
    rpName,
    rpID: rpIdOf(deps.console.url),
    userName: person.email,
    userDisplayName: person.name,
    userID: uuidBytes(person.id),
    challenge: Uint8Array.from(deps.random.bytes(32)),
    timeout: challengeMinutes * 60_000,
    attestationType: 'none',
    supportedAlgorithmIDs,
    excludeCredentials: existing.map(({ credential_id: id, transports }) => ({ id, transports })),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
  });
  await keepChallenge(deps, options.challenge, { purpose: 'register', person_id: person.id });
  return options;
}

/**
 * The options that a browser needs to answer with a passkey: any passkey at sign-in, or one of the
 * given passkeys at a re-authentication.
 */
export async function offerAuthentication(
  deps: WebauthnDeps,
  about: { purpose: 'sign_in' } | { purpose: 'proof'; session_id: string; passkeys: Passkey[] },
): Promise<PublicKeyCredentialRequestOptionsJSON> {
  const { generateAuthenticationOptions } = await library();
  const isReauthentication = about.purpose === 'proof';
  const options = await generateAuthenticationOptions({
    rpID: rpIdOf(deps.console.url),
    challenge: Uint8Array.from(deps.random.bytes(32)),
    timeout: challengeMinutes * 60_000,
    userVerification: 'required',
    ...(isReauthentication && {
      allowCredentials: about.passkeys.map(({ credential_id: id, transports }) => ({
        id,
        transports,
      })),
    }),
  });
  const session_id = isReauthentication ? about.session_id : null;
  await keepChallenge(deps, options.challenge, { purpose: about.purpose, session_id });
  return options;
}

/** Checks and returns a new passkey. The challenge is used up even if the check fails. */
export async function verifyRegistration(
  deps: WebauthnDeps,
  person_id: string,
  response: RegistrationResponseJSON,
): Promise<Pick<Passkey, 'credential_id' | 'public_key' | 'counter' | 'transports'>> {
  const challenge = await takeAnswered(deps, response, 'register');
  if (challenge.taken.person_id !== person_id) throw new NotRecognised();
  const { verifyRegistrationResponse } = await library();
  const { verified, registrationInfo } = await verifyRegistrationResponse({
    response,
    expectedChallenge: challenge.text,
    expectedOrigin: deps.console.url,
    expectedRPID: rpIdOf(deps.console.url),
    requireUserVerification: true,
    supportedAlgorithmIDs,
  }).catch(refuse);
  if (!verified || !registrationInfo) throw new NotRecognised();
  const { id, publicKey, counter } = registrationInfo.credential;
  // The request's schema does not cover this member, so it may be anything.
  const given: unknown = response.response.transports;
  const transports = (Array.isArray(given) ? given : []).filter(
    (one) => typeof one === 'string' && /^[a-z-]{1,20}$/.test(one),
  );
  return { credential_id: id, public_key: Buffer.from(publicKey), counter, transports };
}

/** The passkey that answered, and its new counter. */
export async function verifyAuthentication(
  deps: WebauthnDeps,
  response: AuthenticationResponseJSON,
  about: { purpose: 'sign_in' } | { purpose: 'proof'; session_id: string; person_id: string },
): Promise<{ passkey: Passkey; counter: number }> {
  const challenge = await takeAnswered(deps, response, about.purpose);
  const isReauthentication = about.purpose === 'proof';
  if (isReauthentication && challenge.taken.session_id !== about.session_id)
    throw new NotRecognised();
  const passkey = await findPasskey(deps.database.db, String(response.id).slice(0, 2_000));
  if (!passkey) throw new NotRecognised();
  if (isReauthentication && passkey.person_id !== about.person_id) throw new NotRecognised();
  const { verifyAuthenticationResponse } = await library();
  const { verified, authenticationInfo } = await verifyAuthenticationResponse({
    response,
    expectedChallenge: challenge.text,
    expectedOrigin: deps.console.url,
    expectedRPID: rpIdOf(deps.console.url),
    requireUserVerification: true,
    credential: {
      id: passkey.credential_id,
      publicKey: Uint8Array.from(passkey.public_key),
      counter: passkey.counter,
    },
  }).catch(refuse);
  if (!verified) throw new NotRecognised();
  return { passkey, counter: authenticationInfo.newCounter };
}

/**
 * Takes the challenge that an answer refers to. Throws if we did not make the challenge for this
 * purpose, if it was answered before, or if it has expired.
 */
async function takeAnswered(
  deps: SessionDeps,
  response: { response?: { clientDataJSON?: string } },
  purpose: Challenge['purpose'],
): Promise<{ text: string; taken: Challenge }> {
  const text = challengeOf(response);
  const now = timestamp(deps.clock.now());
  const taken = await transaction(deps, ({ db }) =>
    takeChallenge(db, hashToken(text), purpose, now),
  );
  if (!taken) throw new NotRecognised();
  return { text, taken };
}

function challengeOf({ response }: { response?: { clientDataJSON?: string } }): string {
  try {
    const json = Buffer.from(String(response?.clientDataJSON), 'base64url').toString('utf8');
    return String(JSON.parse(json).challenge);
  } catch {
    throw new NotRecognised();
  }
}

/** The library throws for every check that fails, and for answers that it cannot read. */
function refuse(cause: unknown): never {
  throw new NotRecognised('', { cause });
}
