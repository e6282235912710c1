import {
  type PublicKeyCredentialCreationOptionsJSON,
  type PublicKeyCredentialRequestOptionsJSON,
  startAuthentication,
  startRegistration,
  WebAuthnError,
} from '@simplewebauthn/browser';
import { act } from './api.ts';

/** What the browser says of a passkey, in words for people. */
function explain(error: unknown): Error {
  const name = error instanceof Error ? error.name : '';
  if (name === 'NotAllowedError') {
    return new Error('The passkey was not used: the browser’s dialog was closed or took too long.');
  }
  if (name === 'InvalidStateError') return new Error('This device is registered already.');
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
  const options = await act<PublicKeyCredentialRequestOptionsJSON>('POST', '/api/sign-in/options');
  await act('POST', '/api/sign-in', { response: await use(options) });
}

export async function register(token: string, name: string): Promise<void> {
  const options = await act<PublicKeyCredentialCreationOptionsJSON>(
    'POST',
    '/api/invitation/options',
    { token },
  );
  await act('POST', '/api/invitation/register', { token, name, response: await create(options) });
}

export async function provePresence(): Promise<void> {
  const options = await act<PublicKeyCredentialRequestOptionsJSON>('POST', '/api/proof/options');
  await act('POST', '/api/proof', { response: await use(options) });
}

export async function addPasskey(name: string): Promise<void> {
  const options = await act<PublicKeyCredentialCreationOptionsJSON>(
    'POST',
    '/api/passkeys/options',
  );
  await act('POST', '/api/passkeys', { name, response: await create(options) });
}
