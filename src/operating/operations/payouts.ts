import type { MoneyGuard } from '#checks/reconciliation/money-guard.ts';
import type { Scope } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import type { MerchantMailDeps } from '#purchases/messages/mail-merchant.ts';
import type { QueueDeps } from '#purchases/messages/queue-messages.ts';
import { listConfirmedAccounts } from '#purchases/payouts/bank-account.sql.ts';
import type { BankAccount } from '#purchases/payouts/bank-account.ts';
import { lineName } from '#purchases/payouts/line-names.ts';
import { listLines, sumLines } from '#purchases/payouts/payout.sql.ts';
import { countApprovals, mayApprove, type Payout } from '#purchases/payouts/payout.ts';
import {
  approvePayout,
  confirmPayout,
  payPayout,
  returnPayout,
} from '#purchases/payouts/review-payout.ts';
import { whyNotPrinted } from '#purchases/payouts/statement.ts';
import { actionsOn } from './action.ts';
import { listActionsOn, presentActions } from './audit.ts';
import { defineList, readList } from './list.ts';
import { listMerchantNames, type MerchantName } from './owner.sql.ts';
import {
  ApprovedPayout,
  ConfirmedPayout,
  PaidPayout,
  PayoutDetails,
  PayoutRow,
  PayoutsQuery,
  ReturnedPayout,
} from './payout.schema.ts';
import {
  findPayoutWithin,
  listDisputedPayouts,
  listPayoutsPage,
  listPayoutsWithin,
} from './payouts.sql.ts';
import { NotFound, scopeOf, type Viewer, type ViewerDeps } from './viewer.ts';

/** The newest payouts first. */
export const payoutList = defineList({
  name: 'payouts',
  permission: 'payouts.read',
  query: PayoutsQuery,
  row: PayoutRow,
  read(viewer, query, page) {
    const scope = scopeOf(viewer, query);
    return readList(
      viewer.deps,
      page,
      (db, range) => listPayoutsPage(db, scope, query.status ?? null, range),
      (db, rows) => presentPayouts(viewer, db, rows),
    );
  },
  columns: [
    ['Business day', (row) => row.business_on],
    ['Merchant', (row) => row.merchant_name],
    ['Reference', (row) => row.reference],
    ['Status', (row) => row.status],
    ['Approvals', (row) => row.approvals],
    ['Amount', (row) => ({ cents: row.amount })],
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
  const accounts = await listConfirmedAccounts(db, ids);
  const open = rows.filter(({ status }) => status === 'draft' || status === 'approved');
  const disputed = open.length === 0 ? new Set() : await listDisputedPayouts(db, open);
  return rows.map((row) => {
    const { name, time_zone, locale, clock_ahead_ms } = names.get(row.merchant_id) as MerchantName;
    const own = accounts.filter(({ merchant_id }) => merchant_id === row.merchant_id);
    const account = own[0] ?? null;
    return {
      ...row,
      merchant_name: name,
      time_zone,
      locale,
      clock_ahead_ms,
      line_count: row.lines,
      ...approvalsOf(scope, row, own),
      may_approve: scope === 'all merchants' && mayApprove(row, account, operator),
      account,
      is_disputed: disputed.has(row.id),
    };
  });
}

/**
 * A payout's approvals, and whether it must be compared with the bank. `accounts` are confirmed,
 * and the first of them is in use. A merchant's people are not told how far the staff's approval
 * has progressed, nor what the staff compare.
 */
export const approvalsOf = (scope: Scope, row: Payout, accounts: BankAccount[]) =>
  scope === 'all merchants'
    ? {
        approvals: countApprovals(row, accounts[0] ?? null),
        approved_account: accounts.find(({ number }) => number === row.bank_account) ?? null,
        compare_since: row.compare_since,
      }
    : { approvals: null, approved_account: null, compare_since: null };

/** These payouts, if the viewer may see them. */
export const findPayouts = ({ deps, scope }: Viewer, ids: string[]) =>
  reading(deps, (db) => listPayoutsWithin(db, scope, ids));

export async function mustSeePayout(viewer: Viewer, id: string) {
  const [payout] = await reading(viewer.deps, async (db) => {
    const found = isUuid(id) ? await findPayoutWithin(db, viewer.scope, id) : null;
    return found ? await presentPayouts(viewer, db, [found]) : [];
  });
  if (!payout) throw new NotFound(`There is no payout ${id}. \`tranche payouts list\` lists them.`);
  return payout;
}

/** A page shows this many lines. The statement has all of them. */
const linesShownMax = 200;

/** A payout with its first lines and people's actions on it. */
export async function readPayout(viewer: Viewer, id: string): Promise<PayoutDetails> {
  const payout = await mustSeePayout(viewer, id);
  const { lines, totals, actions } = await reading(viewer.deps, async (db) => ({
    lines: await listLines(db, payout, { first: 1, last: linesShownMax }),
    totals: await sumLines(db, payout),
    actions: await listActionsOn(db, payout.id),
  }));
  const isStaff = viewer.scope === 'all merchants';
  return {
    ...payout,
    lines: lines.map((line) => ({ ...line, name: lineName(line.kind) })),
    totals,
    is_printable: whyNotPrinted(payout) === null,
    has_pdf: whyNotPrinted(payout, 'pdf') === null,
    // A merchant's people see that a return was recorded, but not by which operator.
    return_noted_by:
      payout.return_noted_by === null || isStaff ? payout.return_noted_by : 'operator',
    audit: await presentActions(viewer, actions),
  };
}

const on = actionsOn({
  name: 'payouts',
  response: PayoutDetails,
  see: mustSeePayout,
  read: (viewer, { id }) => readPayout(viewer, id),
});

type Money = Viewer<ViewerDeps & QueueDeps & MerchantMailDeps & { money: MoneyGuard }>;
const settle = { permission: 'payouts.settle', fresh: true } as const;

export const payoutActions = {
  approve: on('approve', {
    permission: 'payouts.approve',
    fresh: true,
    body: ApprovedPayout,
    change: ({ deps, operator }: Money, { id }, { account }) =>
      approvePayout(deps, operator, id, account),
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
    change: ({ deps, operator }: Money, { id }, { reason, as_first }) =>
      returnPayout(deps, operator, id, reason, as_first),
  }),
};
