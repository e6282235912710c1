// The mistakes that people make when they sign (D14), as guesses about what a wrong signature was
// made of. The service tries them on a request that it refuses, and the page at /docs/signature in
// a browser; so this imports nothing and computes no digest itself.

/** 64 bytes of HMAC-SHA512 in standard Base64. */
export const signatureLength = 88;

export type DigestAlgorithm = 'SHA-1' | 'SHA-256' | 'SHA-384' | 'SHA-512';

export type Digest = { bytes: Uint8Array; algorithm: DigestAlgorithm; mistakes: string[] };

/** What a signature may have been made of. Without a key it is a plain digest of the text. */
export type Guess = {
  key: string | Uint8Array | null;
  text: string | Uint8Array;
  mistakes: string[];
};

const algorithms = new Map<number, DigestAlgorithm>([
  [20, 'SHA-1'],
  [32, 'SHA-256'],
  [48, 'SHA-384'],
  [64, 'SHA-512'],
]);

/** Finds the digest in whatever way it was written; a sentence when there is none to be found. */
export function readSignature(value: string): Digest | string {
  if (value.includes(',')) return severalValues;
  return (
    readDigest(value) ??
    `The value has ${value.length} characters: a correct one is standard Base64 of ${signatureLength} characters that ends in =.`
  );
}

export const severalValues =
  'X-Signature was sent more than once or in several parts: send one value.';

