import { isOne } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { findCallback } from '#purchases/callbacks/callback.sql.ts';
import type { Callback, CallbackAttempt } from '#purchases/callbacks/callback.ts';
import type { DeliveryDeps } from '#purchases/callbacks/delivery/deliver-callback.ts';
import { retriggerCallback } from '#purchases/callbacks/retrigger-callback.ts';
import { defineAction } from './action.ts';
import { CallbackRow, CallbacksQuery, RetriedCallback } from './callback.schema.ts';
import { pageCallbacks } from './callbacks.sql.ts';
import { ownerColumns } from './csv.ts';
import { historyLimits, listNewest } from './history.sql.ts';
import { IdParams } from './list.schema.ts';
import { defineList, readList } from './list.ts';
import { findOwners } from './owner.sql.ts';
import { BadInput, mustSee, NotFound, scopeOf, type Viewer, type ViewerDeps } from './viewer.ts';

/** Pending callbacks by their next attempt. All others the newest first. */
export const callbackList = defineList({
  name: 'callbacks',
  permission: 'callbacks.read',
  query: CallbacksQuery,
  row: CallbackRow,
  async read(viewer, query, page) {
    const scope = scopeOf(viewer, query);
    const { status = null, host = null } = query;
    // The index of pending callbacks by host begins with the merchant. No other one has the host.
    const hasIndex = status === 'exhausted' || (status === 'pending' && isOne(scope));
    if (host !== null && !hasIndex) {
      throw new BadInput(
        'host',
        'can be used only with status=exhausted, or with status=pending and one merchant',
      );
    }
    return await readList(
      viewer.deps,
      page,
      (db, range) => pageCallbacks(db, scope, status, host, range),
      async (db, rows) => {
        const describe = await findOwners(db, scope, rows);
        return rows.map((row) => ({ ...row, ...describe(row).owner }));
      },
    );
  },
  columns: [
    ['Created', (row) => row.created_at],
    ...ownerColumns,
    ['Status', (row) => row.status],
    ['To', (row) => row.notify_url],
    ['Attempts', (row) => row.attempts],
    ['Next attempt', (row) => row.due_at],
    ['Delivered', (row) => row.delivered_at],
    ['Reason', (row) => row.reason],
    ['Response', (row) => row.response_status],
    ['Checkout', (row) => row.checkout_id],
    ['ID', (row) => row.id],
  ],
});

export type ReadCallback = { callback: Callback; attempts: CallbackAttempt[] };

/** The newest attempts to deliver a callback, in order. */
const listLastAttempts = (db: Handle, { merchant_id, id }: Callback): Promise<CallbackAttempt[]> =>
  listNewest(db, 'callback_attempts', { merchant_id, callback_id: id }, historyLimits.rows);

/** A merchant's people do not see the addresses of the operators who sent a callback again. */
export const withoutStaff = (
  { scope }: Pick<Viewer, 'scope'>,
  attempts: CallbackAttempt[],
): CallbackAttempt[] =>
  scope === 'all merchants'
    ? attempts
    : attempts.map((one) => ({ ...one, operator: one.operator === null ? null : 'operator' }));

/** A callback with its newest attempts. */
export async function readCallback(viewer: Viewer, id: string): Promise<ReadCallback> {
  const key = await mustSee(viewer, 'callbacks', id);
  return await reading(viewer.deps, async (db) => {
    const callback = await findCallback(db, key);
    if (!callback) throw new NotFound(`There is no callback ${id}.`);
    return { callback, attempts: withoutStaff(viewer, await listLastAttempts(db, callback)) };
  });
}

/** A callback with what was sent and answered. */
export function presentCallback({ callback, attempts }: ReadCallback) {
  return {
    ...callback,
    payload: callback.payload.toString('utf8'),
    history: attempts.map((attempt) => ({
      ...attempt,
      response_body: attempt.response_body?.toString('utf8') ?? null,
      milliseconds: attempt.timings?.total ?? null,
    })),
  };
}

export const callbackActions = {
  /** Delivers a callback now. The answer says why that failed. */
  retry: defineAction({
    method: 'POST',
    url: '/api/callbacks/:id/retry',
    permission: 'callbacks.retry',
    schema: { params: IdParams, response: RetriedCallback },
    async run(viewer: Viewer<ViewerDeps & DeliveryDeps>, { params }) {
      const { deps, operator } = viewer;
      const { id } = await mustSee(viewer, 'callbacks', params.id);
      const callback = await retriggerCallback(deps, operator, id);
      return async () => {
        const attempts = await reading(deps, (db) => listLastAttempts(db, callback));
        const last = attempts.findLast(({ trigger }) => trigger === 'operator');
        const { reason = null, response_status = null } = last ?? {};
        return { ...callback, reason, response_status };
      };
    },
  }),
};
