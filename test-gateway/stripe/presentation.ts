import type Stripe from 'stripe';
import type { Context } from '../books/context.ts';
import { presentCharge } from '../books/refunds.ts';
import type { Kept } from '../store.ts';
import { invalidRequest } from './errors.ts';

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
