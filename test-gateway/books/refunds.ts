import type Stripe from 'stripe';
import { cardNamed } from '../cards.ts';
import { agedRefund, makeRefund } from '../objects/refund.ts';
import type { Kept } from '../store.ts';
import { settleRefund } from './balance.ts';
import type { Context } from './context.ts';
import { disputesOf } from './disputes.ts';

/** The sum of a charge's refunds that have not failed. Pending refunds count. */
export function refundedAmount(context: Context, charge: Kept<'charge'>): number {
  return context.store
    .refundsOf(charge.object.id)
    .map((refund) => agedRefund(refund, context.timeOf(refund.merchant)).object)
    .filter(({ status }) => status !== 'failed' && status !== 'canceled')
    .reduce((sum, { amount }) => sum + amount, 0);
}

/** A charge with the sum of its refunds. */
export function presentCharge(context: Context, charge: Kept<'charge'>): Stripe.Charge {
  const amount_refunded = refundedAmount(context, charge);
  const { object } = charge;
  return {
    ...object,
    amount_refunded,
    refunded: object.captured && amount_refunded === object.amount_captured,
  };
}

/** A dispute that was won does not affect the charge. */
const isUnrefundable = (dispute: Stripe.Dispute) =>
  !dispute.is_charge_refundable && dispute.status !== 'won';

export type RefundProblem = 'not_captured' | 'disputed' | 'nothing_left' | 'wrong_amount';

/** Why the amount cannot be refunded; null if it can. Without an amount, the rest is refunded. */
export function refundProblem(
  context: Context,
  charge: Kept<'charge'>,
  amount: number | undefined,
): RefundProblem | null {
  if (!charge.object.captured) return 'not_captured';
  if (disputesOf(context, charge.object.id).some(isUnrefundable)) return 'disputed';
  const remaining = charge.object.amount_captured - refundedAmount(context, charge);
  if (remaining === 0) return 'nothing_left';
  return amount !== undefined && (amount < 1 || amount > remaining) ? 'wrong_amount' : null;
}

/** Refunds captured money. If the card's bank declines, the refund fails, at once or later. */
export function refundCharge(
  context: Context,
  charge: Kept<'charge'>,
  given: {
    id?: string;
    amount: number | undefined;
    reason: string | null;
    metadata: Record<string, string>;
  },
): Kept<'refund'> {
  const { store } = context;
  const method = store.find('payment_method', String(charge.object.payment_method));
  const remaining = charge.object.amount_captured - refundedAmount(context, charge);
  const refund = makeRefund(
    { merchant: charge.merchant, now: context.timeOf(charge.merchant) },
    charge.object,
    cardNamed(method?.hidden.card ?? 'visa'),
    { ...given, amount: given.amount ?? remaining, declined: context.decline !== null },
  );
  store.save('refund', refund);
  settleRefund(context, refund);
  return refund;
}

/** A refund in its current state; null for an unknown id. */
export function findRefund(context: Context, id: string): Kept<'refund'> | null {
  const refund = context.store.find('refund', id);
  return refund === null ? null : agedRefund(refund, context.timeOf(refund.merchant));
}