/** The digest, with what is wrong about the way in which it was written. */
function readDigest(value: string): Digest | null {
  if (value.length > 512) return null;
  const mistakes: string[] = [];
  // The longest right value is 88 characters, so what precedes 27 or more others and a separator
  // is a label such as `sha512=`.
  const bare = value
    .replace(/\s+|["']/g, ' ')
    .trim()
    .replace(/^[\w-]{1,20}[=: ]+(?=[^=: ]{27})/, '')
    .replaceAll(' ', '');
  if (bare !== value) {
    mistakes.push('Send the value alone, with no quotes, label or white space.');
  }

  const bytes = fromHex(bare) ?? fromBase64(bare);
  if (bytes === null) return null;
  const hexInside = fromHex(String.fromCharCode(...bytes));
  const digest = hexInside ?? bytes;
  if (hexInside !== null) {
    mistakes.push(
      'The value is the Base64 of a hex digest: encode the bytes of the digest, not its hex text.',
    );
  } else if (/^[0-9a-f]+$/i.test(bare)) {
    mistakes.push('The value is hex: encode the bytes of the digest as standard Base64 instead.');
  } else if (/[-_]/.test(bare)) {
    mistakes.push(
      'The value is URL-safe Base64: use the standard alphabet, with + and /, padded with =.',
    );
  } else if (bare.length % 4 !== 0) {
    mistakes.push('The value lacks its padding: standard Base64 is padded with =.');
  }

  const algorithm = algorithms.get(digest.length);
  if (algorithm === undefined) return null;
  if (algorithm !== 'SHA-512') {
    mistakes.push(`The value is as long as a digest of ${algorithm}: use HMAC-SHA512.`);
  }
  return { bytes: digest, algorithm, mistakes };
}

function fromHex(text: string): Uint8Array | null {
  return /^[0-9a-f]+$/i.test(text) && algorithms.has(text.length / 2) ? hexBytes(text) : null;
}

function hexBytes(text: string): Uint8Array {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

/** Of either alphabet, padded or not. */
function fromBase64(text: string): Uint8Array | null {
  if (!/^[\w+/-]+={0,2}$/.test(text)) return null;
  const digits = text.replace(/=+$/, '').replaceAll('-', '+').replaceAll('_', '/');
  if (digits.length % 4 === 1) return null;
  return Uint8Array.from(atob(digits), (character) => character.charCodeAt(0));
}

const lineBreakSigned =
  'A line break after the body was signed too: sign the body without it (echo adds one; use printf).';
const prettyPrintSigned =
  'Pretty-printed text was signed: serialise the body compactly, sign that exact string and send that same string.';
const spacedLineSigned =
  'The signed text has spaces between its tokens: serialise the body compactly (in Python with separators=(",", ":")), sign that exact string and send that same string.';
const otherTextSigned =
  'Another serialisation of the same body was signed, with other escapes, number spellings or member order: serialise once, sign that exact string and send that same string.';
const nothingSigned = 'An empty body was signed: sign the text that is sent.';
const secretUsed = 'The key was the client secret: sign with the signing key.';
const noKeyUsed = 'The value is a digest without a key: use HMAC-SHA512 with the signing key.';

const maxRespacedBytes = 32 * 1024;

/**
 * What the signature may have been made of, the likely ones first. Each asks for one digest of the
 * body: whoever tries them says how much of that is enough.
 */
export function* guesses(request: {
  rawBody: Uint8Array;
  compactBody: Uint8Array;
  signingKeys: readonly string[];
  clientSecret: string | null;
}): Generator<Guess> {
  const { rawBody, compactBody, signingKeys, clientSecret } = request;
  for (const { text, mistake } of textsToTry(rawBody, compactBody)) {
    const mistakes = mistake === null ? [] : [mistake];
    for (const key of signingKeys) yield { key, text, mistakes };
    if (clientSecret !== null) {
      yield { key: clientSecret, text, mistakes: [secretUsed, ...mistakes] };
    }
  }
  for (const { key, mistake } of keysToTry(signingKeys)) {
    yield { key, text: compactBody, mistakes: [mistake] };
    yield { key, text: rawBody, mistakes: [mistake, whiteSpaceSigned(rawBody)] };
  }
  yield { key: null, text: compactBody, mistakes: [noKeyUsed] };
}

function* textsToTry(
  rawBody: Uint8Array,
  compactBody: Uint8Array,
): Generator<{ text: string | Uint8Array; mistake: string | null }> {
  const asSent = new TextDecoder().decode(compactBody);
  yield { text: compactBody, mistake: null };
  yield { text: `${asSent}\n`, mistake: lineBreakSigned };
  yield { text: `${asSent}\r\n`, mistake: lineBreakSigned };
  if (rawBody.length !== compactBody.length) {
    yield { text: rawBody, mistake: whiteSpaceSigned(rawBody) };
  }
  yield { text: '', mistake: nothingSigned };
  if (compactBody.length > maxRespacedBytes) return;

  for (const text of respellings(asSent)) {
    if (text !== asSent) {
      yield { text, mistake: otherTextSigned };
      yield { text: `${text}\n`, mistake: otherTextSigned };
    }
    const oneLine = respaced(text, null);
    yield { text: oneLine, mistake: spacedLineSigned };
    yield { text: `${oneLine}\n`, mistake: spacedLineSigned };
    for (const lineBreak of ['\n  ', '\n    ', '\n\t', '\r\n  ']) {
      const pretty = respaced(text, lineBreak);
      yield { text: pretty, mistake: prettyPrintSigned };
      yield { text: `${pretty}\n`, mistake: prettyPrintSigned };
    }
  }
}

// No string of JSON holds a bare line break, so one in the body stands between its tokens.
function whiteSpaceSigned(rawBody: Uint8Array): string {
  return rawBody.includes(0x0a) ? prettyPrintSigned : spacedLineSigned;
}

/**
 * The body as it was sent, then as the usual serialisers spell it: a client that serialises once
 * to sign and leaves it to its HTTP library to serialise again signs one of these. JavaScript
 * writes characters as they are, Python escapes all but ASCII, PHP escapes slashes as well.
 */
function respellings(asSent: string): Set<string> {
  const value = readValue(asSent);
  if (value === undefined) return new Set([asSent]);
  const plain = JSON.stringify(value);
  const ascii = plain.replace(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  // A slash occurs only in strings, and JSON.stringify never escapes it.
  return new Set([
    asSent,
    plain,
    ascii,
    plain.replaceAll('/', '\\/'),
    ascii.replaceAll('/', '\\/'),
  ]);
}

/** Undefined where it is no JSON: into a page anything may be pasted. */
function readValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Compact JSON with white space as serialisers put it: on one line with spaces, or broken into
 * lines. `lineBreak` is the break and one level of indentation.
 */
function respaced(compact: string, lineBreak: string | null): string {
  const [newline = '', indent = ''] = lineBreak?.split(/(?<=\n)/) ?? [];
  let depth = 0;
  const nextLine = () => newline + indent.repeat(depth);
  return compact.replace(/"[^"\\]*(?:\\.[^"\\]*)*"|\{\}|\[\]|[{}[\],:]/g, (token) => {
    switch (token) {
      case ':':
        return ': ';
      case ',':
        return lineBreak === null ? ', ' : `,${nextLine()}`;
      case '{':
      case '[':
        depth++;
        return token + nextLine();
      case '}':
      case ']':
        depth--;
        return nextLine() + token;
      default:
        return token;
    }
  });
}

/**
 * What is tried as a key must be as hard to guess as the signing key itself: to confirm that
 * somebody signed with a short piece of it would let a stranger find the key piece by piece. So a
 * piece is tried only when at least 128 bits of it are left, and a decoding only when the whole
 * text is of that encoding, because a lenient decoder would stop or skip where it is not.
 */
function* keysToTry(
  signingKeys: readonly string[],
): Generator<{ key: string | Uint8Array; mistake: string }> {
  yield { key: '', mistake: 'The key was empty: check that the signing key is loaded.' };
  for (const signingKey of signingKeys) {
    for (const lineBreak of ['\n', '\r\n']) {
      yield {
        key: signingKey + lineBreak,
        mistake: 'The key was the signing key with a line break after it: remove the line break.',
      };
    }
    for (const quote of ['"', "'"]) {
      yield {
        key: quote + signingKey + quote,
        mistake: 'The key was the signing key with quotes around it: use it without them.',
      };
    }
    const unprefixed = signingKey.replace(/^sig_[a-z]+_/, '');
    const decoded =
      'The key was decoded before it was used: use the text of the signing key as it was printed.';
    if (/^(?:[0-9a-f]{2}){16,}$/i.test(unprefixed)) {
      yield { key: hexBytes(unprefixed), mistake: decoded };
    }
    if (unprefixed.length >= 22) {
      yield {
        key: unprefixed,
        mistake: 'The key was the signing key without its prefix: use it whole, as it was printed.',
      };
      for (const text of [unprefixed, signingKey]) {
        const bytes = fromBase64(text);
        if (bytes !== null) yield { key: bytes, mistake: decoded };
      }
    }
  }
}
