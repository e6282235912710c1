import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  hkdfSync,
  timingSafeEqual,
} from 'node:crypto';
import type { Random } from './random.ts';

/**
 * Both ciphers encrypt and authenticate, with a 256-bit key, a 12-byte nonce and a 16-byte tag. If
 * one of them is broken, an operator changes to the other.
 */
export const sealingCiphers = ['aes-256-gcm', 'chacha20-poly1305'] as const;
export type SealingCipher = (typeof sealingCiphers)[number];

/**
 * Seals everything that the master key protects: signing keys at rest, and the payment tokens.
 *
 * While the operator changes the master key or the cipher, the previous one still opens values.
 * Only the current one seals.
 */
export type Sealing = {
  /**
   * Encrypts a secret for the database. `context` names its row, so that the sealed value cannot
   * be opened in another row.
   */
  seal(secret: string, context: string): Buffer;
  open(sealed: Buffer, context: string): string;
  /** Whether this was sealed under the current master key, with the current cipher. */
  isCurrent(sealed: Buffer): boolean;
  /** Whether this was sealed under one of the configured master keys. */
  isKnown(sealed: Buffer): boolean;
  /** A deterministic, unguessable, opaque token for some ids. */
  tokenFor(ids: Buffer): string;
  /** The ids of a token that we made, or null. */
  idsOf(token: string): Buffer | null;
};

/** A sealed value begins with the fingerprint, which identifies its master key and its cipher. */
type SealingKey = { fingerprint: Buffer; cipher: SealingCipher; key: Buffer };

type MasterKey = {
  sealingKeys: SealingKey[];
  tokenMacKey: Buffer;
  tokenCipherKey: Buffer;
};

const fingerprintLength = 4;
const nonceLength = 12;
const authTagLength = 16;
const macLength = 16;

export function createSealing(
  masterKeys: Buffer[],
  random: Random,
  cipher: SealingCipher = 'aes-256-gcm',
): Sealing {
  const keys = masterKeys.map(derive);
  const [current] = keys;
  const sealingKeys = keys.flatMap((one) => one.sealingKeys);
  const sealingKey = current?.sealingKeys.find((one) => one.cipher === cipher);
  if (!current || !sealingKey) throw new Error('a master key is needed');
  const keyOf = (sealed: Buffer) =>
    sealingKeys.find((one) => one.fingerprint.equals(sealed.subarray(0, fingerprintLength)));

  return {
    // fingerprint ‖ nonce ‖ tag ‖ ciphertext
    seal(secret, context) {
      const nonce = random.bytes(nonceLength);
      const sealer = createCipheriv(typed(cipher), sealingKey.key, nonce, { authTagLength });
      sealer.setAAD(Buffer.from(context));
      const ciphertext = Buffer.concat([sealer.update(secret, 'utf8'), sealer.final()]);
      return Buffer.concat([sealingKey.fingerprint, nonce, sealer.getAuthTag(), ciphertext]);
    },
    open(sealed, context) {
      const found = keyOf(sealed);
      if (!found) throw new Error('sealed under a master key that is not configured');
      const nonce = sealed.subarray(fingerprintLength, fingerprintLength + nonceLength);
      const rest = sealed.subarray(fingerprintLength + nonceLength);
      const decipher = createDecipheriv(typed(found.cipher), found.key, nonce, { authTagLength });
      decipher.setAAD(Buffer.from(context));
      decipher.setAuthTag(rest.subarray(0, authTagLength));
      return (
        decipher.update(rest.subarray(authTagLength), undefined, 'utf8') + decipher.final('utf8')
      );
    },
    isCurrent: (sealed) => keyOf(sealed) === sealingKey,
    isKnown: (sealed) => keyOf(sealed) !== undefined,
    // Synthetic-IV encryption: the MAC over the ids is the initialisation vector of their
    // encryption. The same ids always give the same token, and making or reading a token needs the
    // key.
    tokenFor(ids) {
      const mac = tokenMac(current, ids);
      const cipher = createCipheriv('aes-256-ctr', current.tokenCipherKey, mac);
      // This cipher has no padding, so nothing is left for `final`.
      const bytes = mac.toString('latin1') + cipher.update(ids, undefined, 'latin1');
      return Buffer.from(bytes, 'latin1').toString('base64url');
    },
    idsOf(token) {
      const bytes = Buffer.from(token, 'base64url');
      // Only one spelling is accepted. Base64url decoding would accept others.
      if (bytes.length <= macLength || bytes.toString('base64url') !== token) return null;
      const mac = bytes.subarray(0, macLength);
      for (const key of keys) {
        const decipher = createDecipheriv('aes-256-ctr', key.tokenCipherKey, mac);
        const ids = Buffer.concat([decipher.update(bytes.subarray(macLength)), decipher.final()]);
        if (timingSafeEqual(tokenMac(key, ids), mac)) return ids;
      }
      return null;
    },
  };
}

/** Node's types require an option for ChaCha20 that only CCM needs. */
const typed = (cipher: SealingCipher) => cipher as 'aes-256-gcm';

function tokenMac(key: MasterKey, ids: Buffer): Buffer {
  // A digest as a buffer allocates memory, which costs as much as the digest itself. A digest as a
  // string does not.
  const digest = createHmac('sha256', key.tokenMacKey).update(ids).digest('latin1');
  return Buffer.from(digest.slice(0, macLength), 'latin1');
}

function derive(masterKey: Buffer): MasterKey {
  const subkey = (purpose: string) =>
    Buffer.from(hkdfSync('sha256', masterKey, '', `tranche ${purpose}`, 32));
  const sealingKeyFor = (cipher: SealingCipher): SealingKey => {
    // The name of the first cipher is empty, because values that were sealed before the second one
    // existed have no name.
    const name = cipher === 'aes-256-gcm' ? '' : ` ${cipher}`;
    const digest = createHash('sha256')
      .update(subkey(`fingerprint${name}`))
      .digest();
    const fingerprint = digest.subarray(0, fingerprintLength);
    return { fingerprint, cipher, key: subkey(`signing keys${name}`) };
  };
  return {
    sealingKeys: sealingCiphers.map(sealingKeyFor),
    tokenMacKey: subkey('payment token mac'),
    tokenCipherKey: subkey('payment token cipher'),
  };
}
