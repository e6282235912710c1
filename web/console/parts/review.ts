import type { RefundDetails, RefundRow } from '#operating/operations/refund.schema.ts';
import { money, plural } from '../format.ts';

// The server decides what the button does: `is_first_of_two` says whether it only records a first
// approval. Every other approval starts the refund.

const shown = ({ currency, locale }: RefundRow, cents: number) => money(cents, currency, locale);

/** The label of the review button, and the text that the person must read before pressing it. */
export function reviewOf(row: RefundRow): { approve: string; notice: string | null } {
  const approve = `Approve ${shown(row, row.amount)}`;
  const { first_approved_by: first, requested_by: requester } = row;
  if (row.is_first_of_two) {
    return {
      approve: `${approve} as first approver`,
      notice:
        'Together with earlier refunds that one person approved alone, the amount is above the merchant’s threshold, so two people have to approve it. Your approval is the first and does not start the refund.',
    };
  }
  const asSecond = `${approve} as second approver`;
  if (first !== null) {
    const notice = row.may_approve
      ? `${first.name} approved it first. Your approval starts the refund.`
      : `${first.name} approved it. Another person has to approve it too.`;
    return { approve: asSecond, notice };
  }
  if (requester !== null) {
    const notice = row.may_approve
      ? `${requester.name} asked for it. Your approval starts the refund.`
      : 'You asked for this refund, so another person has to approve it.';
    return { approve: asSecond, notice };
  }
  return { approve, notice: null };
}

/** How a refund stands after it was requested, approved or retried. */
export function outcomeOf(refund: RefundDetails): string {
  const { status, view, reason, waits_for } = refund;
  const the = `The refund of ${shown(refund, refund.amount)}`;
  if (view === 'review') return `${the} now needs a second approval.`;
  if (status === 'complete') return `${the} is complete.`;
  if (status === 'failed') return `${the} failed. ${reason ?? ''}`.trimEnd();
  if (waits_for !== null) return `${the} waits: payment ${waits_for} is being collected.`;
  return status === 'requested' ? `${the} will start soon.` : `${the} has started.`;
}

/** The label and the text for several refunds that are approved at once. */
export function reviewOfAll(rows: RefundRow[]): { approve: string; notice: string } {
  const [any] = rows;
  if (!any) return { approve: '', notice: '' };
  const sumOf = (some: RefundRow[]) => some.reduce((sum, { amount }) => sum + amount, 0);
  const sentenceOf = (some: RefundRow[]) =>
    `${plural(some.length, 'refund')} of ${shown(any, sumOf(some))}`;
  const starting = rows.filter(({ is_first_of_two }) => !is_first_of_two);
  const waiting = rows.length - starting.length;
  const approve = `Approve ${sentenceOf(rows)}`;
  if (waiting === 0) return { approve, notice: 'Your approval starts each of them.' };
  if (starting.length === 0) {
    return { approve: `${approve} as first approver`, notice: 'Each needs a second approval.' };
  }
  return {
    approve: `${approve} and start ${starting.length} of ${shown(any, sumOf(starting))}`,
    notice: `${waiting} then ${waiting === 1 ? 'needs' : 'need'} a second approval.`,
  };
}
