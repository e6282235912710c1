import type { Database, Handle } from '#platform/database/database.ts';
import { transaction } from '#platform/database/transaction.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';
import { firstIdAt, timeOfId } from '#platform/shared/uuid.ts';
import { unsettled } from '#purchases/payments/payment-attempt.ts';
import {
  type AttemptRow,
  advanceDays,
  advanceDeclines,
  advanceDues,
  advanceEntries,
  type Count,
  type DayCounts,
  type DayRow,
  type EntrySums,
  emptyCounts,
  insertOverdueSums,
  listAttempted,
  listCreated,
  listEntered,
  listOpened,
  listOverdueSums,
  listPlanned,
  listPosted,
  listWaitingStreams,
  lockStream,
  moveStream,
  moveStreamsSeen,
  type PostingRow,
  type Range,
  type Stream,
  streams,
  sumOverdue,
} from './rollup.sql.ts';

type Deps = { database: Database; clock: Clock; random: Random };

/**
 * A row may be committed after a row with a later id, so rows are counted only once they are this
 * old. No transaction of the service takes that long, because its statements and its waits for
 * locks have limits.
 */
const lagMilliseconds = 90_000;
const batchSize = 2_000;

/** An attempt that is not decided within this time will never be decided. */
const undecidedMilliseconds = 3_600_000;

/**
 * Adds the rows written since the last run to the daily sums, a batch of each stream, and returns
 * how many rows it counted. Every row is counted once, because the position moves in the
 * transaction of the sums.
 */
export async function rollUp(deps: Deps, lag = lagMilliseconds): Promise<number> {
  // A new id gives the time, so that it comes from the same source as the times in rows' ids.
  const until = timeOfId(deps.random.uuid()) - lag;
  // If this look-up fails, each stream will report what is wrong.
  const waiting = await listWaitingStreams(deps.database.db, firstIdAt(until)).catch(() => streams);
  if (waiting.length === 0) {
    await moveStreamsSeen(deps.database.db, timestamp(asInstant(until)));
    return 0;
  }
  let counted = 0;
  for (const stream of streams) counted += await rollUpStream(deps, stream, until);
  return counted;
}

const asInstant = (milliseconds: number) =>
  Temporal.Instant.fromEpochMilliseconds(Math.max(0, milliseconds));

async function rollUpStream(deps: Deps, stream: Stream, until: number): Promise<number> {
  return await transaction(deps, async ({ db }) => {
    const after = await lockStream(db, stream);
    if (after === null) return 0;
    const range = { after, bound: firstIdAt(until), limit: batchSize };
    const { rows, stoppedAt } = await readers[stream](db, range);
    const last = rows.at(-1)?.id ?? after;
    // Everything before the row that has to wait is counted, even if the last counted row is days
    // old.
    const end = stoppedAt ?? (rows.length === batchSize ? last : null);
    const reached = end === null ? until : timeOfId(end);
    const as_of = timestamp(asInstant(reached));
    await moveStream(db, stream, { after: last, as_of });
    return rows.length;
  });
}

/** The rows that were counted, and the id of the first row that has to wait. */
type Read = { rows: DayRow[]; stoppedAt: string | null };

const readers: Record<Stream, (db: Handle, range: Range) => Promise<Read>> = {
  async checkouts(db, range) {
    const rows = await listCreated(db, range);
    const days = daySums();
    for (const row of rows) days.add(row, 'created', 1);
    await advanceDays(db, days.rows());
    return { rows, stoppedAt: null };
  },
  async opens(db, range) {
    const rows = await listOpened(db, range);
    const days = daySums();
    for (const row of rows) if (!row.was_tried) days.add(row, 'opened', 1);
    await advanceDays(db, days.rows());
    return { rows, stoppedAt: null };
  },
  async attempts(db, range) {
    const all = await listAttempted(db, range);
    // An attempt that is not decided yet, and all attempts after it, have to wait.
    const until = timeOfId(range.bound) - undecidedMilliseconds;
    const open = all.findIndex((row) => isUndecided(row) && timeOfId(row.id) > until);
    const rows = open === -1 ? all : all.slice(0, open);
    const days = daySums();
    const declines = sums<{ merchant_id: string; day: string; reason: string }>();
    for (const row of rows) {
      if (row.number === 1) {
        days.add(row, 'tried', 1);
        if (!row.was_opened) days.add(row, 'opened', 1);
      }
      if (row.status === 'authorised') days.add(row, 'approved', 1);
      if (row.status !== 'declined') continue;
      days.add(row, 'declined', 1);
      const { merchant_id, day, decline_reason } = row;
      declines.add({ merchant_id, day, reason: decline_reason ?? 'unknown' }, 1);
    }
    await advanceDays(db, days.rows());
    await advanceDeclines(
      db,
      declines.rows().map(({ sum, ...key }) => ({ ...key, count: sum })),
    );
    return { rows, stoppedAt: all[open]?.id ?? null };
  },
  async postings(db, range) {
    const rows = await listPosted(db, range);
    const days = daySums();
    for (const row of rows) {
      if (row.kind === 'sold') days.add(row, 'paid', 1);
      for (const [count, sign] of effects[row.kind] ?? []) days.add(row, count, sign * row.amount);
    }
    await advanceDays(db, days.rows());
    await advanceDues(db, await duesOf(db, rows));
    return { rows, stoppedAt: null };
  },
  async entries(db, range) {
    const rows = await listEntered(db, range);
    const days = daySums();
    const kinds = new Map<string, EntrySums>();
    for (const row of rows) {
      const { merchant_id, kind } = row;
      days.add(row, 'fees', row.fee);
      days.add(row, 'vat', row.vat);
      if (kind === 'paid_out' || kind === 'payout_returned') days.add(row, 'paid_out', -row.net);
      const one = kinds.get(`${merchant_id} ${kind}`);
      kinds.set(`${merchant_id} ${kind}`, {
        ...{ merchant_id, kind },
        gross: (one?.gross ?? 0) + row.gross,
        fee: (one?.fee ?? 0) + row.fee,
        vat: (one?.vat ?? 0) + row.vat,
        net: (one?.net ?? 0) + row.net,
      });
    }
    await advanceDays(db, days.rows());
    await advanceEntries(db, inOrder(kinds));
    return { rows, stoppedAt: null };
  },
};

