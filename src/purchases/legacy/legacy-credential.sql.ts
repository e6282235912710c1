import { sql } from 'kysely';
import {
  type IntegrationWithLimits,
  limitsOfIntegration,
} from '#merchants/integrations/integration.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { LegacyCredential } from './legacy-credential.ts';

/** The owner of v1 credentials that are in force, with the hash of their secret. */
export async function findLogin(
  db: Handle,
  client_id: string,
): Promise<{ integration: IntegrationWithLimits; secret_hash: Buffer } | null> {
  const { rows } = await sql<IntegrationWithLimits & { secret_hash: Buffer }>`
    select i.*, ${limitsOfIntegration} as limits, c.secret_hash
    from legacy_credentials c
    join integrations i on i.id = c.integration_id
    where c.client_id = ${client_id} and c.disabled_at is null and i.revoked_at is null`.execute(
    db,
  );
  if (!rows[0]) return null;
  const { secret_hash, ...integration } = rows[0];
  return { integration, secret_hash };
}

export async function insertLegacyCredential(
  db: Handle,
  credential: LegacyCredential,
): Promise<void> {
  await db.insertInto('legacy_credentials').values(credential).execute();
}

/** The newest v1 credentials of an integration, in force or not. */
export async function findLegacyCredential(
  db: Handle,
  integration_id: string,
): Promise<LegacyCredential | null> {
  const row = await db
    .selectFrom('legacy_credentials')
    .selectAll()
    .where('integration_id', '=', integration_id)
    // Credentials in force come first.
    .orderBy('disabled_at', (order) => order.desc().nullsFirst())
    .limit(1)
    .executeTakeFirst();
  return row ?? null;
}

export async function moveDisabled(
  db: Handle,
  client_id: string,
  disabled_at: Timestamp,
): Promise<void> {
  await db
    .updateTable('legacy_credentials')
    .set({ disabled_at })
    .where('client_id', '=', client_id)
    .where('disabled_at', 'is', null)
    .execute();
}
