import { cardNamed } from '../cards.ts';
import { invalidRequest, missing, StripeAnswer } from '../errors.ts';
import { type Form, readForm } from '../form.ts';
import { completeDescriptor } from '../objects/charge.ts';
import { agedIntent, makePaymentIntent } from '../objects/payment-intent.ts';
import type { Kept } from '../store.ts';
import { settleCharge } from './balance.ts';
import {
  attempt,
  authenticationOf,
  challenge,
  readCardOptions,
  refusalOf,
  storedMethod,
  useToken,
} from './card-payments.ts';
import { findCustomer } from './customers.ts';
import { answerList } from './lists.ts';
import { type Answer, type Context, ok, oneOf, throwMissing } from './operation.ts';
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

/** The parameters of a payment that is created, read and not yet checked. */
const readIntent = (form: Form) => readForm(form, intentShape);
type GivenIntent = ReturnType<typeof readIntent>;

export function createPaymentIntent(context: Context, form: Form): Answer {
  const { store } = context;
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

  const card = cardNamed(method.hidden.card);
  const authentication = authenticationOf(card, given.off_session === true, card_options);
  if (authentication === 'challenge' && context.decline === null) {
    challenge(context, intent);
    store.save('payment_method', method);
    store.save('payment_intent', intent);
    return ok(present(context, intent, expand));
  }
  const refusal = context.decline ?? refusalOf(card, method, given.off_session === true);
  const error = attempt(context, intent, method, refusal, authentication);
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
  checkDescriptor(context, given.statement_descriptor_suffix);
  for (const type of given.allowed_payment_method_types ?? []) {
    oneOf(type, ['card'], 'allowed_payment_method_types');
  }
  return options;
}

function checkLimits(context: Context, given: GivenIntent, amount: number, currency: string): void {
  const customer = given.customer === undefined ? null : findCustomer(context, given.customer);
  if (given.customer !== undefined && customer === null) {
    throw missing('customer', given.customer, 'customer');
  }
  if (amount < context.account.amountMin) throw tooSmall(context, currency, 'amount');
  if (amount > 99_999_999 || refusesEverything(customer)) {
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

/** The rules of Stripe and the card schemes for what a statement shows. */
function checkDescriptor({ account }: Context, suffix: string | undefined): void {
  if (suffix === undefined) return;
  const param = 'statement_descriptor_suffix';
  if (/[<>\\'"*]|[^\x20-\x7e]/.test(suffix) || !/[a-z]/i.test(suffix)) {
    throw invalidRequest(
      'The statement descriptor suffix needs a letter, and must not contain <, >, \\, \', ", * or characters other than ASCII.',
      { param },
    );
  }
  const complete = completeDescriptor(account.descriptorPrefix, suffix);
  if (complete.length < 5 || complete.length > 22) {
    throw invalidRequest(
      `The statement descriptor must have 5 to 22 characters with its prefix: "${complete}" has ${complete.length}.`,
      { param },
    );
  }
}

/** A shopper with such an address has every payment refused (decision 0011). */
function refusesEverything(customer: Kept<'customer'> | null): boolean {
  return /^refused(\+[^@]*)?@/i.test(customer?.object.email ?? '');
}

export function findIntent(context: Context, id: string): Kept<'payment_intent'> {
  const intent = context.store.find('payment_intent', id);
  if (intent === null) throw missing('payment_intent', id, 'intent');
  return agedIntent(intent, context.timeOf(intent.merchant));
}

export function retrievePaymentIntent(context: Context, form: Form, id: string): Answer {
  const given = readForm(form, { client_secret: 'string', expand: 'strings' });
  const expand = readExpand(given.expand);
  const intent = findIntent(context, id);
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
  const { store } = context;
  const given = readForm(form, { amount_to_capture: 'integer', expand: 'strings' });
  const expand = readExpand(given.expand);
  const intent = findIntent(context, id);
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
  object.status = 'succeeded';
  object.amount_capturable = 0;
  object.amount_received = amount;
  const charge = store.find('charge', String(object.latest_charge));
  if (charge !== null) {
    charge.object.captured = true;
    charge.object.amount_captured = amount;
    const method = store.find('payment_method', String(charge.object.payment_method));
    settleCharge(context, charge, method);
    store.save('charge', charge);
  }
  store.save('payment_intent', intent);
  return ok(present(context, intent, expand));
}

export function cancelPaymentIntent(context: Context, form: Form, id: string): Answer {
  const { store } = context;
  const given = readForm(form, { cancellation_reason: 'string', expand: 'strings' });
  const expand = readExpand(given.expand);
  oneOf(
    given.cancellation_reason,
    ['abandoned', 'duplicate', 'fraudulent', 'requested_by_customer'],
    'cancellation_reason',
  );
  const intent = findIntent(context, id);
  const { object } = intent;
  if (object.status === 'succeeded' || object.status === 'canceled') {
    throw unexpectedState(intent, 'canceled');
  }
  object.status = 'canceled';
  object.amount_capturable = 0;
  object.canceled_at = context.timeOf(intent.merchant);
  object.cancellation_reason = given.cancellation_reason ?? null;
  object.next_action = null;
  store.save('payment_intent', intent);
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
