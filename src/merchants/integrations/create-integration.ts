import { findMerchantRow, lockMerchant } from '#merchants/merchant.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Environment } from '#platform/shared/environment.ts';
import type { Sealing } from '#platform/shared/sealing.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { OperatorError, operate, personOf } from '#record/actions/operate.ts';
import type { LiftDeps } from '#record/alerts/lift-review.ts';
import { sealingContext } from './callers.ts';
import { insertClientSecret, insertSigningKey } from './credential.sql.ts';
import {
  countOwnIntegrations,
  insertIntegration,
  insertManagedMerchants,
} from './integration.sql.ts';
import {
  hashClientSecret,
  type Integration,
  newClientSecret,
  newSigningKey,
  type RefundMode,
} from './integration.ts';
import { isSeenWithoutLift, liftReviewOf } from './lift-review-of.ts';

export type IntegrationDeps = LiftDeps & { environment: Environment; sealing: Sealing };

/**
 * Returned only once: the database holds a hash of the client secret and the sealed signing key.
 */
export type IssuedCredentials = { id: string; client_secret: string; signing_key: string };

/**
 * Issues credentials. The person who creates an integration sees them, so only a person with
 * `mayLiftReview` may create one whose refunds are not reviewed. Each integration has the
 * contract's limits to itself, so only a person with `mayRaiseLimits` may create many.
 */
export async function createIntegration(
  deps: IntegrationDeps,
  operator: string,
  wanted: { refund_mode: RefundMode; mayLiftReview?: boolean; mayRaiseLimits?: boolean } & (
    | { merchant_id: string }
    | { managed_merchant_ids: string[] }
  ),
): Promise<IssuedCredentials> {
  const merchant_id = 'merchant_id' in wanted ? wanted.merchant_id : null;
  const managed = 'managed_merchant_ids' in wanted ? wanted.managed_merchant_ids : [];
  const id = deps.random.uuid();
  const keyId = deps.random.uuid();
  const client_secret = newClientSecret(deps.environment, deps.random);
  const signing_key = newSigningKey(deps.environment, deps.random);

  return await operate(deps, operator, 'integrations create', async (db, now) => {
    for (const merchant of merchant_id === null ? managed : [merchant_id]) {
      if (!isUuid(merchant) || !(await findMerchantRow(db, merchant))) {
        throw new OperatorError(`There is no merchant ${merchant}.`);
      }
    }
    if (merchant_id !== null && personOf(deps) !== null && wanted.mayRaiseLimits !== true) {
      await refuseTooMany(db, merchant_id, now);
    }
    const integration: Integration = {
      id,
      merchant_id,
      intermediary: merchant_id === null,
      refund_mode: wanted.refund_mode,
      // In production signatures are mandatory from the start (decision 0005).
      signing_required_at: deps.environment === 'production' ? now : null,
      revoked_at: null,
      created_at: now,
      events: [],
      events_url: null,
    };
    await insertIntegration(db, integration);
    await insertManagedMerchants(db, id, managed, now);
    await insertClientSecret(db, {
      secret_hash: hashClientSecret(client_secret),
      integration_id: id,
      created_at: now,
      expires_at: null,
      seen_without_lift: isSeenWithoutLift(deps, wanted),
    });
    await insertSigningKey(db, {
      id: keyId,
      integration_id: id,
      sealed_key: deps.sealing.seal(signing_key, sealingContext({ id: keyId, integration_id: id })),
      created_at: now,
      expires_at: null,
      // The key counts as used from the start. It is the only key, so callbacks are signed with it
      // even before the integration has signed a request.
      first_used_at: now,
    });
    if (wanted.refund_mode === 'auto') {
      await liftReviewOf(deps, db, operator, integration, {
        mayLiftReview: wanted.mayLiftReview,
        did: `added an integration${merchant_id === null ? ` for merchants ${managed.join(', ')}` : ''} and saw its credentials: its refunds are approved at once.`,
      });
    }
    const details = { merchant_id, managed_merchant_ids: managed, refund_mode: wanted.refund_mode };
    return { subject_id: id, merchant_id, details, result: { id, client_secret, signing_key } };
  });
}

const ownMax = 20;

/**
 * Integrations that were created within the last day count too, because a revoked one may have used
 * its limits before the next was created.
 */
async function refuseTooMany(db: Handle, merchant_id: string, now: Timestamp): Promise<void> {
  // Under this lock, two concurrent creations count each other.
  await lockMerchant(db, merchant_id);
  const since = timestamp(Temporal.Instant.from(now).subtract({ hours: 24 }));
  if ((await countOwnIntegrations(db, merchant_id, since, ownMax)) < ownMax) return;
  throw new OperatorError(
    `This merchant has ${ownMax} integrations that are in force or were created within the last day, and each has limits of its own. Revoke those that are not used and continue tomorrow, or ask an administrator of the payment service.`,
  );
}
