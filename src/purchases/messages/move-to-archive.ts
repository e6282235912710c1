import type { Handle } from '#platform/database/database.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import { insertArchived } from './archive.sql.ts';

/**
 * Moves the messages of these checkouts to the archive, with their attempts. The caller has locked
 * the checkouts, which are finished. A message that is not older than `before` stays. Returns how
 * many were moved.
 */
export async function moveToArchive(
  deps: { clock: Clock },
  db: Handle,
  merchant_id: string,
  checkout_ids: string[],
  before: string,
): Promise<number> {
  if (checkout_ids.length === 0) return 0;
  const archived_at = timestamp(deps.clock.now());
  return await insertArchived(db, { merchant_id, checkout_ids }, before, archived_at);
}
