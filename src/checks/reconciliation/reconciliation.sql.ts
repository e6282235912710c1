import { CompiledQuery } from 'kysely';
import type pg from 'pg';
import type { GatewayRecord, RecordKind } from '#gateway/gateway.ts';
import type { GatewayName } from '#gateway/gateway-name.ts';
import type { Handle } from '#platform/database/database.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import { isUuid } from '#platform/shared/uuid.ts';

// Our rows about records of the gateway. One statement reads those of a whole batch by index,
// however large the tables are.

export type OwnRow = {
  reference: string | null;
  own_id: string;
  merchant_id: string;
  checkout_id: string;
  amount: number;
  /**
   * The state that the gateway should report: `taken`, `held` or `nothing`. `in_flight` if it is
   * not known yet.
   */
  state: 'taken' | 'held' | 'nothing' | 'in_flight';
  /** When a hold should have been captured; null if it is not a hold or is paused. */
  captures_at: Timestamp | null;
  /**
   * For a first payment whose outcome is not known yet: `unsent` if no request for it was recorded,
   * otherwise `open`. Null for everything else.
   */
  attempt: 'unsent' | 'open' | null;
};

export type Client = Pick<pg.ClientBase, 'query'>;

/** Runs queries in the transaction of a handle. */
export const clientOf = (db: Handle) =>
  ({
    query: async ({ text, values }: { text: string; values: unknown[] }) =>
      await db.executeQuery(CompiledQuery.raw(text, values)),
  }) as unknown as Client;

/** Whether the checkout of a row holds its payments at the gateway `$1`. */
const isThere = (row: string) =>
  `exists (select from checkouts c where c.id = ${row}.checkout_id
     and c.merchant_id = ${row}.merchant_id and c.gateway = $1)`;

/**
 * Attempts, collections and shoppers' own payments, by reference or by our id. Collections have no
 * index by id, so all of a checkout's are read; there are few.
 */
const payments = `
  select a.payment_ref as reference, a.id as own_id, a.merchant_id, a.checkout_id, a.amount,
    case when a.status in ('starting', 'begun', 'challenged', 'voiding') then 'in_flight'
      when a.status = 'authorised' and i.status = 'authorised' then 'held'
      else 'nothing' end as state,
    case when a.status = 'authorised' and i.status = 'authorised' and not i.paused
      then i.due_at end as captures_at,
    case when a.status not in ('starting', 'begun', 'challenged') then null
      when a.customer_ref is null then 'unsent' else 'open' end as attempt
  from payment_attempts a
  left join instalments i on i.merchant_id = a.merchant_id and i.checkout_id = a.checkout_id
    and i.number = 1
  where a.gateway = $1 and a.purpose = 'first_payment'
    and (a.payment_ref = any ($2) or a.id = any ($3))
  union all
  select k.payment_ref, k.id, k.merchant_id, k.checkout_id, k.amount,
    case k.status when 'collected' then 'taken' when 'open' then 'in_flight' else 'nothing' end,
    null, null
  from collections k where ${isThere('k')} and (k.payment_ref = any ($2) or k.checkout_id = any ($4))
  union all
  select s.payment_ref, s.id, s.merchant_id, s.checkout_id, 0,
    case when s.status in ('starting', 'begun', 'challenged', 'voiding') then 'in_flight' else 'nothing' end,
    null, null
  from payment_attempts s
  where s.gateway = $1 and s.purpose <> 'first_payment' and s.id = any ($3)`;

const refunds = `
  select refund_ref as reference, id as own_id, merchant_id, checkout_id, amount,
    case status when 'done' then 'taken' when 'open' then 'in_flight' else 'nothing' end as state,
    null::timestamptz as captures_at, null as attempt
  from refund_parts p where ${isThere('p')} and (refund_ref = any ($2) or id = any ($3))`;

const disputes = `
  select dispute_ref as reference, id as own_id, merchant_id, checkout_id, withdrawn as amount,
    -- A dispute that is read again may have moved at the gateway since.
    case when due_at is not null then 'in_flight'
      when withdrawn > 0 then 'taken' else 'nothing' end as state,
    null::timestamptz as captures_at, null as attempt
  from disputes where gateway = $1 and dispute_ref = any ($2)`;

