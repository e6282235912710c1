import type { Context } from './books/context.ts';
import {
  disputesOf,
  escalateDispute,
  findDispute,
  isWithheld,
  openDispute,
  presentDispute,
  reinstate,
  settleDispute,
} from './books/disputes.ts';
import { presentCharge } from './books/refunds.ts';
import { type DisputeReason, disputeReasons } from './cards.ts';
import {
  makeBalanceTransaction,
  type UnpaidType,
  unpaidCategories,
} from './objects/balance-transaction.ts';
import { isInquiry } from './objects/dispute.ts';
import { agedIntent } from './objects/payment-intent.ts';
import { agedRefund } from './objects/refund.ts';
import { invalidRequest, missing } from './stripe/errors.ts';
import { type Form, readForm } from './stripe/form.ts';
import { type Answer, ok, oneOf, throwMissing } from './stripe/operation.ts';

// Controls of the gateway for tests and the sandbox, under `/_test/`. They work on the books, so
// they are the same for both APIs. The requests are forms with the secret key, like Stripe's.

/**
 * The payments with their charges and refunds in their current state, for tests that compare them
 * with the service's rows. The caller may ask for one customer or one checkout.
 */
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

/** A control for tests: the gateway forgets a merchant, so that the gateway's lists stay short. */
export function controlForgetting({ store }: Context, form: Form): Answer {
  const { merchant = throwMissing('merchant') } = readForm(form, { merchant: 'string' });
  store.forget(merchant);
  return ok({});
}

/**
 * A control for tests: the balance switches to another currency, or back to that of the payments.
 */
export function controlSettlement(context: Context, form: Form): Answer {
  const { currency, basis_points } = readForm(form, {
    currency: 'string',
    basis_points: 'integer',
  });
  context.account.settlement =
    currency === undefined ? null : { currency, rate: (basis_points ?? 10_000) / 10_000 };
  return ok({});
}

/**
 * A control for tests: the balance moves without a payment. The gateway charges for a service,
 * corrects the balance, or pays it out to the account's own bank.
 */
export function controlTransaction(context: Context, form: Form): Answer {
  const given = readForm(form, { type: 'string', amount: 'integer', currency: 'string' });
  oneOf(given.type, Object.keys(unpaidCategories), 'type');
  const type = (given.type ?? 'stripe_fee') as UnpaidType;
  const transaction = makeBalanceTransaction(
    context,
    {
      type,
      reporting_category: unpaidCategories[type],
      amount: given.amount ?? -1_000,
      fee: null,
      currency: given.currency ?? 'zar',
      description: type === 'stripe_fee' ? 'Radar for Fraud Teams' : null,
      source: null,
    },
    context.account.settlement,
  );
  context.store.save('balance_transaction', transaction);
  return ok(transaction.object);
}

export function controlDispute(context: Context, form: Form): Answer {
  const given = readForm(form, { payment_intent: 'string', reason: 'string', amount: 'integer' });
  const reason = given.reason ?? 'fraudulent';
  oneOf(reason, Object.keys(disputeReasons), 'reason');
  const id = given.payment_intent ?? throwMissing('payment_intent');
  const intent = context.store.find('payment_intent', id);
  const charge = intent && context.store.find('charge', String(intent.object.latest_charge));
  if (!charge) throw missing('payment_intent', id, 'payment_intent');
  const amount = given.amount ?? charge.object.amount_captured;
  if (!charge.object.captured || amount < 1 || amount > charge.object.amount_captured) {
    throw invalidRequest('Only what was captured can be disputed.', { param: 'amount' });
  }
  if (disputesOf(context, charge.object.id).some(({ status }) => !isOver(status))) {
    throw invalidRequest('The payment is disputed already.', { param: 'payment_intent' });
  }
  const dispute = openDispute(context, charge, { reason: reason as DisputeReason, amount });
  return ok(presentDispute(context, dispute));
}

const isOver = (status: string) => ['won', 'lost', 'warning_closed'].includes(status);

/**
 * The bank decides: `won`, `lost`, or an inquiry becomes a dispute (`escalated`). With `withheld`,
 * the money of a won dispute comes back only at a later call with `reinstated`.
 */
export function controlResolution(context: Context, form: Form, id: string): Answer {
  const given = readForm(form, { outcome: 'string', withheld: 'boolean' });
  const { outcome = throwMissing('outcome'), withheld = false } = given;
  oneOf(outcome, ['won', 'lost', 'escalated', 'reinstated'], 'outcome');
  const dispute = findDispute(context, id);
  if (dispute === null) throw missing('dispute', id);
  const { object } = dispute;
  const isPossible =
    outcome === 'reinstated'
      ? isWithheld(context, dispute)
      : !isOver(object.status) && (outcome !== 'escalated' || isInquiry(object));
  if (!isPossible) {
    throw invalidRequest(`A dispute with a status of ${object.status} cannot be ${outcome}.`, {
      param: 'outcome',
    });
  }
  if (outcome === 'escalated') escalateDispute(context, dispute);
  else if (outcome === 'reinstated') reinstate(context, dispute);
  else settleDispute(context, dispute, outcome === 'won' ? 'won' : 'lost', !withheld);
  return ok(presentDispute(context, dispute));
}
