import type { Timestamp } from '#platform/shared/clock.ts';
import { type OperatorDeps, operate } from '#record/actions/operate.ts';
import { moveSigningRequired } from './integration.sql.ts';
import { lockLiveIntegration } from './lock-integration.ts';

/**
 * Makes signatures mandatory, as the first signed POST would (decision 0005). Returns when they
 * became mandatory; a repeated call changes nothing.
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
      merchant_id: integration.merchant_id,
      details: { signing_required_at },
      result: { id: integration.id, signing_required_at },
    };
  });
}
