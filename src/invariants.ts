import type pg from 'pg';
import type { Timestamp } from './shared/clock.ts';

/**
 * What must always be true, as statements that return no rows: after any fault, crash or race,
 * once due work has been done. Every fault test ends in these.
 */
type Invariant = { name: string; says: string; sql: string };

export const invariants: Invariant[] = [
  {
    name: 'M1',
    says: 'a successful checkout has its payments: as many as chosen, above zero, summing to its amount; any other has none',
    sql: `
      select c.id, c.status, count(i.number) as payments, sum(i.amount) as sum
      from checkouts c left join instalments i on i.checkout_id = c.id and i.merchant_id = c.merchant_id
      group by c.id, c.merchant_id
      having case when c.status = 'successful' then
          count(i.number) <> c.number_of_payments
          or min(i.number) <> 1 or max(i.number) <> c.number_of_payments
          or sum(i.amount) <> c.amount
          or not c.number_of_payments = any (c.terms)
          or max(i.amount) filter (where i.number > 1) > min(i.amount) filter (where i.number = 1)
          or max(i.amount) filter (where i.number > 1) <> min(i.amount) filter (where i.number > 1)
          or max(i.amount) filter (where i.number = 1)
             - min(i.amount) filter (where i.number > 1) >= c.number_of_payments
        else count(i.number) > 0 end`,
  },
  {
    name: 'M1',
    says: 'payments fall due month by month from the local date of the purchase, in the currency of their checkout',
    sql: `
      select i.checkout_id, i.number, i.due_on, c.completed_at
      from instalments i
      join checkouts c on c.id = i.checkout_id and c.merchant_id = i.merchant_id
      join merchants m on m.id = c.merchant_id
      join territories t on t.code = m.territory
      where i.currency <> c.currency
        or i.due_on is distinct from ((c.completed_at at time zone t.time_zone)::date
          + (i.number - 1) * interval '1 month')::date`,
  },
  {
    name: 'M2',
    says: 'refund requests that are not failed sum to at most the amount, on successful checkouts only',
    sql: `
      select c.id, sum(r.amount) as refunded, c.amount
      from checkouts c join refund_requests r on r.checkout_id = c.id and r.merchant_id = c.merchant_id
      where r.status <> 'failed'
      group by c.id, c.merchant_id
      having sum(r.amount) > c.amount or c.status <> 'successful'`,
  },
  {
    name: 'M3',
    says: 'at most one payment attempt of a checkout is in flight',
    sql: `
      select checkout_id from payment_attempts where status in ('starting', 'challenged')
      group by merchant_id, checkout_id having count(*) > 1`,
  },
  {
    name: 'M4',
    says: 'a checkout has the attempt that paid it exactly when it is successful',
    sql: `
      select c.id, c.status, count(a.id) as authorised
      from checkouts c left join payment_attempts a
        on a.checkout_id = c.id and a.merchant_id = c.merchant_id and a.status = 'authorised'
      group by c.id, c.merchant_id
      having count(a.id) <> case when c.status = 'successful' then 1 else 0 end`,
  },
  {
    name: 'M4',
    says: 'the attempt that paid held the first payment, in the term of the checkout, while it could be paid',
    sql: `
      select c.id, c.expires_at, c.completed_at, a.amount, a.number_of_payments
      from payment_attempts a
      join checkouts c on c.id = a.checkout_id and c.merchant_id = a.merchant_id
      left join instalments i on i.checkout_id = c.id and i.merchant_id = c.merchant_id
        and i.number = 1
      where a.status = 'authorised'
        and (a.number_of_payments is distinct from c.number_of_payments
          or a.currency <> c.currency or a.amount is distinct from i.amount
          or a.created_at >= c.expires_at
          or c.completed_at > c.expires_at + interval '15 minutes')`,
  },
  {
    name: 'M4',
    says: 'nothing is in flight for a checkout that has ended',
    sql: `
      select c.id, c.status, a.status as attempt
      from payment_attempts a
      join checkouts c on c.id = a.checkout_id and c.merchant_id = a.merchant_id
      where a.status in ('starting', 'challenged') and c.status <> 'received'`,
  },
  {
    name: 'M4',
    says: 'a card is stored exactly for what is paid in several payments, with what was agreed to',
    sql: `
      select c.id, c.status, c.number_of_payments, s.card_ref
      from checkouts c left join stored_cards s
        on s.checkout_id = c.id and s.merchant_id = c.merchant_id
      where (c.status = 'successful' and c.number_of_payments > 1) <> (s.card_ref is not null)`,
  },
  {
    name: 'S1',
    says: 'a checkout that ended has one recorded move, into the status that it has',
    sql: `
      select c.id, c.status, m.to_status
      from checkouts c left join checkout_moves m
        on m.checkout_id = c.id and m.merchant_id = c.merchant_id
      where c.status <> coalesce(m.to_status, 'received')`,
  },
  {
    name: 'S2',
    says: 'a successful or cancelled checkout has exactly one callback, any other has none',
    sql: `
      select c.id, c.status, count(k.id) as callbacks
      from checkouts c left join callbacks k on k.checkout_id = c.id and k.merchant_id = c.merchant_id
      group by c.id, c.merchant_id
      having count(k.id) <> case when c.status in ('successful', 'cancelled') then 1 else 0 end`,
  },
  {
    name: 'S3',
    says: "the callback's bytes say what the checkout says",
    sql: `
      select c.id
      from callbacks k join checkouts c on c.id = k.checkout_id and c.merchant_id = k.merchant_id
      cross join lateral (select convert_from(k.payload, 'UTF8')::jsonb as body) p
      where p.body is distinct from jsonb_build_object('status', c.status, 'amount', c.amount,
        'currency', c.currency, 'client_reference_id', c.client_reference_id,
        'number_of_payments', c.number_of_payments)
        or k.notify_url <> c.notify_url or k.integration_id <> c.integration_id`,
  },
  {
    name: 'D1',
    says: 'a delivered callback was answered with a 2xx in its run, and nothing else counts as delivered',
    sql: `
      select k.id, k.status, k.run
      from callbacks k
      where k.status = 'delivered' and not exists (
        select 1 from callback_attempts a
        where a.callback_id = k.id and a.merchant_id = k.merchant_id and a.run = k.run
          and a.outcome = 'delivered')
      union all
      select callback_id, outcome, run from callback_attempts
      where outcome = 'delivered' and response_status not between 200 and 299
        or outcome = 'delivered' and response_status is null`,
  },
  {
    name: 'D1',
    says: 'every attempt of a callback that nobody has in hand is kept and counted, at most 19 in a run',
    sql: `
      select k.id, k.attempts, k.run_attempts, count(a.id) as kept
      from callbacks k left join callback_attempts a
        on a.callback_id = k.id and a.merchant_id = k.merchant_id
      where k.lease is null
      group by k.id, k.merchant_id
      having count(a.id) <> k.attempts or coalesce(max(a.number), 0) <> k.attempts
        or count(a.id) filter (where a.run = k.run) <> k.run_attempts
      union all
      select callback_id, null, null, count(*)
      from callback_attempts group by merchant_id, callback_id, run having count(*) > 19`,
  },
  {
    name: 'D1',
    says: 'attempts of a run are at least 10 minutes apart, however the one before ended',
    sql: `
      select callback_id, number, started_at, before
      from (
        select callback_id, number, trigger, started_at,
          lag(started_at) over (partition by merchant_id, callback_id, run order by number) as before
        from callback_attempts
      ) a
      where started_at < before + interval '10 minutes'`,
  },
  {
    name: 'D1',
    says: 'an exhausted callback had 19 attempts in its run, and the operator was told once for every such run',
    sql: `
      with runs as (
        select merchant_id, callback_id, run, count(*) as attempts,
          bool_or(outcome = 'delivered') as is_delivered
        from callback_attempts group by merchant_id, callback_id, run
      ), told as (
        select merchant_id, substring(detail from '^Callback ([0-9a-f-]{36}) ') as callback_id,
          count(*) as alerts
        from alerts where kind = 'callback_exhausted' group by 1, 2
      )
      select k.id, k.status, k.run, coalesce(t.alerts, 0) as alerts,
        count(r.run) filter (where r.attempts = 19 and not r.is_delivered) as exhausted_runs
      from callbacks k
      left join told t on t.merchant_id = k.merchant_id and t.callback_id = k.id::text
      left join runs r on r.merchant_id = k.merchant_id and r.callback_id = k.id
      where k.status = 'exhausted' or t.alerts > 0
      group by k.id, k.merchant_id, t.alerts
      having coalesce(t.alerts, 0)
          > count(r.run) filter (where r.attempts = 19 and not r.is_delivered)
        or k.status = 'exhausted' and (coalesce(t.alerts, 0) = 0 or k.run_attempts <> 19
          or bool_or(r.is_delivered) filter (where r.run = k.run))`,
  },
  {
    name: 'D3',
    says: 'nothing due stays undone: no row is past its due time by more than a minute without a live lease',
    sql: `
      select a.id, a.status, a.due_at
      from (
        select merchant_id, id, status, due_at, leased_until from payment_attempts
        union all
        select merchant_id, id, status, due_at, leased_until from callbacks
      ) a join merchants m on m.id = a.merchant_id
      where a.due_at < $1::timestamptz + m.clock_ahead_ms * interval '1 millisecond'
          - interval '1 minute'
        and (a.leased_until is null or a.leased_until < $1::timestamptz)`,
  },
  {
    name: 'A5',
    says: 'an answer that is kept for an idempotency key names something that exists',
    sql: `
      select k.integration_id, k.key
      from idempotency_keys k
      where k.status = 200
        and not exists (select 1 from checkouts c where c.id = (k.answer ->> 'id')::uuid)
        and not exists (select 1 from refund_requests r where r.id = (k.answer ->> 'id')::uuid)`,
  },
  {
    name: 'L1',
    says: "the numbers of a merchant's list are dense, 1, 2, 3 … up to its total, and times follow them",
    sql: `
      with listed as (
        select 'checkouts' as list, merchant_id, number, created_at from checkouts
        union all
        select 'refund_requests', merchant_id, number, created_at from refund_requests
      ), ordered as (
        select list, merchant_id, number,
          created_at < lag(created_at) over (partition by list, merchant_id order by number)
            as is_earlier
        from listed
      ), counted as (
        select list, merchant_id, count(*) as rows, min(number) as first, max(number) as last,
          bool_or(is_earlier) as is_disordered
        from ordered group by list, merchant_id
      )
      select list, merchant_id, l.total, c.rows, c.first, c.last, c.is_disordered
      from list_totals l full join counted c using (list, merchant_id)
      where coalesce(l.total, 0) <> coalesce(c.rows, 0)
        or c.first <> 1 or c.last <> c.rows or c.is_disordered`,
  },
];

export type Violation = { name: string; says: string; row: object };

/** Everything that is not as it must be; nothing, when all is well. */
export async function findViolations(
  database: { pool: Pick<pg.ClientBase, 'query'> },
  now: Timestamp,
  names: string[] = invariants.map(({ name }) => name),
): Promise<Violation[]> {
  const violations: Violation[] = [];
  for (const { name, says, sql } of invariants.filter((one) => names.includes(one.name))) {
    const values = sql.includes('$1') ? [now] : [];
    const { rows } = await database.pool.query(`${sql} limit 20`, values);
    for (const row of rows) violations.push({ name, says, row });
  }
  return violations;
}
