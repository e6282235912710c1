import { FreeText } from '#record/actions/free-text.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import { findAccessStop, moveAccessConfirmed } from './gateway-heartbeat.sql.ts';

/**
 * An operator confirms that people and credentials were compared with what was revoked or rotated
 * since the backup. People can then sign in again. Whether money moves is decided separately
 * (decision 0097).
 */
export async function confirmAccess(
  deps: OperatorDeps,
  operator: string,
  reason: string,
): Promise<void> {
  if (reason.trim() === '') throw new OperatorError('Say with --reason what was compared.');
  await operate(deps, operator, 'operators confirm', async (db) => {
    const stopped_at = await findAccessStop(db);
    if (stopped_at === null) throw new OperatorError('There is nothing to confirm.');
    await moveAccessConfirmed(db);
    return {
      subject_id: null,
      details: { reason: new FreeText(reason), stopped_at },
      result: undefined,
    };
  });
}
