import { findBulkAction, findBulkActionOfAny } from '#operating/bulk-actions/bulk-action.sql.ts';
import type { BulkAction as BulkActionRow } from '#operating/bulk-actions/bulk-action.ts';
import { stopBulkAction } from '#operating/bulk-actions/stop-bulk-action.ts';
import type { Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { accessIdOf } from '#record/actions/operate.ts';
import { defineAction } from './action.ts';
import { BulkAction } from './bulk-action.schema.ts';
import { IdParams } from './list.schema.ts';
import { NotFound, type Viewer } from './viewer.ts';

/** A bulk action in its current state. People see their own, and the command line sees all. */
export async function readBulkAction({ deps, scope }: Viewer, id: string) {
  const access_id = accessIdOf(deps);
  const find = (db: Handle) =>
    access_id === null ? findBulkActionOfAny(db, id) : findBulkAction(db, { access_id, scope }, id);
  const action = isUuid(id) ? await reading(deps, find) : null;
  if (!action) throw new NotFound(`There is no bulk action ${id}.`);
  return presentBulkAction(action);
}

export const presentBulkAction = (action: BulkActionRow) => ({
  ...action,
  by: action.actor.operator,
});

export const bulkActionActions = {
  stop: defineAction({
    url: '/api/bulk-actions/:id/stop',
    permission: 'signed-in',
    schema: { params: IdParams, response: BulkAction },
    async run(viewer: Viewer, { params }) {
      const { id } = await readBulkAction(viewer, params.id);
      await stopBulkAction(viewer.deps, viewer.operator, id);
      return () => readBulkAction(viewer, id);
    },
  }),
};
