import { randomBytes } from 'node:crypto';

// Objects have the SDK's own types, so that the compiler checks their shape. They age when they are
// read: a hold lapses and a refund progresses as the merchant's time passes.

/** The merchant that owns the object, and the merchant's time in seconds. */
export type Made = { merchant: string; now: number };

export const daySeconds = 24 * 60 * 60;

export function newId(prefix: string): string {
  const letters = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  const random = [...randomBytes(24)].map((byte) => letters[byte % letters.length]).join('');
  return `${prefix}_${random}`;
}
