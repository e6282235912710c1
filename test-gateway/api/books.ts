import { type Form, readForm } from '../form.ts';
import { agedIntent } from '../objects/payment-intent.ts';
import { agedRefund } from '../objects/refund.ts';
import { type Answer, type Context, ok } from './operation.ts';
import { presentCharge } from './presentation.ts';

/** All payments, charges and refunds as of now, for tests that compare them with the service's. */
export function books(context: Context, form: Form): Answer {
  const { customer, checkout } = readForm(form, { customer: 'string', checkout: 'string' });
  const { store } = context;
  const limit = Number.MAX_SAFE_INTEGER;
  const intents = store
    .list('payment_intent', { customer, limit })
    .map((intent) => agedIntent(intent, context.timeOf(intent.merchant)))
    .filter(({ object }) => checkout === undefined || object.metadata.checkout_id === checkout);
  const ids = new Set(intents.map(({ object }) => object.id));
  const charges = store
    .list('charge', { customer, limit })
    .filter(({ object }) => ids.has(String(object.payment_intent)));
  const refunds = store
    .list('refund', { customer, limit })
    .filter(({ object }) => ids.has(String(object.payment_intent)));
  return ok({
    payment_intents: intents.map(({ object }) => object),
    charges: charges.map((charge) => presentCharge(context, charge)),
    refunds: refunds.map((refund) => agedRefund(refund, context.timeOf(refund.merchant)).object),
  });
}
