import type { Database, Handle } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import { type Alert, lockAlertsToEnd, moveAlertsEnded } from './alert.sql.ts';

/**
 * Closes the alerts among these whose cause has ended, and returns how many were closed. The cause
 * is checked while the alerts are locked. So a transaction that relies on an alert
 * (`lockOpenAlert`) finds the alert either closed, or open until the transaction ends.
 */
export async function endAlerts(
  deps: { database: Database; clock: Clock },
  alerts: Alert[],
  reason: string,
  listOver: (db: Handle, alerts: Alert[]) => Promise<Alert[]>,
): Promise<number> {
  const ids = alerts.map(({ id }) => id);
  return await transaction(deps, async ({ db }) => {
    const locked = await lockAlertsToEnd(db, ids);
    const over = locked.length === 0 ? [] : await listOver(db, locked);
    if (over.length === 0) return 0;
    const ended = over.map(({ id }) => id);
    return await moveAlertsEnded(db, ended, timestamp(deps.clock.now()), reason);
  });
}
