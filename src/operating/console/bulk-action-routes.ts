import { listBulkActions } from '#operating/bulk-actions/bulk-action.sql.ts';
import { BulkAction, BulkActions } from '#operating/operations/bulk-action.schema.ts';
import {
  bulkActionActions,
  presentBulkAction,
  readBulkAction,
} from '#operating/operations/bulk-actions.ts';
import { reading } from '#platform/database/transaction.ts';
import { actionRoutes, type ConsoleRoute, consoleRoute, detailRoute } from './route.ts';

const bulkActionsMax = 20;

/** A person sees the bulk actions that they began with their current access. */
export const bulkActionRoutes: ConsoleRoute[] = [
  consoleRoute({
    url: '/api/bulk-actions',
    permission: 'signed-in',
    schema: { response: BulkActions },
    async handle({ deps, session: { access_id }, scope }) {
      const bulkActions = await reading(deps, (db) =>
        listBulkActions(db, { access_id, scope }, bulkActionsMax),
      );
      return { data: bulkActions.map(presentBulkAction) };
    },
  }),
  detailRoute('bulk-actions', 'signed-in', BulkAction, readBulkAction),
  ...actionRoutes(bulkActionActions),
];
