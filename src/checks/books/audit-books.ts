import {
  findDifferences,
  findMerchantDifferences,
  type Violation,
} from '#checks/invariants/invariants.ts';
import type { Database, Handle } from '#platform/database/database.ts';
import { type Clock, secondsAfter, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import { findAlertThatStarts } from '#record/alerts/alert.sql.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import {
  type AuditPosition,
  claimAudit,
  findMerchantSlice,
  findSlice,
  moveAudit,
  moveAuditProved,
  sumCheckouts,
} from './audit.sql.ts';

const firstId = '00000000-0000-0000-0000-000000000000';
/**
 * Batches of this size do not slow requests down, and auditing a million checkouts still takes only
 * hours.
 */
const auditBatchSize = 500;
const auditMerchantsMax = { merchants: 100, checkouts: 5_000 };
/**
 * One range is usually audited in far less time. If the books of a very large merchant take longer
 * (decision 0036), another worker audits them too, and only one of the two moves the position.
 */
const leaseSeconds = 900;

/**
 * Audits the next range of checkouts, or of merchants once all checkouts are audited, and moves the
 * position past it. Returns 0 if another process is auditing, or when a pass has ended.
 */
export async function auditSlice(deps: {
  database: Database;
  clock: Clock;
  random: Random;
  log: Logger;
}): Promise<number> {
  const { db } = deps.database;
  const now = deps.clock.now();
  const lease = timestamp(secondsAfter(now, leaseSeconds));
  const position = await claimAudit(db, timestamp(now), lease);
  if (position === null) return 0;
  const range = await findRange(db, position);
  const found = range ? await range.find(deps.database, range.first, range.last) : [];
  for (const violation of found) {
    const detail = describeDifference(violation);
    // Every round finds the difference again until it is repaired, but one open alert is enough.
    const starts = [startOf(violation)];
    if (await findAlertThatStarts(db, 'books_differ', starts, { isOpen: true })) continue;
    await raiseAlert(deps, db, { kind: 'books_differ', detail });
  }
  if (range) await moveAudit(db, lease, range.position, found.length);
  else await moveAuditProved(db, lease, firstId, timestamp(now));
  return range ? 1 : 0;
}

async function findRange(db: Handle, { after, after_merchant }: AuditPosition) {
  const isPastCheckouts = after_merchant !== null;
  const checkouts = isPastCheckouts ? null : await findSlice(db, after, auditBatchSize);
  if (checkouts) {
    const position = { after: checkouts.last, after_merchant: null };
    return { ...checkouts, find: findDifferences, position };
  }
  const merchants = await findMerchantSlice(db, after_merchant ?? firstId, auditMerchantsMax);
  if (merchants === null) return null;
  const position = { after, after_merchant: merchants.last };
  return { ...merchants, find: findMerchantDifferences, position };
}

export function describeDifference({ name, description, row }: Violation): string {
  return `${name}, ${description}: ${JSON.stringify({ ...keyOf(row), ...row })}`;
}

/** The columns that say which row differs. The others are figures, and change with every sale. */
const isKey = (column: string) => /^(id|kind|number|instalment|attempt)$|_(id|ref)$/.test(column);

const keyOf = (row: object) =>
  Object.fromEntries(Object.entries(row).filter(([column]) => isKey(column)));

/** The text of a difference up to its figures. It is the same in every round. */
function startOf({ row, ...rule }: Violation): string {
  const text = describeDifference({ ...rule, row: keyOf(row) });
  return Object.keys(row).every(isKey) ? text : `${text.slice(0, -1)},`;
}

/**
 * The rows of this many checkouts can be grouped in memory. Progress is reported after each batch.
 */
const checkBatchSize = 5_000;
const checkMerchantsMax = { merchants: 1_000, checkouts: 50_000 };
/** How many ranges are checked at the same time. */
const concurrency = 2;

/**
 * Compares the postings of every checkout with its instalments and refunds, then what every
 * merchant is owed with its payouts.
 */
export async function checkLedger(
  deps: { database: Database },
  progress: (done: number, all: number) => void = () => {},
): Promise<{ checkouts: number; differences: Violation[] }> {
  const { db } = deps.database;
  const all = await sumCheckouts(db);
  const differences: Violation[] = [];
  let checkouts = 0;
  const ofCheckouts = (after: string) => findSlice(db, after, checkBatchSize);
  await checkSlices(ofCheckouts, async ({ first, last, count }) => {
    differences.push(...(await findDifferences(deps.database, first, last)));
    checkouts += count;
    progress(checkouts, all);
  });
  const ofMerchants = (after: string) => findMerchantSlice(db, after, checkMerchantsMax);
  await checkSlices(ofMerchants, async ({ first, last }) => {
    differences.push(...(await findMerchantDifferences(deps.database, first, last)));
  });
  return { checkouts, differences };
}

async function checkSlices<Slice extends { last: string }>(
  findNext: (after: string) => Promise<Slice | null>,
  check: (slice: Slice) => Promise<void>,
): Promise<void> {
  const slices = listSlices(findNext);
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for await (const slice of slices) await check(slice);
    }),
  );
}

/** Consecutive ranges of ids. Several consumers may share the generator. */
async function* listSlices<Slice extends { last: string }>(
  findNext: (after: string) => Promise<Slice | null>,
) {
  for (let after = firstId; ; ) {
    const slice = await findNext(after);
    if (slice === null) return;
    after = slice.last;
    yield slice;
  }
}
