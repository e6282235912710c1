import { ManyIds } from '#operating/operations/bulk-action.schema.ts';
import { RefundDetails } from '#operating/operations/refund.schema.ts';
import {
  findRefunds,
  readRefund,
  refundActions,
  refundList,
} from '#operating/operations/refunds.ts';
import { mustSee } from '#operating/operations/viewer.ts';
import { bulkRoute } from './bulk-route.ts';
import { listRoutes } from './pages.ts';
import { actionRoutes, type ConsoleRoute, detailRoute } from './route.ts';

export const refundRoutes: ConsoleRoute[] = [
  ...listRoutes(refundList),
  detailRoute('refunds', 'refunds.read', RefundDetails, async (context, id) =>
    readRefund(context, await mustSee(context, 'refund_requests', id)),
  ),
  ...actionRoutes(refundActions),
  bulkRoute({
    url: '/api/refunds/approve',
    permission: 'refunds.review',
    kind: 'refunds approve',
    body: ManyIds,
    see: findRefunds,
  }),
];
