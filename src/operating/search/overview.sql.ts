import { type SelectQueryBuilder, sql } from 'kysely';
import { type Count, dayCounts } from '#operating/rollups/rollup.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import { type Scope, scoped } from './scope.sql.ts';

/** How many days a merchant's sums cover. */
export const recentDays = 30;

/** A count that stops at a maximum. `more` says whether there are more rows. */
export type BoundedCount = { count: number; more: boolean };

/**
 * The kinds of rows that wait for a person. Each has an index of its waiting rows. The status and
 * the limit are constants in the text, so that the planner knows how few rows they match and can
 * reuse one plan.
 */
const waiting = {
  refunds_to_review: (db: Handle) =>
    db
      .selectFrom('refund_requests')
      .select('id')
      .where('status', '=', sql.lit('requested'))
      .where('approved_at', 'is', null),
  overdue: (db: Handle) =>
    db.selectFrom('instalments').select('number').where('status', '=', sql.lit('overdue')),
  callbacks_exhausted: (db: Handle) =>
    db.selectFrom('callbacks').select('id').where('status', '=', sql.lit('exhausted')),
  alerts: (db: Handle) => db.selectFrom('alerts').select('id').where('closed_at', 'is', null),
  /** Disputes whose evidence has not been submitted yet. */
  disputes_to_answer: (db: Handle) =>
    db
      .selectFrom('disputes')
      .select('id')
      .where('status', '=', sql.lit('needs_response'))
      .where('submitted_at', 'is', null),
  payouts_to_approve: (db: Handle) =>
    db.selectFrom('payouts').select('id').where('status', '=', sql.lit('draft')),
  /** Conversations in which the shopper wrote last. */
  messages_to_answer: (db: Handle) =>
    db.selectFrom('conversations').select('checkout_id').where('status', '=', sql.lit('open')),
};
export type Waiting = keyof typeof waiting;
export const waitingKinds = Object.keys(waiting) as Waiting[];

/** Counts the waiting rows of a kind. It reads at most `max` + 1 entries of an index. */
export async function countWaiting(
  db: Handle,
  scope: Scope,
  kind: Waiting,
  max: number,
): Promise<BoundedCount> {
  // biome-ignore lint/suspicious/noExplicitAny: it counts queries of any shape.
  const rows: any = scoped(waiting[kind](db), scope);
  const { count } = await db
    .selectFrom(rows.limit(sql.lit(max + 1)).as('found'))
    .select((select) => select.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  return { count: Math.min(Number(count), max), more: Number(count) > max };
}

/** When the refund that has waited longest for its review was requested. */
export async function findOldestToReview(db: Handle, scope: Scope): Promise<Timestamp | null> {
  const row = await scoped(db.selectFrom('refund_requests').select('created_at'), scope)
    .where('status', '=', sql.lit('requested'))
    .where('approved_at', 'is', null)
    .orderBy('created_at')
    .orderBy('id')
    .limit(sql.lit(1))
    .executeTakeFirst();
  return row?.created_at ?? null;
}

/** The territory of the merchant whose clock is furthest ahead. Null without merchants. */
export async function findPlace(db: Handle, scope: Scope) {
  const row = await scoped(
    db
      .selectFrom('merchants')
      .innerJoin('territories', 'territories.code', 'merchants.territory')
      .select([
        'territories.currency',
        'territories.locale',
        'territories.time_zone',
        'merchants.clock_ahead_ms',
      ]),
    scope,
    'merchants.id',
  )
    .orderBy('merchants.clock_ahead_ms', 'desc')
    .limit(sql.lit(1))
    .executeTakeFirst();
  return row ?? null;
}

export async function findDefaultPlace(db: Handle) {
  const row = await db
    .selectFrom('territories')
    .select(['currency', 'locale', 'time_zone'])
    .orderBy('code')
    .limit(1)
    .executeTakeFirstOrThrow();
  return { ...row, clock_ahead_ms: 0 };
}

export type DaySums = { day: string } & Record<Count, number>;

/** Both days are included. */
type Days = { first: string; last: string };

// biome-ignore lint/suspicious/noExplicitAny: it adds conditions to queries of any shape.
const within = <Query extends SelectQueryBuilder<any, any, any>>(
  query: Query,
  scope: Scope,
  { first, last }: Days,
) => scoped(query, scope).where('day', '>=', first).where('day', '<=', last) as Query;

export async function listDays(db: Handle, scope: Scope, range: Days): Promise<DaySums[]> {
  const query = db
    .selectFrom('merchant_days')
    .select((select) => ['day', ...dayCounts.map((name) => select.fn.sum<number>(name).as(name))]);
  const rows = await within(query, scope, range).groupBy('day').execute();
  return rows.map((row) => {
    const sums = dayCounts.map((name) => [name, Number(row[name])]);
    return { day: row.day, ...Object.fromEntries(sums) };
  });
}

export async function listDeclineReasons(db: Handle, scope: Scope, range: Days) {
  const query = db
    .selectFrom('merchant_declines')
    .select(['reason', (select) => select.fn.sum<number>('count').as('count')]);
  const rows = await within(query, scope, range)
    .groupBy('reason')
    .orderBy('count', 'desc')
    .orderBy('reason')
    .execute();
  return rows.map(({ reason, count }) => ({ reason, count: Number(count) }));
}

/** The amounts still to be collected, by the day on which they are due. */
export async function listDues(db: Handle, scope: Scope, range: Days) {
  const query = db
    .selectFrom('merchant_dues')
    .select(['day', (select) => select.fn.sum<number>('amount').as('amount')]);
  const rows = await within(query, scope, range).groupBy('day').execute();
  return rows.map(({ day, amount }) => ({ day, amount: Number(amount) }));
}

export async function sumOverdueAmounts(db: Handle, scope: Scope): Promise<number> {
  const { sum } = await scoped(
    db
      .selectFrom('merchant_overdue')
      .select(sql<number>`coalesce(sum(amount), 0)::bigint`.as('sum')),
    scope,
  ).executeTakeFirstOrThrow();
  return sum;
}

/**
 * The time up to which everything is in the sums. Null while a stream has not been added up yet.
 */
export async function findAsOf(db: Handle): Promise<Timestamp | null> {
  const rows = await db.selectFrom('rollups').select('as_of').execute();
  const times = rows.map(({ as_of }) => as_of);
  return times.some((time) => time === null) ? null : ((times.sort()[0] as Timestamp) ?? null);
}

export async function findProof(
  db: Handle,
): Promise<{ proved_at: Timestamp | null; differences: number }> {
  const row = await db
    .selectFrom('audit')
    .select(['proved_at', 'differences', 'proved_differences'])
    .executeTakeFirst();
  const differences = (row?.differences ?? 0) + (row?.proved_differences ?? 0);
  return { proved_at: row?.proved_at ?? null, differences };
}

export async function hasCheckouts(db: Handle): Promise<boolean> {
  return (await db.selectFrom('checkouts').select('id').limit(1).executeTakeFirst()) !== undefined;
}