const statements = { payments, refunds, disputes };
export type ComparedKind = keyof typeof statements;
export const isCompared = (kind: RecordKind): kind is ComparedKind => kind in statements;

export async function listOwnRows(
  client: Client,
  gateway: GatewayName,
  kind: ComparedKind,
  records: Pick<GatewayRecord, 'reference' | 'own_id' | 'checkout_id'>[],
): Promise<OwnRow[]> {
  const uuids = (ids: (string | null)[]) => [
    ...new Set(ids.flatMap((id) => (id && isUuid(id) ? [id] : []))),
  ];
  const values: unknown[] = [gateway, records.map(({ reference }) => reference)];
  if (kind !== 'disputes') values.push(uuids(records.map(({ own_id }) => own_id)));
  if (kind === 'payments') values.push(uuids(records.map(({ checkout_id }) => checkout_id)));
  const { rows } = await client.query<OwnRow>({
    name: `own ${kind}`,
    text: statements[kind],
    values,
  });
  return rows;
}

/** The amount that each of these payments collected. */
export async function sumCollected(
  client: Client,
  gateway: GatewayName,
  references: string[],
): Promise<Map<string, number>> {
  const { rows } = await client.query<{ payment_ref: string; amount: number }>({
    name: 'sums of collected payments',
    text: `select payment_ref, amount from collections k
      where ${isThere('k')} and payment_ref = any ($2) and status = 'collected'`,
    values: [gateway, references],
  });
  const sums = new Map<string, number>();
  for (const { payment_ref, amount } of rows) {
    sums.set(payment_ref, (sums.get(payment_ref) ?? 0) + amount);
  }
  return sums;
}

export type KnownFee = { payment_ref: string | null; type: string; fee: number; currency: string };

/** The gateway's fees of payments, or of its account, that are posted already, by transaction. */
export async function listKnownFees(
  client: Client,
  gateway: GatewayName,
  references: string[],
  isOfAccount = false,
): Promise<Map<string, KnownFee>> {
  const [table, payment_ref] = isOfAccount
    ? ['gateway_account_fees', 'null as payment_ref']
    : ['gateway_fees', 'payment_ref'];
  const { rows } = await client.query<KnownFee & { transaction_ref: string }>({
    name: `known ${table}`,
    text: `select transaction_ref, ${payment_ref}, type, fee, currency from ${table}
      where gateway = $1 and transaction_ref = any ($2)`,
    values: [gateway, references],
  });
  return new Map(rows.map(({ transaction_ref, ...fee }) => [transaction_ref, fee]));
}

export const ownIdsOf = ({ reference, own_id }: OwnRow) =>
  reference === null ? [own_id] : [own_id, reference];

export async function listPaidCheckouts(
  client: Client,
  gateway: GatewayName,
  payment_refs: string[],
): Promise<Map<string, { merchant_id: string; checkout_id: string; currency: string }>> {
  if (payment_refs.length === 0) return new Map();
  const { rows } = await client.query<{
    payment_ref: string;
    merchant_id: string;
    checkout_id: string;
    currency: string;
  }>(
    `select distinct payment_ref, merchant_id, checkout_id, currency
     from collections k
     where ${isThere('k')} and payment_ref = any ($2) and status = 'collected'`,
    [gateway, payment_refs],
  );
  return new Map(rows.map(({ payment_ref, ...checkout }) => [payment_ref, checkout]));
}

// A run of the reconciliation, which another process can continue.

export type Run = {
  id: string;
  gateway: GatewayName;
  from_at: Timestamp | null;
  to_at: Timestamp | null;
  records_lost: boolean;
  kind: RecordKind | null;
  after: string | null;
  checked: number;
  began_at: Timestamp;
};

/**
 * Continues an interrupted run of the same range, or begins a new one. The lock ends
 * with the connection, so a killed process leaves no claim behind.
 */
