import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import {
  type Guess,
  guesses,
  readSignature,
  severalValues,
  signatureLength,
} from './signature-mistakes.ts';

/** As Node hands a header over: absent, one string (repeats joined by a comma), or several. */
type Header = string | string[] | undefined;

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
  rawBody: Uint8Array;
  compactBody: Uint8Array;
  signingKeys: readonly string[];
  clientSecret: string;
}): string | null {
  const value = single(request.header);
  if (value === undefined) return null;
  if (value === null) return severalValues;
  const digest = readSignature(value);
  if (typeof digest === 'string') return digest;
  let hashedBytes = 0;
  let found: Guess | undefined;
  for (const guess of guesses(request)) {
    hashedBytes += guess.text.length;
    if (hashedBytes > maxHashedBytes) break;
    if (!same(digest.bytes, compute(digest.algorithm, guess))) continue;
    found = guess;
    break;
  }
  const sentences = [...digest.mistakes, ...(found?.mistakes ?? [])];
  return sentences.length === 0 ? null : sentences.join(' ');
}

// Every guess hashes the body again. The bound keeps a hostile body of 256 KiB to some ten
// milliseconds; a checkout of ordinary size stays far below it.
const maxHashedBytes = 4 * 1024 * 1024;

function compute(algorithm: string, { key, text }: Guess): Buffer {
  const made = key === null ? createHash(algorithm) : createHmac(algorithm, key);
  return made.update(text).digest();
}

/** Undefined when absent, null when there are several. */
function single(header: Header): string | null | undefined {
  if (!Array.isArray(header)) return header;
  return header.length > 1 ? null : header[0];
}

function same(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
