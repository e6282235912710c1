import type { Static, TObject } from 'typebox';
import { beginBulkAction } from '#operating/bulk-actions/begin-bulk-action.ts';
import type { BulkActionKind } from '#operating/bulk-actions/bulk-action.ts';
import { BulkAction } from '#operating/operations/bulk-action.schema.ts';
import { readBulkAction } from '#operating/operations/bulk-actions.ts';
import type { Permission } from '#operating/people/permission.ts';
import { notFound } from './errors.ts';
import { actionRoute, type ConsoleRoute, type Context } from './route.ts';
import { sharesOfRows } from './shares.ts';

/**
 * Makes a route that begins a bulk action. `see` finds the rows within the person's scope. If a row
 * is outside it, nothing begins.
 */
export const bulkRoute = <Body extends TObject>(wanted: {
  url: string;
  permission: Permission;
  kind: BulkActionKind;
  body: Body;
  see(context: Context, ids: string[]): Promise<{ id: string; merchant_id: string }[]>;
}): ConsoleRoute =>
  actionRoute({
    url: wanted.url,
    permission: wanted.permission,
    fresh: true,
    schema: { body: wanted.body, response: BulkAction },
    async run(context, { body }) {
      const { ids: given, ...rest } = body as Static<Body> & { ids: string[] };
      const ids = [...new Set(given.map((id) => id.toLowerCase()))];
      const seen = await wanted.see(context, ids);
      if (seen.length !== ids.length) throw notFound();
      const { deps, operator } = context;
      const items = { ids, ...rest };
      const id = await beginBulkAction(deps, operator, wanted.kind, items, {
        total: ids.length,
        shares: sharesOfRows(context, seen, rest),
      });
      return () => readBulkAction(context, id);
    },
  });
