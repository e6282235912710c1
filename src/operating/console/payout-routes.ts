import Type from 'typebox';
import { findMerchantRow } from '#merchants/merchant.sql.ts';
import type { MerchantRow } from '#merchants/merchant.ts';
import { type Column, decimal } from '#operating/operations/csv.ts';
import { IdParams } from '#operating/operations/list.schema.ts';
import {
  BankFile,
  ConfirmedPayout,
  PaidPayout,
  PayoutDetails,
  PayoutExport,
  type PayoutRow,
  PayoutsPage,
  PayoutsQuery,
  ReturnedPayout,
} from '#operating/operations/payout.schema.ts';
import {
  type ListedPayout,
  listPayoutsWithin,
  readPayoutWithin,
} from '#operating/operations/registers.ts';
import { reading } from '#platform/database/transaction.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { writeBankFile } from '#purchases/payouts/bank-file.ts';
import { listLines } from '#purchases/payouts/payout.sql.ts';
import type { Payout } from '#purchases/payouts/payout.ts';
import {
  approvePayout,
  confirmPayout,
  exportPayouts,
  payPayout,
  readExport,
  returnPayout,
} from '#purchases/payouts/review-payout.ts';
import { lineNames, writeStatementCsv, writeStatementHtml } from '#purchases/payouts/statement.ts';
import { presentActions } from './audit-routes.ts';
import { notFound } from './errors.ts';
import { answerFile, listRoutes, scopeOf } from './pages.ts';
import { actRoute, type ConsoleRoute, type Context, consoleRoute } from './route.ts';

type Page = { after: string | null; limit: number };

const readList =
  (context: Context, query: Type.Static<typeof PayoutsQuery>) => async (page: Page) => {
    const scope = scopeOf(context, query);
    const { data, next } = await listPayoutsWithin(context.deps, scope, query.status ?? null, page);
    return { data: data.map((payout) => presentRow(context, payout)), next };
  };

const columns: Column<PayoutRow>[] = [
  ['Business day', (row) => row.business_on],
  ['Merchant', (row) => row.merchant_name],
  ['Reference', (row) => row.reference],
  ['Status', (row) => row.status],
  ['Approvals', (row) => row.approvals],
  ['Amount', (row) => Number(decimal(row.amount))],
  ['Currency', (row) => row.currency],
  ['Lines', (row) => row.line_count],
  ['Exported', (row) => row.exported_at],
  ['Paid', (row) => row.paid_at],
  ['Bank reference', (row) => row.bank_reference],
  ['Returned', (row) => row.returned_at],
  ['Reason', (row) => row.return_reason],
  ['ID', (row) => row.id],
];

/** A page shows so many lines. The statement has all. */
const linesShownMax = 200;

export const payoutRoutes: ConsoleRoute[] = [
  ...listRoutes({
    name: 'payouts',
    permission: 'payouts.read',
    query: PayoutsQuery,
    page: PayoutsPage,
    columns,
    read: readList,
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/payouts/:id',
    permission: 'payouts.read',
    schema: { params: IdParams, response: PayoutDetails },
    handle: (context, { params }) => readPayout(context, params.id),
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/payouts/:id/statement.csv',
    permission: 'payouts.read',
    schema: { params: IdParams, response: Type.String() },
    async handle(context, { params }) {
      const { payout, lines } = await readStatement(context, params.id);
      const name = `${payout.reference}.csv`;
      return answerFile(context, name, writeStatementCsv(payout, lines));
    },
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/payouts/:id/statement.html',
    permission: 'payouts.read',
    schema: { params: IdParams, response: Type.String() },
    async handle(context, { params }) {
      const { payout, lines, merchant } = await readStatement(context, params.id);
      const name = `${payout.reference}.html`;
      return answerFile(context, name, writeStatementHtml(payout, lines, merchant));
    },
  }),
  actRoute({
    method: 'POST',
    url: '/api/payouts/:id/approve',
    permission: 'payouts.approve',
    fresh: true,
    schema: { params: IdParams, response: PayoutDetails },
    act: (context, { params }) =>
      change(context, params.id, (id) => approvePayout(context.deps, context.operator, id)),
  }),
  actRoute({
    method: 'POST',
    url: '/api/payouts/:id/confirm',
    permission: 'payouts.settle',
    fresh: true,
    schema: { params: IdParams, body: ConfirmedPayout, response: PayoutDetails },
    act: (context, { params, body }) =>
      change(context, params.id, (id) =>
        confirmPayout(context.deps, context.operator, id, body.reason),
      ),
  }),
  actRoute({
    method: 'POST',
    url: '/api/payouts/:id/paid',
    permission: 'payouts.settle',
    fresh: true,
    schema: { params: IdParams, body: PaidPayout, response: PayoutDetails },
    act: (context, { params, body }) =>
      change(context, params.id, (id) =>
        payPayout(context.deps, context.operator, id, body.bank_reference),
      ),
  }),
  actRoute({
    method: 'POST',
    url: '/api/payouts/:id/returned',
    permission: 'payouts.settle',
    fresh: true,
    schema: { params: IdParams, body: ReturnedPayout, response: PayoutDetails },
    act: (context, { params, body }) =>
      change(context, params.id, (id) =>
        returnPayout(context.deps, context.operator, id, body.reason),
      ),
  }),
  actRoute({
    method: 'POST',
    url: '/api/payouts/export',
    permission: 'payouts.settle',
    fresh: true,
    schema: { response: PayoutExport },
    async act({ deps, operator }) {
      const { export_id, payouts, refused, toApprove, toCompare, file } = await exportPayouts(
        deps,
        operator,
      );
      const named = (list: Payout[]) =>
        list.map(({ id, reference, merchant_id }) => ({ id, reference, merchant_id }));
      return () => ({
        export_id,
        payouts: payouts.length,
        without_account: named(refused),
        to_approve_again: named(toApprove),
        to_compare: named(toCompare),
        file,
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

async function mustSeePayout({ deps, person }: Context, id: string, linesMax: number) {
  const found = isUuid(id) ? await readPayoutWithin(deps, person.scope, id, linesMax) : null;
  if (!found) throw notFound();
  return found;
}

/** Changes one payout. The answer is the payout afterwards. */
async function change(
  context: Context,
  id: string,
  move: (id: string) => Promise<Payout>,
): Promise<() => Promise<PayoutDetails>> {
  const { payout } = await mustSeePayout(context, id, 0);
  await move(payout.id);
  return () => readPayout(context, payout.id);
}

async function readStatement(context: Context, id: string) {
  const { payout } = await mustSeePayout(context, id, 0);
  return await reading(context.deps, async (db) => ({
    payout,
    lines: await listLines(db, payout),
    merchant: (await findMerchantRow(db, payout.merchant_id)) as MerchantRow,
  }));
}

async function readPayout(context: Context, id: string): Promise<PayoutDetails> {
  const { payout, lines, totals, actions } = await mustSeePayout(context, id, linesShownMax);
  return {
    ...presentRow(context, payout),
    lines: lines.map(({ kind, ...line }) => ({ ...line, name: lineNames[kind] })),
    totals,
    audit: await presentActions(context, actions),
  };
}

function presentRow({ operator }: Context, payout: ListedPayout): PayoutRow {
  const { number: _, bank_account: __, lines, first_approver, approver, ...row } = payout;
  return {
    ...row,
    line_count: lines,
    approvals: [first_approver, approver].filter((one) => one !== null).length,
    may_approve: payout.status === 'draft' && first_approver !== operator,
  };
}
