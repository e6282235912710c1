import { sql } from 'kysely';
import type pg from 'pg';
import type { Handle } from '#platform/database/database.ts';
import { rowGroup } from '#platform/database/row-group.ts';
import type { Timestamp } from '#platform/shared/clock.ts';
import type { Callback, CallbackAttempt } from '#purchases/callbacks/callback.ts';

type CallbackKey = { merchant_id: string; id: string };

/** When an attempt began and how it ended, or null if it does not exist. */
export async function findAttempt(
  db: Handle,
  callback: CallbackKey,
  number: number,
): Promise<Pick<CallbackAttempt, 'started_at' | 'outcome'> | null> {
  const row = await db
    .selectFrom('callback_attempts')
    .select(['started_at', 'outcome'])
    .where('merchant_id', '=', callback.merchant_id)
    .where('callback_id', '=', callback.id)
    .where('number', '=', number)
    .executeTakeFirst();
  return row ?? null;
}

type AttemptKey = Pick<CallbackAttempt, 'merchant_id' | 'callback_id' | 'number' | 'id'>;

const opened = rowGroup({
  merchant_id: 'uuid',
  callback_id: 'uuid',
  number: 'int',
  id: 'uuid',
  lease: 'uuid',
  trigger: 'text',
  operator: 'text',
  started_at: 'timestamptz',
  request_headers: 'json',
});

/**
 * Writes attempts. Leaves out an attempt whose callback is no longer under the given lease, or
 * whose number already exists. Returns how many were written.
 */
export function insertCallbackAttempts(
  client: pg.ClientBase,
  attempts: (AttemptKey &
    Pick<CallbackAttempt, 'trigger' | 'operator' | 'started_at' | 'request_headers'> & {
      lease: string | null;
    })[],
): Promise<number> {
  const written = client.query({
    name: 'callback-attempts-insert',
    text: `
      insert into callback_attempts (merchant_id, callback_id, number, id, run, trigger, operator,
        started_at, request_headers, outcome)
      select i.merchant_id, i.callback_id, i.number, i.id, c.run, i.trigger, i.operator,
        i.started_at, i.request_headers, 'unknown'
      from ${opened.from}
      join callbacks c on c.merchant_id = i.merchant_id and c.id = i.callback_id
      where c.lease = i.lease
      on conflict (merchant_id, callback_id, number) do nothing`,
    values: opened.values(attempts),
  });
  return written.then(({ rowCount }) => rowCount ?? 0);
}

export async function listWrittenAttempts(
  db: Handle,
  attempts: Pick<AttemptKey, 'merchant_id' | 'callback_id' | 'id'>[],
): Promise<string[]> {
  const column = (name: keyof (typeof attempts)[number]) => attempts.map((one) => one[name]);
  const rows = await db
    .selectFrom('callback_attempts')
    .select('id')
    .where('merchant_id', 'in', column('merchant_id'))
    .where('callback_id', 'in', column('callback_id'))
    .where('id', 'in', column('id'))
    .execute();
  return rows.map(({ id }) => id);
}

const ended = rowGroup({
  merchant_id: 'uuid',
  callback_id: 'uuid',
  number: 'int',
  id: 'uuid',
  finished_at: 'timestamptz',
  lease_end: 'timestamptz',
  outcome: 'text',
  reason: 'text',
  address: 'text',
  tls_version: 'text',
  response_status: 'int',
  response_headers: 'json',
  response_body: 'bytea',
  response_header_bytes: 'int',
  response_body_bytes: 'bigint',
  timings: 'json',
  lease: 'uuid',
  host: 'text',
  status: 'text',
  due_at: 'timestamptz',
  delivered_at: 'timestamptz',
  redirect_url: 'text',
});

type Release = Pick<Callback, 'lease' | 'host' | 'due_at' | 'delivered_at' | 'redirect_url'> & {
  /** Null if the callback is not released here. */
  status: Callback['status'] | null;
  /** `leaseSeconds` after the attempt was opened, on the merchant's clock. */
  lease_end: Timestamp;
};

/**
 * Records how attempts ended, each only once. A process may stall after it received an answer. If
 * it has lost the lease when it records the answer, the attempt ends no sooner than `lease_end`.
 * Releases the callbacks, except those whose lease has passed to another process. If that process
 * has already counted the attempt and released the callback for a retry, the late result still
 * decides the callback's status and when it is due. Clears the failure counts of destinations that
 * work again. Returns how many of the attempts were still open.
 */
