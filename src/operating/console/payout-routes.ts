import Type from 'typebox';
import { readApproval } from '#operating/bulk-actions/bulk-action.ts';
import { ManyApprovals, ManyPaid } from '#operating/operations/bulk-action.schema.ts';
import { IdParams } from '#operating/operations/list.schema.ts';
import {
  BankFile,
  PayoutDetails,
  PayoutExport,
  WantedFile,
} from '#operating/operations/payout.schema.ts';
import {
  findPayouts,
  mustSeePayout,
  payoutActions,
  payoutList,
  readPayout,
} from '#operating/operations/payouts.ts';
import { exportPayouts, readExport } from '#purchases/payouts/review-payout.ts';
import { statementPolicy, whyNotPrinted } from '#purchases/payouts/statement.ts';
import {
  type StatementFormat,
  statementFormats,
  writeStatement,
} from '#purchases/payouts/write-statement.ts';
import { bulkRoute } from './bulk-route.ts';
import { answerDownload } from './download.ts';
import { conflict } from './errors.ts';
import { listRoutes } from './pages.ts';
import {
  actionRoute,
  actionRoutes,
  type ConsoleRoute,
  consoleRoute,
  detailRoute,
} from './route.ts';

const statementRoute = (format: StatementFormat) =>
  consoleRoute({
    url: `/api/payouts/:id/statement.${format}`,
    permission: 'payouts.read',
    schema: { params: IdParams, response: Type.String() },
    async handle(context, { params }) {
      const payout = await mustSeePayout(context, params.id);
      const { id: subject_id, merchant_id } = payout;
      const problem = whyNotPrinted(payout, format);
      const name = `${payout.reference}.${format}`;
      if (problem !== null) throw conflict(problem, 'too_long_to_print');
      return await answerDownload(
        context,
        {
          ...{ name, subject_id, merchant_id, filters: {} },
          ...(format === 'html' && { policy: statementPolicy }),
        },
        () => writeStatement(context.deps, payout, format),
      );
    },
  });

export const payoutRoutes: ConsoleRoute[] = [
  ...listRoutes(payoutList),
  detailRoute('payouts', 'payouts.read', PayoutDetails, readPayout),
  ...statementFormats.map(statementRoute),
  ...actionRoutes(payoutActions),
  bulkRoute({
    url: '/api/payouts/approve',
    permission: 'payouts.approve',
    kind: 'payouts approve',
    body: ManyApprovals,
    see: (context, items) =>
      findPayouts(
        context,
        items.map((item) => readApproval(item).id),
      ),
  }),
  bulkRoute({
    url: '/api/payouts/paid',
    permission: 'payouts.settle',
    kind: 'payouts paid',
    body: ManyPaid,
    see: findPayouts,
  }),
  actionRoute({
    url: '/api/payouts/export',
    permission: 'payouts.settle',
    fresh: true,
    schema: { response: PayoutExport },
    async run({ deps, operator }) {
      const { payouts, ...made } = await exportPayouts(deps, operator, 'csv');
      return () => ({ ...made, payouts: payouts.length });
    },
  }),
  // This changes nothing, but the file contains whole account numbers, so it requires
  // re-authentication.
  consoleRoute({
    method: 'POST',
    changesNothing: true,
    url: '/api/payout-exports/:id/file',
    permission: 'payouts.settle',
    fresh: true,
    schema: { params: IdParams, query: WantedFile, response: BankFile },
    handle: async ({ deps, operator }, { params, query }) => ({
      file: (await readExport(deps, operator, params.id, query.format ?? 'csv')).file,
    }),
  }),
];
