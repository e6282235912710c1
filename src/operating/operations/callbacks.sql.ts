import { isOne, type Scope, scoped } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import type { Callback, CallbackStatus } from '#purchases/callbacks/callback.ts';
import { type Page, type PageOf, readRange } from './range.sql.ts';

export type CallbackRow = Omit<Callback, 'payload' | 'sealed_verify'> & {
  /** Why the last attempt failed; null if it did not, or if there is none. */
  reason: string | null;
  response_status: number | null;
};

/** Pending callbacks by their next attempt. All others the newest first. */
export async function pageCallbacks(
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
      'a.reason',
      'a.response_status',
    ]);
  if (status !== null) query = query.where('callbacks.status', '=', status);
  if (host !== null) query = query.where('callbacks.host', '=', host);
  // The predicate of the index by due time.
  if (status === 'pending') query = query.where('callbacks.due_at', 'is not', null);
  const ofOne = isOne(scope) && status !== 'exhausted';
  const columns = status === 'pending' ? ['due_at', 'id'] : [ofOne ? 'checkout_id' : 'id'];
  return await readRange(
    scoped(query, scope, 'callbacks.merchant_id'),
    page,
    columns.map((column) => `callbacks.${column}`),
    status === 'pending' ? 'asc' : 'desc',
  );
}
