import { amountProblem, type Context, descriptorProblem } from '../books/context.ts';
import { findCustomer } from '../books/customers.ts';
import { cancelIntent, captureIntent, confirmIntent, findIntent } from '../books/payments.ts';
import { agedIntent, makePaymentIntent } from '../objects/payment-intent.ts';
import type { Kept } from '../store.ts';
import { readCardOptions, storedMethod, useToken } from './entered-cards.ts';
import { invalidRequest, missing, StripeAnswer } from './errors.ts';
import { type Form, readForm } from './form.ts';
import { answerList } from './lists.ts';
import { type Answer, ok, oneOf, throwMissing } from './operation.ts';
import { present, readExpand } from './presentation.ts';

const intentShape = {
  amount: 'integer',
  currency: 'string',
  customer: 'string',
  confirm: 'boolean',
  confirmation_token: 'string',
  payment_method: 'string',
  off_session: 'boolean',
  capture_method: 'string',
  setup_future_usage: 'string',
  return_url: 'string',
  allowed_payment_method_types: 'strings',
  payment_method_options: {
    card: {
      stored_credential_usage: 'string',
      setup_credential_usage: 'string',
      request_three_d_secure: 'string',
    },
  },
  statement_descriptor_suffix: 'string',
  description: 'string',
  receipt_email: 'string',
  metadata: 'metadata',
  expand: 'strings',
} as const;

/** Reads the parameters of a new payment by their kinds. Their values are checked later. */
const readIntent = (form: Form) => readForm(form, intentShape);
type GivenIntent = ReturnType<typeof readIntent>;

export function createPaymentIntent(context: Context, form: Form): Answer {
  const given = readIntent(form);
  const expand = readExpand(given.expand);
  const { amount, currency } = checkAmount(given);
  const card_options = checkOptions(context, given);
  checkLimits(context, given, amount, currency);
  const method = methodOf(context, given);
  if (given.off_session !== true && given.return_url === undefined) throwMissing('return_url');

  const intent = makePaymentIntent(context, {
    amount,
    currency,
    customer: given.customer ?? null,
    capture_method: given.capture_method === 'manual' ? 'manual' : 'automatic_async',
    setup_future_usage: (given.setup_future_usage ?? null) as 'off_session' | null,
    card_options,
    statement_descriptor_suffix: given.statement_descriptor_suffix ?? null,
    description: given.description ?? null,
    receipt_email: given.receipt_email ?? null,
    metadata: given.metadata ?? {},
    payment_method: method.object.id,
    return_url: given.return_url ?? null,
  });

  const error = confirmIntent(context, intent, method, given.off_session === true);
  if (error === null) return ok(present(context, intent, expand));
  return { status: 402, body: { error: { ...error, payment_intent: intent.object } } };
}

function checkAmount(given: GivenIntent): { amount: number; currency: string } {
  const amount = given.amount ?? throwMissing('amount');
  const currency = given.currency ?? throwMissing('currency');
  if (amount < 1) {
    throw invalidRequest('This value must be greater than or equal to 1.', {
      code: 'parameter_invalid_integer',
      param: 'amount',
    });
  }
  if (!/^[a-z]{3}$/.test(currency) || !currencies.has(currency.toUpperCase())) {
    throw invalidRequest('Invalid currency.', { param: 'currency' });
  }
  return { amount, currency };
}

function checkOptions(context: Context, given: GivenIntent): ReturnType<typeof readCardOptions> {
  if (given.confirm !== true) {
    throw invalidRequest('The test gateway takes payments that are confirmed at creation only.', {
      param: 'confirm',
    });
  }
  oneOf(given.capture_method, ['automatic', 'automatic_async', 'manual'], 'capture_method');
  oneOf(given.setup_future_usage, ['off_session', 'on_session'], 'setup_future_usage');
  const options = readCardOptions(given.payment_method_options?.card);
  const suffix = given.statement_descriptor_suffix;
  const wrong = suffix === undefined ? null : descriptorProblem(context, suffix);
  if (wrong !== null) throw invalidRequest(wrong, { param: 'statement_descriptor_suffix' });
  for (const type of given.allowed_payment_method_types ?? []) {
    oneOf(type, ['card'], 'allowed_payment_method_types');
  }
  return options;
}

