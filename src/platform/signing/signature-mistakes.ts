// Common mistakes in signing (decision 0005), as guesses about how a wrong signature was made. The
// service tries them on a request that it refuses. The page at /docs/signature tries them in a
// browser, so this file imports nothing and leaves the digests to its callers.

/** 64 bytes of HMAC-SHA512 in standard Base64. */
export const signatureLength = 88;

export type DigestAlgorithm = 'SHA-1' | 'SHA-256' | 'SHA-384' | 'SHA-512';

export type Digest = { bytes: Uint8Array; algorithm: DigestAlgorithm; mistakes: string[] };

/** How a signature may have been made. A null key means a plain digest of the text. */
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

/** The digest in a header value, however it is encoded; a sentence if there is no digest. */
export function readSignature(value: string): Digest | string {
  if (value.includes(',')) return severalValues;
  return readDigest(value) ?? explainLength(value);
}

function explainLength(value: string): string {
  const correct = `A correct signature is standard Base64: ${signatureLength} characters, the last of them =.`;
  if (value.length !== signatureLength)
    return `The value has ${value.length} characters. ${correct}`;
  const at = value.search(/[^A-Za-z0-9+/]/);
  const isPadding = /^=*$/.test(value.slice(at));
  return at >= 0 && !isPadding
    ? `The value has ${signatureLength} characters, but ${JSON.stringify(value[at])} at character ${at + 1} is not Base64.`
    : `The value has ${signatureLength} characters, but its padding is wrong. ${correct}`;
}

export const severalValues =
  'The header has several values, or one that was split at a comma: send X-Signature once, with one value.';

