import { sql } from 'kysely';
import type pg from 'pg';
import type { Handle } from '../database/database.ts';
import { type DueWork, dueRows, isFree, type Lease } from '../database/due-work.sql.ts';
import { rowGroup } from '../database/row-group.ts';
import type { Timestamp } from '../shared/clock.ts';
import type { Callback, CallbackAttempt, CallbackStatus } from './callback.ts';

type Key = { merchant_id: string; id: string };

export async function insertCallback(db: Handle, callback: Omit<Callback, 'host'>): Promise<void> {
  await db.insertInto('callbacks').values(callback).execute();
}

export async function findCallback(db: Handle, key: Key): Promise<Callback | null> {
  const row = await db
    .selectFrom('callbacks')
    .selectAll()
    .where('id', '=', key.id)
    .where('merchant_id', '=', key.merchant_id)
    .executeTakeFirst();
  return row ?? null;
}

export async function findCheckoutCallback(
  db: Handle,
  merchant_id: string,
  checkout_id: string,
): Promise<Callback | null> {
  const row = await db
    .selectFrom('callbacks')
    .selectAll()
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .executeTakeFirst();
  return row ?? null;
}

/** Whose a callback is, for an operator: whoever it may be. */
export async function findCallbackMerchant(db: Handle, id: string): Promise<string | null> {
  const row = await db
    .selectFrom('callbacks')
    .select('merchant_id')
    .where('id', '=', id)
    .executeTakeFirst();
  return row?.merchant_id ?? null;
}

/** The newest first, some at a time; `before` is the last one of the page before. */
export async function listCallbacks(
  db: Handle,
  filter: { status?: CallbackStatus; merchant_id?: string; before?: Timestamp },
  most: number,
): Promise<Omit<Callback, 'payload' | 'sealed_verify'>[]> {
  let query = db
    .selectFrom('callbacks')
    .select([
      'merchant_id',
      'id',
      'checkout_id',
      'integration_id',
      'notify_url',
      'status',
      'created_at',
      'due_at',
      'attempts',
      'run',
      'run_attempts',
      'host',
      'redirect_url',
      'delivered_at',
      'lease',
      'leased_until',
    ])
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(most);
  if (filter.status) query = query.where('status', '=', filter.status);
  if (filter.merchant_id) query = query.where('merchant_id', '=', filter.merchant_id);
  if (filter.before) query = query.where('created_at', '<', filter.before);
  return await query.execute();
}

export async function listCallbackAttempts(db: Handle, key: Key): Promise<CallbackAttempt[]> {
  return await db
    .selectFrom('callback_attempts')
    .selectAll()
    .where('merchant_id', '=', key.merchant_id)
    .where('callback_id', '=', key.id)
    .orderBy('number')
    .execute();
}

/** Callbacks to deliver, to anybody or to one host. */
export const dueCallbacks = (host?: string): DueWork<'callbacks'> => ({
  table: 'callbacks',
  due: 'due_at',
  ...(host !== undefined && { where: sql`host = ${host}` }),
});

/** A host that a merchant has callbacks due for, and how many. */
export type DueDestination = { merchant_id: string; host: string; count: number };

/**
 * Destinations with something due: first one of every merchant, the longest overdue first, then a
 * second one of every merchant that has two; not many of one merchant.
 */
export async function listDueDestinations(
  db: Handle,
  now: Timestamp,
  most: { ofOne: number; inAll: number },
): Promise<DueDestination[]> {
  const { rows } = await sql<DueDestination>`
    select merchant_id, host, count
    from (
      select merchant_id, host, count(*) as count, min(due_at) as due_at,
        row_number() over (partition by merchant_id order by min(due_at)) as place
      from ${dueRows(dueCallbacks(), now)} due
      group by merchant_id, host
    ) destinations
    where place <= ${most.ofOne}
    order by place, due_at
    limit ${most.inAll}`.execute(db);
  return rows;
}

/** Takes a callback in hand that nobody has tried to deliver yet. */
export async function claimFirst(
  db: Handle,
  merchant_id: string,
  checkout_id: string,
  claim: Lease,
): Promise<Callback | null> {
  const row = await db
    .updateTable('callbacks')
    .set({ lease: claim.lease, leased_until: claim.leased_until })
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('attempts', '=', 0)
    .where(isFree(claim.now))
    .returningAll()
    .executeTakeFirst();
  return row ?? null;
}

/** Makes a callback due that nobody has tried to deliver or is about to. */
export async function moveFirstDue(
  db: Handle,
  merchant_id: string,
  checkout_id: string,
  due_at: Timestamp,
): Promise<void> {
  await db
    .updateTable('callbacks')
    .set({ due_at })
    .where('merchant_id', '=', merchant_id)
    .where('checkout_id', '=', checkout_id)
    .where('attempts', '=', 0)
    .where('lease', 'is', null)
    .where('due_at', '>', due_at)
    .execute();
}

/** Begins a new run, unless somebody is delivering right now. */
export async function moveRetriggered(
  db: Handle,
  { merchant_id, id }: Key,
  { now, due_at, lease, leased_until }: Lease & { due_at: Timestamp },
): Promise<Callback | null> {
  // Whoever delivered last may have died before the attempt was counted.
  const { rows } = await sql<Callback>`
    update callbacks
    set status = 'pending', run = run + 1, run_attempts = 0, due_at = ${due_at}, lease = ${lease},
      leased_until = ${leased_until},
      attempts = (
        select count(*) from callback_attempts a
        where a.merchant_id = ${merchant_id} and a.callback_id = ${id})
    where id = ${id} and merchant_id = ${merchant_id} and ${isFree(now)}
    returning *`.execute(db);
  return rows[0] ?? null;
}

