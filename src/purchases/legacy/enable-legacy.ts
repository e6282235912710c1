import type { IntegrationDeps } from '#merchants/integrations/create-integration.ts';
import { lockLiveIntegration } from '#merchants/integrations/lock-integration.ts';
import { OperatorError, operate } from '#record/actions/operate.ts';
import { findLegacyCredential, insertLegacyCredential } from './legacy-credential.sql.ts';
import { hashLegacy, newLegacySecret } from './legacy-credential.ts';

/** Returned only once, because the database holds only a hash of the secret. */
export type IssuedLegacyCredential = { id: string; client_id: string; client_secret: string };

/** Issues v1 credentials in addition to an integration's v2 credentials (decision 0040). */
export async function enableLegacy(
  deps: Omit<IntegrationDeps, 'sealing'>,
  operator: string,
  id: string,
): Promise<IssuedLegacyCredential> {
  const client_id = deps.random.uuid();
  const client_secret = newLegacySecret(deps.environment, deps.random);
  return await operate(deps, operator, 'integrations v1', async (db, now) => {
    const integration = await lockLiveIntegration(db, id);
    const known = await findLegacyCredential(db, integration.id);
    if (known?.disabled_at === null) {
      throw new OperatorError(
        `v1 is enabled for the integration ${integration.id}: it has been on since ${known.created_at}, with the client_id ${known.client_id}. ` +
          'To replace these credentials, disable v1 first.',
      );
    }
    await insertLegacyCredential(db, {
      client_id,
      integration_id: integration.id,
      secret_hash: hashLegacy(client_secret),
      created_at: now,
      disabled_at: null,
    });
    return {
      subject_id: integration.id,
      merchant_id: integration.merchant_id,
      details: { enabled: true, client_id },
      result: { id: integration.id, client_id, client_secret },
    };
  });
}
