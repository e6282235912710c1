import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { FreeText } from '#record/actions/free-text.ts';
import { type OperatorDeps, OperatorError, operate } from '#record/actions/operate.ts';
import { moveAccessServer, readServer } from './access-server.sql.ts';
import { findAccessStop, findAccessWait, moveAccessConfirmed } from './gateway-heartbeat.sql.ts';

/**
 * A restore revives accesses and credentials that were revoked or rotated since the backup. An
 * operator confirms that they were checked, and people can sign in again, even while the gateway
 * does not answer. This does not let money move (decision 0097).
 */
export async function confirmAccess(
  deps: OperatorDeps & {
    /** Ends every session, link and token. */
    endAccess(db: Handle, at: Timestamp): Promise<void>;
  },
  operator: string,
  reason: string,
): Promise<void> {
  if (reason.trim() === '') throw new OperatorError('Say with --reason what was compared.');
  await operate(deps, operator, 'operators confirm', async (db, now) => {
    const waits_since = await findAccessWait(db);
    if (waits_since === null) throw new OperatorError('There is nothing to confirm.');
    // If money was stopped, the stop has ended all access already. Otherwise access ends here,
    // because the database may be a restored backup.
    if ((await findAccessStop(db)) === null) await deps.endAccess(db, now);
    await moveAccessConfirmed(db);
    await moveAccessServer(db, { server: await readServer(db), at: now });
    return {
      subject_id: null,
      details: { reason: new FreeText(reason), stopped_at: waits_since },
      result: undefined,
    };
  });
}
