import { thresholdOf } from '#merchants/merchant.ts';
import type { Scope } from '#operating/search/scope.sql.ts';
import type { Handle } from '#platform/database/database.ts';
import { reading } from '#platform/database/transaction.ts';
import { isSamePerson } from '#platform/shared/approver.ts';
import { type Timestamp, timestamp } from '#platform/shared/clock.ts';
import type { Instalment } from '#purchases/instalments/instalment.ts';
import { listAloneSums } from '#purchases/refunds/refund.sql.ts';
import {
  agreedTo,
  firstApproverOf,
  isFirstOfTwo,
  neededSecondPerson,
  type PlannedPart,
  type RefundRequest,
  requesterOf,
  splitRefund,
  withDisputed,
} from '#purchases/refunds/refund.ts';
import {
  approveRefund,
  declineRefund,
  type ReviewDeps,
  retryRefund,
} from '#purchases/refunds/review-refund.ts';
import { approverOf } from '#record/actions/second-person.ts';
import { listDisputedAmounts } from '#record/ledger/posting.sql.ts';
import { actionsOn } from './action.ts';
import { decidersFor, type ShowActor } from './actors.ts';
import { ownerColumns } from './csv.ts';
import { defineList, readList } from './list.ts';
import { findOwners } from './owner.sql.ts';
import {
  ApproveRefund,
  DeclineRefund,
  RefundDetails,
  RefundRow,
  RefundsQuery,
} from './refund.schema.ts';
import {
  listPartsOf,
  listRefundRates,
  listRefundSources,
  listRefundsById,
  listRefundsPage,
} from './refunds.sql.ts';
import { spanOf } from './span.ts';
import { mustSee, NotFound, scopeOf, type Viewer } from './viewer.ts';

/** Refunds with everything that a reviewer needs to decide. */
export const refundList = defineList({
  name: 'refunds',
  permission: 'refunds.read',
  query: RefundsQuery,
  row: RefundRow,
  read(viewer, query, page) {
    const scope = scopeOf(viewer, query);
    return readList(
      viewer.deps,
      page,
      async (db, range) => {
        const span = await spanOf(db, scope, query);
        return await listRefundsPage(db, scope, { view: query.view ?? null, ...span }, range);
      },
      (db, rows) => presentRefunds(viewer, db, rows, scope),
    );
  },
  columns: [
    ['Requested', (row) => row.created_at],
    ...ownerColumns,
    ['View', (row) => row.view],
    ['Amount', (row) => ({ cents: row.amount })],
    ['Of', (row) => ({ cents: row.checkout_amount })],
    ['Currency', (row) => row.currency],
    ['Days since purchase', (row) => row.days_since_purchase],
    ['Approved', (row) => row.approved_at],
    ['Completed', (row) => row.completed_at],
    ['Reason', (row) => row.reason],
    ['Checkout', (row) => row.checkout_id],
    ['ID', (row) => row.id],
  ],
});

/** Refunds by their ids, if the viewer may see them, in no particular order. */
export async function findRefunds(
  viewer: Viewer,
  ids: string[],
  scope: Scope = viewer.scope,
): Promise<ListedRefund[]> {
  return await reading(viewer.deps, async (db) =>
    presentRefunds(viewer, db, await listRefundsById(db, scope, ids), scope),
  );
}

export async function readRefund(
  viewer: Viewer,
  { merchant_id, id }: { merchant_id: string; id: string },
): Promise<ListedRefund> {
  const scope = scopeOf(viewer, { merchant: merchant_id });
  const [refund] = await findRefunds(viewer, [id], scope);
  if (!refund) throw new NotFound(`There is no refund ${id}.`);
  return refund;
}

const on = actionsOn({
  name: 'refunds',
  response: RefundDetails,
  see: (viewer, id) => mustSee(viewer, 'refund_requests', id),
  read: readRefund,
});

type Money = Viewer<ReviewDeps>;

export const refundActions = {
  approve: on('approve', {
    permission: 'refunds.review',
    fresh: true,
    body: ApproveRefund,
    change: ({ deps, operator }: Money, row, { as_first }) =>
      approveRefund(deps, operator, row, as_first),
  }),
  retry: on('retry', {
    permission: 'refunds.retry',
    fresh: true,
    change: ({ deps, operator }: Money, row) => retryRefund(deps, operator, row),
  }),
  decline: on('decline', {
    permission: 'refunds.review',
    fresh: true,
    body: DeclineRefund,
    change: ({ deps, operator }, row, { reason }) => declineRefund(deps, operator, row, reason),
  }),
};

