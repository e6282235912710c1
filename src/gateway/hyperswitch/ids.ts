import { createHash } from 'node:crypto';

// Hyperswitch lets us choose ids, of exactly 30 characters, and accepts each id once. So a repeated
// request finds what the first one did, however long ago that was.

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';
const uuid = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i;

/** Four characters for the kind, and 26 that hold the 128 bits of a UUID. */
const idOf = (prefix: 'pay' | 'ver' | 'ref' | 'cus', id: string) =>
  `${prefix}_${base32(uuid.test(id) ? id.replaceAll('-', '') : hashOf(id))}`;

/** An id that is not a UUID is hashed to the same number of bits. */
const hashOf = (id: string) => createHash('sha256').update(id).digest('hex').slice(0, 32);

function base32(hex: string): string {
  const characters: string[] = [];
  for (let rest = BigInt(`0x${hex}`); characters.length < 26; rest >>= 5n) {
    characters.unshift(alphabet.charAt(Number(rest & 31n)));
  }
  return characters.join('');
}

/** The UUID from which an id of one of these kinds was made; null if the id is not ours. */
function uuidIn(id: string, ...prefixes: string[]): string | null {
  const [, prefix = '', digits = ''] = /^([a-z]{3})_([0-7][0-9a-hjkmnp-tv-z]{25})$/.exec(id) ?? [];
  if (!prefixes.includes(prefix)) return null;
  const value = [...digits].reduce((sum, one) => (sum << 5n) | BigInt(alphabet.indexOf(one)), 0n);
  const hex = value.toString(16).padStart(32, '0');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** The attempt whose payment or verification has this id. */
export const attemptIn = (payment_id: string) => uuidIn(payment_id, 'pay', 'ver');
/** The checkout whose shopper has this id. */
export const checkoutIn = (customer_id: string) => uuidIn(customer_id, 'cus');

export const paymentId = (attempt_id: string) => idOf('pay', attempt_id);
export const verificationId = (attempt_id: string) => idOf('ver', attempt_id);
export const isVerification = (payment_id: string) => payment_id.startsWith('ver_');
export const customerId = (checkout_id: string) => idOf('cus', checkout_id);

/** The id is made from the key, because a failed refund is repeated with another key and id. */
export const refundId = (key: string) => idOf('ref', key);
