import { sql, type Updateable } from 'kysely';
import type { Handle } from '../database/database.ts';
import { type DueWork, isFree, type Lease } from '../database/due-work.sql.ts';
import type { Tables } from '../database/tables.ts';
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

/** Destinations: all but some, or some and no others. */
export type Hosts = { except: string[] } | { only: string[] };

/** Callbacks to deliver to some destinations. */
export const dueCallbacks = (hosts: Hosts = { except: [] }): DueWork<'callbacks'> => ({
  table: 'callbacks',
  key: ['id'],
  due: 'due_at',
  where:
    'only' in hosts
      ? sql`host = any(${hosts.only}::text[])`
      : sql`not (host = any(${hosts.except}::text[]))`,
});

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

/** Under its lease only: whoever lost the lease has nothing to say any more. */
export async function moveLeased(
  db: Handle,
  callback: Key & { lease: string | null },
  to: Updateable<Tables['callbacks']>,
): Promise<Callback | null> {
  const row = await db
    .updateTable('callbacks')
    .set(to)
    .where('id', '=', callback.id)
    .where('merchant_id', '=', callback.merchant_id)
    .where('lease', '=', callback.lease)
    .returningAll()
    .executeTakeFirst();
  return row ?? null;
}

/** Begins a new run, unless somebody is delivering right now. */
export async function moveRetriggered(
  db: Handle,
  key: Key,
  claim: Lease & { due_at: Timestamp },
): Promise<Callback | null> {
  const row = await db
    .updateTable('callbacks')
    .set((now) => ({
      status: 'pending',
      run: now('run', '+', 1),
      run_attempts: 0,
      due_at: claim.due_at,
      lease: claim.lease,
      leased_until: claim.leased_until,
    }))
    .where('id', '=', key.id)
    .where('merchant_id', '=', key.merchant_id)
    .where(isFree(claim.now))
    .returningAll()
    .executeTakeFirst();
  return row ?? null;
}

export async function insertCallbackAttempt(
  db: Handle,
  attempt: Pick<
    CallbackAttempt,
    | 'merchant_id'
    | 'id'
    | 'callback_id'
    | 'number'
    | 'run'
    | 'trigger'
    | 'operator'
    | 'started_at'
    | 'request_headers'
  >,
): Promise<void> {
  await db
    .insertInto('callback_attempts')
    .values({
      ...attempt,
      outcome: 'unknown',
      request_headers: JSON.stringify(attempt.request_headers),
    })
    .execute();
}

/** Closes an attempt, once. */
export async function moveAttemptFinished(
  db: Handle,
  key: Key,
  result: Pick<
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
  >,
): Promise<void> {
  await db
    .updateTable('callback_attempts')
    .set({
      ...result,
      response_headers: result.response_headers && JSON.stringify(result.response_headers),
      timings: result.timings && JSON.stringify(result.timings),
    })
    .where('id', '=', key.id)
    .where('merchant_id', '=', key.merchant_id)
    .where('finished_at', 'is', null)
    .execute();
}

/** For whoever does not know whether it was written. */
export async function hasCallbackAttempt(db: Handle, key: Key): Promise<boolean> {
  const row = await db
    .selectFrom('callback_attempts')
    .select('id')
    .where('id', '=', key.id)
    .where('merchant_id', '=', key.merchant_id)
    .executeTakeFirst();
  return row !== undefined;
}
