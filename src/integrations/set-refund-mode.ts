import { type OperatorDeps, operate } from '../operators/operate.ts';
import { moveRefundMode } from './integration.sql.ts';
import type { RefundMode } from './integration.ts';
import { lockLiveIntegration } from './lock-integration.ts';

/**
 * Sets whether an operator reviews each refund of an integration. Refunds that were asked for before
 * keep what they have: one that waits for a review still needs it.
 */
export async function setRefundMode(
  deps: OperatorDeps,
  operator: string,
  { id, refund_mode }: { id: string; refund_mode: RefundMode },
): Promise<{ id: string; refund_mode: RefundMode }> {
  return await operate(deps, operator, 'integrations refunds', async (db) => {
    const before = await lockLiveIntegration(db, id);
    await moveRefundMode(db, before.id, refund_mode);
    return {
      subject_id: before.id,
      details: { refund_mode, before: { refund_mode: before.refund_mode } },
      result: { id: before.id, refund_mode },
    };
  });
}
