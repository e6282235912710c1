import { hash } from 'node:crypto';
import type { Environment } from '#platform/shared/environment.ts';
import type { Limit } from '#platform/shared/limit.ts';
import type { Random } from '#platform/shared/random.ts';

export const refundModes = ['manual', 'auto'] as const;
export type RefundMode = (typeof refundModes)[number];

/** The kinds of events that an integration may ask for (decision 0033). */
export const eventKinds = ['refunds', 'disputes', 'payouts'] as const;
export type EventKind = (typeof eventKinds)[number];

/** A signing key in force, decrypted. */
export type SigningKey = { id: string; key: string; first_used_at: string | null };

/**
 * One set of credentials. It belongs to one merchant or, with `merchant_id` null, to an
 * intermediary that manages a list of merchants.
 */
export type Integration = {
  id: string;
  merchant_id: string | null;
  intermediary: boolean;
  refund_mode: RefundMode;
  signing_required_at: string | null;
  revoked_at: string | null;
  created_at: string;
  /** The kinds of events that it asked for, in the order of `eventKinds`. */
  events: EventKind[];
  /** The URL for its events. If it is null, events go to the checkout's notify_url. */
  events_url: string | null;
};

/** An authenticated integration, with what is needed to serve its request. */
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

/** A client secret has 256 random bits and cannot be guessed, so a fast hash is enough. */
export function hashClientSecret(clientSecret: string): Buffer {
  return Buffer.from(hash('sha256', clientSecret, 'base64'), 'base64');
}

const credentialKinds = {
  cs: 'client_secret',
  sig: 'signing_key',
  v1s: 'legacy_secret',
  v1t: 'legacy_token',
} as const;

/**
 * The kind and environment that a credential's prefix states (decision 0015), to explain a mix-up.
 */
export function readCredential(text: string): {
  kind: (typeof credentialKinds)[keyof typeof credentialKinds];
  environment: Environment;
} | null {
  const match = /^(cs|sig|v1s|v1t)_(sandbox|production)_[A-Za-z0-9_-]{43}$/.exec(text);
  if (!match) return null;
  return {
    kind: credentialKinds[match[1] as keyof typeof credentialKinds],
    environment: match[2] as Environment,
  };
}

/**
 * The key that signs callbacks now, of the keys in force, which are given newest first. During a
 * rotation the old key signs until the integration has signed with the new one, so that a receiver
 * never gets a callback signed with a key that it does not have yet (decision 0005).
 */
export function currentSigningKey<Key extends { first_used_at: string | null }>(
  inForce: Key[],
): Key | undefined {
  return inForce.find((key) => key.first_used_at !== null) ?? inForce.at(-1);
}
