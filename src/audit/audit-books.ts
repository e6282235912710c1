import type { Database, Handle } from '../database/database.ts';
import { hasAlert } from '../operators/alert.sql.ts';
import { raiseAlert } from '../operators/raise-alert.ts';
import { type Clock, secondsAfter, timestamp } from '../shared/clock.ts';
import type { Logger } from '../shared/logger.ts';
import type { Random } from '../shared/random.ts';
import { claimAudit, findSlice, moveAudit, sumCheckouts } from './audit.sql.ts';
import { findDifferences, type Violation } from './invariants.ts';

const start = '00000000-0000-0000-0000-000000000000';
/** Small enough that nobody notices, and a million checkouts still come round within hours. */
const auditedAtOnce = 500;
const leaseSeconds = 120;

/** Compares a slice of the books with what they are about, and goes on with the next one. */
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
  const slice = await findSlice(db, after, auditedAtOnce);
  const found = slice ? await findDifferences(deps.database, slice.first, slice.last) : [];
  for (const violation of found) {
    const detail = describeDifference(violation);
    // Told once: it comes round again with every audit until it is mended.
    if (await hasAlert(db, 'books_differ', detail)) continue;
    await raiseAlert(deps, db, { kind: 'books_differ', detail });
  }
  await moveAudit(db, slice?.last ?? start);
  // Never at once again, however much there is: the shoppers come first.
  return 0;
}

export function describeDifference({ name, says, row }: Violation): string {
  return `${name}, ${says}: ${JSON.stringify(row)}`;
}

/** Few enough to be sorted in memory and to show progress. */
const checkedAtOnce = 5_000;
/** As many slices are looked at together. */
const lanes = 2;

/** Compares all the books with what they are about. */
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
    Array.from({ length: lanes }, async () => {
      for await (const { first, last, count } of slices) {
        differences.push(...(await findDifferences(deps.database, first, last)));
        checkouts += count;
        progress(checkouts, all);
      }
    }),
  );
  return { checkouts, differences };
}

/** All checkouts in slices, one after another, whoever asks for the next. */
async function* listSlices(db: Handle) {
  for (let after = start; ; ) {
    const slice = await findSlice(db, after, checkedAtOnce);
    if (slice === null) return;
    after = slice.last;
    yield slice;
  }
}
