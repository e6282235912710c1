import { notSent } from '#purchases/callbacks/delivery/failure-reason.ts';
import {
  leaseSeconds,
  retryMinutes,
  runAttemptsMax,
} from '#purchases/callbacks/delivery/limits.ts';
import type { Invariant } from './invariant.ts';

export const callbackInvariants: Invariant[] = [
  {
    name: 'S3',
    description: "a callback's payload agrees with its checkout",
    sql: `
      select c.id
      from callbacks k join checkouts c on c.id = k.checkout_id and c.merchant_id = k.merchant_id
      where k.event is null and (case when k.sealed_verify is null then
          convert_from(k.payload, 'UTF8')::jsonb is distinct from jsonb_build_object(
            'status', c.status, 'amount', c.amount, 'currency', c.currency,
            'client_reference_id', c.client_reference_id,
            'number_of_payments', c.number_of_payments) end
        or k.sealed_verify is distinct from c.sealed_verify
        or k.notify_url is distinct from c.notify_url or k.integration_id <> c.integration_id)`,
  },
  {
    name: 'S4',
    description: "an event names itself, its object and the object's checkout",
    sql: `
      with objects as (
        select merchant_id, id, checkout_id, 'refund.updated' as event from refund_requests
        union all
        select merchant_id, id, checkout_id, 'dispute.updated' from disputes
        union all
        select merchant_id, id, null, 'payout.updated' from payouts
      ), events as (
        select k.*, convert_from(k.payload, 'UTF8')::jsonb as body
        from callbacks k where k.event is not null
      )
      select k.id, k.event, k.subject_id
      from events k left join objects o
        on o.merchant_id = k.merchant_id and o.id = k.subject_id and o.event = k.event
      where o.id is null or o.checkout_id is distinct from k.checkout_id
        or k.body ->> 'id' is distinct from k.id::text
        or k.body ->> 'event' is distinct from k.event
        or k.body ->> 'sequence' is distinct from k.sequence::text
        or k.body ->> 'merchant_id' is distinct from k.merchant_id::text
        or k.body -> 'data' ->> 'id' is distinct from k.subject_id::text
        or k.sealed_verify is not null or k.redirect_url is not null`,
  },
  {
    name: 'S4',
    description: 'the events of an object are numbered from 1 without a gap',
    sql: `
      select id, subject_id, sequence
      from (
        select id, subject_id, sequence,
          row_number() over (partition by merchant_id, integration_id, subject_id
            order by sequence) as place
        from callbacks where event is not null
      ) k
      where sequence <> place`,
  },
  {
    name: 'S3',
    description:
      'the payload of a v1 callback agrees with its checkout; transaction_verify is empty until it is sent',
    sql: `
      with posted as materialized (
        select c.id, c.status, c.client_reference_id, c.number_of_payments,
          regexp_match(convert_from(k.payload, 'UTF8'),
            '^status=([a-z]+)&order_id=([^&]*)&transaction_verify=&number_of_payments=([0-9]+)$') as form
        from callbacks k join checkouts c on c.id = k.checkout_id and c.merchant_id = k.merchant_id
        where k.sealed_verify is not null
      )
      select p.id
      from posted p
      cross join lateral (
        select convert_from(string_agg(
          case when part[1] like '\\%%' then decode(substr(part[1], 2), 'hex')
            else convert_to(part[1], 'UTF8') end, ''::bytea order by place), 'UTF8') as order_id
        from regexp_matches(replace(p.form[2], '+', ' '), '(%[0-9A-F]{2}|[^%]+)', 'g')
          with ordinality as parts (part, place)
      ) d
      where p.form[1] is distinct from
          case p.status when 'successful' then 'success' else p.status end
        or d.order_id is distinct from p.client_reference_id
        or p.form[3] is distinct from p.number_of_payments::text`,
  },
  {
    name: 'C1',
    description:
      'a delivered callback was answered with a 2xx in its run, and nothing else counts as delivered',
    sql: `
      select k.id, k.status, k.run
      from callbacks k
      where k.status = 'delivered' and k.attempts_expired < k.attempts and not exists (
        select 1 from callback_attempts a
        where a.callback_id = k.id and a.merchant_id = k.merchant_id and a.run = k.run
          and a.outcome = 'delivered')
      union all
      select callback_id, outcome, run from callback_attempts
      where outcome = 'delivered' and response_status not between 200 and 299
        or outcome = 'delivered' and response_status is null`,
  },
  {
    name: 'C1',
    description: `every attempt of a callback that no process has claimed is counted, and kept until it expires, at most ${runAttemptsMax} in a run`,
    sql: `
      select k.id, k.attempts, k.run_attempts, count(a.id) as kept
      from callbacks k left join callback_attempts a
        on a.callback_id = k.id and a.merchant_id = k.merchant_id
      where k.lease is null
      group by k.id, k.merchant_id
      having count(a.id) + k.attempts_expired <> k.attempts
        or coalesce(max(a.number), k.attempts_expired) <> k.attempts
        or count(a.id) filter (where a.run = k.run)
          <> least(k.run_attempts, k.attempts - k.attempts_expired)
      union all
      select callback_id, null, null, count(*)
      from callback_attempts group by merchant_id, callback_id, run having count(*) > ${runAttemptsMax}`,
  },
  {
    name: 'C1',
    description: `attempts of a run are at least ${retryMinutes} minutes apart, unless the first of two was not sent, or may not have been sent because its process died or recorded the result after its lease`,
    sql: `
      select callback_id, number, started_at, before
      from (
        select callback_id, number, trigger, started_at,
          lag(started_at) over attempts as before, lag(outcome) over attempts as outcome_before,
          lag(outcome, 2) over attempts as outcome_earlier, lag(reason) over attempts as reason_before,
          lag(finished_at) over attempts as finished_before
        from callback_attempts
        window attempts as (partition by merchant_id, callback_id, run order by number)
      ) a
      where started_at < before + interval '${retryMinutes} minutes'
        and (outcome_before <> 'unknown' or outcome_earlier = 'unknown')
        and (finished_before is null or finished_before < before + interval '${leaseSeconds} seconds')
        and reason_before is distinct from '${notSent}'`,
  },
  {
    name: 'C1',
    description: `an exhausted callback had ${runAttemptsMax} attempts in its run, and every such run has one alert`,
    sql: `
      with runs as (
        select merchant_id, callback_id, run, count(*) as attempts,
          bool_or(outcome = 'delivered') as is_delivered
        from callback_attempts group by merchant_id, callback_id, run
      ), raised as (
        select merchant_id, subject_id as callback_id, count(*) as alerts
        from alerts where kind = 'callback_exhausted' group by 1, 2
      )
      select k.id, k.status, k.run, coalesce(a.alerts, 0) as alerts,
        count(r.run) filter (where r.attempts = ${runAttemptsMax} and not r.is_delivered) as exhausted_runs
      from callbacks k
      left join raised a on a.merchant_id = k.merchant_id and a.callback_id = k.id
      left join runs r on r.merchant_id = k.merchant_id and r.callback_id = k.id
      where k.status = 'exhausted' or a.alerts > 0
      group by k.id, k.merchant_id, a.alerts
      having k.attempts_expired = 0 and coalesce(a.alerts, 0)
          > count(r.run) filter (where r.attempts = ${runAttemptsMax} and not r.is_delivered)
        or k.status = 'exhausted' and (coalesce(a.alerts, 0) = 0 or k.run_attempts <> ${runAttemptsMax}
          or bool_or(r.is_delivered) filter (where r.run = k.run))`,
  },
];
