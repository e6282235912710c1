import type { Context } from '../books/context.ts';
import { findRefund, type RefundProblem, refundCharge, refundProblem } from '../books/refunds.ts';
import { agedRefund } from '../objects/refund.ts';
import type { Kept } from '../store.ts';
import { invalidRequest, missing, StripeAnswer } from './errors.ts';
import { type Form, readForm } from './form.ts';
import { answerList } from './lists.ts';
import { type Answer, ok, oneOf } from './operation.ts';

const refundShape = {
  payment_intent: 'string',
  charge: 'string',
  amount: 'integer',
  reason: 'string',
  metadata: 'metadata',
} as const;

const problems: Record<RefundProblem, { code?: string; message: string; param?: string }> = {
  not_captured: {
    code: 'charge_not_refundable',
    message: 'There is no captured charge to refund.',
  },
  disputed: {
    code: 'charge_disputed',
    message: 'This charge has been charged back and cannot be refunded.',
  },
  nothing_left: {
    code: 'charge_already_refunded',
    message: 'This charge has already been refunded.',
  },
  wrong_amount: {
    message: 'The refund is greater than the unrefunded amount on the charge, or less than 1.',
    param: 'amount',
  },
};

/** The refusal is stored under the request's key, because the request was executed. */
const refused = (problem: RefundProblem) =>
  new StripeAnswer(400, { type: 'invalid_request_error', ...problems[problem] }, true);

export function createRefund(context: Context, form: Form): Answer {
  const given = readForm(form, refundShape);
  oneOf(given.reason, ['duplicate', 'fraudulent', 'requested_by_customer'], 'reason');
  const charge = findCharge(context, given);
  const problem = refundProblem(context, charge, given.amount);
  if (problem !== null) throw refused(problem);
  const refund = refundCharge(context, charge, {
    amount: given.amount,
    reason: given.reason ?? null,
    metadata: given.metadata ?? {},
  });
  return ok(refund.object);
}

/** The charge to refund, given directly or by its payment. */
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
  if (intent) throw refused('not_captured');
  const [what, id] = given.payment_intent
    ? (['payment_intent', given.payment_intent] as const)
    : (['charge', given.charge ?? ''] as const);
  throw missing(what, id, what);
}

export function retrieveRefund(context: Context, form: Form, id: string): Answer {
  readForm(form, {});
  const refund = findRefund(context, id);
  if (refund === null) throw missing('refund', id);
  return ok(refund.object);
}

export function listRefunds(context: Context, form: Form): Answer {
  return answerList(context, form, {
    kind: 'refund',
    url: '/v1/refunds',
    filters: ['charge', 'payment_intent'],
    present: (refund) => agedRefund(refund, context.timeOf(refund.merchant)).object,
  });
}
