import type { Handle } from '#platform/database/database.ts';
import { deleteAllPlanAccess } from './plan-access.sql.ts';

/** Ends every shopper's links and sessions. A shopper can get a new link by mail. */
export async function endPlanAccess(db: Handle): Promise<void> {
  await deleteAllPlanAccess(db);
}
