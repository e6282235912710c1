import { timingSafeEqual } from 'node:crypto';
import { hashClientSecret } from '#merchants/integrations/integration.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Environment } from '#platform/shared/environment.ts';
import type { Random } from '#platform/shared/random.ts';

/**
 * A v1 plugin's login. Credentials are in force until they are withdrawn, and an integration has at
 * most one pair in force. A token is valid no longer than the credentials that it was issued for.
 */
export type LegacyCredential = {
  client_id: string;
  integration_id: string;
  secret_hash: Buffer;
  created_at: Timestamp;
  disabled_at: Timestamp | null;
};

/** How long a token is valid (decision 0040). */
export const tokenSeconds = 3600;

export function newLegacySecret(environment: Environment, random: Random): string {
  return `v1s_${environment}_${random.bytes(32).toString('base64url')}`;
}

export function newLegacyToken(environment: Environment, random: Random): string {
  return `v1t_${environment}_${random.bytes(32).toString('base64url')}`;
}

/** The secret is as random as a client secret, so a fast hash is enough. */
export const hashLegacy = hashClientSecret;

const placeholderHash = Buffer.alloc(32);

/** The comparison takes as long for an unknown client_id as for a known one. */
export function isSecretOf(secret: string, secret_hash: Buffer | null): boolean {
  const isSame = timingSafeEqual(hashLegacy(secret), secret_hash ?? placeholderHash);
  return isSame && secret_hash !== null;
}
