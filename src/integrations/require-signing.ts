import { type OperatorDeps, operate } from '../operators/operate.ts';
import type { Timestamp } from '../shared/clock.ts';
import { moveSigningRequired } from './integration.sql.ts';
import { lockLiveIntegration } from './lock-integration.ts';

/**
 * From now on every POST must be signed, as after a first signed one (D12). Asked again it changes
 * nothing and returns since when that is so.
 */
export async function requireSigning(
  deps: OperatorDeps,
  operator: string,
  id: string,
): Promise<{ id: string; signing_required_at: Timestamp }> {
  return await operate(deps, operator, 'integrations require-signing', async (db, now) => {
    const integration = await lockLiveIntegration(db, id);
    await moveSigningRequired(db, [integration.id], now);
    const signing_required_at = integration.signing_required_at ?? now;
    return {
      subject_id: integration.id,
      details: { signing_required_at },
      result: { id: integration.id, signing_required_at },
    };
  });
}
