import type Type from 'typebox';
import { beginLongAct } from '#operating/acts/begin-long-act.ts';
import { LongAct } from '#operating/operations/act.schema.ts';
import { type Column, decimal, whoseColumns } from '#operating/operations/csv.ts';
import { IdParams } from '#operating/operations/list.schema.ts';
import {
  findRefundsToReview,
  listRefundsToReview,
  type ReviewedRefund,
} from '#operating/operations/lists.ts';
import {
  ApproveRefunds,
  DeclineRefund,
  RefundDetails,
  RefundsPage,
  RefundsQuery,
} from '#operating/operations/refund.schema.ts';
import { explainBadReviewer, firstApproverOf, requesterOf } from '#purchases/refunds/refund.ts';
import {
  approveRefund,
  declineRefund,
  retryRefund,
  reviewerOf,
} from '#purchases/refunds/review-refund.ts';
import { readLongAct } from './act-routes.ts';
import { notFound } from './errors.ts';
import { listRoutes, mustSee, presentWhose, scopeOf } from './pages.ts';
import { actRoute, type ConsoleRoute, type Context, consoleRoute } from './route.ts';

type Query = Type.Static<typeof RefundsQuery>;

function readList(context: Context, query: Query) {
  return async (page: { after: string | null; limit: number }) => {
    const { deps } = context;
    const scope = scopeOf(context, query);
    const { data, next } = await listRefundsToReview(deps, scope, query.view ?? null, page);
    return { data: data.map((refund) => presentRow(context, refund)), next };
  };
}

const columns: Column<ReturnType<typeof presentRow>>[] = [
  ['Requested', (row) => row.created_at],
  ...whoseColumns,
  ['View', (row) => row.view],
  ['Amount', (row) => Number(decimal(row.amount))],
  ['Of', (row) => Number(decimal(row.checkout_amount))],
  ['Currency', (row) => row.currency],
  ['Days since purchase', (row) => row.days_since_purchase],
  ['Approved', (row) => row.approved_at],
  ['Completed', (row) => row.completed_at],
  ['Reason', (row) => row.reason],
  ['Checkout', (row) => row.checkout_id],
  ['ID', (row) => row.id],
];

type Review = typeof approveRefund;

/** An action on one refund, which answers with the refund afterwards. */
const act = (verb: string, permission: 'refunds.review' | 'refunds.retry', review: Review) =>
  actRoute({
    method: 'POST',
    url: `/api/refunds/:id/${verb}`,
    permission,
    fresh: true,
    schema: { params: IdParams, response: RefundDetails },
    async act(context, { params }) {
      const row = await mustSee(context, 'refund_requests', params.id);
      await review(context.deps, context.operator, row);
      return () => readRefund(context, row);
    },
  });

export const refundRoutes: ConsoleRoute[] = [
  ...listRoutes({
    name: 'refunds',
    permission: 'refunds.read',
    query: RefundsQuery,
    page: RefundsPage,
    columns,
    read: readList,
  }),
  consoleRoute({
    method: 'GET',
    url: '/api/refunds/:id',
    permission: 'refunds.read',
    schema: { params: IdParams, response: RefundDetails },
    handle: (context, { params }) => readRefund(context, params),
  }),
  act('approve', 'refunds.review', approveRefund),
  act('retry', 'refunds.retry', retryRefund),
  actRoute({
    method: 'POST',
    url: '/api/refunds/:id/decline',
    permission: 'refunds.review',
    fresh: true,
    schema: { params: IdParams, body: DeclineRefund, response: RefundDetails },
    async act(context, { params, body }) {
      const row = await mustSee(context, 'refund_requests', params.id);
      await declineRefund(context.deps, context.operator, row, body.reason);
      return () => readRefund(context, row);
    },
  }),
  actRoute({
    method: 'POST',
    url: '/api/refunds/approve',
    permission: 'refunds.review',
    fresh: true,
    schema: { body: ApproveRefunds, response: LongAct },
    async act({ deps, person, operator }, { body }) {
      const ids = [...new Set(body.ids.map((id) => id.toLowerCase()))];
      const { data } = await findRefundsToReview(deps, person.scope, ids);
      if (data.length !== ids.length) throw notFound();
      const wanted = { refund_ids: ids };
      const id = await beginLongAct(deps, operator, 'refunds approve', wanted, ids.length);
      return () => readLongAct(deps, person.id, id);
    },
  }),
];

/** One refund as it is now. */
export async function readRefund(
  context: Context,
  { merchant_id: merchant, id }: { merchant_id?: string; id: string },
): Promise<RefundDetails> {
  const scope = scopeOf(context, merchant === undefined ? {} : { merchant });
  const { data } = await findRefundsToReview(context.deps, scope, [id]);
  const [refund] = data;
  if (!refund) throw notFound();
  return presentRefund(context, refund);
}

export function presentRefund(context: Context, refund: ReviewedRefund): RefundDetails {
  return {
    ...presentRow(context, refund),
    parts: refund.parts.map(
      ({
        round,
        number,
        instalment,
        kind,
        status,
        amount,
        payment_ref,
        refund_ref,
        settled_at,
      }) => ({
        round,
        number,
        instalment,
        kind,
        status,
        amount,
        payment_ref,
        refund_ref,
        settled_at,
      }),
    ),
    waits_for: refund.waits_for,
  };
}

function presentRow({ deps, operator }: Context, refund: ReviewedRefund) {
  const { status, approved_at } = refund;
  const view =
    status === 'requested'
      ? approved_at === null
        ? ('review' as const)
        : ('approved' as const)
      : status;
  return {
    id: refund.id,
    checkout_id: refund.checkout_id,
    ...presentWhose(refund),
    status,
    view,
    amount: refund.amount,
    currency: refund.currency,
    checkout_amount: refund.checkout_amount,
    purchased_at: refund.purchased_at,
    days_since_purchase: refund.days_since_purchase,
    created_at: refund.created_at,
    approved_at,
    completed_at: refund.completed_at,
    reason: refund.reason,
    planned: refund.planned,
    refund_rate: refund.refund_rate,
    requested_by: requesterOf(refund),
    request_reason: refund.request_reason,
    needs_second_person: refund.needs_second_person,
    is_first_of_two: refund.is_first_of_two,
    first_approved_by: firstApproverOf(refund),
    first_approved_at: refund.first_approved_at,
    may_approve:
      view === 'review' && explainBadReviewer(refund, reviewerOf(deps, operator)) === null,
  };
}
