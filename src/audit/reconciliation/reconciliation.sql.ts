import type pg from 'pg';
import type { Timestamp } from '../../shared/clock.ts';

// What our rows say about references of the gateway. One page of records is one statement for each
// table, whatever the size of the tables.

/** What we know about one record of the gateway. */
export type OwnRow = {
  reference: string | null;
  own_id: string;
  merchant_id: string;
  checkout_id: string;
  amount: number;
  /** `taken`, `held` or `nothing` as the gateway should say; `in_flight`: not known yet. */
  state: 'taken' | 'held' | 'nothing' | 'in_flight';
  /** When a hold should have been captured; null if it is no hold or is paused. */
  captures_at: Timestamp | null;
};

type Client = Pick<pg.ClientBase, 'query'>;

/** Attempts, collections and shoppers' own payments, by reference or by our id. */
const payments = `
  select a.payment_ref as reference, a.id as own_id, a.merchant_id, a.checkout_id, a.amount,
    case when a.status in ('starting', 'challenged', 'voiding') then 'in_flight'
      when a.status = 'authorised' and i.status = 'authorised' then 'held'
      else 'nothing' end as state,
    case when a.status = 'authorised' and i.status = 'authorised' and not i.paused
      then i.due_at end as captures_at
  from payment_attempts a
  left join instalments i on i.merchant_id = a.merchant_id and i.checkout_id = a.checkout_id
    and i.number = 1
  where a.payment_ref = any ($1) or a.id = any ($2)
  union all
  select k.payment_ref, k.id, k.merchant_id, k.checkout_id, k.amount,
    case k.status when 'collected' then 'taken' when 'open' then 'in_flight' else 'nothing' end,
    null
  from collections k where k.payment_ref = any ($1) or k.id = any ($2)
  union all
  select s.payment_ref, s.id, s.merchant_id, s.checkout_id, 0,
    case when s.status in ('starting', 'challenged', 'voiding') then 'in_flight' else 'nothing' end,
    null
  from shopper_attempts s where s.payment_ref = any ($1) or s.id = any ($2)`;

const refunds = `
  select refund_ref as reference, id as own_id, merchant_id, checkout_id, amount,
    case status when 'done' then 'taken' when 'open' then 'in_flight' else 'nothing' end as state,
    null::timestamptz as captures_at
  from refund_parts where refund_ref = any ($1) or id = any ($2)`;

const disputes = `
  select dispute_ref as reference, id as own_id, merchant_id, checkout_id, withdrawn as amount,
    case when withdrawn > 0 then 'taken' else 'nothing' end as state,
    null::timestamptz as captures_at
  from disputes where dispute_ref = any ($1) or id = any ($2)`;

const statements = { payments, refunds, disputes };
export type RecordKind = keyof typeof statements;

export async function listOwnRows(
  client: Client,
  kind: RecordKind,
  references: string[],
  own_ids: string[],
): Promise<OwnRow[]> {
  const { rows } = await client.query<OwnRow>(statements[kind], [references, own_ids]);
  return rows;
}

/** Remembers the references of a run outside of the process, whose memory stays flat. */
export async function createSeen(client: Client): Promise<void> {
  await client.query('create temp table seen_references (reference text primary key)');
}

export async function insertSeen(client: Client, references: string[]): Promise<void> {
  await client.query(
    `insert into seen_references select unnest($1::text[]) on conflict do nothing`,
    [references],
  );
}

/** Payments, refunds and disputes of ours in a range of time that the gateway did not list. */
export async function listUnseen(
  client: Client,
  from: Timestamp | null,
  to: Timestamp | null,
): Promise<{ reference: string; merchant_id: string; checkout_id: string }[]> {
  const { rows } = await client.query(
    `select distinct o.reference, o.merchant_id, o.checkout_id
     from (
       select payment_ref as reference, merchant_id, checkout_id, settled_at as at
       from collections where status = 'collected'
       union all
       select refund_ref, merchant_id, checkout_id, settled_at
       from refund_parts where status = 'done' and refund_ref is not null
       union all
       select dispute_ref, merchant_id, checkout_id, created_at from disputes
     ) o
     where not exists (select from seen_references s where s.reference = o.reference)
       and ($1::timestamptz is null or o.at >= $1) and ($2::timestamptz is null or o.at < $2)
     order by o.reference limit 1000`,
    [from, to],
  );
  return rows;
}

/**
 * Claims the daily run. The first call of all only sets its time: a service that has just started
 * has other work. Null: it is not due, or another process has claimed it.
 */
export async function claimDailyRun(
  client: Client,
  { now, tomorrow, leased_until }: Record<'now' | 'tomorrow' | 'leased_until', Timestamp>,
): Promise<boolean> {
  await client.query('update reconciliation set due_at = $1 where due_at is null', [tomorrow]);
  const { rowCount } = await client.query(
    `update reconciliation set leased_until = $2
     where due_at <= $1 and (leased_until is null or leased_until <= $1)`,
    [now, leased_until],
  );
  return rowCount === 1;
}

export async function moveDailyRun(client: Client, due_at: Timestamp): Promise<void> {
  await client.query('update reconciliation set due_at = $1, leased_until = null', [due_at]);
}
