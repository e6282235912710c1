import type Type from 'typebox';
import { beginLongAct } from '#operating/acts/begin-long-act.ts';
import { countCallbacksToRetry } from '#operating/acts/long-act.sql.ts';
import { LongAct } from '#operating/operations/act.schema.ts';
import {
  type CallbackRow,
  CallbacksPage,
  CallbacksQuery,
  DestinationsPage,
  DestinationsQuery,
  RetriedCallback,
  RetryCallbacks,
} from '#operating/operations/callback.schema.ts';
import { CallbackDetails } from '#operating/operations/checkout.schema.ts';
import { type Column, whoseColumns } from '#operating/operations/csv.ts';
import { IdParams } from '#operating/operations/list.schema.ts';
import { listCallbacks } from '#operating/operations/lists.ts';
import { type ListedDestination, listDestinationsWithin } from '#operating/operations/registers.ts';
import { isOne, isWithin } from '#operating/search/scope.sql.ts';
import { reading } from '#platform/database/transaction.ts';
import { findCallback, listCallbackAttempts } from '#purchases/callbacks/callback.sql.ts';
import type { CallbackAttempt, Callback as CallbackRecord } from '#purchases/callbacks/callback.ts';
import { bucketBounds } from '#purchases/callbacks/delivery/destination-statistics.ts';
import { retriggerCallback } from '#purchases/callbacks/retrigger-callback.ts';
import { readLongAct } from './act-routes.ts';
import { invalid, notFound } from './errors.ts';
import { listRoutes, mustSee, presentWhose, scopeOf } from './pages.ts';
import { actRoute, type ConsoleRoute, type Context, consoleRoute } from './route.ts';

type Query = Type.Static<typeof CallbacksQuery>;
type Page = { after: string | null; limit: number };

function readList(context: Context, query: Query) {
  const scope = scopeOf(context, query);
  const { status = null, host = null } = query;
  // The index of pending callbacks by host begins with the merchant. No other one has the host.
  const hasIndex = status === 'exhausted' || (status === 'pending' && isOne(scope));
  if (host !== null && !hasIndex) {
    const problem = 'goes with status=exhausted, or with status=pending and one merchant';
    throw invalid([{ path: 'host', problem }]);
  }
  return async (page: Page) => {
    const { data, next } = await listCallbacks(context.deps, scope, status, page, host);
    return {
      data: data.map(
        (row): CallbackRow => ({
          id: row.id,
          checkout_id: row.checkout_id,
          ...presentWhose(row),
          status: row.status,
          notify_url: row.notify_url,
          host: row.host,
          attempts: row.attempts,
          created_at: row.created_at,
          due_at: row.due_at,
          delivered_at: row.delivered_at,
          reason: row.reason,
          response_status: row.response_status,
        }),
      ),
      next,
    };
  };
}

const columns: Column<CallbackRow>[] = [
  ['Created', (row) => row.created_at],
  ...whoseColumns,
  ['Status', (row) => row.status],
  ['To', (row) => row.notify_url],
  ['Attempts', (row) => row.attempts],
  ['Next attempt', (row) => row.due_at],
  ['Delivered', (row) => row.delivered_at],
  ['Reason', (row) => row.reason],
  ['Response', (row) => row.response_status],
  ['Checkout', (row) => row.checkout_id],
  ['ID', (row) => row.id],
];

const readDestinations = (context: Context, query: { merchant?: string }) => (page: Page) =>
  listDestinationsWithin(context.deps, scopeOf(context, query), bucketBounds, page);

const destinationColumns: Column<ListedDestination>[] = [
  ['Merchant', (row) => row.merchant_name],
  ['Host', (row) => row.host],
  ['Attempts', (row) => row.attempts],
  ['Delivered', (row) => row.delivered],
  ['p95 ms', (row) => row.p95_ms],
  ['Failures in a row', (row) => row.failures_in_a_row],
  ['Last attempt', (row) => row.last_attempt_at],
  ['Last error', (row) => row.last_error],
  ['Last error at', (row) => row.last_error_at],
];

