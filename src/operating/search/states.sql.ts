import { sql } from 'kysely';
import type { Handle } from '#platform/database/database.ts';
import type { Timestamp } from '#platform/shared/clock.ts';

// Reads figures for the metrics. Each comes from a rollup or from the end of an index, however long
// the history is.

/** Counting stops at this many rows. */
const countMax = 10_000;

export type Unit = 'rows' | 'seconds' | 'cents';

/**
 * Reads how much is waiting for an operator or the worker, whether money is stopped, and the time
 * since the check of the books last finished a pass.
 */
export async function readStates(
  db: Handle,
  now: Timestamp,
): Promise<{ state: string; unit: Unit; value: number }[]> {
  const { rows } = await sql<{ state: string; unit: Unit; value: number }>`
    select 'refunds to review' as state, 'rows' as unit, count(*)::float8 as value from (
      select 1 from refund_requests where status = 'requested' and approved_at is null
      limit ${sql.lit(countMax)}) r
    union all
    select 'open alerts', 'rows', count(*)::float8 from (
      select 1 from alerts where closed_at is null limit ${sql.lit(countMax)}) a
    union all
    select 'callbacks to deliver', 'rows', count(*)::float8 from (
      select 1 from callbacks where due_at is not null limit ${sql.lit(countMax)}) c
    union all
    select 'exhausted callbacks', 'rows', count(*)::float8 from (
      select 1 from callbacks where status = 'exhausted' limit ${sql.lit(countMax)}) c
    union all
    select 'pending refunds', 'rows', count(*)::float8 from (
      select 1 from refund_requests where status = 'pending' limit ${sql.lit(countMax)}) r
    union all
    select 'oldest refund to review', 'seconds',
      greatest(0, extract(epoch from ${now}::timestamptz - min(created_at)))::float8
      from refund_requests where status = 'requested' and approved_at is null
    having min(created_at) is not null
    union all
    select 'oldest pending refund', 'seconds',
      greatest(0, extract(epoch from ${now}::timestamptz - min(created_at)))::float8
      from refund_requests where status = 'pending'
    having min(created_at) is not null
    union all
    select 'messages to send', 'rows', count(*)::float8 from (
      select 1 from messages where due_at is not null limit ${sql.lit(countMax)}) m
    union all
    select 'overdue payments', 'rows', count(*)::float8 from (
      select 1 from instalments where status = 'overdue' limit ${sql.lit(countMax)}) i
    union all
    select 'overdue', 'cents', coalesce(sum(amount), 0)::float8 from merchant_overdue
    union all
    select 'since the books were proved', 'seconds',
      greatest(0, extract(epoch from ${now}::timestamptz - coalesce(max(proved_at),
        (select min(created_at) from installation))))::float8
      from audit
    having coalesce(max(proved_at), (select min(created_at) from installation)) is not null
    union all
    select 'stops of money', 'rows', count(*)::float8
      from gateway_heartbeat where stopped_at is not null
    union all
    select 'differences in the books', 'rows', proved_differences::float8
      from audit where proved_differences is not null`.execute(db);
  return rows;
}

/** Sums over all merchants, for the current day in the time zone of each merchant. */
export async function readToday(
  db: Handle,
  now: Timestamp,
): Promise<{ measure: string; unit: Unit; value: number }[]> {
  const { rows } = await sql<{ measure: string; unit: Unit; value: number }>`
    with today as (
      select coalesce(sum(created), 0) as created, coalesce(sum(opened), 0) as opened,
        coalesce(sum(tried), 0) as tried, coalesce(sum(paid), 0) as paid,
        coalesce(sum(approved), 0) as approved, coalesce(sum(declined), 0) as declined,
        coalesce(sum(sold), 0) as sold_cents, coalesce(sum(collected), 0) as collected_cents,
        coalesce(sum(refunded), 0) as refunded_cents
      from merchant_days d
      join merchants m on m.id = d.merchant_id
      join territories t on t.code = m.territory
      where d.day between ${now}::date - 1 and ${now}::date + 1
        and d.day = (${now}::timestamptz at time zone t.time_zone)::date
    )
    select replace(key, '_cents', '') as measure,
      case when key like '%\\_cents' then 'cents' else 'rows' end as unit, value::float8 as value
    from today, jsonb_each_text(to_jsonb(today))
    union all
    select 'declined: ' || reason, 'rows', sum(count)::float8
    from merchant_declines d
    join merchants m on m.id = d.merchant_id
    join territories t on t.code = m.territory
    where d.day between ${now}::date - 1 and ${now}::date + 1
      and d.day = (${now}::timestamptz at time zone t.time_zone)::date
    group by reason`.execute(db);
  return rows;
}
