import type { Database } from '#platform/database/database.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import { moveAlertsEnded } from './alert.sql.ts';

/** Closes alerts whose cause has ended. Returns how many were open. */
export async function endAlerts(
  deps: { database: Database; clock: Clock },
  ids: string[],
  reason: string,
): Promise<number> {
  return await moveAlertsEnded(deps.database.db, ids, timestamp(deps.clock.now()), reason);
}