/** The digest, and what is wrong with its encoding. */
function readDigest(value: string): Digest | null {
  if (value.length > 512) return null;
  const mistakes: string[] = [];
  // The shortest digest, SHA-1, has 27 characters in Base64. A short word and a separator before at
  // least that many characters is a label such as `sha512=`.
  const bare = value
    .replace(/\s+|["']/g, ' ')
    .trim()
    .replace(/^[\w-]{1,20}[=: ]+(?=[^=: ]{27})/, '')
    .replaceAll(' ', '');
  if (bare !== value) {
    mistakes.push('Send the bare signature, without quotes, label or white space.');
  }

  const bytes = fromHex(bare) ?? fromBase64(bare);
  if (bytes === null) return null;
  const hexInside = fromHex(String.fromCharCode(...bytes));
  const digest = hexInside ?? bytes;
  if (hexInside !== null) {
    mistakes.push(
      'The value is Base64 of a hex digest: encode the bytes of the digest, not its hex text.',
    );
  } else if (/^[0-9a-f]+$/i.test(bare)) {
    mistakes.push('The value is hex: encode the bytes of the digest as standard Base64 instead.');
  } else if (/[-_]/.test(bare)) {
    mistakes.push(
      'The value is URL-safe Base64: use the standard alphabet, with + and /, padded with =.',
    );
  } else if (bare.length % 4 !== 0) {
    mistakes.push('The value has no padding: standard Base64 is padded with =.');
  }

  const algorithm = algorithms.get(digest.length);
  if (algorithm === undefined) return null;
  if (algorithm !== 'SHA-512') {
    mistakes.push(`The value has the length of a ${algorithm} digest: use HMAC-SHA512.`);
  }
  return { bytes: digest, algorithm, mistakes };
}

function fromHex(text: string): Uint8Array | null {
  return /^[0-9a-f]+$/i.test(text) && algorithms.has(text.length / 2) ? hexBytes(text) : null;
}

function hexBytes(text: string): Uint8Array {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

/** Accepts both alphabets, with or without padding. */
function fromBase64(text: string): Uint8Array | null {
  if (!/^[\w+/-]+={0,2}$/.test(text)) return null;
  const digits = text.replace(/=+$/, '').replaceAll('-', '+').replaceAll('_', '/');
  if (digits.length % 4 === 1) return null;
  return Uint8Array.from(atob(digits), (character) => character.charCodeAt(0));
}

const lineBreakSigned =
  'The signed text ends in a line break, which is not part of the body: sign the body alone (echo adds a line break; printf does not).';
const prettyPrintSigned =
  'The signed text is pretty-printed: serialise the body compactly, sign that string and send the same string.';
const spacedLineSigned =
  'The signed text has spaces between its tokens: serialise the body compactly (in Python with separators=(",", ":")), sign that string and send the same string.';
const otherTextSigned =
  'The signed text is another serialisation of this body, with other escapes, number formats or member order: serialise once, sign that string and send the same string.';
const nothingSigned = 'The signed text is empty: sign the body that you send.';
const secretUsed = 'The signature was made with the client secret: sign with the signing key.';
const noKeyUsed =
  'The value is a plain digest, without a key: use HMAC-SHA512 with the signing key.';

const respacedBytesMax = 32 * 1024;

/**
 * Guesses how the signature was made, the likely ways first. Each guess costs its caller one digest
 * of the body, so the caller decides when to stop.
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
  if (compactBody.length > respacedBytesMax) return;

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

// A JSON string contains no bare line break, so a line break in the body is between its tokens.
function whiteSpaceSigned(rawBody: Uint8Array): string {
  return rawBody.includes(0x0a) ? prettyPrintSigned : spacedLineSigned;
}

/**
 * The body as sent, and as the usual serialisers write it. A client that serialises once to sign
 * and lets its HTTP library serialise again has signed one of these. JavaScript escapes nothing,
 * Python escapes everything but ASCII, and PHP escapes slashes as well.
 */
function respellings(asSent: string): Set<string> {
  const value = readValue(asSent);
  if (value === undefined) return new Set([asSent]);
  const plain = JSON.stringify(value);
  const ascii = plain.replace(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  // A slash occurs only in strings, and JSON.stringify does not escape it.
  return new Set([
    asSent,
    plain,
    ascii,
    plain.replaceAll('/', '\\/'),
    ascii.replaceAll('/', '\\/'),
  ]);
}

/** Returns undefined for a text that is not JSON: a reader can paste anything into the page. */
function readValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Adds white space to compact JSON as serialisers do: on one line with spaces, or with line breaks.
 * `lineBreak` is the line break and one level of indentation.
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
 * Every key that we try must be as hard to guess as the signing key itself. If we confirmed a match
 * with a short part of the key, an attacker could find the key part by part. So we try a part only
 * when at least 128 bits are left, and a decoded key only when the whole text is in that encoding:
 * a lenient decoder would stop early or skip characters.
 */
function* keysToTry(
  signingKeys: readonly string[],
): Generator<{ key: string | Uint8Array; mistake: string }> {
  yield {
    key: '',
    mistake:
      'The signature was made with an empty key: check that your program loads the signing key.',
  };
  for (const signingKey of signingKeys) {
    for (const lineBreak of ['\n', '\r\n']) {
      yield {
        key: signingKey + lineBreak,
        mistake:
          'The signature was made with the signing key and a line break after it: remove the line break.',
      };
    }
    for (const quote of ['"', "'"]) {
      yield {
        key: quote + signingKey + quote,
        mistake: 'The signature was made with the signing key in quotes: remove the quotes.',
      };
    }
    const unprefixed = signingKey.replace(/^sig_[a-z]+_/, '');
    const decoded = 'The signing key was decoded before use: use its text as it was printed.';
    if (/^(?:[0-9a-f]{2}){16,}$/i.test(unprefixed)) {
      yield { key: hexBytes(unprefixed), mistake: decoded };
    }
    if (unprefixed.length >= 22) {
      yield {
        key: unprefixed,
        mistake:
          'The signature was made with the signing key without its prefix: use the whole key as it was printed.',
      };
      for (const text of [unprefixed, signingKey]) {
        const bytes = fromBase64(text);
        if (bytes !== null) yield { key: bytes, mistake: decoded };
      }
    }
  }
}
