import type { Callers } from '#merchants/integrations/callers.ts';
import { type Caller, readCredential } from '#merchants/integrations/integration.ts';
import type { Database } from '#platform/database/database.ts';
import { reading, transaction } from '#platform/database/transaction.ts';
import { unauthorized } from '#platform/http/errors.ts';
import type { AccessDeps } from '#platform/http/open-access.ts';
import type { Quota } from '#platform/http/quota.ts';
import type { RateLimits } from '#platform/http/rate-limits.ts';
import { type Clock, secondsAfter, timestamp } from '#platform/shared/clock.ts';
import type { Environment } from '#platform/shared/environment.ts';
import type { Random } from '#platform/shared/random.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import type { LoginBody } from './legacy.schema.ts';
import { findLogin } from './legacy-credential.sql.ts';
import { hashLegacy, isSecretOf, newLegacyToken, tokenSeconds } from './legacy-credential.ts';
import { insertToken } from './legacy-token.sql.ts';
import { advanceUsage } from './legacy-usage.sql.ts';

export type LoginDeps = {
  database: Database;
  clock: Clock;
  random: Random;
  environment: Environment;
  callers: Callers;
  rateLimits: RateLimits;
} & AccessDeps;

/**
 * Issues a token for a merchant: the integration's own, or one that it manages. Failures are
 * counted per network of the client and per `client_id`, and never block a login with the right
 * secret (decision 0040).
 */
export async function logIn(
  deps: LoginDeps,
  given: LoginBody,
  network: string,
): Promise<{ caller: Caller; token: string; quota: Quota }> {
  const client_id = isUuid(given.client_id) ? given.client_id.toLowerCase() : null;
  const found = client_id ? await reading(deps, (db) => findLogin(db, client_id)) : null;
  const isRight = isSecretOf(given.client_secret, found?.secret_hash ?? null);
  const caller = found && isRight ? { ...found.integration, signing_keys: [] } : null;
  const merchant =
    caller && (await deps.callers.addressMerchant(caller, given.merchant_id.toLowerCase()));
  if (!client_id || !caller || !merchant) {
    const quota = await deps.rateLimits.failedLogin(network, client_id);
    throw unauthorized(explainFailure(deps, given, caller !== null), quota);
  }
  const quota = await deps.rateLimits.login(caller, client_id, merchant.id, network);

  const token = newLegacyToken(deps.environment, deps.random);
  await transaction(deps, async ({ db }) => {
    const now = deps.clock.now();
    const isFirst = await insertToken(db, {
      token_hash: hashLegacy(token),
      merchant_id: merchant.id,
      client_id,
      created_at: timestamp(now),
      expires_at: timestamp(secondsAfter(now, tokenSeconds)),
    });
    if (isFirst) await advanceUsage(db, caller.id, dayOf(now), 'logins');
  });
  return { caller, token, quota };
}

/** The day that a use of v1 counts for. It is on the real clock, like v1's tokens and limits. */
export function dayOf(now: Temporal.Instant): string {
  return now.toZonedDateTimeISO('UTC').toPlainDate().toString();
}

/** Only a caller with the right secret learns that the merchant is wrong. */
function explainFailure(
  { environment }: LoginDeps,
  { client_secret }: LoginBody,
  isRightSecret: boolean,
): string {
  if (isRightSecret) {
    return 'The merchant_id is not the merchant of these credentials, nor one that they manage.';
  }
  const invalid = 'The client_id and client_secret are not valid.';
  const credential = readCredential(client_secret);
  if (credential?.kind === 'client_secret') {
    return `${invalid} This client_secret is one of v2, which needs no login: v1 has its own.`;
  }
  const isLegacy = credential !== null && credential.kind !== 'signing_key';
  const of = isLegacy ? credential.environment : environment;
  return of === environment
    ? invalid
    : `${invalid} This client_secret belongs to the ${of} environment and this is ${environment}.`;
}
