import { timingSafeEqual } from 'node:crypto';
import type { Environment } from '../integrations/integration.ts';
import { hashClientSecret } from '../integrations/integration.ts';
import type { Timestamp } from '../shared/clock.ts';
import type { Random } from '../shared/random.ts';

/**
 * What a v1 plugin logs in with. A pair is in force until it is withdrawn and never again; of an
 * integration at most one is. Tokens belong to the pair that they were given out for and end with it.
 */
export type LegacyCredential = {
  client_id: string;
  integration_id: string;
  secret_hash: Buffer;
  created_at: Timestamp;
  disabled_at: Timestamp | null;
};

/** How long a token opens `POST /payment/checkout` (D31). */
export const tokenSeconds = 3600;

export function newLegacySecret(environment: Environment, random: Random): string {
  return `v1s_${environment}_${random.bytes(32).toString('base64url')}`;
}

export function newLegacyToken(environment: Environment, random: Random): string {
  return `v1t_${environment}_${random.bytes(32).toString('base64url')}`;
}

/** As random as a client secret, so as quickly hashed. */
export const hashLegacy = hashClientSecret;

const nobodysHash = Buffer.alloc(32);

/** Takes as long for a pair that does not exist as for one that does. */
export function isSecretOf(secret: string, secret_hash: Buffer | null): boolean {
  const isSame = timingSafeEqual(hashLegacy(secret), secret_hash ?? nobodysHash);
  return isSame && secret_hash !== null;
}
