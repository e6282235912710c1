import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { markOpenPayouts, markPayoutDays } from './payout.sql.ts';

/**
 * For this long after money moves again, the service may still write entries that the lost database
 * had written too: only now does the service find the outcomes of requests that were in flight at
 * the time of the backup.
 */
const lateEntryHours = 24;

/**
 * Called when money moves again after a restore (decision 0098). The bank may already have paid any
 * payout that is not exported here, and any that is made later from entries up to `lateEntryHours`
 * after this time. None of these payouts is exported until an operator has compared it with the
 * bank. Returns how many of them exist now.
 */
export async function comparePayouts(db: Handle, at: Timestamp): Promise<number> {
  const before = Temporal.Instant.from(at).add({ hours: lateEntryHours }).toString();
  await markPayoutDays(db, before);
  return await markOpenPayouts(db, at);
}
