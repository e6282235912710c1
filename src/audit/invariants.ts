import type pg from 'pg';
import type { Account } from '../ledger/posting.ts';
import type { Timestamp } from '../shared/clock.ts';

/**
 * What must always be true, as statements that return no rows: after any fault, crash or race,
 * once due work has been done. Every fault test ends in these; `tranche ledger check` and the
 * worker's audit go by those that can be asked of a slice of checkouts, which hold at any moment.
 */
type Invariant = {
  name: string;
  says: string;
  sql: string | ((within: Within) => string);
};

/** The condition that a checkout's id is in the slice that is asked about. */
type Within = (column: string) => string;

const balance = (account: Account) =>
  `sum(case '${account}' when debit then amount when credit then -amount else 0 end)`;

export const invariants: Invariant[] = [
  {
    name: 'M1',
    says: 'a successful checkout has its payments: as many as chosen, above zero, summing to its amount; any other has none',
    sql: (within) => `
      select c.id, c.status, count(i.number) as payments, sum(i.amount) as sum
      from checkouts c left join instalments i on i.checkout_id = c.id and i.merchant_id = c.merchant_id
        and ${within('i.checkout_id')}
      where ${within('c.id')}
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
    sql: (within) => `
      select i.checkout_id, i.number, i.due_on, c.completed_at
      from instalments i
      join checkouts c on c.id = i.checkout_id and c.merchant_id = i.merchant_id
      join merchants m on m.id = c.merchant_id
      join territories t on t.code = m.territory
      where ${within('c.id')} and ${within('i.checkout_id')} and (i.currency <> c.currency
        or i.due_on is distinct from ((c.completed_at at time zone t.time_zone)::date
          + (i.number - 1) * interval '1 month')::date)`,
  },
  {
    name: 'M2',
    says: 'what refund requests claim, and what failed ones moved for good, sums to at most the amount, on successful checkouts only',
    sql: (within) => `
      select c.id, sum(case r.status when 'failed' then r.kept else r.amount end) as refunded, c.amount
      from refund_requests r join checkouts c on c.id = r.checkout_id and c.merchant_id = r.merchant_id
      where ${within('r.checkout_id')} and ${within('c.id')}
      group by c.id, c.merchant_id
      having sum(case r.status when 'failed' then r.kept else r.amount end) > c.amount
        or c.status <> 'successful'`,
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
    sql: (within) => `
      select c.id, c.status, count(a.id) as authorised
      from checkouts c left join payment_attempts a
        on a.checkout_id = c.id and a.merchant_id = c.merchant_id and a.status = 'authorised'
        and ${within('a.checkout_id')}
      where ${within('c.id')}
      group by c.id, c.merchant_id
      having count(a.id) <> case when c.status = 'successful' then 1 else 0 end`,
  },
  {
    name: 'M4',
    says: 'the attempt that paid held the first payment, in the term of the checkout, while it could be paid',
    sql: (within) => `
      select c.id, c.expires_at, c.completed_at, a.amount, a.number_of_payments
      from payment_attempts a
      join checkouts c on c.id = a.checkout_id and c.merchant_id = a.merchant_id
      left join instalments i on i.checkout_id = c.id and i.merchant_id = c.merchant_id
        and i.number = 1 and ${within('i.checkout_id')}
      where a.status = 'authorised' and ${within('a.checkout_id')} and ${within('c.id')}
        and (i.status = 'authorised' and i.payment_ref is distinct from a.payment_ref
          or a.number_of_payments is distinct from c.number_of_payments
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
    name: 'M5',
    says: 'a payment is collected exactly when one request brought what was left of it, and no other request did',
    sql: (within) => `
      select i.checkout_id, i.number, i.status, i.amount - i.reduced as asked, sum(k.amount) as brought
      from instalments i left join collections k
        on k.checkout_id = i.checkout_id and k.instalment = i.number
        and k.merchant_id = i.merchant_id and k.status = 'collected' and ${within('k.checkout_id')}
      where ${within('i.checkout_id')}
      group by i.checkout_id, i.number, i.merchant_id
      having count(k.id) <> case when i.status = 'collected' then 1 else 0 end
        or i.status = 'collected' and (sum(k.amount) <> i.amount - i.reduced
          or min(k.payment_ref) is distinct from i.payment_ref)`,
  },
  {
    name: 'M5',
    says: 'nothing was asked of the gateway before it was due',
    sql: (within) => `
      select k.checkout_id, k.instalment, k.number, k.created_at, i.due_on
      from collections k
      join instalments i on i.checkout_id = k.checkout_id and i.number = k.instalment
        and i.merchant_id = k.merchant_id
      join merchants m on m.id = k.merchant_id
      join territories t on t.code = m.territory
      where ${within('k.checkout_id')} and ${within('i.checkout_id')}
        and k.created_at < (case k.kind when 'capture' then i.due_on + 1 + time '02:00'
          else i.due_on + time '08:00' end) at time zone t.time_zone`,
  },
  {
    name: 'M6',
    says: 'the parts of a complete refund sum to its amount; a failed one kept what was not put back; one that waits has none',
    sql: (within) => `
      select r.id, r.status, r.amount, r.kept
      from refund_requests r left join (
        select *, round = max(round) over (partition by merchant_id, refund_id) as is_last_round
        from refund_parts where ${within('checkout_id')}
      ) p on p.refund_id = r.id and p.merchant_id = r.merchant_id
      where ${within('r.checkout_id')}
      group by r.id, r.merchant_id
      having case r.status
        when 'requested' then count(p.id) > 0
        when 'pending' then r.amount is distinct from
          sum(p.amount) filter (where p.status in ('done', 'open')
            or p.status = 'failed' and p.is_last_round)
        when 'complete' then bool_or(p.status = 'open')
          or r.amount is distinct from sum(p.amount) filter (where p.status = 'done')
        else bool_or(p.status = 'open')
          or r.kept <> coalesce(sum(p.amount) filter (where p.status = 'done'), 0) end`,
  },
  {
    name: 'M7',
    says: 'a payment is reduced by what refunds took from it, and gives back to the card no more than was collected',
    sql: (within) => `
      select i.checkout_id, i.number, i.status, i.amount, i.reduced,
        sum(p.amount) filter (where p.kind = 'card') as given_back
      from instalments i left join refund_parts p
        on p.checkout_id = i.checkout_id and p.instalment = i.number
        and p.merchant_id = i.merchant_id and p.status in ('open', 'done')
        and ${within('p.checkout_id')}
      where ${within('i.checkout_id')}
      group by i.checkout_id, i.number, i.merchant_id
      having i.reduced <> coalesce(sum(p.amount) filter (where p.kind <> 'card'), 0)
        or coalesce(sum(p.amount) filter (where p.kind = 'card'), 0)
          > case when i.status = 'collected' then i.amount - i.reduced else 0 end`,
  },
  {
    name: 'M8',
    says: 'the books of a checkout add up, and say what its payments and refunds say',
    sql: (within) => `
      with booked as (
        select merchant_id, checkout_id,
          -${balance('sale')} as sold, ${balance('outstanding')} as outstanding,
          ${balance('collected')} as collected, ${balance('refunded')} as refunded,
          ${balance('cancelled')} as cancelled, ${balance('held')} as held,
          ${balance('reserved')} as reserved
        from postings where ${within('checkout_id')}
        group by merchant_id, checkout_id
      ), planned as (
        select merchant_id, checkout_id,
          sum(case when status in ('authorised', 'scheduled', 'overdue') then amount - reduced
            else 0 end) as outstanding,
          sum(case when status = 'collected' then amount - reduced else 0 end) as collected,
          sum(reduced) as cancelled,
          sum(case when status = 'authorised' then amount else 0 end) as held
        from instalments where ${within('checkout_id')}
        group by merchant_id, checkout_id
      ), returned as (
        select merchant_id, checkout_id, sum(amount) as amount
        from refund_parts where kind = 'card' and status = 'done' and ${within('checkout_id')}
        group by merchant_id, checkout_id
      ), claimed as (
        select r.merchant_id, r.checkout_id, sum(case when r.status = 'requested' then r.amount
          else (select sum(p.amount) from refund_parts p
            where p.refund_id = r.id and p.merchant_id = r.merchant_id
              and p.round = (select max(l.round) from refund_parts l
                where l.refund_id = r.id and l.merchant_id = r.merchant_id)) end) as amount
        from refund_requests r
        where r.status in ('requested', 'pending') and ${within('r.checkout_id')}
        group by r.merchant_id, r.checkout_id
      )
      select c.id, c.amount, b.sold, b.outstanding, b.collected, b.refunded, b.cancelled, b.held,
        b.reserved
      from checkouts c
      left join booked b on b.checkout_id = c.id and b.merchant_id = c.merchant_id
      left join planned p on p.checkout_id = c.id and p.merchant_id = c.merchant_id
      left join returned g on g.checkout_id = c.id and g.merchant_id = c.merchant_id
      left join claimed k on k.checkout_id = c.id and k.merchant_id = c.merchant_id
      where ${within('c.id')} and case when c.status = 'successful' then
          b.sold is distinct from c.amount
          or b.outstanding + b.collected + b.refunded + b.cancelled <> c.amount
          or b.outstanding is distinct from p.outstanding
          or b.collected is distinct from p.collected - coalesce(g.amount, 0)
          or b.refunded is distinct from coalesce(g.amount, 0)
          or b.cancelled is distinct from p.cancelled
          or b.held is distinct from p.held
          or b.reserved is distinct from coalesce(k.amount, 0)
        else b.sold is not null end`,
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
      where case when k.sealed_verify is null then
          convert_from(k.payload, 'UTF8')::jsonb is distinct from jsonb_build_object(
            'status', c.status, 'amount', c.amount, 'currency', c.currency,
            'client_reference_id', c.client_reference_id,
            'number_of_payments', c.number_of_payments) end
        or k.sealed_verify is distinct from c.sealed_verify
        or k.notify_url <> c.notify_url or k.integration_id <> c.integration_id`,
  },
  {
    name: 'S3',
    says: 'the bytes of a v1 callback say what the checkout says, but for what proves them',
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
        union all
        select merchant_id, checkout_id, status, due_at, leased_until from instalments
        where not paused
        union all
        select merchant_id, id, status, due_at, leased_until from refund_requests
      ) a join merchants m on m.id = a.merchant_id
      where a.due_at < $1::timestamptz + m.clock_ahead_ms * interval '1 millisecond'
          - interval '1 minute'
        and (a.leased_until is null or a.leased_until < $1::timestamptz)`,
  },
  {
    name: 'A2',
    says: 'a refund that an operator reviewed has the name of who did',
    sql: `
      select r.id, r.status
      from refund_requests r
      join checkouts c on c.id = r.checkout_id and c.merchant_id = r.merchant_id
      join integrations i on i.id = c.integration_id
      where (r.approved_at is not null and i.refund_mode = 'manual'
          or r.approved_at is null and r.status = 'failed')
        and not exists (select 1 from operator_actions o where o.subject_id = r.id
          and o.action = case when r.approved_at is null then 'refunds decline'
            else 'refunds approve' end)
        and not exists (select 1 from operator_actions o where o.subject_id = r.id
          and o.action = 'refunds retry')`,
  },
  {
    name: 'A5',
    says: 'an answer that is kept for an idempotency key names something that exists',
    sql: `
      with kept as materialized (
        select integration_id, key, (answer ->> 'id')::uuid as id
        from idempotency_keys where status = 200
      ), found as materialized (
        select c.id from checkouts c join kept on kept.id = c.id
        union all
        select r.id from refund_requests r join kept on kept.id = r.id
      )
      select integration_id, key from kept left join found using (id) where found.id is null`,
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

type Queryable = { pool: Pick<pg.ClientBase, 'query'> };

/** Everything that is not as it must be; nothing, when all is well. */
export async function findViolations(
  database: Queryable,
  now: Timestamp,
  names: string[] = invariants.map(({ name }) => name),
): Promise<Violation[]> {
  const all = (sql: Invariant['sql']) => (typeof sql === 'string' ? sql : sql(() => 'true'));
  const violations: Violation[] = [];
  for (const { name, says, sql } of invariants.filter((one) => names.includes(one.name))) {
    const text = all(sql);
    const values = text.includes('$1') ? [now] : [];
    violations.push(...(await ask(database, { name, says }, text, values)));
  }
  return violations;
}

/** What is not as it must be about the money of the checkouts from one id to another. */
export async function findDifferences(
  { pool }: { pool: pg.Pool },
  first: string,
  last: string,
): Promise<Violation[]> {
  const client = await pool.connect();
  let failure: Error | undefined;
  try {
    await client.query('begin read only');
    // PostgreSQL cannot tell how many ids are between two, and where it expects one it compares
    // each of thousands with each of thousands.
    await client.query('set local enable_nestloop = off');
    const violations: Violation[] = [];
    for (const { name, says, sql } of invariants) {
      if (typeof sql === 'string') continue;
      const text = sql((column) => `${column} between $1 and $2`);
      violations.push(...(await ask({ pool: client }, { name, says }, text, [first, last])));
    }
    await client.query('commit');
    return violations;
  } catch (error) {
    failure = error as Error;
    throw error;
  } finally {
    client.release(failure);
  }
}

async function ask(
  { pool }: Queryable,
  invariant: { name: string; says: string },
  text: string,
  values: unknown[],
): Promise<Violation[]> {
  // Apart from its limit: a planner that expects to find some soon takes a way that is quick to
  // the first and very long to none.
  const { rows } = await pool.query(
    `with found as materialized (${text}) select * from found limit 20`,
    values,
  );
  return rows.map((row) => ({ ...invariant, row }));
}
