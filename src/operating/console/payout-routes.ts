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
import { writeBankFile } from '#purchases/payouts/bank-file.ts';
import { listLines } from '#purchases/payouts/payout.sql.ts';
import { exportPayouts, readExport } from '#purchases/payouts/review-payout.ts';
import { writeStatementCsv, writeStatementHtml } from '#purchases/payouts/statement.ts';
import { answerFile, listRoutes } from './pages.ts';
import {
  actionRoute,
  actionRoutes,
  type ConsoleRoute,
  type Context,
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
      const { payout, lines, merchant } = await readStatement(context, params.id);
      const text =
        format === 'csv'
          ? writeStatementCsv(payout, lines)
          : writeStatementHtml(payout, lines, merchant);
      return answerFile(context, `${payout.reference}.${format}`, text);
    },
  });

async function readStatement(context: Context, id: string) {
  const payout = await mustSeePayout(context, id);
  return await reading(context.deps, async (db) => ({
    payout,
    lines: await listLines(db, payout),
    merchant: (await findMerchantRow(db, payout.merchant_id)) as MerchantRow,
  }));
}

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
    async handle({ deps }, { params }) {
      const payouts = await readExport(deps, params.id);
      return { file: await reading(deps, (db) => writeBankFile(deps, db, payouts)) };
    },
  }),
];
