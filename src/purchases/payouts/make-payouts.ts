import assert from 'node:assert/strict';
import type { Merchant } from '#merchants/merchant.ts';
import { type MerchantDueWork, runDueWork, runMerchantDueWork } from '#merchants/run-due-work.ts';
import type { Database, Handle } from '#platform/database/database.ts';
import { advanceListTotal } from '#platform/database/merchant-lists.sql.ts';
import { Outpaced, transaction } from '#platform/database/transaction.ts';
import { type Clock, type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Random } from '#platform/shared/random.ts';
import { queuePayoutEvents } from '#purchases/callbacks/queue-events.ts';
import {
  assignEntries,
  type NewEntry,
  postEntries,
  withoutFee,
} from '#record/ledger/post-entries.ts';
import { findTerms, listDueReserves, sumOpenEntries } from '#record/ledger/settlement.sql.ts';
import type { KindSums } from '#record/ledger/settlement.ts';
import { presentPayout } from './payout.schema.ts';
import {
  advancePayoutSums,
  duePayoutDays,
  hasOpenEntryBefore,
  insertPayout,
  listHolidays,
  lockPayoutDay,
  movePayoutDay,
} from './payout.sql.ts';
import {
  type Calendar,
  nextPayoutAt,
  type Payout,
  payoutDay,
  payoutReference,
  reserveOf,
} from './payout.ts';

export type PayoutDeps = { database: Database; clock: Clock; random: Random; log: Logger };

const work: MerchantDueWork<'payout_days', PayoutDeps> = {
  due: duePayoutDays,
  // The lease is long, because a payout may have a hundred thousand lines.
  leaseSeconds: 600,
  batchSize: 1,
  merchantsMax: 200,
  concurrency: 2,
  roundMilliseconds: 0,
  run: async (deps, merchant, [day]) => {
    assert(day?.lease);
    await makePayout(deps, merchant, day.lease);
  },
};

/** Makes the payouts of all merchants whose payout time has come (decision 0081). */
export async function makeDuePayouts(deps: PayoutDeps, stopping?: AbortSignal): Promise<number> {
  return await runDueWork(deps, work, stopping);
}

export const makeMerchantPayouts = (deps: PayoutDeps, merchant: Merchant) =>
  runMerchantDueWork(deps, work, merchant);

/**
 * Makes a merchant's payout for the day, from all entries before that day that are in no payout
 * yet. If the merchant owes us money, its entries wait for the next payout.
 */
async function makePayout(deps: PayoutDeps, merchant: Merchant, lease: string): Promise<void> {
  const id = deps.random.uuid();
  const payout = await transaction(deps, async ({ db }) => {
    // Another process claimed the day, or an earlier run of this transaction was committed.
    const locked = await lockPayoutDay(db, merchant.id, lease);
    if (!locked) return null;
    const now = merchant.now();
    const calendar = await readCalendar(db, merchant, now);
    const day = payoutDay(calendar, now);
    const made = await issue(deps, db, merchant, { id, day, now, ...locked });
    const next = nextPayoutAt(calendar, day);
    await movePayoutDay(db, merchant.id, timestamp(next));
    return made;
  });
  if (payout === null) return;
  const { merchant_id, reference, amount, lines } = payout;
  deps.log.info({ merchant_id, payout_id: id, reference, amount, lines }, 'a payout was made');
}

