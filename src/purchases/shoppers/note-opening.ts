import type { Merchant } from '#merchants/merchant.ts';
import type { Database } from '#platform/database/database.ts';
import { groupCommit } from '#platform/database/group-commit.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import { insertOpenings, type Opening } from './opening.sql.ts';

/**
 * At most this many openings share a commit, because the SQL text of a statement with more rows is
 * not cached (`keptRowsMax`).
 */
const openingsMax = 20;

/**
 * Records once for each checkout that its page was opened, for the console's charts. If that cannot
 * be written, the page is shown all the same. Openings that arrive while one is being written share
 * the next commit.
 */
export function openingNotes(deps: {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
}): (merchant: Merchant, checkout: { merchant_id: string; id: string }) => Promise<void> {
  const warn = (err: unknown) =>
    deps.log.warn({ err }, 'the opening of a page could not be recorded');
  const write = async (openings: Opening[]) => {
    // The rows are inserted in the order of their ids, so that two processes cannot deadlock.
    const sorted = openings.toSorted((a, b) => (a.checkout_id < b.checkout_id ? -1 : 1));
    // A failed write is not retried, so that no page waits for it.
    await insertOpenings(deps.database.db, sorted).catch(warn);
    return openings;
  };
  const note = groupCommit(deps, write, openingsMax);
  return async (merchant, { merchant_id, id: checkout_id }) => {
    const at = timestamp(merchant.now());
    await note({ merchant_id, checkout_id, id: deps.random.uuid(), at }).catch(warn);
  };
}
