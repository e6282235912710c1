import { lockIntegration } from '../integrations/lock-integration.ts';
import { type OperatorDeps, OperatorError, operate } from '../operators/operate.ts';
import type { Timestamp } from '../shared/clock.ts';
import { findLegacyCredential, moveDisabled } from './legacy-credential.sql.ts';

/**
 * Its v1 credentials and every token that they gave out open nothing any more. Checkouts that were
 * begun keep their v1 callback (D33). Asked again it changes nothing and returns since when.
 */
export async function disableLegacy(
  deps: OperatorDeps,
  operator: string,
  id: string,
): Promise<{ id: string; client_id: string; disabled_at: Timestamp }> {
  return await operate(deps, operator, 'integrations v1', async (db, now) => {
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
      details: { enabled: false, client_id, disabled_at },
      result: { id: integration.id, client_id, disabled_at },
    };
  });
}
