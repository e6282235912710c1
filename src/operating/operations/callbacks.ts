import { isOne, type Scope } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { findCallback } from '#purchases/callbacks/callback.sql.ts';
import type { Callback, CallbackAttempt } from '#purchases/callbacks/callback.ts';
import type { DeliveryDeps } from '#purchases/callbacks/delivery/deliver-callback.ts';
import { retriggerCallback } from '#purchases/callbacks/retrigger-callback.ts';
import { defineAction } from './action.ts';
import { CallbackRow, CallbacksQuery, RetriedCallback } from './callback.schema.ts';
import {
  listCallbacksPage,
  listPayoutReferences,
  type CallbackRow as StoredRow,
} from './callbacks.sql.ts';
import { ownerColumns } from './csv.ts';
import { historyLimits, listNewest } from './history.sql.ts';
import { IdParams } from './list.schema.ts';
import { defineList, readList } from './list.ts';
import { findOwners, listMerchantNames, type MerchantName, type Owner } from './owner.sql.ts';
import { BadInput, mustSee, NotFound, scopeOf, type Viewer, type ViewerDeps } from './viewer.ts';

/** Pending callbacks are ordered by their next attempt, all others newest first. */
export const callbackList = defineList({
  name: 'callbacks',
  permission: 'callbacks.read',
  query: CallbacksQuery,
  row: CallbackRow,
  async read(viewer, query, page) {
    const scope = scopeOf(viewer, query);
    const { status = null, host = null } = query;
    // The index of pending callbacks by host begins with the merchant. No other index of pending
    // callbacks includes the host.
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
      (db, range) => listCallbacksPage(db, scope, status, host, range),
      async (db, rows) => {
        const ownerOf = await findCallbackOwners(db, scope, rows);
        return rows.map((row) => ({ ...row, ...ownerOf(row) }));
      },
    );
  },
  columns: [
    ['Created', (row) => row.created_at],
    ...ownerColumns,
    ['Event', (row) => row.event],
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

/** The owners of callbacks. A payout's event has the payout's reference instead of an order. */
async function findCallbackOwners(
  db: Handle,
  scope: Scope,
  rows: StoredRow[],
): Promise<(row: StoredRow) => Owner> {
  const ofCheckouts = rows.flatMap(({ merchant_id, checkout_id }) =>
    checkout_id === null ? [] : [{ merchant_id, checkout_id }],
  );
  const describe = await findOwners(db, scope, ofCheckouts);
  const ofPayouts = rows.filter(({ checkout_id }) => checkout_id === null);
  const references = await listPayoutReferences(db, scope, ofPayouts);
  const names = ofPayouts.map(({ merchant_id }) => merchant_id);
  const merchants = await listMerchantNames(db, scope, names);
  return ({ merchant_id, checkout_id, subject_id }) => {
    if (checkout_id !== null) return describe({ merchant_id, checkout_id }).owner;
    const { name, time_zone, locale, clock_ahead_ms } = merchants.get(merchant_id) as MerchantName;
    return {
      ...{ merchant_name: name, time_zone, locale, clock_ahead_ms },
      client_reference_id: references.get(subject_id ?? '') ?? '',
      email: '',
      name: null,
    };
  };
}

export type ReadCallback = { callback: Callback; attempts: CallbackAttempt[] };
type OwnedCallback = ReadCallback & { merchant: MerchantName };

/** The newest attempts to deliver a callback, in order. */
const listLastAttempts = (db: Handle, { merchant_id, id }: Callback): Promise<CallbackAttempt[]> =>
  listNewest(db, 'callback_attempts', { merchant_id, callback_id: id }, historyLimits.rows);

/** A merchant's people do not see which operators sent a callback again. */
export const withoutStaff = (
  { scope }: Pick<Viewer, 'scope'>,
  attempts: CallbackAttempt[],
): CallbackAttempt[] =>
  scope === 'all merchants'
    ? attempts
    : attempts.map((one) => ({ ...one, operator: one.operator === null ? null : 'operator' }));

export async function readCallback(viewer: Viewer, id: string): Promise<OwnedCallback> {
  const key = await mustSee(viewer, 'callbacks', id);
  return await reading(viewer.deps, async (db) => {
    const callback = await findCallback(db, key);
    if (!callback) throw new NotFound(`There is no callback ${id}.`);
    const { merchant_id } = callback;
    const merchants = await listMerchantNames(db, viewer.scope, [merchant_id]);
    const attempts = withoutStaff(viewer, await listLastAttempts(db, callback));
    return { callback, attempts, merchant: merchants.get(merchant_id) as MerchantName };
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
  /** Delivers a callback now. The answer says why the delivery failed, if it did. */
  retry: defineAction({
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
