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
 * Seals everything that the master key protects: signing keys at rest, and the payment tokens.
 *
 * While the operator changes the master key, the previous key can still open. Only the current one
 * seals.
 */
export type Sealing = {
  /**
   * Encrypts a secret for the database. `context` names its row, so that it cannot be opened in
   * another row.
   */
  seal(secret: string, context: string): Buffer;
  open(sealed: Buffer, context: string): string;
  /** Whether this was sealed under the current master key. */
  isCurrent(sealed: Buffer): boolean;
  /** Whether one of the configured master keys opens it. */
  isKnown(sealed: Buffer): boolean;
  /** A deterministic, unguessable, opaque token for some ids. */
  tokenFor(ids: Buffer): string;
  /** The ids of a token that we made, or null. */
  idsOf(token: string): Buffer | null;
};

type MasterKey = {
  fingerprint: Buffer;
  sealingKey: Buffer;
  tokenMacKey: Buffer;
  tokenCipherKey: Buffer;
};

const fingerprintLength = 4;
const nonceLength = 12;
const tagLength = 16;
const macLength = 16;

export function createSealing(masterKeys: Buffer[], random: Random): Sealing {
  const keys = masterKeys.map(derive);
  const current = keys[0];
  if (!current) throw new Error('a master key is needed');
  const keyOf = (sealed: Buffer) =>
    keys.find((key) => key.fingerprint.equals(sealed.subarray(0, fingerprintLength)));

  return {
    // fingerprint ‖ nonce ‖ tag ‖ ciphertext
    seal(secret, context) {
      const nonce = random.bytes(nonceLength);
      const cipher = createCipheriv('aes-256-gcm', current.sealingKey, nonce);
      cipher.setAAD(Buffer.from(context));
      const ciphertext = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
      return Buffer.concat([current.fingerprint, nonce, cipher.getAuthTag(), ciphertext]);
    },
    open(sealed, context) {
      const key = keyOf(sealed);
      if (!key) throw new Error('sealed under a master key that is not configured');
      const nonce = sealed.subarray(fingerprintLength, fingerprintLength + nonceLength);
      const rest = sealed.subarray(fingerprintLength + nonceLength);
      const decipher = createDecipheriv('aes-256-gcm', key.sealingKey, nonce);
      decipher.setAAD(Buffer.from(context));
      decipher.setAuthTag(rest.subarray(0, tagLength));
      return decipher.update(rest.subarray(tagLength), undefined, 'utf8') + decipher.final('utf8');
    },
    isCurrent: (sealed) => keyOf(sealed) === current,
    isKnown: (sealed) => keyOf(sealed) !== undefined,
    // Synthetic-IV encryption: the MAC over the ids is the initialisation vector of their
    // encryption. The same ids always give the same token, and making or reading a token needs the
    // key.
    tokenFor(ids) {
      const mac = tokenMac(current, ids);
      const cipher = createCipheriv('aes-256-ctr', current.tokenCipherKey, mac);
      return Buffer.concat([mac, cipher.update(ids), cipher.final()]).toString('base64url');
    },
    idsOf(token) {
      const bytes = Buffer.from(token, 'base64url');
      // Accept one spelling only. Base64url decoding would accept others.
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

function tokenMac(key: MasterKey, ids: Buffer): Buffer {
  return createHmac('sha256', key.tokenMacKey).update(ids).digest().subarray(0, macLength);
}

function derive(masterKey: Buffer): MasterKey {
  const subkey = (purpose: string) =>
    Buffer.from(hkdfSync('sha256', masterKey, '', `tranche ${purpose}`, 32));
  return {
    fingerprint: createHash('sha256')
      .update(subkey('fingerprint'))
      .digest()
      .subarray(0, fingerprintLength),
    sealingKey: subkey('signing keys'),
    tokenMacKey: subkey('payment token mac'),
    tokenCipherKey: subkey('payment token cipher'),
  };
}