/** What names an attempt, of all attempts. */
type AttemptKey = Pick<CallbackAttempt, 'merchant_id' | 'callback_id' | 'number' | 'id'>;

const begun = rowGroup({
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
 * Writes attempts, each if its callback still is in hand and nobody has begun that very attempt.
 * Returns how many were written.
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
      from ${begun.from}
      join callbacks c on c.merchant_id = i.merchant_id and c.id = i.callback_id
      where c.lease = i.lease
      on conflict (merchant_id, callback_id, number) do nothing`,
    values: begun.values(attempts),
  });
  return written.then(({ rowCount }) => rowCount ?? 0);
}

/** Which of these attempts were written, for whoever does not know. */
export async function listWritten(
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
  outcome: 'text',
  reason: 'text',
  address: 'text',
  tls_version: 'text',
  response_status: 'int',
  response_headers: 'json',
  response_body: 'bytea',
  timings: 'json',
});

/** Closes attempts, each once. Returns how many were open. */
export async function moveAttemptsFinished(
  client: pg.ClientBase,
  attempts: (AttemptKey &
    Pick<
      CallbackAttempt,
      | 'finished_at'
      | 'outcome'
      | 'reason'
      | 'address'
      | 'tls_version'
      | 'response_status'
      | 'response_headers'
      | 'response_body'
      | 'timings'
    >)[],
): Promise<number> {
  const { rowCount } = await client.query({
    name: 'callback-attempts-finish',
    text: `
      update callback_attempts as a
      set finished_at = i.finished_at, outcome = i.outcome, reason = i.reason, address = i.address,
        tls_version = i.tls_version, response_status = i.response_status,
        response_headers = i.response_headers, response_body = i.response_body, timings = i.timings
      from ${ended.from}
      where a.merchant_id = i.merchant_id and a.callback_id = i.callback_id
        and a.number = i.number and a.id = i.id and a.finished_at is null`,
    values: ended.values(attempts),
  });
  return rowCount ?? 0;
}

const putDown = rowGroup({
  merchant_id: 'uuid',
  id: 'uuid',
  lease: 'uuid',
  status: 'text',
  due_at: 'timestamptz',
  delivered_at: 'timestamptz',
  redirect_url: 'text',
});

/**
 * Puts callbacks down with what became of them after another attempt of each; what is null of a
 * delivery stays as it was. Under their leases only: whoever lost one has nothing to say any more.
 */
export async function movePutDown(
  client: pg.ClientBase,
  callbacks: Pick<
    Callback,
    'merchant_id' | 'id' | 'lease' | 'status' | 'due_at' | 'delivered_at' | 'redirect_url'
  >[],
): Promise<void> {
  await client.query({
    name: 'callbacks-put-down',
    text: `
      update callbacks as c
      set status = i.status, attempts = c.attempts + 1, run_attempts = c.run_attempts + 1,
        due_at = i.due_at, lease = null, leased_until = null,
        delivered_at = coalesce(i.delivered_at, c.delivered_at),
        redirect_url = coalesce(i.redirect_url, c.redirect_url)
      from ${putDown.from}
      where c.merchant_id = i.merchant_id and c.id = i.id and c.lease = i.lease`,
    values: putDown.values(callbacks),
  });
}

/** Gives one up under its lease, after so many attempts. Says whether it still was in hand. */
export async function moveExhausted(
  db: Handle,
  callback: Pick<Callback, 'merchant_id' | 'id' | 'lease'>,
  made: { attempts: number; run_attempts: number },
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('callbacks')
    .set({ ...made, status: 'exhausted', due_at: null, lease: null, leased_until: null })
    .where('merchant_id', '=', callback.merchant_id)
    .where('id', '=', callback.id)
    .where('lease', '=', callback.lease)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** When the attempt of a number began; null when there is none. */
export async function findAttemptStart(
  db: Handle,
  callback: Key,
  number: number,
): Promise<Timestamp | null> {
  const row = await db
    .selectFrom('callback_attempts')
    .select('started_at')
    .where('merchant_id', '=', callback.merchant_id)
    .where('callback_id', '=', callback.id)
    .where('number', '=', number)
    .executeTakeFirst();
  return row?.started_at ?? null;
}

/** Counts an attempt that somebody died with, under the lease of who found it. */
export async function moveUnknownCounted(
  db: Handle,
  callback: Pick<Callback, 'merchant_id' | 'id' | 'lease' | 'attempts' | 'run_attempts'>,
  due_at: Timestamp,
): Promise<void> {
  await db
    .updateTable('callbacks')
    .set({
      attempts: callback.attempts + 1,
      run_attempts: callback.run_attempts + 1,
      lease: null,
      leased_until: null,
      due_at,
    })
    .where('merchant_id', '=', callback.merchant_id)
    .where('id', '=', callback.id)
    .where('lease', '=', callback.lease)
    .where('attempts', '=', callback.attempts)
    .execute();
}

const released = rowGroup({ merchant_id: 'uuid', id: 'uuid', lease: 'uuid' });

/** Puts callbacks down that were not tried after all, under their leases only. */
export async function moveReleased(
  pool: pg.Pool,
  callbacks: (Key & { lease: string | null })[],
): Promise<void> {
  await pool.query({
    name: 'callbacks-release',
    text: `
      update callbacks as c
      set lease = null, leased_until = null
      from ${released.from}
      where c.merchant_id = i.merchant_id and c.id = i.id and c.lease = i.lease`,
    values: released.values(callbacks),
  });
}
