import type { Handle } from '#platform/database/database.ts';
import { secondsAfter, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import { OperatorError, personOf } from '#record/actions/operate.ts';
import { NotPermitted } from '#record/alerts/lift-review.ts';
import { operateOnAccess } from '#record/alerts/operate-on-access.ts';
import { sealingContext } from './callers.ts';
import type { IntegrationDeps } from './create-integration.ts';
import { insertClientSecret, insertSigningKey, listInForce, moveExpiry } from './credential.sql.ts';
import { hashClientSecret, newClientSecret, newSigningKey } from './integration.ts';
import { isSeenWithoutLift, liftReviewOf } from './lift-review-of.ts';
import { lockIntegration, lockLiveIntegration } from './lock-integration.ts';

export const credentials = ['client_secret', 'signing_key'] as const;
export type Credential = (typeof credentials)[number];

const overlapSecondsMax = 7 * 24 * 3600;

/** `value` is returned only once. */
export type RotatedCredential = { id: string; value: string; old_valid_until: Timestamp };

/**
 * Issues a new client secret or signing key. The old one stays valid for the overlap (decision
 * 0005). Invariant: of each kind, one credential never expires, and at most one other is in force.
 * So a rotation during the overlap of another is refused. A rotation without an overlap is allowed:
 * it makes everything older expire at once, because a leaked credential cannot wait. Overlaps are
 * in real time, even in a sandbox (decision 0017). The person who rotates sees the credential. With
 * the credential of an integration whose refunds are not reviewed, they could refund alone, so they
 * need `mayLiftReview`, and an alert names them (decision 0074).
 */
export async function rotateCredential(
  deps: IntegrationDeps,
  operator: string,
  wanted: {
    id: string;
    credential: Credential;
    overlapSeconds: number;
    mayLiftReview?: boolean;
  },
): Promise<RotatedCredential> {
  const { credential, overlapSeconds } = wanted;
  if (!(overlapSeconds >= 0 && overlapSeconds <= overlapSecondsMax)) {
    throw new OperatorError('The overlap is at most 7 days. 0 ends the old value at once.');
  }
  const isSecret = credential === 'client_secret';
  const value = (isSecret ? newClientSecret : newSigningKey)(deps.environment, deps.random);
  const keyId = deps.random.uuid();

  return await operateOnAccess(deps, operator, 'integrations rotate', async (db, now) => {
    // The key of a revoked integration still signs the callbacks of its checkouts, so an operator
    // may have to replace it. Its client secret is invalid and needs no replacement.
    const lock = isSecret ? lockLiveIntegration : lockIntegration;
    const integration = await lock(db, wanted.id);
    const { id, refund_mode } = integration;
    if (refund_mode === 'auto' && personOf(deps) !== null && wanted.mayLiftReview !== true) {
      throw new NotPermitted(
        'Refunds of this integration are approved at once, so only an administrator of the payment service may rotate its credentials. You can have its refunds reviewed first, and then rotate.',
      );
    }
    const table = isSecret ? 'client_secrets' : 'signing_keys';
    const inForce = await listInForce(db, table, id, now);
    const ending = inForce.find(({ expires_at }) => expires_at !== null);
    if (ending && overlapSeconds > 0) {
      throw new OperatorError(
        `The ${credential} of ${id} is being rotated: the old one is valid until ${ending.expires_at}. ` +
          'Rotate again after that. If one of them leaked, rotate with an overlap of 0, which ends both at once.',
      );
    }
    const old_valid_until = timestamp(secondsAfter(Temporal.Instant.from(now), overlapSeconds));
    await moveExpiry(db, table, id, old_valid_until);
    const seen_without_lift = isSeenWithoutLift(deps, wanted);
    const insert = isSecret ? insertNewSecret(seen_without_lift) : insertNewKey(deps, keyId);
    await insert(db, id, value, now);
    if (refund_mode === 'auto' && integration.revoked_at === null) {
      await liftReviewOf(deps, db, operator, integration, {
        mayLiftReview: wanted.mayLiftReview,
        did: `rotated and saw the ${credential.replaceAll('_', ' ')} of an integration whose refunds are approved at once.`,
      });
    }
    return {
      subject_id: id,
      merchant_id: integration.merchant_id,
      details: { credential, old_valid_until },
      result: { id, value, old_valid_until },
    };
  });
}

type Insert = (
  db: Handle,
  integration_id: string,
  value: string,
  created_at: Timestamp,
) => Promise<void>;

function insertNewSecret(seen_without_lift: boolean): Insert {
  return (db, integration_id, value, created_at) => {
    const life = { created_at, expires_at: null };
    const secret_hash = hashClientSecret(value);
    return insertClientSecret(db, { secret_hash, integration_id, ...life, seen_without_lift });
  };
}

function insertNewKey({ sealing }: IntegrationDeps, id: string): Insert {
  return (db, integration_id, value, created_at) =>
    insertSigningKey(db, {
      id,
      integration_id,
      sealed_key: sealing.seal(value, sealingContext({ id, integration_id })),
      created_at,
      expires_at: null,
      // Until the integration has used the new key, callbacks are signed with the old one (decision
      // 0005).
      first_used_at: null,
    });
}
