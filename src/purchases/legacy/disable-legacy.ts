import { lockIntegration } from '#merchants/integrations/lock-integration.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { type OperatorDeps, OperatorError } from '#record/actions/operate.ts';
import { operateOnAccess } from '#record/alerts/operate-on-access.ts';
import { findLegacyCredential, moveDisabled } from './legacy-credential.sql.ts';

/**
 * Withdraws the v1 credentials of an integration, and every token issued for them. Existing
 * checkouts keep their v1 callback (decision 0040). A repeated call changes nothing and returns the
 * time of the first call.
 */
export async function disableLegacy(
  deps: OperatorDeps,
  operator: string,
  id: string,
): Promise<{ id: string; client_id: string; disabled_at: Timestamp }> {
  return await operateOnAccess(deps, operator, 'integrations v1', async (db, now) => {
    const integration = await lockIntegration(db, id);
    const known = await findLegacyCredential(db, integration.id);
    if (!known) {
      throw new OperatorError(`v1 was never enabled for the integration ${integration.id}.`);
    }
    const { client_id } = known;
    await moveDisabled(db, client_id, now);
    const disabled_at = known.disabled_at ?? now;
    return {
      subject_id: integration.id,
      merchant_id: integration.merchant_id,
      details: { enabled: false, client_id, disabled_at },
      result: { id: integration.id, client_id, disabled_at },
    };
  });
}
