import Type from 'typebox';
import { findMerchantRow } from '#merchants/merchant.sql.ts';
import { type MerchantRow, merchantNow } from '#merchants/merchant.ts';
import { ManyIds, ManyPaid } from '#operating/operations/bulk-action.schema.ts';
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
import { reading } from '#platform/database/transaction.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { sumLines } from '#purchases/payouts/payout.sql.ts';
import { readLines } from '#purchases/payouts/read-lines.ts';
import { exportPayouts, readExport } from '#purchases/payouts/review-payout.ts';
import {
  statementPolicy,
  whyNotPrinted,
  writeStatementCsv,
  writeStatementHtml,
} from '#purchases/payouts/statement.ts';
import { writeStatementPdf } from '#purchases/payouts/statement-pdf.ts';
import { findRecordEnd } from '#record/alerts/publish-end.ts';
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

const statementRoute = (format: 'csv' | 'html' | 'pdf') =>
  consoleRoute({
    method: 'GET',
    url: `/api/payouts/:id/statement.${format}`,
    permission: 'payouts.read',
    schema: { params: IdParams, response: Type.String() },
    async handle(context, { params }) {
      const payout = await mustSeePayout(context, params.id);
      const { id: subject_id, merchant_id } = payout;
      const problem = format === 'csv' ? null : whyNotPrinted(payout, format);
      const name = `${payout.reference}.${format}`;
      if (problem !== null) throw conflict(problem, 'too_long_to_print');
      return await answerDownload(
        context,
        {
          ...{ name, subject_id, merchant_id, filters: {} },
          ...(format === 'html' && { policy: statementPolicy }),
        },
        async () => {
          const lines = readLines(context.deps, payout);
          if (format === 'csv') return writeStatementCsv(payout, lines);
          const { totals, merchant, recordEnd } = await reading(context.deps, async (db) => ({
            totals: await sumLines(db, payout),
            recordEnd: await findRecordEnd(db, payout.created_at),
            merchant: (await findMerchantRow(db, payout.merchant_id)) as MerchantRow,
          }));
          if (format === 'html')
            return writeStatementHtml(payout, lines, totals, merchant, recordEnd);
          const now = timestamp(merchantNow(context.deps.clock, merchant));
          return writeStatementPdf(payout, lines, totals, merchant, recordEnd, now);
        },
      );
    },
  });

export const payoutRoutes: ConsoleRoute[] = [
  ...listRoutes(payoutList),
  detailRoute('payouts', 'payouts.read', PayoutDetails, readPayout),
  statementRoute('csv'),
  statementRoute('html'),
  statementRoute('pdf'),
  ...actionRoutes(payoutActions),
  bulkRoute({
    url: '/api/payouts/approve',
    permission: 'payouts.approve',
    kind: 'payouts approve',
    body: ManyIds,
    see: findPayouts,
  }),
  bulkRoute({
    url: '/api/payouts/paid',
    permission: 'payouts.settle',
    kind: 'payouts paid',
    body: ManyPaid,
    see: findPayouts,
  }),
  actionRoute({
    method: 'POST',
    url: '/api/payouts/export',
    permission: 'payouts.settle',
    fresh: true,
    schema: { response: PayoutExport },
    async run({ deps, operator }) {
      const made = await exportPayouts(deps, operator, 'csv');
      return () => ({
        export_id: made.export_id,
        payouts: made.payouts.length,
        without_account: made.refused,
        to_approve_again: made.toApprove,
        to_compare: made.toCompare,
        new_account: made.tooNew,
        is_full: made.isFull,
        file: made.file,
      });
    },
  }),
  // This changes nothing, but the file has whole account numbers, so it needs a fresh proof.
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
