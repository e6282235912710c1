import { merchantNow } from '#merchants/merchant.ts';
import { emptyCounts } from '#operating/rollups/rollup.sql.ts';
import type { Database, Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import type { Clock, Timestamp } from '#platform/shared/clock.ts';
import {
  type BoundedCount,
  countAlerts,
  countConversationsToAnswer,
  countDisputesToAnswer,
  countExhausted,
  countOverdue,
  countPayoutsToApprove,
  countRefundsToReview,
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
} from './overview.sql.ts';
import type { Scope } from './scope.sql.ts';

type Deps = { database: Database; clock: Clock };

export type Counts = {
  refunds_to_review: BoundedCount;
  overdue: BoundedCount;
  callbacks_exhausted: BoundedCount;
  alerts: BoundedCount;
  disputes_to_answer: BoundedCount;
  payouts_to_approve: BoundedCount;
  messages_to_answer: BoundedCount;
};

/** A count above this is shown as more than this. */
const countMax = 1_000;
const dueDays = 90;

/** Counts what waits for a person now. */
export async function countWaiting(deps: Deps, scope: Scope): Promise<Counts> {
  return await reading(deps, (db) => readCounts(db, scope));
}

async function readCounts(db: Handle, scope: Scope): Promise<Counts> {
  const [refunds_to_review, overdue, callbacks_exhausted, alerts, disputes, payouts, messages] =
    await Promise.all([
      countRefundsToReview(db, scope, countMax),
      countOverdue(db, scope, countMax),
      countExhausted(db, scope, countMax),
      countAlerts(db, scope, countMax),
      countDisputesToAnswer(db, scope, countMax),
      countPayoutsToApprove(db, scope, countMax),
      countConversationsToAnswer(db, scope, countMax),
    ]);
  return {
    refunds_to_review,
    overdue,
    callbacks_exhausted,
    alerts,
    disputes_to_answer: disputes,
    payouts_to_approve: payouts,
    messages_to_answer: messages,
  };
}

/** The days that the charts show: the last ones, or a calendar month such as 2026-11. */
export type Period = { days: number } | { month: string };

/** The first and the last day of a period. A month that has not ended ends with its last day. */
function daysOf(period: Period, today: Temporal.PlainDate) {
  if ('days' in period) return { first: today.subtract({ days: period.days - 1 }), last: today };
  const first = Temporal.PlainYearMonth.from(period.month).toPlainDate({ day: 1 });
  return { first, last: first.with({ day: first.daysInMonth }) };
}

export type Overview = {
  counts: Counts;
  oldest_refund_at: Timestamp | null;
  overdue_amount: number;
  currency: string;
  locale: string;
  time_zone: string;
  clock_ahead_ms: number;
  books: { agree: boolean; proved_at: Timestamp | null };
  today: string;
  days: DaySums[];
  approval_rate: number | null;
  decline_reasons: { reason: string; count: number }[];
  funnel: { created: number; opened: number; tried: number; paid: number };
  due: { day: string; amount: number }[];
  as_of: Timestamp | null;
};

/** Reads what waits now, and the charts from the daily sums. Nothing here reads a whole history. */
export async function readOverview(
  deps: Deps,
  scope: Scope,
  period: Period = { days: recentDays },
): Promise<Overview> {
  return await reading(deps, async (db) => {
    const place = (await findPlace(db, scope)) ?? (await findDefaultPlace(db));
    const { currency, locale, time_zone, clock_ahead_ms } = place;
    const today = merchantNow(deps.clock, place).toZonedDateTimeISO(time_zone).toPlainDate();
    const { first, last } = daysOf(period, today);
    const [from, until] = [first.toString(), last.toString()];
    const lastDue = today.add({ days: dueDays - 1 }).toString();
    const [counts, oldest_refund_at, overdue_amount, proof, found, reasons, dues, as_of] =
      await Promise.all([
        readCounts(db, scope),
        findOldestToReview(db, scope),
        sumOverdueAmounts(db, scope),
        findProof(db),
        listDays(db, scope, from, until),
        listDeclineReasons(db, scope, from, until),
        listDues(db, scope, today.toString(), lastDue),
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
