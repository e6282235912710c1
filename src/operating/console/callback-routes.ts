import { beginBulkAction } from '#operating/bulk-actions/begin-bulk-action.ts';
import { countCallbacksToRetry } from '#operating/bulk-actions/bulk-action.sql.ts';
import { BulkAction } from '#operating/operations/bulk-action.schema.ts';
import { readBulkAction } from '#operating/operations/bulk-actions.ts';
import { RetryCallbacks } from '#operating/operations/callback.schema.ts';
import {
  callbackActions,
  callbackList,
  presentCallback,
  readCallback,
} from '#operating/operations/callbacks.ts';
import { OwnedCallback } from '#operating/operations/checkout.schema.ts';
import { destinationList } from '#operating/operations/destinations.ts';
import { isWithin } from '#operating/search/scope.sql.ts';
import { reading } from '#platform/database/transaction.ts';
import { notFound } from './errors.ts';
import { listRoutes } from './pages.ts';
import { actionRoute, actionRoutes, type ConsoleRoute, detailRoute } from './route.ts';
import { ownOf } from './shares.ts';

/**
 * Counting stops at this number. If there are more callbacks, the progress shows only how many are
 * done.
 */
const totalMax = 10_000;

export const callbackRoutes: ConsoleRoute[] = [
  ...listRoutes(callbackList),
  ...listRoutes(destinationList),
  detailRoute('callbacks', 'callbacks.read', OwnedCallback, async (context, id) => {
    const found = await readCallback(context, id);
    const { time_zone, clock_ahead_ms } = found.merchant;
    return { ...presentCallback(found), time_zone, clock_ahead_ms };
  }),
  ...actionRoutes(callbackActions),
  actionRoute({
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
        // Callbacks that are created later are not part of this action.
        until_id: deps.random.uuid(),
      };
      const count = await reading(deps, (db) => countCallbacksToRetry(db, wanted, totalMax + 1));
      const total = count > totalMax ? null : count;
      const shares =
        merchant === undefined
          ? ownOf(context).map((merchant_id) => ({
              merchant_id,
              details: { ...wanted, merchant_ids: [merchant_id] },
            }))
          : [{ merchant_id: merchant, details: { ...wanted, total } }];
      const about = { total, shares };
      const id = await beginBulkAction(deps, operator, 'callbacks retry', wanted, about);
      return () => readBulkAction(context, id);
    },
  }),
];