export async function claimRun(
  client: Client,
  wanted: Pick<Run, 'id' | 'gateway' | 'from_at' | 'to_at' | 'records_lost' | 'kind'>,
  { now, since }: { now: Timestamp; since: Timestamp },
): Promise<Run> {
  const { id, gateway, from_at, to_at, records_lost, kind } = wanted;
  const columns = 'id, gateway, from_at, to_at, records_lost, kind, after, checked, began_at';
  const { rows: interrupted } = await client.query<Run>(
    `select ${columns} from reconciliation_runs
     where ended_at is null and began_at >= $4 and records_lost = $3
       and from_at is not distinct from $1 and to_at is not distinct from $2 and gateway = $5
     order by began_at desc`,
    [from_at, to_at, records_lost, since, gateway],
  );
  for (const run of interrupted) if (await lockRun(client, run.id)) return run;
  await lockRun(client, id);
  const { rows } = await client.query<Run>(
    `insert into reconciliation_runs (id, gateway, from_at, to_at, records_lost, kind, began_at)
     values ($1, $2, $3, $4, $5, $6, $7) returning ${columns}`,
    [id, gateway, from_at, to_at, records_lost, kind, now],
  );
  return rows[0] as Run;
}

/**
 * Only one process at a time records what was lost. The lock ends with the connection, so a killed
 * process does not keep it. Returns false if another process has it.
 */
export async function lockRecording(client: Client): Promise<boolean> {
  return await lockRun(client, 'recording');
}

async function lockRun(client: Client, id: string): Promise<boolean> {
  const { rows } = await client.query<{ locked: boolean }>(
    'select pg_try_advisory_lock(hashtextextended($1, 97)) as locked',
    [id],
  );
  return rows[0]?.locked === true;
}

export type RunDifference = {
  record_kind: string;
  reference: string;
  kind: string;
  merchant_id: string | null;
  checkout_id: string | null;
  record: GatewayRecord | null;
  alert_id: string | null;
  outcome: 'recorded' | 'blocked' | 'reported' | null;
};

export type NewDifference = Omit<RunDifference, 'alert_id' | 'outcome'>;

/** Writes the results of a batch of pages, and the position in the records, in one statement. */
export async function recordPages(
  client: Client,
  run: Pick<Run, 'id' | 'kind' | 'after' | 'checked'>,
  page: { references: string[]; differences: NewDifference[] },
): Promise<void> {
  await client.query(
    `with seen as (
       insert into reconciliation_seen (run_id, reference)
       select $1, unnest($5::text[]) on conflict do nothing
     ), found as (
       insert into reconciliation_differences
         (run_id, record_kind, reference, kind, of_merchant, checkout_id, record, created_at)
       select $1, f.record_kind, f.reference, f.kind, f.merchant_id, f.checkout_id, f.record,
         (f.record ->> 'created_at')::timestamptz
       from jsonb_to_recordset($6::jsonb) as f(record_kind text, reference text, kind text,
         merchant_id uuid, checkout_id text, record jsonb)
       on conflict do nothing
     )
     update reconciliation_runs set kind = $2, after = $3, checked = $4 where id = $1`,
    [run.id, run.kind, run.after, run.checked, page.references, JSON.stringify(page.differences)],
  );
}

/**
 * Differences that are not recorded, reported or blocked yet: the oldest record first, but disputes
 * last.
 */
export async function listOpenDifferences(
  client: Client,
  run_id: string,
  limit: number,
): Promise<RunDifference[]> {
  const { rows } = await client.query<RunDifference>(
    `select record_kind, reference, kind, of_merchant as merchant_id, checkout_id, record, alert_id, outcome
     from reconciliation_differences where run_id = $1 and outcome is null
     order by record_kind = 'dispute', created_at, record_kind, reference limit $2`,
    [run_id, limit],
  );
  return rows;
}

export async function listDifferences(client: Client, run_id: string): Promise<RunDifference[]> {
  const { rows } = await client.query<RunDifference>(
    `select record_kind, reference, kind, of_merchant as merchant_id, checkout_id, null as record, alert_id, outcome
     from reconciliation_differences where run_id = $1 and outcome <> 'recorded'
     order by created_at desc nulls last, record_kind, reference`,
    [run_id],
  );
  return rows;
}

export async function countRecorded(client: Client, run_id: string): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    `select count(*)::int as count from reconciliation_differences
     where run_id = $1 and outcome = 'recorded'`,
    [run_id],
  );
  return rows[0]?.count ?? 0;
}

