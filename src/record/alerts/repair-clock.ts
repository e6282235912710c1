import { repairClock as repairRows } from '#platform/database/repair-clock.sql.ts';
import { type OperatorDeps, operate } from '#record/actions/operate.ts';
import { advanceLateAlerts } from './alert.sql.ts';

/** Undoes what a node with a wrong clock did to rows that other nodes rely on. */
export async function repairClock(deps: OperatorDeps, operator: string) {
  return await operate(deps, operator, 'database repair-clock', async (db, now) => {
    const repaired = await repairRows(db, now);
    // Alerts fall due on the real clock, so `repairRows` leaves them out.
    const alerts = await advanceLateAlerts(db, now);
    const result = { ...repaired, due_rows: repaired.due_rows + alerts };
    return { subject_id: null, details: result, result };
  });
}
