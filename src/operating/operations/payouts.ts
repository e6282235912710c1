import type { MoneyGuard } from '#checks/reconciliation/money-guard.ts';
import type { Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { listLines, sumLines } from '#purchases/payouts/payout.sql.ts';
import type { Payout } from '#purchases/payouts/payout.ts';
import {
  approvePayout,
  confirmPayout,
  payPayout,
  returnPayout,
} from '#purchases/payouts/review-payout.ts';
import { lineNames, whyNotPrinted } from '#purchases/payouts/statement.ts';
import { actionsOn } from './action.ts';
import { listActionsOn, presentActions } from './audit.ts';
import { decimal } from './csv.ts';
import { defineList, readList } from './list.ts';
import { listMerchantNames, type MerchantName } from './owner.sql.ts';
import {
  ConfirmedPayout,
  PaidPayout,
  PayoutDetails,
  PayoutRow,
  PayoutsQuery,
  ReturnedPayout,
} from './payout.schema.ts';
import { findPayoutWithin, pagePayouts } from './payouts.sql.ts';
import { NotFound, scopeOf, type Viewer, type ViewerDeps } from './viewer.ts';

/** The newest payouts first. */
export const payoutList = defineList({
  name: 'payouts',
  permission: 'payouts.read',
  query: PayoutsQuery,
  row: PayoutRow,
  read(viewer, query, page) {
    const seen = { ...viewer, scope: scopeOf(viewer, query) };
    return readList(
      viewer.deps,
      page,
      (db, range) => pagePayouts(db, seen.scope, query.status ?? null, range),
      (db, rows) => presentPayouts(seen, db, rows),
    );
  },
  columns: [
    ['Business day', (row) => row.business_on],
    ['Merchant', (row) => row.merchant_name],
    ['Reference', (row) => row.reference],
    ['Status', (row) => row.status],
    ['Approvals', (row) => row.approvals],
    ['Amount', (row) => decimal(row.amount)],
    ['Currency', (row) => row.currency],
    ['Lines', (row) => row.line_count],
    ['Exported', (row) => row.exported_at],
    ['Paid', (row) => row.paid_at],
    ['Bank reference', (row) => row.bank_reference],
    ['Returned', (row) => row.returned_at],
    ['Reason', (row) => row.return_reason],
    ['ID', (row) => row.id],
  ],
});

async function presentPayouts({ scope, operator }: Viewer, db: Handle, rows: Payout[]) {
  const ids = rows.map(({ merchant_id }) => merchant_id);
  const names = await listMerchantNames(db, scope, ids);
  return rows.map((row) => {
    const { name, time_zone, locale } = names.get(row.merchant_id) as MerchantName;
    const { first_approver, approver } = row;
    return {
      ...row,
      merchant_name: name,
      time_zone,
      locale,
      line_count: row.lines,
      approvals: [first_approver, approver].filter((one) => one !== null).length,
      may_approve: row.status === 'draft' && first_approver !== operator,
    };
  });
}

/** A payout of the viewer's scope. */
export async function mustSeePayout(viewer: Viewer, id: string) {
  const [payout] = await reading(viewer.deps, async (db) => {
    const found = isUuid(id) ? await findPayoutWithin(db, viewer.scope, id) : null;
    return found ? await presentPayouts(viewer, db, [found]) : [];
  });
  if (!payout) throw new NotFound(`There is no payout ${id}. \`tranche payouts list\` lists them.`);
  return payout;
}

/** A page shows this many lines. The statement has all. */
const linesShownMax = 200;

/** A payout with its first lines and what people did to it. */
export async function readPayout(viewer: Viewer, id: string): Promise<PayoutDetails> {
  const payout = await mustSeePayout(viewer, id);
  const { lines, totals, actions } = await reading(viewer.deps, async (db) => ({
    lines: await listLines(db, payout, { first: 1, last: linesShownMax }),
    totals: await sumLines(db, payout),
    actions: await listActionsOn(db, payout.id),
  }));
  return {
    ...payout,
    lines: lines.map((line) => ({ ...line, name: lineNames[line.kind] })),
    totals,
    is_printable: whyNotPrinted(payout) === null,
    // A merchant's people see that it was noted, not the address of the operator.
    return_noted_by:
      payout.return_noted_by === null || viewer.scope === 'all merchants'
        ? payout.return_noted_by
        : 'operator',
    audit: await presentActions(viewer, actions),
  };
}

const on = actionsOn({
  name: 'payouts',
  response: PayoutDetails,
  see: mustSeePayout,
  read: (viewer, { id }) => readPayout(viewer, id),
});

type Money = Viewer<ViewerDeps & QueueDeps & { money: MoneyGuard }>;
const settle = { permission: 'payouts.settle', fresh: true } as const;

export const payoutActions = {
  approve: on('approve', {
    permission: 'payouts.approve',
    fresh: true,
    change: ({ deps, operator }: Money, { id }) => approvePayout(deps, operator, id),
  }),
  confirm: on('confirm', {
    ...settle,
    body: ConfirmedPayout,
    change: ({ deps, operator }: Money, { id }, { reason }) =>
      confirmPayout(deps, operator, id, reason),
  }),
  paid: on('paid', {
    ...settle,
    body: PaidPayout,
    change: ({ deps, operator }: Money, { id }, { bank_reference }) =>
      payPayout(deps, operator, id, bank_reference),
  }),
  returned: on('returned', {
    ...settle,
    body: ReturnedPayout,
    change: ({ deps, operator }: Money, { id }, { reason }) =>
      returnPayout(deps, operator, id, reason),
  }),
};