/**
 * A refund with the names of the people who requested it and first approved it. Actions are
 * recorded under people's e-mail addresses. A name from the command line, without a person, stays
 * as it was given.
 */
export function withNames<Refund extends RefundRequest>(refund: Refund, show: ShowActor): Refund {
  const [asked, approved] = [requesterOf(refund), firstApproverOf(refund)];
  const requester = asked && show(asked.person_id, asked.name);
  const first = approved && show(approved.person_id, approved.name);
  return {
    ...refund,
    requested_by: requester?.person_id ?? null,
    requested_by_name: requester?.name ?? null,
    first_approved_by: first?.person_id ?? null,
    first_approved_by_name: first?.name ?? null,
  };
}

export const peopleOf = (refunds: RefundRequest[]) =>
  refunds.flatMap(({ requested_by, first_approved_by }) => [requested_by, first_approved_by]);

export type ListedRefund = Awaited<ReturnType<typeof presentRefunds>>[number];

async function presentRefunds(
  { deps, operator, scope: ofViewer, may }: Viewer,
  db: Handle,
  rows: RefundRequest[],
  /** The viewer's scope, or a part of it. */
  scope: Scope,
) {
  const describe = await findOwners(db, scope, rows);
  const show = await decidersFor({ scope: ofViewer }, db, peopleOf(rows));
  const parts = Map.groupBy(await listPartsOf(db, rows), ({ refund_id }) => refund_id);
  // Only waiting requests show their split, so payments and disputes are read only for them.
  const waiting = rows.filter(({ status }) => status === 'requested');
  const sources = await listRefundSources(db, scope, waiting);
  const disputed = Map.groupBy(
    await listDisputedAmounts(db, waiting),
    ({ checkout_id }) => checkout_id,
  );
  const rates = await listRefundRates(db, scope, rows, timestamp(deps.clock.now()));
  const alone = await listAloneSums(db, waiting);
  const viewer = approverOf(deps, operator);
  return rows.map((row) => {
    const { checkout, merchant, owner } = describe(row);
    const source = sources.get(row.checkout_id) ?? null;
    const open = source?.open ?? null;
    const given = withDisputed(source?.returned ?? new Map(), disputed.get(row.checkout_id) ?? []);
    const { completed_at: purchased_at } = checkout;
    const refund = withNames(row, show);
    const isRequested = row.status === 'requested';
    const isToReview = isRequested && row.approved_at === null;
    const above = thresholdOf(deps, merchant);
    // `alone` sums the checkout's approved refunds that fewer than two people agreed to. A refund
    // to review is not among them, but an approved refund could be counted against itself.
    const others = isToReview ? (alone.get(row.checkout_id) ?? 0) : 0;
    return {
      ...refund,
      ...owner,
      view: viewOf(row),
      checkout_amount: checkout.amount,
      purchased_at,
      days_since_purchase:
        purchased_at === null
          ? null
          : daysBetween(purchased_at, row.created_at, merchant.time_zone),
      /** Null if the refund has begun, must wait or cannot be split. */
      planned:
        isRequested && source && open === null
          ? planOf(row, source.instalments, given, merchant.payment_min)
          : null,
      /** The payments that the refund was taken from, at first and in each retry. */
      parts: parts.get(row.id) ?? [],
      waits_for: isRequested ? open : null,
      // The rate is a share of the merchant's sales, which the role `till` may not see.
      refund_rate: may('overview.read') ? (rates.get(row.merchant_id) ?? null) : null,
      requested_by: requesterOf(refund),
      first_approved_by: firstApproverOf(refund),
      needs_second_person: neededSecondPerson(row, above, others),
      /** The next approval is only the first of two: it does not start the refund. */
      is_first_of_two: isToReview && isFirstOfTwo(row, above, others),
      may_approve: isToReview && !agreedTo(row).some(({ by }) => isSamePerson(by, viewer)),
    };
  });
}

function viewOf({ status, approved_at }: RefundRequest): RefundRow['view'] {
  if (status !== 'requested') return status;
  return approved_at === null ? 'review' : 'approved';
}

/** The split of a refund; null if no split is possible. One row must not fail the whole page. */
function planOf(
  { amount }: RefundRequest,
  instalments: Instalment[],
  returned: ReadonlyMap<number, number>,
  payment_min: number,
): PlannedPart[] | null {
  try {
    return splitRefund(instalments, returned, amount, payment_min);
  } catch {
    return null;
  }
}

function daysBetween(from: Timestamp, to: Timestamp, timeZone: string): number {
  const date = (at: Timestamp) =>
    Temporal.Instant.from(at).toZonedDateTimeISO(timeZone).toPlainDate();
  return date(from).until(date(to)).days;
}