/** An attempt that is being voided may still end as declined. */
const isUndecided = ({ status }: AttemptRow) => (unsettled as readonly string[]).includes(status);

/**
 * The amounts that a movement adds to a day. A refund counts whether it returned to the card or
 * reduced a payment before it was collected.
 */
const effects: Partial<Record<PostingRow['kind'], [Count, 1 | -1][]>> = {
  sold: [['sold', 1]],
  captured: [['collected', 1]],
  collected: [['collected', 1]],
  refunded: [
    ['refunded', 1],
    ['card_refunds', 1],
  ],
  cancelled: [['refunded', 1]],
  returned: [
    ['refunded', -1],
    ['card_refunds', -1],
  ],
  restored: [['refunded', -1]],
  withdrawn: [['disputed', 1]],
  reinstated: [['disputed', -1]],
};

/** The changes that movements make to the amounts still to be collected, by due day. */
async function duesOf(
  db: Handle,
  rows: PostingRow[],
): Promise<{ merchant_id: string; day: string; amount: number }[]> {
  const planned = Map.groupBy(await listPlanned(db, rows), (one) => one.checkout_id);
  const dues = sums<{ merchant_id: string; day: string }>();
  for (const { merchant_id, checkout_id, kind, amount, instalment } of rows) {
    const payments = planned.get(checkout_id) ?? [];
    if (kind === 'sold') {
      for (const { due_on, amount: part } of payments) dues.add({ merchant_id, day: due_on }, part);
      continue;
    }
    const sign = { captured: -1, collected: -1, cancelled: -1, restored: 1 }[kind as string];
    const payment = payments.find(({ number }) => number === instalment);
    if (sign === undefined || !payment) continue;
    dues.add({ merchant_id, day: payment.due_on }, sign * amount);
  }
  return dues.rows().map(({ sum, ...key }) => ({ ...key, amount: sum }));
}

/** The values in the order of their keys, so that two processes lock rows in the same order. */
const inOrder = <Value>(found: Map<string, Value>): Value[] =>
  [...found].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, value]) => value);

function sums<Key extends Record<string, string>>() {
  const found = new Map<string, Key & { sum: number }>();
  return {
    add(key: Key, amount: number) {
      const name = Object.values(key).join(' ');
      const one = found.get(name);
      if (one) one.sum += amount;
      else found.set(name, { ...key, sum: amount });
    },
    rows: () => inOrder(found),
  };
}

function daySums() {
  const found = new Map<string, DayCounts>();
  return {
    add({ merchant_id, day }: DayRow, count: Count, amount: number) {
      const name = `${merchant_id} ${day}`;
      const one = found.get(name) ?? emptyDay(merchant_id, day);
      one[count] += amount;
      found.set(name, one);
    },
    rows: () => inOrder(found),
  };
}

const emptyDay = (merchant_id: string, day: string): DayCounts => ({
  merchant_id,
  day,
  ...emptyCounts(),
});

/** Adds up the overdue amounts by merchant, and writes the sums that changed. */
export async function rollUpOverdue(deps: Deps): Promise<number> {
  const { db } = deps.database;
  const as_of = timestamp(deps.clock.now());
  const now = new Map((await sumOverdue(db)).map((one) => [one.merchant_id, one.amount]));
  const before = new Map((await listOverdueSums(db)).map((one) => [one.merchant_id, one.amount]));
  const changed = [...new Set([...now.keys(), ...before.keys()])]
    .filter((id) => (now.get(id) ?? 0) !== before.get(id))
    .sort()
    .map((merchant_id) => ({ merchant_id, amount: now.get(merchant_id) ?? 0, as_of }));
  await insertOverdueSums(db, changed);
  // Returns zero, because the next round is due after the pause, not at once.
  return 0;
}