function checkLimits(context: Context, given: GivenIntent, amount: number, currency: string): void {
  if (given.customer !== undefined && findCustomer(context, given.customer) === null) {
    throw missing('customer', given.customer, 'customer');
  }
  const problem = amountProblem(context, amount, given.customer ?? null);
  if (problem === 'too_small') throw tooSmall(context, currency, 'amount');
  if (problem === 'too_large') {
    throw invalidRequest('Amount must be no more than 999,999.99.', {
      code: 'amount_too_large',
      param: 'amount',
    });
  }
}

function methodOf(context: Context, given: GivenIntent): Kept<'payment_method'> {
  const { confirmation_token, payment_method } = given;
  if (confirmation_token !== undefined && payment_method !== undefined) {
    throw invalidRequest('Pass confirmation_token or payment_method, not both.', {
      code: 'parameters_exclusive',
      param: 'payment_method',
    });
  }
  if (confirmation_token !== undefined) return useToken(context, confirmation_token);
  return storedMethod(context, payment_method ?? throwMissing('payment_method'), given.customer);
}

function tooSmall({ account }: Context, currency: string, param: string): StripeAnswer {
  const least = (account.amountMin / 100).toFixed(2);
  return invalidRequest(`Amount must be at least ${least} ${currency}.`, {
    code: 'amount_too_small',
    param,
  });
}

const currencies = new Set(Intl.supportedValuesOf('currency'));

function openedIntent(context: Context, id: string): Kept<'payment_intent'> {
  const intent = findIntent(context, id);
  if (intent === null) throw missing('payment_intent', id, 'intent');
  return intent;
}

export function retrievePaymentIntent(context: Context, form: Form, id: string): Answer {
  const given = readForm(form, { client_secret: 'string', expand: 'strings' });
  const expand = readExpand(given.expand);
  const intent = openedIntent(context, id);
  if (given.client_secret !== undefined && given.client_secret !== intent.object.client_secret) {
    throw invalidRequest('The client_secret provided does not match this PaymentIntent.', {
      code: 'payment_intent_invalid_parameter',
      param: 'client_secret',
    });
  }
  return ok(present(context, intent, expand));
}

export function listPaymentIntents(context: Context, form: Form): Answer {
  return answerList(context, form, {
    isExpandable: true,
    kind: 'payment_intent',
    url: '/v1/payment_intents',
    filters: ['customer'],
    present: (intent, expand) =>
      present(
        context,
        agedIntent(intent, context.timeOf(intent.merchant)),
        readExpand(expand, 'data.'),
      ),
  });
}

export function capturePaymentIntent(context: Context, form: Form, id: string): Answer {
  const given = readForm(form, { amount_to_capture: 'integer', expand: 'strings' });
  const expand = readExpand(given.expand);
  const intent = openedIntent(context, id);
  const { object } = intent;
  if (object.status !== 'requires_capture') throw unexpectedState(intent, 'captured');
  const amount = given.amount_to_capture ?? object.amount_capturable;
  if (amount < 1 || amount > object.amount_capturable) {
    throw invalidRequest('The amount to capture is more than can be captured, or less than 1.', {
      code: 'amount_too_large',
      param: 'amount_to_capture',
    });
  }
  if (amount < context.account.amountMin)
    throw tooSmall(context, object.currency, 'amount_to_capture');
  captureIntent(context, intent, amount);
  return ok(present(context, intent, expand));
}

export function cancelPaymentIntent(context: Context, form: Form, id: string): Answer {
  const given = readForm(form, { cancellation_reason: 'string', expand: 'strings' });
  const expand = readExpand(given.expand);
  oneOf(
    given.cancellation_reason,
    ['abandoned', 'duplicate', 'fraudulent', 'requested_by_customer'],
    'cancellation_reason',
  );
  const intent = openedIntent(context, id);
  const { object } = intent;
  if (object.status === 'succeeded' || object.status === 'canceled') {
    throw unexpectedState(intent, 'canceled');
  }
  cancelIntent(context, intent, given.cancellation_reason ?? null);
  return ok(present(context, intent, expand));
}

function unexpectedState({ object }: Kept<'payment_intent'>, wanted: string): StripeAnswer {
  return new StripeAnswer(
    400,
    {
      type: 'invalid_request_error',
      code: 'payment_intent_unexpected_state',
      message: `This PaymentIntent could not be ${wanted} because it has a status of ${object.status}.`,
      payment_intent: object,
    },
    true,
  );
}
