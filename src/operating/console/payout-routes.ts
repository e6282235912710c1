import Type from 'typebox';
import { findMerchantRow } from '#merchants/merchant.sql.ts';
import type { MerchantRow } from '#merchants/merchant.ts';
import { IdParams } from '#operating/operations/list.schema.ts';
import { BankFile, PayoutDetails, PayoutExport } from '#operating/operations/payout.schema.ts';
import {
  mustSeePayout,
  payoutActions,
  payoutList,
  readPayout,
} from '#operating/operations/payouts.ts';
import { reading } from '#platform/database/transaction.ts';
import { sumLines } from '#purchases/payouts/payout.sql.ts';
import { readLines } from '#purchases/payouts/read-lines.ts';
import { exportPayouts, readExport } from '#purchases/payouts/review-payout.ts';
import {
  whyNotPrinted,
  writeStatementCsv,
  writeStatementHtml,
} from '#purchases/payouts/statement.ts';
import { conflict } from './errors.ts';
import { answerDownload, listRoutes } from './pages.ts';
import {
  actionRoute,
  actionRoutes,
  type ConsoleRoute,
  consoleRoute,
  detailRoute,
} from './route.ts';

const statementRoute = (format: 'csv' | 'html') =>
  consoleRoute({
    method: 'GET',
    url: `/api/payouts/:id/statement.${format}`,
    permission: 'payouts.read',
    schema: { params: IdParams, response: Type.String() },
    async handle(context, { params }) {
      const payout = await mustSeePayout(context, params.id);
      const problem = format === 'html' ? whyNotPrinted(payout) : null;
      const name = `${payout.reference}.${format}`;
      if (problem !== null) throw conflict(problem, 'too_long_to_print');
      return await answerDownload(
        context,
        { name, subject_id: payout.id, filters: {} },
        async () => {
          const lines = readLines(context.deps, payout);
          if (format === 'csv') return writeStatementCsv(payout, lines);
          const { totals, merchant } = await reading(context.deps, async (db) => ({
            totals: await sumLines(db, payout),
            merchant: (await findMerchantRow(db, payout.merchant_id)) as MerchantRow,
          }));
          return writeStatementHtml(payout, lines, totals, merchant);
        },
      );
    },
  });

export const payoutRoutes: ConsoleRoute[] = [
  ...listRoutes(payoutList),
  detailRoute('payouts', 'payouts.read', PayoutDetails, readPayout),
  statementRoute('csv'),
  statementRoute('html'),
  ...actionRoutes(payoutActions),
  actionRoute({
    method: 'POST',
    url: '/api/payouts/export',
    permission: 'payouts.settle',
    fresh: true,
    schema: { response: PayoutExport },
    async run({ deps, operator }) {
      const made = await exportPayouts(deps, operator);
      return () => ({
        export_id: made.export_id,
        payouts: made.payouts.length,
        without_account: made.refused,
        to_approve_again: made.toApprove,
        to_compare: made.toCompare,
        new_account: made.tooNew,
        file: made.file,
      });
    },
  }),
  // It changes nothing, but the file has whole account numbers: it needs a fresh proof.
  consoleRoute({
    method: 'POST',
    changesNothing: true,
    url: '/api/payout-exports/:id/file',
    permission: 'payouts.settle',
    fresh: true,
    schema: { params: IdParams, response: BankFile },
    handle: async ({ deps, operator }, { params }) => ({
      file: (await readExport(deps, operator, params.id)).file,
    }),
  }),
];
