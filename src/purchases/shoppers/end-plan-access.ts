import type { Handle } from '#platform/database/database.ts';
import { deleteAllProofs } from './plan-proof.sql.ts';

/** Ends every link and session of shoppers. They get a new link by mail. */
export async function endPlanAccess(db: Handle): Promise<void> {
  await deleteAllProofs(db);
}
