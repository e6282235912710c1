import type { Database } from '#platform/database/database.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import { deleteEndedIdentities } from './challenge.sql.ts';

/** Links and sessions are kept for a month, so that an operator can investigate an incident. */
const keptDays = 30;

/**
 * Deletes challenges, links, mails and sessions that have ended. There are few of these rows, so
 * one statement per table is enough.
 */
export async function forgetIdentities(deps: { database: Database; clock: Clock }): Promise<0> {
  const now = deps.clock.now();
  const keptSince = now.subtract({ hours: 24 * keptDays });
  await deleteEndedIdentities(deps.database.db, timestamp(now), timestamp(keptSince));
  return 0;
}