export async function moveDifference(
  client: Client,
  run_id: string,
  difference: Pick<RunDifference, 'record_kind' | 'reference' | 'outcome' | 'alert_id'>,
): Promise<void> {
  await client.query(
    `update reconciliation_differences set outcome = $4, alert_id = $5, record = null
     where run_id = $1 and record_kind = $2 and reference = $3`,
    [run_id, difference.record_kind, difference.reference, difference.outcome, difference.alert_id],
  );
}

/** A run may have noted millions of records. Each statement deletes at most this many. */
const notesBatchSize = 10_000;

/**
 * Ends a run and deletes its differences, which are recorded or alerts by now. Deletes the
 * references that were seen by ended runs, and by runs that began more than a week ago.
 */
export async function endRun(client: Client, run_id: string, at: Timestamp): Promise<void> {
  await client.query('update reconciliation_runs set ended_at = $2 where id = $1', [run_id, at]);
  await client.query('delete from reconciliation_differences where run_id = $1', [run_id]);
  const weekAgo = timestamp(Temporal.Instant.from(at).subtract({ hours: 24 * 7 }));
  for (let deleted = notesBatchSize; deleted === notesBatchSize; ) {
    const { rowCount } = await client.query(
      `delete from reconciliation_seen where (run_id, reference) in (
         select s.run_id, s.reference from reconciliation_runs r
         join reconciliation_seen s on s.run_id = r.id
         where r.ended_at is not null or r.began_at < $1 limit $2)`,
      [weekAgo, notesBatchSize],
    );
    deleted = rowCount ?? 0;
  }
}

/** The open differences about refunds at the gateway that belong to one request. */
export async function listRequestDifferences(
  client: Client,
  run_id: string,
  request_id: string,
): Promise<RunDifference[]> {
  const { rows } = await client.query<RunDifference>(
    `select record_kind, reference, kind, of_merchant as merchant_id, checkout_id, record, alert_id, outcome
     from reconciliation_differences
     where run_id = $1 and outcome is null and record_kind = 'refund'
       and record -> 'request' ->> 'id' = $2`,
    [run_id, request_id],
  );
  return rows;
}

/**
 * Claims the daily run of a gateway. The very first call only schedules the run for tomorrow,
 * because a service that has just started has other work.
 */
export async function claimDailyRun(
  client: Client,
  gateway: GatewayName,
  { now, tomorrow, leased_until }: Record<'now' | 'tomorrow' | 'leased_until', Timestamp>,
): Promise<'claimed' | 'claimed by another' | 'not due'> {
  await client.query(
    'insert into reconciliation (gateway, due_at) values ($1, $2) on conflict do nothing',
    [gateway, tomorrow],
  );
  const { rowCount } = await client.query(
    `update reconciliation set leased_until = $2
     where gateway = $3 and due_at <= $1 and (leased_until is null or leased_until <= $1)`,
    [now, leased_until, gateway],
  );
  if (rowCount === 1) return 'claimed';
  const due_at = await findDailyRun(client, gateway);
  const isDue = due_at !== null && due_at <= now;
  return isDue ? 'claimed by another' : 'not due';
}

/** When the daily run of a gateway is or was due. Null if no process has used the gateway yet. */
export async function findDailyRun(
  client: Client,
  gateway: GatewayName,
): Promise<Timestamp | null> {
  const { rows } = await client.query<{ due_at: Timestamp }>(
    'select due_at from reconciliation where gateway = $1',
    [gateway],
  );
  return rows[0]?.due_at ?? null;
}

/** Returns false if the lease has ended and another process has claimed the run. */
export async function renewDailyRun(
  client: Client,
  gateway: GatewayName,
  lease: Timestamp,
  leased_until: Timestamp,
): Promise<boolean> {
  const { rowCount } = await client.query(
    'update reconciliation set leased_until = $3 where gateway = $1 and leased_until = $2',
    [gateway, lease, leased_until],
  );
  return rowCount === 1;
}

export async function moveDailyRun(
  client: Client,
  gateway: GatewayName,
  due_at: Timestamp,
): Promise<void> {
  await client.query(
    'update reconciliation set due_at = $2, leased_until = null where gateway = $1',
    [gateway, due_at],
  );
}
