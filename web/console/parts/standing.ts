import type { CheckoutDetails } from '#operating/operations/checkout.schema.ts';
import { money, shortDate } from '../format.ts';

/** The state of the checkout in short sentences. */
export function standingOf(checkout: CheckoutDetails): string {
  if (checkout.plan.length === 0) {
    return checkout.status === 'received'
      ? 'The shopper has not paid yet.'
      : 'Nothing was collected.';
  }
  const { amount, collected, refunded, cancelled, plan, currency, locale } = checkout;
  const show = (cents: number) => money(cents, currency, locale);
  const lost = checkout.disputes.filter(({ status }) => status === 'lost');
  const sentences = [`${show(collected)} of ${show(amount)} collected.`];
  // A refund also takes money from payments that were not collected yet.
  if (refunded + cancelled > 0) sentences.push(`${show(refunded + cancelled)} refunded.`);
  if (lost.length > 0) {
    const sum = lost.reduce((sum, dispute) => sum + dispute.amount, 0);
    sentences.push(`${show(sum)} lost in ${lost.length === 1 ? 'a dispute' : 'disputes'}.`);
  }
  const late = plan.find(({ status }) => status === 'overdue');
  const next = plan.find(({ status }) => status === 'scheduled' || status === 'authorised');
  if (late) {
    sentences.push(`Payment ${late.number} has been overdue since ${shortDate(late.due_on)}.`);
  } else if (next) {
    sentences.push(`Next: ${show(next.amount - next.reduced)} on ${shortDate(next.due_on)}.`);
  }
  return sentences.join(' ');
}