async function issue(
  deps: PayoutDeps,
  db: Handle,
  merchant: Merchant,
  wanted: {
    id: string;
    day: Temporal.PlainDate;
    now: Temporal.Instant;
    compare_before: Timestamp | null;
  },
): Promise<Payout | null> {
  const { id, day, now, compare_before } = wanted;
  const { currency } = merchant.territory;
  const before = entriesBefore(merchant, day);
  const kinds = await sumOpenEntries(db, merchant.id, before);
  const count = kinds.reduce((sum, one) => sum + one.count, 0);
  const at = timestamp(now);
  const { amount, reserves } = await planPayout(db, merchant.id, kinds, { at, day });
  if (amount <= 0) {
    // The reserve may take all of the sales. Then there is no payout, but the reserve is held from
    // today.
    const held = reserves.filter(({ kind }) => kind === 'reserve');
    await postEntries(deps, db, { merchant_id: merchant.id, currency, at }, held);
    return null;
  }
  // The lost database may have made a payout for the same day or from the same entries (decision
  // 0098).
  const mustCompare =
    compare_before !== null &&
    (before <= compare_before || (await hasOpenEntryBefore(db, merchant.id, compare_before)));
  const { total, last_created_at } = await advanceListTotal(db, merchant.id, 'payouts', 1, at);
  const payout: Payout = {
    merchant_id: merchant.id,
    id,
    number: total,
    reference: payoutReference(day.toString(), total),
    business_on: day.toString(),
    amount,
    currency,
    lines: count + reserves.length,
    status: 'draft',
    created_at: last_created_at,
    first_approver: null,
    approver: null,
    approved_at: null,
    export_id: null,
    exported_at: null,
    paid_at: null,
    bank_reference: null,
    returned_at: null,
    return_reason: null,
    return_noted_by: null,
    bank_account: null,
    compare_since: mustCompare ? at : null,
  };
  await insertPayout(db, payout);
  // A transaction of the day before may have committed since the sum was read.
  if ((await assignEntries(db, payout, before)) !== count) {
    throw new Outpaced('an entry was written while the payout was being made');
  }
  const lines = reserves.map((entry, index) => ({
    ...entry,
    payout_id: id,
    line: count + index + 1,
  }));
  await postEntries(deps, db, { merchant_id: merchant.id, currency, at }, lines);
  await advancePayoutSums(db, merchant.id, [...kinds, ...reserves]);
  await queuePayoutEvents(deps, db, [{ merchant, data: presentPayout(payout) }]);
  return payout;
}

/** A payout includes the entries from before the first moment of its day. */
export const entriesBefore = (
  { territory }: Pick<Merchant, 'territory'>,
  day: Temporal.PlainDate,
): Timestamp => timestamp(day.toZonedDateTime({ timeZone: territory.time_zone }).toInstant());

/** The amount of a payout from these entries, with the reserves that it withholds and releases. */
export async function planPayout(
  db: Handle,
  merchant_id: string,
  open: Pick<KindSums, 'kind' | 'net'>[],
  when: { at: Timestamp; day: Temporal.PlainDate },
): Promise<{ amount: number; reserves: NewEntry[] }> {
  const reserves = await planReserves(db, merchant_id, open, when);
  return { amount: [...open, ...reserves].reduce((sum, { net }) => sum + net, 0), reserves };
}

/** The reserve that is withheld from the open sales, and the earlier reserves that are released. */
async function planReserves(
  db: Handle,
  merchant_id: string,
  open: Pick<KindSums, 'kind' | 'net'>[],
  { at, day }: { at: Timestamp; day: Temporal.PlainDate },
): Promise<NewEntry[]> {
  const terms = await findTerms(db, merchant_id, at);
  const held = reserveOf(open, terms?.reserve_basis_points ?? 0);
  const due = await listDueReserves(db, merchant_id, day.toString());
  const release_on = day.add({ days: terms?.reserve_days ?? 0 }).toString();
  return [
    ...(held > 0 ? [{ ...withoutFee(-held), kind: 'reserve' as const, release_on }] : []),
    ...due.map(({ id, net }) => ({
      ...withoutFee(-net),
      kind: 'reserve_released' as const,
      reserve_id: id,
    })),
  ];
}

export async function readCalendar(
  db: Handle,
  merchant: Merchant,
  now: Temporal.Instant,
): Promise<Calendar> {
  const { code, time_zone } = merchant.territory;
  const around = merchant.localDate(now).toString();
  return { holidays: await listHolidays(db, code, around), time_zone };
}