export async function moveAttemptsEnded(
  client: pg.ClientBase,
  attempts: (Omit<
    CallbackAttempt,
    'run' | 'trigger' | 'operator' | 'started_at' | 'request_headers'
  > &
    Release)[],
): Promise<number> {
  const { rows } = await client.query<{ count: number }>({
    name: 'callback-attempts-end',
    text: `
      with i as materialized (select i.* from ${ended.from}),
      closed as (
        update callback_attempts as a
        set finished_at = case when c.lease = i.lease then i.finished_at
            else greatest(i.finished_at, i.lease_end) end,
          outcome = i.outcome, reason = i.reason,
          address = i.address, tls_version = i.tls_version, response_status = i.response_status,
          response_headers = i.response_headers, response_body = i.response_body,
          response_header_bytes = i.response_header_bytes,
          response_body_bytes = i.response_body_bytes, timings = i.timings
        from i, callbacks as c
        where a.merchant_id = i.merchant_id and a.callback_id = i.callback_id
          and c.merchant_id = a.merchant_id and c.id = a.callback_id
          and a.number = i.number and a.id = i.id and a.finished_at is null
        returning a.id
      ), released as (
        update callbacks as c
        set status = i.status,
          attempts = c.attempts + case when c.lease is null then 0 else 1 end,
          run_attempts = c.run_attempts + case when c.lease is null then 0 else 1 end,
          due_at = i.due_at, lease = null, leased_until = null,
          delivered_at = coalesce(i.delivered_at, c.delivered_at),
          redirect_url = coalesce(i.redirect_url, c.redirect_url)
        from i
        where c.merchant_id = i.merchant_id and c.id = i.callback_id and i.status is not null
          and (c.lease = i.lease
            or c.lease is null and c.status = 'pending' and c.attempts = i.number
              and c.run_attempts > 0 and i.id in (select id from closed))
      ), cleared as (
        update destinations as d
        set failures = 0, alerted = false
        from i join closed on closed.id = i.id
        where d.merchant_id = i.merchant_id and d.host = i.host and d.failures > 0
          and i.outcome = 'delivered'
      )
      select count(*) as count from closed`,
    values: ended.values(attempts),
  });
  return rows[0]?.count ?? 0;
}

/** A callback and the number of its last expired attempt. */
export type ExpiredAttempts = { merchant_id: string; callback_id: string; last: number };

/**
 * Callbacks with attempts that began before the cutoff on their merchant's clock, those with the
 * oldest attempts first. Pending callbacks are left out.
 */
export async function listExpiredAttempts(
  db: Handle,
  cutoff: Timestamp,
  batchSize: number,
): Promise<ExpiredAttempts[]> {
  // The clock that is furthest ahead bounds the index scan; the merchant's own clock decides. A
  // subquery reads the callback of each attempt. From a join the planner would expect too few rows,
  // and would read both tables completely to fill a batch.
  const { rows } = await sql<ExpiredAttempts>`
    select merchant_id, callback_id, max(number) as last
    from (
      select a.merchant_id, a.callback_id, a.number
      from callback_attempts a
      join merchants m on m.id = a.merchant_id
      where a.started_at <= ${cutoff}::timestamptz
          + (select max(clock_ahead_ms) from merchants) * interval '1 millisecond'
        and a.started_at <= ${cutoff}::timestamptz + m.clock_ahead_ms * interval '1 millisecond'
        and (select c.due_at is null and c.lease is null from callbacks c
          where c.merchant_id = a.merchant_id and c.id = a.callback_id)
      order by a.started_at
      limit ${sql.lit(batchSize)}
    ) expired
    group by merchant_id, callback_id`.execute(db);
  return rows;
}

/**
 * Deletes attempts of one merchant up to the given numbers, and records on each callback how many
 * of its attempts have expired. Leaves out callbacks that another process has locked or claimed.
 * Returns how many were deleted.
 */
export async function deleteExpiredAttempts(
  client: pg.ClientBase,
  merchant_id: string,
  expired: ExpiredAttempts[],
): Promise<number> {
  const { rows: locked } = await client.query<{ id: string }>(
    `select id from callbacks
     where merchant_id = $1 and id = any($2) and due_at is null and lease is null
     order by id
     for update skip locked`,
    [merchant_id, expired.map(({ callback_id }) => callback_id)],
  );
  const ids = new Set(locked.map(({ id }) => id));
  const ours = expired.filter(({ callback_id }) => ids.has(callback_id));
  const values = [
    merchant_id,
    ours.map(({ callback_id }) => callback_id),
    ours.map(({ last }) => last),
  ];
  const { rowCount } = await client.query(
    `delete from callback_attempts a
     using unnest($2::uuid[], $3::int[]) as i (callback_id, last)
     where a.merchant_id = $1 and a.callback_id = i.callback_id and a.number <= i.last`,
    values,
  );
  // Attempts are numbered consecutively, and the oldest expire first.
  await client.query(
    `update callbacks c
     set attempts_expired = i.last
     from unnest($2::uuid[], $3::int[]) as i (callback_id, last)
     where c.merchant_id = $1 and c.id = i.callback_id and c.attempts_expired < i.last`,
    values,
  );
  return rowCount ?? 0;
}
