import type { Database, Handle } from '../database/database.ts';
import { hasAlert } from '../operators/alert.sql.ts';
import { raiseAlert } from '../operators/raise-alert.ts';
import { type Clock, secondsAfter, timestamp } from '../shared/clock.ts';
import type { Logger } from '../shared/logger.ts';
import type { Random } from '../shared/random.ts';
import { claimAudit, findSlice, moveAudit, moveAuditProved, sumCheckouts } from './audit.sql.ts';
import { findDifferences, type Violation } from './invariants.ts';

const firstId = '00000000-0000-0000-0000-000000000000';
/** Small enough not to slow requests down; a million checkouts still take only hours. */
const auditBatchSize = 500;
const leaseSeconds = 120;

/** Audits the next range of checkouts and moves the mark past it. */
export async function auditSlice(deps: {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
}): Promise<number> {
  const { db } = deps.database;
  const now = deps.clock.now();
  const lease = timestamp(secondsAfter(now, leaseSeconds));
  const after = await claimAudit(db, timestamp(now), lease);
  if (after === null) return 0;
  const slice = await findSlice(db, after, auditBatchSize);
  const found = slice ? await findDifferences(deps.database, slice.first, slice.last) : [];
  for (const violation of found) {
    const detail = describeDifference(violation);
    // Every round finds the difference again until it is repaired. One alert is enough.
    if (await hasAlert(db, 'books_differ', detail)) continue;
    await raiseAlert(deps, db, { kind: 'books_differ', detail });
  }
  if (slice) await moveAudit(db, slice.last, found.length);
  else await moveAuditProved(db, firstId, timestamp(now));
  // Zero means that nothing more is due now. The next range waits for the next poll, so that the
  // audit never competes with the shoppers.
  return 0;
}

export function describeDifference({ name, says, row }: Violation): string {
  return `${name}, ${says}: ${JSON.stringify(row)}`;
}

/** Small enough to be grouped in memory and to report progress. */
const checkBatchSize = 5_000;
/** Ranges that are checked at the same time. */
const concurrency = 2;

/** Compares the postings of every checkout with its instalments and refunds. */
export async function checkLedger(
  deps: { database: Database },
  progress: (done: number, all: number) => void = () => {},
): Promise<{ checkouts: number; differences: Violation[] }> {
  const { db } = deps.database;
  const all = await sumCheckouts(db);
  const differences: Violation[] = [];
  let checkouts = 0;
  const slices = listSlices(db);
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for await (const { first, last, count } of slices) {
        differences.push(...(await findDifferences(deps.database, first, last)));
        checkouts += count;
        progress(checkouts, all);
      }
    }),
  );
  return { checkouts, differences };
}

/** All checkouts in consecutive ranges. Several consumers may share the generator. */
async function* listSlices(db: Handle) {
  for (let after = firstId; ; ) {
    const slice = await findSlice(db, after, checkBatchSize);
    if (slice === null) return;
    after = slice.last;
    yield slice;
  }
}
