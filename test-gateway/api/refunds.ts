import type Stripe from 'stripe';
import { cardNamed } from '../cards.ts';
import { invalidRequest, missing, StripeAnswer } from '../errors.ts';
import { type Form, readForm } from '../form.ts';
import { agedRefund, makeRefund } from '../objects/refund.ts';
import { settleRefund } from './balance.ts';
import { disputesOf } from './disputes.ts';
import { answerList } from './lists.ts';
import { type Answer, type Context, ok, oneOf } from './operation.ts';
import { refundedAmount } from './presentation.ts';

export function createRefund(context: Context, form: Form): Answer {
  const { store } = context;
  const given = readForm(form, {
    payment_intent: 'string',
    charge: 'string',
    amount: 'integer',
    reason: 'string',
    metadata: 'metadata',
  });
  oneOf(given.reason, ['duplicate', 'fraudulent', 'requested_by_customer'], 'reason');
  if ((given.payment_intent === undefined) === (given.charge === undefined)) {
    throw invalidRequest('Pass exactly one of payment_intent and charge.', {
      code: 'parameter_missing',
      param: 'payment_intent',
    });
  }
  const intent = given.payment_intent && store.find('payment_intent', given.payment_intent);
  const chargeId = intent ? intent.object.latest_charge : given.charge;
  const charge = typeof chargeId === 'string' ? store.find('charge', chargeId) : null;
  if (charge === null) {
    if (intent) throw notRefundable();
    const [what, id] = given.payment_intent
      ? (['payment_intent', given.payment_intent] as const)
      : (['charge', given.charge ?? ''] as const);
    throw missing(what, id, what);
  }
  if (!charge.object.captured) throw notRefundable();
  if (disputesOf(context, charge.object.id).some(isUnrefundable)) {
    throw new StripeAnswer(
      400,
      {
        type: 'invalid_request_error',
        code: 'charge_disputed',
        message: 'This charge has been charged back and cannot be refunded.',
      },
      true,
    );
  }
  const remaining = charge.object.amount_captured - refundedAmount(context, charge);
  const amount = given.amount ?? remaining;
  if (remaining === 0) {
    throw new StripeAnswer(
      400,
      {
        type: 'invalid_request_error',
        code: 'charge_already_refunded',
        message: 'This charge has already been refunded.',
      },
      true,
    );
  }
  if (amount < 1 || amount > remaining) {
    throw new StripeAnswer(
      400,
      {
        type: 'invalid_request_error',
        message: 'The refund is greater than the unrefunded amount on the charge, or less than 1.',
        param: 'amount',
      },
      true,
    );
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

/** A dispute that was won leaves the charge as it was. */
const isUnrefundable = (dispute: Stripe.Dispute) =>
  !dispute.is_charge_refundable && dispute.status !== 'won';

function notRefundable(): StripeAnswer {
  return new StripeAnswer(
    400,
    {
      type: 'invalid_request_error',
      code: 'charge_not_refundable',
      message: 'There is no captured charge to refund.',
    },
    true,
  );
}

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
