import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import {
  type Guess,
  guesses,
  readSignature,
  severalValues,
  signatureLength,
} from './signature-mistakes.ts';

/** A header as Node passes it: absent, one string (repeats joined by a comma), or several. */
type Header = string | string[] | undefined;

/** The HMAC key is the whole signing key as printed, with its prefix, in UTF-8 (decision 0005). */
export function sign(signingKey: string, compactBody: Uint8Array): string {
  return createHmac('sha512', signingKey).update(compactBody).digest('base64');
}

/**
 * The index of the key that made the signature, or null. During a rotation there are two keys
 * (decision 0005). We always try all of them, so that the time taken does not show which one
 * matched. The length of the header is not secret.
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
 * Returns a sentence or two about the mistake that produced a wrong signature, or null when we
 * cannot tell (decision 0005). The bodies are those of a request that `readJson` accepted.
 *
 * This does not help a forger. It only answers "would this mistake give exactly this digest?", and
 * an attacker who can ask that already holds the digest. It never shows a digest or a key; whether
 * to show the expected signature is the caller's decision.
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

// Every guess hashes the body again. This bound limits the cost of a hostile body of 256 KiB to
// about ten milliseconds. A checkout of ordinary size stays far below it.
const maxHashedBytes = 4 * 1024 * 1024;

function compute(algorithm: string, { key, text }: Guess): Buffer {
  const made = key === null ? createHash(algorithm) : createHmac(algorithm, key);
  return made.update(text).digest();
}

/** Returns undefined if there is no value, and null if there are several. */
function single(header: Header): string | null | undefined {
  if (!Array.isArray(header)) return header;
  return header.length > 1 ? null : header[0];
}

function same(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
