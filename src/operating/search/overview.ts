import { merchantNow } from '#merchants/merchant.ts';
import { emptyCounts } from '#operating/rollups/rollup.sql.ts';
import type { Database, Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import type { Clock } from '#platform/shared/clock.ts';
import {
  type BoundedCount,
  countWaiting,
  type DaySums,
  findAsOf,
  findDefaultPlace,
  findOldestToReview,
  findPlace,
  findProof,
  listDays,
  listDeclineReasons,
  listDues,
  recentDays,
  sumOverdueAmounts,
  type Waiting,
  waitingKinds,
} from './overview.sql.ts';
import type { Scope } from './scope.sql.ts';

type Deps = { database: Database; clock: Clock };

export type Counts = Record<Waiting, BoundedCount>;

/** Counting stops here. The page shows a plus sign behind the number. */
const countMax = 1_000;
const dueDays = 90;

export async function readCounts(deps: Deps, scope: Scope): Promise<Counts> {
  return await reading(deps, (db) => countAll(db, scope));
}

async function countAll(db: Handle, scope: Scope): Promise<Counts> {
  const counts = waitingKinds.map(async (kind) => [
    kind,
    await countWaiting(db, scope, kind, countMax),
  ]);
  return Object.fromEntries(await Promise.all(counts));
}

/** The days that the charts show: the last ones, or a calendar month such as 2026-11. */
export type Period = { days: number } | { month: string };

/** The first and the last day of a period. A month is whole, even if it has not ended yet. */
function daysOf(period: Period, today: Temporal.PlainDate) {
  if ('days' in period) return { first: today.subtract({ days: period.days - 1 }), last: today };
  const first = Temporal.PlainYearMonth.from(period.month).toPlainDate({ day: 1 });
  return { first, last: first.with({ day: first.daysInMonth }) };
}

/** Reads the counts of waiting rows, and the charts from the daily sums, never a whole history. */
export async function readOverview(
  deps: Deps,
  scope: Scope,
  period: Period = { days: recentDays },
) {
  return await reading(deps, async (db) => {
    const place = (await findPlace(db, scope)) ?? (await findDefaultPlace(db));
    const { currency, locale, time_zone, clock_ahead_ms } = place;
    const today = merchantNow(deps.clock, place).toZonedDateTimeISO(time_zone).toPlainDate();
    const { first, last } = daysOf(period, today);
    const shown = { first: first.toString(), last: last.toString() };
    const lastDue = today.add({ days: dueDays - 1 }).toString();
    const [counts, oldest_refund_at, overdue_amount, proof, found, reasons, dues, as_of] =
      await Promise.all([
        countAll(db, scope),
        findOldestToReview(db, scope),
        sumOverdueAmounts(db, scope),
        findProof(db),
        listDays(db, scope, shown),
        listDeclineReasons(db, scope, shown),
        listDues(db, scope, { first: today.toString(), last: lastDue }),
        findAsOf(db),
      ]);
    const byDay = new Map(found.map((day) => [day.day, day]));
    const days = daysFrom(first, first.until(last).days + 1).map(
      (day) => byDay.get(day) ?? { day, ...emptyCounts() },
    );
    const dueByDay = new Map(dues.map(({ day, amount }) => [day, amount]));
    const sum = (name: Exclude<keyof DaySums, 'day'>) =>
      days.reduce((total, day) => total + day[name], 0);
    const decided = sum('approved') + sum('declined');
    return {
      counts,
      oldest_refund_at,
      overdue_amount,
      currency,
      locale,
      time_zone,
      clock_ahead_ms,
      books: { agree: proof.differences === 0, proved_at: proof.proved_at },
      today: today.toString(),
      days,
      approval_rate: decided === 0 ? null : sum('approved') / decided,
      decline_reasons: reasons,
      funnel: {
        created: sum('created'),
        opened: sum('opened'),
        tried: sum('tried'),
        paid: sum('paid'),
      },
      due: daysFrom(today, dueDays).map((day) => ({ day, amount: dueByDay.get(day) ?? 0 })),
      as_of,
    };
  });
}

const daysFrom = (first: Temporal.PlainDate, count: number) =>
  Array.from({ length: count }, (_, days) => first.add({ days }).toString());
