import {
  InstalmentParams,
  OverduePage,
  OverdueQuery,
  type OverdueRow,
  RetriedInstalment,
} from '#operating/operations/callback.schema.ts';
import { type Column, decimal, whoseColumns } from '#operating/operations/csv.ts';
import { listDeclines } from '#operating/operations/lists.sql.ts';
import { type ListedOverdue, listOverdue } from '#operating/operations/lists.ts';
import { reading } from '#platform/database/transaction.ts';
import { instalmentId } from '#purchases/instalments/instalment.ts';
import { retryInstalment } from '#purchases/instalments/retry-instalment.ts';
import { listRoutes, mustSee, presentWhose, scopeOf } from './pages.ts';
import { actRoute, type ConsoleRoute, type Context } from './route.ts';

function readList(context: Context, query: { merchant?: string }) {
  return async (page: { after: string | null; limit: number }) => {
    const { data, next } = await listOverdue(context.deps, scopeOf(context, query), page);
    return { data: data.map(presentOverdue), next };
  };
}

function presentOverdue(row: ListedOverdue): OverdueRow {
  const { is_retry_sensible, advice } = adviceOf(row);
  return {
    checkout_id: row.checkout_id,
    number: row.number,
    ...presentWhose(row),
    number_of_payments: row.number_of_payments,
    amount: row.amount - row.reduced,
    currency: row.currency,
    due_on: row.due_on,
    days_late: row.days_late,
    status: row.status,
    reason: row.decline?.reason ?? null,
    last_tried_at: row.decline?.settled_at ?? null,
    paused_by: row.paused_by,
    is_retry_sensible,
    advice,
  };
}

const pauses: Record<NonNullable<ListedOverdue['paused_by']>, string> = {
  dispute:
    'A payment of this checkout is disputed. A retry is refused until the dispute has ended.',
  difference: 'The gateway’s records differ from ours. Clear the difference first.',
  refund: 'A refund of this checkout is in progress. A retry is refused until it has ended.',
  shopper: 'The shopper is paying it now.',
};

function adviceOf(row: ListedOverdue): { is_retry_sensible: boolean; advice: string } {
  const say = (is_retry_sensible: boolean, advice: string) => ({ is_retry_sensible, advice });
  if (!row.has_card) return say(false, 'No card is stored. Only the shopper can pay this.');
  if (row.paused_by !== null) return say(false, pauses[row.paused_by]);
  if (row.decline?.may_retry === false) {
    return say(false, 'The bank said not to try this card again. The shopper needs another card.');
  }
  if (row.decline?.reason === 'insufficient_funds') {
    return say(true, 'There was not enough money. A retry after payday may succeed.');
  }
  return say(true, 'The bank gave no reason against a retry.');
}

const columns: Column<OverdueRow>[] = [
  ['Due', (row) => row.due_on],
  ['Days late', (row) => row.days_late],
  ...whoseColumns,
  ['Payment', (row) => row.number],
  ['Of', (row) => row.number_of_payments],
  ['Amount', (row) => Number(decimal(row.amount))],
  ['Currency', (row) => row.currency],
  ['Reason', (row) => row.reason],
  ['Advice', (row) => row.advice],
  ['Checkout', (row) => row.checkout_id],
];

export const overdueRoutes: ConsoleRoute[] = [
  ...listRoutes({
    name: 'overdue',
    permission: 'instalments.read',
    query: OverdueQuery,
    page: OverduePage,
    columns,
    read: readList,
  }),
  actRoute({
    method: 'POST',
    url: '/api/instalments/:checkout/:number/retry',
    permission: 'instalments.retry',
    fresh: true,
    schema: { params: InstalmentParams, response: RetriedInstalment },
    async act(context, { params }) {
      const { deps, person, operator } = context;
      const row = await mustSee(context, 'checkouts', params.checkout);
      const payment = await retryInstalment(deps, operator, `${row.id}:${params.number}`);
      return async () => {
        const declines = await reading(deps, (db) => listDeclines(db, person.scope, [row]));
        const { checkout_id, number, status } = payment;
        const decline = status === 'overdue' ? declines.get(instalmentId(payment)) : undefined;
        return { checkout_id, number, status, reason: decline?.reason ?? null };
      };
    },
  }),
];
