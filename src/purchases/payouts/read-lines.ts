import type { Database } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import type { Clock } from '#platform/shared/clock.ts';
import { listLines } from './payout.sql.ts';
import type { Payout, PayoutLine } from './payout.ts';

/** Small enough that the process answers other requests between two pages. */
export const linePageSize = 500;

/**
 * The lines of a payout in order. They do not change once the payout is made, so each page can be
 * read separately.
 */
export async function* readLines(
  deps: { database: Database; clock: Clock },
  payout: Payout,
): AsyncGenerator<PayoutLine[]> {
  for (let first = 1; first <= payout.lines; first += linePageSize) {
    const range = { first, last: first + linePageSize - 1 };
    yield await reading(deps, (db) => listLines(db, payout, range));
  }
}
