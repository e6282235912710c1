import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { endTokens } from '#purchases/legacy/end-tokens.ts';
import { endPlanAccess } from '#purchases/shoppers/end-plan-access.ts';
import { deleteAllChallenges } from './challenge.sql.ts';
import { endAllSessions } from './console-session.sql.ts';
import { deleteAllUnusedLinks } from './person-link.sql.ts';

/**
 * Ends every session, link and token, in the transaction that stops money. Otherwise, in a restored
 * database, those that ended, were used or were revoked after the backup would be valid again
 * (decision 0097).
 */
export async function endAllAccess(db: Handle, at: Timestamp): Promise<void> {
  await endAllSessions(db, at);
  await deleteAllChallenges(db);
  await deleteAllUnusedLinks(db);
  await endPlanAccess(db);
  await endTokens(db);
}
