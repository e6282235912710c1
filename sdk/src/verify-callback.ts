import type { Callback } from './api.ts';
import { checkSecret, explainBadForm, isSignedBy } from './signature.ts';

/** The bytes as received. A string is encoded as UTF-8, which is right only if it is unchanged. */
export type RawBody = Uint8Array | ArrayBuffer | string;

/** One key, or both during a rotation. */
export type SigningKeys = string | readonly string[];

/** A request that is not a genuine callback, and why. */
export class CallbackError extends Error {
  readonly code:
    | 'signature_missing'
    | 'signature_malformed'
    | 'signature_mismatch'
    | 'body_already_parsed'
    | 'body_too_large'
    | 'not_a_callback';

  constructor(code: CallbackError['code'], message: string) {
    super(message);
    this.name = 'CallbackError';
    this.code = code;
  }
}

/**
 * Returns the callback if its signature is right. Otherwise throws a `CallbackError`: answer that
 * with a 400 and do nothing else.
 */
export async function verifyCallback(
  rawBody: RawBody,
  signature: string | readonly string[] | null | undefined,
  signingKey: SigningKeys,
): Promise<Callback> {
  const keys = readKeys(signingKey);
  const body = readBytes(rawBody);
  const [given, another] = [signature ?? ''].flat();
  if (!given) {
    throw new CallbackError('signature_missing', 'The callback has no X-Signature header.');
  }
  const badForm = another === undefined ? explainBadForm(given) : 'there are several';
  if (badForm !== null) {
    throw new CallbackError('signature_malformed', `X-Signature is not a signature: ${badForm}.`);
  }
  if (!(await isSignedBy(keys, body, given))) {
    throw new CallbackError(
      'signature_mismatch',
      `X-Signature does not match the ${body.length} bytes of the body under ${keys.length === 1 ? 'the signing key' : `any of the ${keys.length} signing keys`}. If the key is right, the bytes are not those that were sent: verify before anything parses them.`,
    );
  }
  return readCallback(body);
}

export function alreadyParsed(): CallbackError {
  return new CallbackError(
    'body_already_parsed',
    'The body was parsed before its signature could be verified, and a parsed body cannot be verified: the signature is over the raw bytes. Register the callback route before express.json() or any other body parser, or hand over the bytes.',
  );
}

export function readKeys(signingKey: SigningKeys): string[] {
  const keys = [signingKey].flat();
  if (keys.length === 0) throw new TypeError('signingKey is missing: the list is empty.');
  return keys.map((key) => checkSecret('signingKey', key, 'sig'));
}

function readBytes(rawBody: unknown): Uint8Array {
  if (typeof rawBody === 'string') return new TextEncoder().encode(rawBody);
  if (ArrayBuffer.isView(rawBody)) {
    return new Uint8Array(rawBody.buffer, rawBody.byteOffset, rawBody.byteLength);
  }
  // Not `instanceof`: test runners may run this in a realm with its own ArrayBuffer.
  if (Object.prototype.toString.call(rawBody) === '[object ArrayBuffer]') {
    return new Uint8Array(rawBody as ArrayBuffer);
  }
  throw alreadyParsed();
}

/**
 * The same key signs your requests, so a valid signature does not prove that this is a callback:
 * an attacker may send one of your own requests back to you.
 */
function readCallback(body: Uint8Array): Callback {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    value = null;
  }
  if (!isCallback(value)) {
    throw new CallbackError('not_a_callback', 'The body is signed, and it is not a callback.');
  }
  return value;
}

function isCallback(value: unknown): value is Callback {
  if (typeof value !== 'object' || value === null) return false;
  const { status, amount, currency, client_reference_id, number_of_payments } =
    value as Partial<Callback>;
  return (
    (status === 'successful' || status === 'cancelled') &&
    Number.isSafeInteger(amount) &&
    typeof currency === 'string' &&
    typeof client_reference_id === 'string' &&
    Number.isSafeInteger(number_of_payments)
  );
}
