import { findBulkAction, listBulkActions } from '#operating/bulk-actions/bulk-action.sql.ts';
import type { BulkAction as BulkActionRow } from '#operating/bulk-actions/bulk-action.ts';
import { BulkAction, BulkActions } from '#operating/operations/bulk-action.schema.ts';
import { IdParams } from '#operating/operations/list.schema.ts';
import { reading } from '#platform/database/transaction.ts';
import { notFound } from './errors.ts';
import { type ConsoleDeps, type ConsoleRoute, consoleRoute } from './route.ts';

const bulkActionsMax = 20;

/** A person sees their own bulk actions. */
export const bulkActionRoutes: ConsoleRoute[] = [
  consoleRoute({
    method: 'GET',
    url: '/api/bulk-actions',
    permission: 'signed-in',
    schema: { response: BulkActions },
    async handle({ deps, person }) {
      const bulkActions = await reading(deps, (db) =>
        listBulkActions(db, person.id, bulkActionsMax),
      );
      return { data: bulkActions.map(presentBulkAction) };
    },
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/bulk-actions/:id',
    permission: 'signed-in',
    schema: { params: IdParams, response: BulkAction },
    async handle({ deps, person }, { params }) {
      return await readBulkAction(deps, person.id, params.id);
    },
  }),
];

/** A bulk action as it is now. */
export async function readBulkAction(
  deps: ConsoleDeps,
  person_id: string,
  id: string,
): Promise<BulkAction> {
  const bulkAction = await reading(deps, (db) => findBulkAction(db, person_id, id));
  if (!bulkAction) throw notFound();
  return presentBulkAction(bulkAction);
}

const presentBulkAction = (bulkAction: BulkActionRow) => ({
  ...bulkAction,
  by: bulkAction.actor.operator,
});
