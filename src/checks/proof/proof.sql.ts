import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

/** An export of payouts, as recorded in the chain of the operators' actions. */
export type RecordedExport = {
  number: number;
  export_id: string;
  payouts: number;
  /** Null if it was exported by a version without digests. */
  payouts_sha256: string | null;
  file_sha256: string | null;
};

/**
 * The exports of at least one payout after a number in the chain, in order. Reading a file again
 * counts as an export too.
 */
export async function listRecordedExports(
  db: Handle,
  after: number,
  limit: number,
): Promise<RecordedExport[]> {
  const { rows } = await sql<RecordedExport>`
    select number, coalesce(subject_id, (details ->> 'export_id')::uuid) as export_id,
      (details ->> 'payouts')::integer as payouts, details ->> 'payouts_sha256' as payouts_sha256,
      details ->> 'file_sha256' as file_sha256
    from operator_actions
    where action in ('payouts export', 'payouts file') and number > ${after}
      and (details ->> 'payouts')::integer > 0
    order by number limit ${limit}`.execute(db);
  return rows;
}

/**
 * The references of exported payouts that no recorded export names. Leaves out a payout that the
 * bank paid before a restore: only its payment was recorded, so it has no export here.
 */
export async function listUnrecordedExports(db: Handle, limit: number): Promise<string[]> {
  const { rows } = await sql<{ reference: string }>`
    select p.reference from payouts p
    where p.export_id is not null and not exists (
        select from operator_actions o
        where o.subject_id = p.export_id and o.action = 'payouts export')
      and not exists (
        select from operator_actions o
        where o.subject_id = p.id and o.action = 'payouts paid' and p.paid_at = p.exported_at)
    order by p.id limit ${limit}`.execute(db);
  return rows.map(({ reference }) => reference);
}

/** The counts of one page of callbacks. */
export type CountedCallbacks = {
  last: string;
  callbacks: number;
  delivered: number;
  waiting: number;
  exhausted: number;
  /** Delivered callbacks whose attempts were deleted at the end of their retention. */
  expired: number;
  unanswered: string[];
};

export async function countCallbacks(
  db: Handle,
  after: string,
  limit: number,
): Promise<CountedCallbacks | null> {
  const { rows } = await sql<CountedCallbacks>`
    select (array_agg(id order by id desc))[1] as last, count(*)::integer as callbacks,
      count(*) filter (where status = 'delivered')::integer as delivered,
      count(*) filter (where status = 'pending')::integer as waiting,
      count(*) filter (where status = 'exhausted')::integer as exhausted,
      count(*) filter (where status = 'delivered' and has_expired)::integer as expired,
      coalesce((array_agg(id order by id) filter (
        where status = 'delivered' and not has_expired and not is_answered))[1:20], '{}')
        as unanswered
    from (
      select k.id, k.status, k.attempts_expired >= k.attempts as has_expired, exists (
        select from callback_attempts a
        where a.merchant_id = k.merchant_id and a.callback_id = k.id and a.outcome = 'delivered'
          and a.response_status between 200 and 299) as is_answered
      from (select * from callbacks where id > ${after} order by id limit ${limit}) k
    ) every
    having count(*) > 0`.execute(db);
  return rows[0] ?? null;
}

/** When the first checkout was created; null before that. */
export async function findFirstSale(db: Handle): Promise<Timestamp | null> {
  const row = await db
    .selectFrom('checkouts')
    .select('created_at')
    .orderBy('id')
    .limit(1)
    .executeTakeFirst();
  return row?.created_at ?? null;
}
