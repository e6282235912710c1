import type { Timestamp } from '#platform/shared/clock.ts';
import type { OperatorDeps } from '#record/actions/operate.ts';
import { operateOnAccess } from '#record/alerts/operate-on-access.ts';
import { moveRevoked } from './integration.sql.ts';
import { lockIntegration } from './lock-integration.ts';

/**
 * Makes the credentials of an integration invalid, permanently. The signing keys stay, because the
 * callbacks of its checkouts are still signed (decision 0005). A repeated call changes nothing and
 * returns the time of the first.
 */
export async function revokeIntegration(
  deps: OperatorDeps,
  operator: string,
  id: string,
): Promise<{ id: string; revoked_at: Timestamp }> {
  return await operateOnAccess(deps, operator, 'integrations revoke', async (db, now) => {
    const integration = await lockIntegration(db, id);
    await moveRevoked(db, integration.id, now);
    const revoked_at = integration.revoked_at ?? now;
    return {
      subject_id: integration.id,
      merchant_id: integration.merchant_id,
      details: { revoked_at },
      result: { id: integration.id, revoked_at },
    };
  });
}
