import { isOne, type Scope, scoped } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Callback, CallbackStatus } from '#purchases/callbacks/callback.ts';
import { unique } from './owner.sql.ts';
import { type Page, type PageOf, readRange } from './range.sql.ts';

export type CallbackRow = Omit<
  Callback,
  'payload' | 'sealed_verify' | 'sent_attempt' | 'sequence'
> & {
  /** Why the last attempt failed. Null if it did not fail, or if no attempt was made. */
  reason: string | null;
  response_status: number | null;
};

/** Pending callbacks are ordered by their next attempt, all others newest first. */
export async function listCallbacksPage(
  db: Handle,
  scope: Scope,
  status: CallbackStatus | null,
  host: string | null,
  page: PageOf,
): Promise<Page<CallbackRow>> {
  let query = db
    .selectFrom('callbacks')
    .leftJoin('callback_attempts as a', (on) =>
      on
        .onRef('a.merchant_id', '=', 'callbacks.merchant_id')
        .onRef('a.callback_id', '=', 'callbacks.id')
        .onRef('a.number', '=', 'callbacks.attempts'),
    )
    .select([
      'callbacks.merchant_id',
      'callbacks.id',
      'callbacks.checkout_id',
      'callbacks.integration_id',
      'callbacks.notify_url',
      'callbacks.status',
      'callbacks.created_at',
      'callbacks.due_at',
      'callbacks.attempts',
      'callbacks.attempts_expired',
      'callbacks.run',
      'callbacks.run_attempts',
      'callbacks.host',
      'callbacks.redirect_url',
      'callbacks.delivered_at',
      'callbacks.lease',
      'callbacks.leased_until',
      'callbacks.event',
      'callbacks.subject_id',
      'callbacks.listed_id',
      'a.reason',
      'a.response_status',
    ]);
  if (status !== null) query = query.where('callbacks.status', '=', status);
  if (host !== null) query = query.where('callbacks.host', '=', host);
  // Repeats the predicate of the partial index by due time, so that the planner can use it.
  if (status === 'pending') query = query.where('callbacks.due_at', 'is not', null);
  const ofOne = isOne(scope) && status !== 'exhausted';
  const columns = status === 'pending' ? ['due_at', 'id'] : [ofOne ? 'listed_id' : 'id'];
  return await readRange(
    scoped(query, scope, 'callbacks.merchant_id'),
    page,
    columns.map((column) => `callbacks.${column}`),
    status === 'pending' ? 'asc' : 'desc',
  );
}

/** The references of the payouts that events are about, by their ids. */
export async function listPayoutReferences(
  db: Handle,
  scope: Scope,
  rows: { merchant_id: string; subject_id: string | null }[],
): Promise<Map<string, string>> {
  if (rows.length === 0) return new Map();
  const found = await scoped(db.selectFrom('payouts').select(['id', 'reference']), scope)
    .where('id', 'in', unique(rows.flatMap(({ subject_id }) => subject_id ?? [])))
    .where('merchant_id', 'in', unique(rows.map(({ merchant_id }) => merchant_id)))
    .execute();
  return new Map(found.map(({ id, reference }) => [id, reference]));
}
