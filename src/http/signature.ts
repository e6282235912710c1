import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

/** As Node hands a header over: absent, one string (repeats joined by a comma), or several. */
type Header = string | string[] | undefined;

/** 64 bytes of HMAC-SHA512 in standard Base64. */
const signatureLength = 88;

/** The key is the UTF-8 bytes of the whole signing key as printed, prefix included (D11). */
export function sign(signingKey: string, compactBody: Uint8Array): string {
  return createHmac('sha512', signingKey).update(compactBody).digest('base64');
}

/**
 * The index of the key that made the signature, or null. During a rotation there are two (D15);
 * all are tried whichever matches, so that the time taken tells nothing. The length of what the
 * caller sent is no secret.
 */
export function verifySignature(
  header: Header,
  compactBody: Uint8Array,
  signingKeys: readonly string[],
): number | null {
  const value = single(header);
  if (value?.length !== signatureLength) return null;
  const given = Buffer.from(value);
  let match: number | null = null;
  for (const [index, signingKey] of signingKeys.entries()) {
    if (same(given, Buffer.from(sign(signingKey, compactBody)))) match ??= index;
  }
  return match;
}

/**
 * Says in a sentence or two which mistake made a signature that did not verify, or null when it
 * cannot be told (D14). The bodies are those of a request that `readJson` accepted.
 *
 * It answers only "is this whole digest the one that such a mistake would give?". Whoever can ask
 * that already holds the digest, so nothing here helps to forge one; and it never shows a digest
 * or a key of ours (whether the expected signature may be shown is decided by the caller, D13).
 */
export function explainMismatch(request: {
  header: Header;
  rawBody: Buffer;
  compactBody: Buffer;
  signingKeys: readonly string[];
  clientSecret: string;
}): string | null {
  const value = single(request.header);
  if (value === undefined) return null;
  if (value === null || value.includes(',')) {
    return 'X-Signature was sent more than once or in several parts: send one value.';
  }
  const digest = readDigest(value);
  if (digest === null) {
    return `The value has ${value.length} characters: a correct one is standard Base64 of ${signatureLength} characters that ends in =.`;
  }
  const sentences = [...digest.mistakes, ...findMistakes(digest, request)];
  return sentences.length === 0 ? null : sentences.join(' ');
}

/** Undefined when absent, null when there are several. */
function single(header: Header): string | null | undefined {
  if (!Array.isArray(header)) return header;
  return header.length > 1 ? null : header[0];
}

function same(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

type Digest = { bytes: Buffer; algorithm: string; mistakes: string[] };

const algorithms = new Map([
  [20, 'SHA-1'],
  [32, 'SHA-256'],
  [48, 'SHA-384'],
  [64, 'SHA-512'],
]);

/** Finds the digest in whatever way it was written, with what is wrong about that way. */
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
  const hexInside = fromHex(bytes.toString('latin1'));
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
  return { bytes: digest, algorithm: algorithm.replace('-', '').toLowerCase(), mistakes };
}

function fromHex(text: string): Buffer | null {
  return /^[0-9a-f]+$/i.test(text) && algorithms.has(text.length / 2)
    ? Buffer.from(text, 'hex')
    : null;
}

function fromBase64(text: string): Buffer | null {
  return /^[\w+/-]+={0,2}$/.test(text) ? Buffer.from(text, 'base64') : null;
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

// Every guess hashes the body again. The bounds keep a hostile body of 256 KiB to some ten
// milliseconds; a checkout of ordinary size stays far below them.
const maxHashedBytes = 4 * 1024 * 1024;
const maxRespacedBytes = 32 * 1024;

/** Tries the mistakes that people make, the likely ones first. */
function findMistakes(digest: Digest, request: Parameters<typeof explainMismatch>[0]): string[] {
  const { rawBody, compactBody, signingKeys, clientSecret } = request;
  let hashedBytes = 0;

  function made(key: string | Buffer, text: string | Buffer): boolean {
    hashedBytes += text.length;
    if (hashedBytes > maxHashedBytes) return false;
    return same(digest.bytes, createHmac(digest.algorithm, key).update(text).digest());
  }

  for (const { text, mistake } of textsToTry(rawBody, compactBody)) {
    if (hashedBytes > maxHashedBytes) return [];
    const about = mistake === null ? [] : [mistake];
    if (signingKeys.some((signingKey) => made(signingKey, text))) return about;
    if (made(clientSecret, text)) {
      return ['The key was the client secret: sign with the signing key.', ...about];
    }
  }
  for (const { key, mistake } of keysToTry(signingKeys)) {
    if (made(key, compactBody)) return [mistake];
    if (made(key, rawBody)) return [mistake, whiteSpaceSigned(rawBody)];
  }
  const plainDigest = createHash(digest.algorithm).update(compactBody).digest();
  return same(digest.bytes, plainDigest)
    ? ['The value is a digest without a key: use HMAC-SHA512 with the signing key.']
    : [];
}

function* textsToTry(
  rawBody: Buffer,
  compactBody: Buffer,
): Generator<{ text: string | Buffer; mistake: string | null }> {
  const asSent = compactBody.toString();
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
function whiteSpaceSigned(rawBody: Buffer): string {
  return rawBody.includes('\n') ? prettyPrintSigned : spacedLineSigned;
}

/**
 * The body as it was sent, then as the usual serialisers spell it: a client that serialises once
 * to sign and leaves it to its HTTP library to serialise again signs one of these. JavaScript
 * writes characters as they are, Python escapes all but ASCII, PHP escapes slashes as well.
 */
function respellings(asSent: string): Set<string> {
  const plain = JSON.stringify(JSON.parse(asSent));
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
 * text is of that encoding, because Buffer.from stops or skips silently where it is not.
 */
function* keysToTry(
  signingKeys: readonly string[],
): Generator<{ key: string | Buffer; mistake: string }> {
  yield { key: '', mistake: 'The key was empty: check that the signing key is loaded.' };
  for (const signingKey of signingKeys) {
    for (const lineBreak of ['\n', '\r\n']) {
      yield {
        key: signingKey + lineBreak,
        mistake: 'The key was the signing key with a line break after it: remove the line break.',
      };
    }
    const unprefixed = signingKey.replace(/^sig_[a-z]+_/, '');
    const decoded =
      'The key was decoded before it was used: use the text of the signing key as it was printed.';
    if (/^[0-9a-f]{32,}$/i.test(unprefixed)) {
      yield { key: Buffer.from(unprefixed, 'hex'), mistake: decoded };
    }
    if (unprefixed.length >= 22) {
      yield {
        key: unprefixed,
        mistake: 'The key was the signing key without its prefix: use it whole, as it was printed.',
      };
      for (const text of [unprefixed, signingKey]) {
        if (!/^[\w+/-]+={0,2}$/.test(text)) continue;
        yield { key: Buffer.from(text, 'base64'), mistake: decoded };
      }
    }
  }
}
