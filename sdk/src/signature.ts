type Hash = 'SHA-512' | 'SHA-256';
const encoder = new TextEncoder();

/** Standard Base64 of 64 bytes, in canonical form. */
const wellFormed = /^[A-Za-z0-9+/]{85}[AQgw]==$/;

/** `X-Signature` of a body: Base64( HMAC-SHA512( signing key, body ) ). */
export async function sign(body: string | Uint8Array, signingKey: string): Promise<string> {
  const key = await importKey(signingKey, 'SHA-512');
  const digest = await crypto.subtle.sign('HMAC', key, bytesOf(body));
  return btoa(String.fromCharCode(...new Uint8Array(digest)));
}

/** Returns what is wrong with a signature's form, or null. */
export function explainBadForm(signature: string): string | null {
  if (wellFormed.test(signature)) return null;
  if (/^[0-9a-f]{128}$/i.test(signature)) return 'it is hex, and it must be standard Base64';
  if (/[-_]/.test(signature)) return 'it is URL-safe Base64, and it must be standard Base64';
  return 'it is not the 88 characters of standard Base64 that end in ==';
}

/** Whether one of the keys made this signature over these bytes. Takes constant time. */
export async function isSignedBy(
  keys: readonly string[],
  body: string | Uint8Array,
  signature: string,
  hash: Hash = 'SHA-512',
): Promise<boolean> {
  const given = Uint8Array.from(atob(signature), (character) => character.charCodeAt(0));
  // Web Crypto compares, because `===` does not take constant time.
  const found = await Promise.all(
    keys.map(async (key) =>
      crypto.subtle.verify('HMAC', await importKey(key, hash), given, bytesOf(body)),
    ),
  );
  return found.includes(true);
}

/** The secret as issued, or an error that says what is wrong without showing the secret. */
export function checkSecret(name: string, value: unknown, prefix: 'cs' | 'sig'): string {
  if (typeof value !== 'string' || value === '') {
    throw new TypeError(`${name} is missing: it must be a string that begins with ${prefix}_.`);
  }
  // fetch would also refuse such a header, but its error message quotes the secret.
  if (!/^[\x21-\x7e]+$/.test(value)) {
    throw new TypeError(`${name} has white space or a line break in it: pass it as it was issued.`);
  }
  if (value.startsWith(prefix === 'cs' ? 'sig_' : 'cs_')) {
    const other = prefix === 'cs' ? 'a signing key' : 'a client secret';
    throw new TypeError(`${name} is ${other}: the two were swapped.`);
  }
  return value;
}

function importKey(signingKey: string, hash: Hash): Promise<CryptoKey> {
  const algorithm = { name: 'HMAC', hash };
  return crypto.subtle.importKey('raw', encoder.encode(signingKey), algorithm, false, [
    'sign',
    'verify',
  ]);
}

function bytesOf(body: string | Uint8Array): Uint8Array<ArrayBuffer> {
  return typeof body === 'string' ? encoder.encode(body) : new Uint8Array(body);
}