/** A larger number is not counted: the action then shows only how many are done. */
const totalMax = 10_000;

export const callbackRoutes: ConsoleRoute[] = [
  ...listRoutes({
    name: 'callbacks',
    permission: 'callbacks.read',
    query: CallbacksQuery,
    page: CallbacksPage,
    columns,
    read: readList,
  }),
  ...listRoutes({
    name: 'destinations',
    permission: 'callbacks.read',
    query: DestinationsQuery,
    page: DestinationsPage,
    columns: destinationColumns,
    read: readDestinations,
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/callbacks/:id',
    permission: 'callbacks.read',
    schema: { params: IdParams, response: CallbackDetails },
    async handle(context, { params }) {
      const key = await mustSee(context, 'callbacks', params.id);
      const { callback, attempts } = await reading(context.deps, async (db) => ({
        callback: await findCallback(db, key),
        attempts: await listCallbackAttempts(db, key),
      }));
      if (!callback) throw notFound();
      return presentCallback(callback, attempts);
    },
  }),
  actRoute({
    method: 'POST',
    url: '/api/callbacks/:id/retry',
    permission: 'callbacks.retry',
    schema: { params: IdParams, response: RetriedCallback },
    async act(context, { params }) {
      const { deps, operator } = context;
      const { id } = await mustSee(context, 'callbacks', params.id);
      const callback = await retriggerCallback(deps, operator, id);
      return async () => {
        const attempts = await reading(deps, (db) => listCallbackAttempts(db, callback));
        const last = attempts.findLast(({ trigger }) => trigger === 'operator');
        return {
          id: callback.id,
          status: callback.status,
          due_at: callback.due_at,
          reason: last?.reason ?? null,
        };
      };
    },
  }),
  actRoute({
    method: 'POST',
    url: '/api/callbacks/retry-all',
    permission: 'callbacks.retry',
    schema: { body: RetryCallbacks, response: LongAct },
    async act({ deps, person, operator }, { body }) {
      const { merchant, host = null } = body;
      if (merchant !== undefined && !isWithin(person.scope, merchant)) throw notFound();
      const own = person.scope === 'all merchants' ? null : person.scope.merchant_ids;
      const wanted = {
        merchant_ids: merchant === undefined ? own : [merchant],
        host,
        // Callbacks that are given up later are not part of this action.
        until_id: deps.random.uuid(),
      };
      const count = await reading(deps, (db) => countCallbacksToRetry(db, wanted, totalMax + 1));
      const total = count > totalMax ? null : count;
      const id = await beginLongAct(deps, operator, 'callbacks retry', wanted, total);
      return () => readLongAct(deps, person.id, id);
    },
  }),
];

/** A callback with what was sent and answered. */
export function presentCallback(
  callback: CallbackRecord,
  attempts: CallbackAttempt[],
): CallbackDetails {
  return {
    id: callback.id,
    merchant_id: callback.merchant_id,
    checkout_id: callback.checkout_id,
    status: callback.status,
    notify_url: callback.notify_url,
    host: callback.host,
    payload: callback.payload.toString('utf8'),
    attempts: callback.attempts,
    attempts_expired: callback.attempts_expired,
    created_at: callback.created_at,
    due_at: callback.due_at,
    delivered_at: callback.delivered_at,
    redirect_url: callback.redirect_url,
    history: attempts.map((attempt) => ({
      number: attempt.number,
      run: attempt.run,
      trigger: attempt.trigger,
      operator: attempt.operator,
      started_at: attempt.started_at,
      finished_at: attempt.finished_at,
      outcome: attempt.outcome,
      reason: attempt.reason,
      address: attempt.address,
      tls_version: attempt.tls_version,
      request_headers: attempt.request_headers,
      response_status: attempt.response_status,
      response_headers: attempt.response_headers,
      response_body: attempt.response_body?.toString('utf8') ?? null,
      response_body_bytes: attempt.response_body_bytes,
      milliseconds: attempt.timings?.total ?? null,
    })),
  };
}
