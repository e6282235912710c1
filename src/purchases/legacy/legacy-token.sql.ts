import { sql } from 'kysely';
import {
  type IntegrationWithLimits,
  limitsOfIntegration,
} from '#merchants/integrations/integration.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

/**
 * Returns false if the token exists already. This happens if the answer to a COMMIT was lost and
 * the transaction is repeated.
 */
export async function insertToken(
  db: Handle,
  token: {
    token_hash: Buffer;
    merchant_id: string;
    client_id: string;
    created_at: Timestamp;
    expires_at: Timestamp;
  },
): Promise<boolean> {
  const row = await db
    .insertInto('legacy_tokens')
    .values(token)
    .onConflict((conflict) => conflict.doNothing())
    .returning('merchant_id')
    .executeTakeFirst();
  return row !== undefined;
}

/**
 * The owner of a token. Null if the token is not known or has expired, its credentials were
 * withdrawn, or the integration was revoked.
 */
export async function findTokenOwner(
  db: Handle,
  token_hash: Buffer,
  now: Timestamp,
): Promise<{ integration: IntegrationWithLimits; merchant_id: string } | null> {
  const { rows } = await sql<IntegrationWithLimits & { token_merchant_id: string }>`
    select i.*, ${limitsOfIntegration} as limits, t.merchant_id as token_merchant_id
    from legacy_tokens t
    join legacy_credentials c on c.client_id = t.client_id
    join integrations i on i.id = c.integration_id
    where t.token_hash = ${token_hash} and t.expires_at > ${now}
      and c.disabled_at is null and i.revoked_at is null`.execute(db);
  if (!rows[0]) return null;
  const { token_merchant_id: merchant_id, ...integration } = rows[0];
  return { integration, merchant_id };
}

export async function deleteExpiredTokens(
  db: Handle,
  now: Timestamp,
  batchSize: number,
): Promise<number> {
  const expired = await db
    .selectFrom('legacy_tokens')
    .select('token_hash')
    .where('expires_at', '<=', now)
    .orderBy('expires_at')
    .limit(batchSize)
    .execute();
  if (expired.length === 0) return 0;
  await db
    .deleteFrom('legacy_tokens')
    .where(
      'token_hash',
      'in',
      expired.map(({ token_hash }) => token_hash),
    )
    .execute();
  return expired.length;
}

export async function deleteAllTokens(db: Handle): Promise<void> {
  await db.deleteFrom('legacy_tokens').execute();
}
