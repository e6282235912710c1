import { type Guess, guesses, readSignature } from '#platform/signing/signature-mistakes.ts';

// The doctor's diagnosis, without the page. It uses the service's own rules about signing mistakes.

export type Inputs = { body: string; header: string; key: string; secret: string };

export type Diagnosis = {
  verdict: 'right' | 'wrong' | 'unknown';
  /** The characters around the pasted key that were removed before the check. */
  stray: string[];
  sentences: string[];
  /** The correct header. */
  expected: string;
  given: string;
  /** The text that was signed and the text that must be signed, if they differ. */
  texts: { signed: string; right: string } | null;
  /** The key as it was used and the correct key, if both are known and they differ. */
  keys: { used: string; right: string } | null;
  /** How many possible mistakes were tested. */
  tried: number;
  bodyBytes: number;
};

const encoder = new TextEncoder();

/** Removes the white space that JSON does not need and changes nothing else. */
export function compactJson(text: string): string {
  return text.replace(/("(?:[^"\\]|\\.)*")|[ \t\r\n]+/g, (_whole, string?: string) => string ?? '');
}

export async function diagnose(inputs: Inputs, environment: string): Promise<Diagnosis> {
  const sentences: string[] = [];
  const { key, stray, faults } = cleanKey(inputs.key, environment);
  sentences.push(...faults);
  const isJson = isValidJson(inputs.body);
  if (!isJson) {
    sentences.push('The body is not JSON: paste it whole, exactly as it was sent or received.');
  }
  const compact = isJson ? compactJson(inputs.body) : inputs.body;
  const rawBody = encoder.encode(inputs.body);
  const compactBody = encoder.encode(compact);
  const given = inputs.header.replace(/\r?\n$/, '');
  const expected = toBase64(await compute('SHA-512', { key, text: compactBody, mistakes: [] }));
  const found: Diagnosis = {
    verdict: 'unknown',
    sentences,
    stray,
    expected,
    given,
    texts: null,
    keys: null,
    tried: 0,
    bodyBytes: rawBody.length,
  };
  if (given === expected) {
    found.verdict = faults.length === 0 ? 'right' : 'wrong';
    if (compact !== inputs.body) {
      sentences.push(
        'The body has white space between its tokens, and the signature is right for the body without it. A request like that is accepted. If this is a callback, your server changed the body before verifying it: verify the raw bytes.',
      );
      found.texts = { signed: compact, right: inputs.body };
    }
    return found;
  }
  sentences.unshift(...stray.map((what) => `Remove the ${what} around the key that you pasted.`));
  const digest = readSignature(given);
  if (typeof digest === 'string')
    return { ...found, verdict: 'wrong', sentences: [...sentences, digest] };
  const secret = inputs.secret.trim();
  const clientSecret = secret === '' ? null : secret;
  for (const guess of guesses({ rawBody, compactBody, signingKeys: [key], clientSecret })) {
    found.tried += 1;
    if (!isSame(digest.bytes, await compute(digest.algorithm, guess))) continue;
    const signed =
      typeof guess.text === 'string' ? guess.text : new TextDecoder().decode(guess.text);
    const used = typeof guess.key === 'string' ? guess.key : null;
    return {
      ...found,
      verdict: 'wrong',
      sentences: [...sentences, ...digest.mistakes, ...guess.mistakes],
      texts: signed === compact ? null : { signed, right: compact },
      keys: used === null || used === key ? null : { used, right: key },
    };
  }
  const all = [...sentences, ...digest.mistakes];
  return { ...found, verdict: all.length > 0 ? 'wrong' : 'unknown', sentences: all };
}

/** Some mistakes in the pasted key are visible without computing a signature. */
function cleanKey(
  pasted: string,
  environment: string,
): { key: string; stray: string[]; faults: string[] } {
  const stray: string[] = [];
  const faults: string[] = [];
  let key = pasted.replace(/[\r\n]+$/, '');
  if (/^(["']).*\1$/.test(key.trim())) {
    stray.push('quotes');
    key = key.trim().slice(1, -1);
  }
  if (key !== key.trim()) {
    stray.push('white space');
    key = key.trim();
  }
  const other = environment === 'sandbox' ? 'production' : 'sandbox';
  if (key.startsWith('cs_')) {
    faults.push(
      'This is a client secret, which authenticates requests. Signatures use the signing key, which begins with sig_.',
    );
  } else if (key.startsWith(`sig_${other}_`)) {
    faults.push(
      `This is a signing key for the ${other} environment, but this page checks ${environment} signatures: each environment has its own keys.`,
    );
  } else if (key !== '' && !key.startsWith('sig_')) {
    faults.push('The key does not begin with sig_: use the whole key as printed.');
  }
  return { key, stray, faults };
}

function isValidJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

async function compute(algorithm: string, { key, text }: Guess): Promise<Uint8Array> {
  const bytes = toBytes(text);
  if (key === null) return new Uint8Array(await crypto.subtle.digest(algorithm, bytes));
  // HMAC pads a key with zeros, so one zero equals the empty key, which Web Crypto refuses.
  const keyBytes = key.length === 0 ? new Uint8Array(1) : toBytes(key);
  const name = { name: 'HMAC', hash: algorithm };
  const imported = await crypto.subtle.importKey('raw', keyBytes, name, false, ['sign']);
  return new Uint8Array(await crypto.subtle.sign('HMAC', imported, bytes));
}

function toBytes(value: string | Uint8Array): Uint8Array<ArrayBuffer> {
  return typeof value === 'string' ? encoder.encode(value) : new Uint8Array(value);
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}

function toBase64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}
