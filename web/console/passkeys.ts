import {
  type PublicKeyCredentialCreationOptionsJSON,
  type PublicKeyCredentialRequestOptionsJSON,
  startAuthentication,
  startRegistration,
  WebAuthnError,
} from '@simplewebauthn/browser';
import { sendChange } from './api.ts';

type Registration = { options: PublicKeyCredentialCreationOptionsJSON };
type Authentication = { options: PublicKeyCredentialRequestOptionsJSON };

/** Explains the browser's passkey errors to people. */
function explain(error: unknown): Error {
  const name = error instanceof Error ? error.name : '';
  if (name === 'NotAllowedError') {
    return new Error('The passkey was not used: the browser’s dialog was closed or took too long.');
  }
  if (name === 'InvalidStateError') return new Error('This device is already registered.');
  if (name === 'SecurityError') return new Error('Passkeys do not work at this address.');
  if (error instanceof WebAuthnError) return new Error('The passkey did not work here.');
  return error instanceof Error ? error : new Error('The passkey did not answer.');
}

const create = (optionsJSON: PublicKeyCredentialCreationOptionsJSON) =>
  startRegistration({ optionsJSON }).catch((error) => {
    throw explain(error);
  });
const use = (optionsJSON: PublicKeyCredentialRequestOptionsJSON) =>
  startAuthentication({ optionsJSON }).catch((error) => {
    throw explain(error);
  });

export async function signIn(): Promise<void> {
  const { options } = await sendChange<Authentication>('POST', '/api/sign-in/options');
  await sendChange('POST', '/api/sign-in', { response: await use(options) });
}

export async function register(token: string): Promise<void> {
  const { options } = await sendChange<Registration>('POST', '/api/invitation/options', { token });
  await sendChange('POST', '/api/invitation/register', { token, response: await create(options) });
}

export async function reauthenticate(): Promise<void> {
  const { options } = await sendChange<Authentication>('POST', '/api/proof/options');
  await sendChange('POST', '/api/proof', { response: await use(options) });
}

export async function addPasskey(name: string): Promise<void> {
  const what = 'Add a passkey';
  const { options } = await sendChange<Registration>('POST', '/api/passkeys/options', {}, what);
  await sendChange('POST', '/api/passkeys', { name, response: await create(options) });
}

/** Signs in with a one-time link from a sandbox's command line. */
export const signInByLink = (token: string) => sendChange('POST', '/api/sign-in/link', { token });

/** In a sandbox session without a passkey, a click is enough. */
export const reauthenticateInSandbox = () => sendChange('POST', '/api/proof/sandbox');
