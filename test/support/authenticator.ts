import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from '@simplewebauthn/server';

// An authenticator and a browser in one, so that a test can forge every detail.

const flags = { present: 0x01, verified: 0x04, attested: 0x40 };
const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest();

/**
 * The details that the browser and the authenticator report. A test forges an answer by changing
 * one.
 */
type Ceremony = { origin: string; rpId?: string; verified?: boolean; type?: string };

export function createAuthenticator() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
  const credentialId = randomBytes(16);
  let userHandle = '';
  let counter = 0;

  const authData = ({ origin, rpId, verified = true }: Ceremony, more = Buffer.alloc(0)) => {
    counter += 1;
    const head = Buffer.alloc(37);
    sha256(rpId ?? new URL(origin).hostname).copy(head);
    head[32] =
      flags.present | (verified ? flags.verified : 0) | (more.length > 0 ? flags.attested : 0);
    head.writeUInt32BE(counter, 33);
    return Buffer.concat([head, more]);
  };
  const clientData = (type: string, challenge: string, { origin, type: given }: Ceremony) =>
    Buffer.from(JSON.stringify({ type: given ?? type, challenge, origin, crossOrigin: false }));
  const common = {
    id: credentialId.toString('base64url'),
    rawId: credentialId.toString('base64url'),
    type: 'public-key' as const,
    clientExtensionResults: {},
  };

  const cose = cborMap([
    [cborInteger(1), cborInteger(2)],
    [cborInteger(3), cborInteger(-7)],
    [cborInteger(-1), cborInteger(1)],
    [cborInteger(-2), cborBytes(Buffer.from(x, 'base64url'))],
    [cborInteger(-3), cborBytes(Buffer.from(y, 'base64url'))],
  ]);

  return {
    /** The passkey, for a test that registers it at the service and in a browser by itself. */
    credential: {
      id: credentialId,
      publicKey: cose,
      privateKey: privateKey.export({ format: 'der', type: 'pkcs8' }),
    },
    create(
      options: PublicKeyCredentialCreationOptionsJSON,
      ceremony: Ceremony,
    ): RegistrationResponseJSON {
      userHandle = options.user.id;
      const length = Buffer.alloc(2);
      length.writeUInt16BE(credentialId.length);
      const attested = Buffer.concat([Buffer.alloc(16), length, credentialId, cose]);
      const attestationObject = cborMap([
        [cborText('fmt'), cborText('none')],
        [cborText('attStmt'), cborMap([])],
        [cborText('authData'), cborBytes(authData(ceremony, attested))],
      ]);
      const client = clientData('webauthn.create', options.challenge, ceremony);
      return {
        ...common,
        response: {
          clientDataJSON: client.toString('base64url'),
          attestationObject: attestationObject.toString('base64url'),
          transports: ['internal'],
        },
      };
    },
    get(
      options: Pick<PublicKeyCredentialRequestOptionsJSON, 'challenge'>,
      ceremony: Ceremony,
    ): AuthenticationResponseJSON {
      const client = clientData('webauthn.get', options.challenge, ceremony);
      const data = authData(ceremony);
      const signature = sign('sha256', Buffer.concat([data, sha256(client)]), privateKey);
      return {
        ...common,
        response: {
          clientDataJSON: client.toString('base64url'),
          authenticatorData: data.toString('base64url'),
          signature: signature.toString('base64url'),
          userHandle,
        },
      };
    },
    /** Sets the counter back, as if the authenticator had been copied. */
    rewind(to: number) {
      counter = to;
    },
  };
}

// The part of CBOR (RFC 8949) that is needed here.

function cborHead(major: number, value: number): Buffer {
  if (value < 24) return Buffer.from([(major << 5) | value]);
  if (value < 256) return Buffer.from([(major << 5) | 24, value]);
  return Buffer.from([(major << 5) | 25, value >> 8, value & 0xff]);
}

const cborInteger = (value: number) => (value >= 0 ? cborHead(0, value) : cborHead(1, -1 - value));
const cborBytes = (bytes: Buffer) => Buffer.concat([cborHead(2, bytes.length), bytes]);
const cborText = (text: string) => Buffer.concat([cborHead(3, text.length), Buffer.from(text)]);
const cborMap = (entries: [Buffer, Buffer][]) =>
  Buffer.concat([cborHead(5, entries.length), ...entries.flat()]);
