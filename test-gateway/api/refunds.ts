import type Stripe from 'stripe';
import { cardNamed } from '../cards.ts';
import { invalidRequest, missing, StripeAnswer } from '../errors.ts';
import { type Form, readForm } from '../form.ts';
import { agedRefund, makeRefund } from '../objects/refund.ts';
import type { Kept } from '../store.ts';
import { settleRefund } from './balance.ts';
import { disputesOf } from './disputes.ts';
import { answerList } from './lists.ts';
import { type Answer, type Context, ok, oneOf } from './operation.ts';
import { refundedAmount } from './presentation.ts';

const refundShape = {
  payment_intent: 'string',
  charge: 'string',
  amount: 'integer',
  reason: 'string',
  metadata: 'metadata',
} as const;

export function createRefund(context: Context, form: Form): Answer {
  const { store } = context;
  const given = readForm(form, refundShape);
  oneOf(given.reason, ['duplicate', 'fraudulent', 'requested_by_customer'], 'reason');
  const charge = findCharge(context, given);
  if (!charge.object.captured) throw notRefundable();
  if (disputesOf(context, charge.object.id).some(isUnrefundable)) {
    throw refused({
      code: 'charge_disputed',
      message: 'This charge has been charged back and cannot be refunded.',
    });
  }
  const remaining = charge.object.amount_captured - refundedAmount(context, charge);
  const amount = given.amount ?? remaining;
  if (remaining === 0) {
    throw refused({
      code: 'charge_already_refunded',
      message: 'This charge has already been refunded.',
    });
  }
  if (amount < 1 || amount > remaining) {
    throw refused({
      message: 'The refund is greater than the unrefunded amount on the charge, or less than 1.',
      param: 'amount',
    });
  }
  const method = store.find('payment_method', String(charge.object.payment_method));
  const refund = makeRefund(
    { merchant: charge.merchant, now: context.timeOf(charge.merchant) },
    charge.object,
    cardNamed(method?.hidden.card ?? 'visa'),
    {
      amount,
      reason: given.reason ?? null,
      metadata: given.metadata ?? {},
      declined: context.decline !== null,
    },
  );
  store.save('refund', refund);
  settleRefund(context, refund);
  return ok(refund.object);
}

/** The charge to refund, named by itself or by its payment. */
function findCharge(
  { store }: Context,
  given: { payment_intent?: string | undefined; charge?: string | undefined },
): Kept<'charge'> {
  if ((given.payment_intent === undefined) === (given.charge === undefined)) {
    throw invalidRequest('Pass exactly one of payment_intent and charge.', {
      code: 'parameter_missing',
      param: 'payment_intent',
    });
  }
  const intent = given.payment_intent && store.find('payment_intent', given.payment_intent);
  const chargeId = intent ? intent.object.latest_charge : given.charge;
  const charge = typeof chargeId === 'string' ? store.find('charge', chargeId) : null;
  if (charge !== null) return charge;
  if (intent) throw notRefundable();
  const [what, id] = given.payment_intent
    ? (['payment_intent', given.payment_intent] as const)
    : (['charge', given.charge ?? ''] as const);
  throw missing(what, id, what);
}

/** A dispute that was won leaves the charge as it was. */
const isUnrefundable = (dispute: Stripe.Dispute) =>
  !dispute.is_charge_refundable && dispute.status !== 'won';

const notRefundable = () =>
  refused({
    code: 'charge_not_refundable',
    message: 'There is no captured charge to refund.',
  });

/** The answer is kept under the request's key, because the request was executed. */
const refused = (about: { code?: string; message: string; param?: string }) =>
  new StripeAnswer(400, { type: 'invalid_request_error', ...about }, true);

export function retrieveRefund(context: Context, form: Form, id: string): Answer {
  readForm(form, {});
  const refund = context.store.find('refund', id);
  if (refund === null) throw missing('refund', id);
  return ok(agedRefund(refund, context.timeOf(refund.merchant)).object);
}

export function listRefunds(context: Context, form: Form): Answer {
  return answerList(context, form, {
    kind: 'refund',
    url: '/v1/refunds',
    filters: ['charge', 'payment_intent'],
    present: (refund) => agedRefund(refund, context.timeOf(refund.merchant)).object,
  });
}
