import type Stripe from 'stripe';
import { invalidRequest } from '../errors.ts';
import { agedRefund } from '../objects/refund.ts';
import type { Kept } from '../store.ts';
import type { Context } from './operation.ts';

const expandable = ['latest_charge', 'payment_method', 'customer'] as const;
type Expand = Set<(typeof expandable)[number]>;

export function readExpand(given: string[] | undefined, prefix = ''): Expand {
  const members = (given ?? []).map((name) => {
    const member = expandable.find((known) => `${prefix}${known}` === name);
    if (member === undefined) {
      throw invalidRequest(`This property cannot be expanded (${name}).`, { param: 'expand' });
    }
    return member;
  });
  return new Set(members);
}

export function present(
  context: Context,
  { object }: Kept<'payment_intent'>,
  expand: Expand,
): Stripe.PaymentIntent {
  const { store } = context;
  const shown = { ...object };
  if (expand.has('latest_charge') && typeof object.latest_charge === 'string') {
    const charge = store.find('charge', object.latest_charge);
    if (charge !== null) shown.latest_charge = presentCharge(context, charge);
  }
  if (expand.has('payment_method') && typeof object.payment_method === 'string') {
    const method = store.find('payment_method', object.payment_method);
    if (method !== null) shown.payment_method = method.object;
  }
  if (expand.has('customer') && typeof object.customer === 'string') {
    const customer = store.find('customer', object.customer);
    if (customer !== null) shown.customer = customer.object;
  }
  return shown;
}

export function presentCharge(context: Context, charge: Kept<'charge'>): Stripe.Charge {
  const amount_refunded = refundedAmount(context, charge);
  const { object } = charge;
  return {
    ...object,
    amount_refunded,
    refunded: object.captured && amount_refunded === object.amount_captured,
  };
}

export function refundedAmount(context: Context, charge: Kept<'charge'>): number {
  return context.store
    .refundsOf(charge.object.id)
    .map((refund) => agedRefund(refund, context.timeOf(refund.merchant)).object)
    .filter(({ status }) => status !== 'failed' && status !== 'canceled')
    .reduce((sum, { amount }) => sum + amount, 0);
}
