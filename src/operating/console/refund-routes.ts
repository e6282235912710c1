import { beginBulkAction } from '#operating/bulk-actions/begin-bulk-action.ts';
import { BulkAction } from '#operating/operations/bulk-action.schema.ts';
import { readBulkAction } from '#operating/operations/bulk-actions.ts';
import { ApproveRefunds, RefundDetails } from '#operating/operations/refund.schema.ts';
import {
  findRefunds,
  readRefund,
  refundActions,
  refundList,
} from '#operating/operations/refunds.ts';
import { mustSee } from '#operating/operations/viewer.ts';
import { notFound } from './errors.ts';
import { listRoutes } from './pages.ts';
import { actionRoute, actionRoutes, type ConsoleRoute, detailRoute } from './route.ts';

export const refundRoutes: ConsoleRoute[] = [
  ...listRoutes(refundList),
  detailRoute('refunds', 'refunds.read', RefundDetails, async (context, id) =>
    readRefund(context, await mustSee(context, 'refund_requests', id)),
  ),
  ...actionRoutes(refundActions),
  actionRoute({
    method: 'POST',
    url: '/api/refunds/approve',
    permission: 'refunds.review',
    fresh: true,
    schema: { body: ApproveRefunds, response: BulkAction },
    async run(context, { body }) {
      const { deps, operator } = context;
      const ids = [...new Set(body.ids.map((id) => id.toLowerCase()))];
      if ((await findRefunds(context, ids)).length !== ids.length) throw notFound();
      const wanted = { refund_ids: ids };
      const id = await beginBulkAction(deps, operator, 'refunds approve', wanted, ids.length);
      return () => readBulkAction(context, id);
    },
  }),
];
