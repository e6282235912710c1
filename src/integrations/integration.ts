import { createHash } from 'node:crypto';
import type { Random } from '../shared/random.ts';

export type Environment = 'sandbox' | 'production';

export const refundModes = ['manual', 'auto'] as const;
export type RefundMode = (typeof refundModes)[number];

export type Limit = { max_requests: number; window_seconds: number };

/** A signing key that verifies requests now. */
export type SigningKey = { id: string; key: string; first_used_at: string | null };

/**
 * One set of credentials: of one merchant, or of an intermediary (`merchant_id` is null then)
 * that manages a list of merchants.
 */
export type Integration = {
  id: string;
  merchant_id: string | null;
  intermediary: boolean;
  refund_mode: RefundMode;
  signing_required_at: string | null;
  revoked_at: string | null;
  created_at: string;
};

/** An integration as a request meets it: recognised, with what is needed to serve it. */
export type Caller = Integration & {
  signing_keys: SigningKey[];
  limits: Record<string, Limit>;
};

export function newClientSecret(environment: Environment, random: Random): string {
  return `cs_${environment}_${random.bytes(32).toString('base64url')}`;
}

export function newSigningKey(environment: Environment, random: Random): string {
  return `sig_${environment}_${random.bytes(32).toString('base64url')}`;
}

/**
 * A client secret is 256 random bits, so one round of a fast hash is as good as a slow one:
 * there is nothing to guess.
 */
export function hashClientSecret(clientSecret: string): Buffer {
  return createHash('sha256').update(clientSecret).digest();
}

/** The environment that a client secret says it belongs to (D34), if it is one at all. */
export function environmentOf(clientSecret: string): Environment | null {
  const match = /^cs_(sandbox|production)_[A-Za-z0-9_-]{43}$/.exec(clientSecret);
  return match ? (match[1] as Environment) : null;
}
