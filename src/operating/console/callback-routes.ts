import { beginBulkAction } from '#operating/bulk-actions/begin-bulk-action.ts';
import { countCallbacksToRetry } from '#operating/bulk-actions/bulk-action.sql.ts';
import { BulkAction } from '#operating/operations/bulk-action.schema.ts';
import { readBulkAction } from '#operating/operations/bulk-actions.ts';
import { RetriedCallback, RetryCallbacks } from '#operating/operations/callback.schema.ts';
import {
  callbackList,
  listLastAttempts,
  presentCallback,
  readCallback,
} from '#operating/operations/callbacks.ts';
import { CallbackDetails } from '#operating/operations/checkout.schema.ts';
import { destinationList } from '#operating/operations/destinations.ts';
import { IdParams } from '#operating/operations/list.schema.ts';
import { mustSee } from '#operating/operations/viewer.ts';
import { isWithin } from '#operating/search/scope.sql.ts';
import { reading } from '#platform/database/transaction.ts';
import { retriggerCallback } from '#purchases/callbacks/retrigger-callback.ts';
import { notFound } from './errors.ts';
import { listRoutes } from './pages.ts';
import { actionRoute, type ConsoleRoute, consoleRoute } from './route.ts';

/** A larger number is not counted: the answer then has only how many are done. */
const totalMax = 10_000;

export const callbackRoutes: ConsoleRoute[] = [
  ...listRoutes(callbackList),
  ...listRoutes(destinationList),
  consoleRoute({
    method: 'GET',
    url: '/api/callbacks/:id',
    permission: 'callbacks.read',
    schema: { params: IdParams, response: CallbackDetails },
    handle: async (context, { params }) => presentCallback(await readCallback(context, params.id)),
  }),
  actionRoute({
    method: 'POST',
    url: '/api/callbacks/:id/retry',
    permission: 'callbacks.retry',
    schema: { params: IdParams, response: RetriedCallback },
    async run(context, { params }) {
      const { deps, operator } = context;
      const { id } = await mustSee(context, 'callbacks', params.id);
      const callback = await retriggerCallback(deps, operator, id);
      return async () => {
        const attempts = await reading(deps, (db) => listLastAttempts(db, callback));
        const last = attempts.findLast(({ trigger }) => trigger === 'operator');
        return { ...callback, reason: last?.reason ?? null };
      };
    },
  }),
  actionRoute({
    method: 'POST',
    url: '/api/callbacks/retry-all',
    permission: 'callbacks.retry',
    schema: { body: RetryCallbacks, response: BulkAction },
    async run(context, { body }) {
      const { deps, scope, operator } = context;
      const { merchant, host = null } = body;
      if (merchant !== undefined && !isWithin(scope, merchant)) throw notFound();
      const own = scope === 'all merchants' ? null : scope.merchant_ids;
      const wanted = {
        merchant_ids: merchant === undefined ? own : [merchant],
        host,
        // Callbacks that are given up later are not part of this action.
        until_id: deps.random.uuid(),
      };
      const count = await reading(deps, (db) => countCallbacksToRetry(db, wanted, totalMax + 1));
      const total = count > totalMax ? null : count;
      const id = await beginBulkAction(deps, operator, 'callbacks retry', wanted, total);
      return () => readBulkAction(context, id);
    },
  }),
];
