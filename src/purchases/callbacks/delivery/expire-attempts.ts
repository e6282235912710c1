import type { Database } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import { deleteExpiredAttempts, listExpiredAttempts } from './attempt.sql.ts';
import { expireBatchSize } from './limits.ts';

export type RetentionDeps = {
  database: Database;
  clock: Clock;
  /** How long an attempt is stored after it began. */
  callbackRetentionDays: number;
};

/**
 * Deletes a batch of attempts that are older than the retention period, the oldest first. Attempts
 * of a pending callback stay until it is delivered or exhausted. Returns how many were deleted.
 */
export async function expireAttempts(
  deps: RetentionDeps,
  batchSize = expireBatchSize,
): Promise<number> {
  const { db } = deps.database;
  const cutoff = deps.clock.now().subtract({ hours: 24 * deps.callbackRetentionDays });
  const expired = await listExpiredAttempts(db, timestamp(cutoff), batchSize);
  let deleted = 0;
  for (const [merchant_id, callbacks] of Map.groupBy(expired, (one) => one.merchant_id)) {
    deleted += await transaction(deps, ({ client }) =>
      deleteExpiredAttempts(client, merchant_id, callbacks),
    );
  }
  return deleted;
}
