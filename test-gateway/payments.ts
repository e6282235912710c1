import type Stripe from 'stripe';
import {
  authenticationRequired,
  type CardBehaviour,
  cardNamed,
  cardNumbered,
  cardOfPaymentMethod,
  passesLuhn,
  type Refusal,
} from './cards.ts';
import { type ErrorBody, invalidRequest, missing, StripeAnswer } from './errors.ts';
import { type Form, readForm } from './form.ts';
import {
  agedIntent,
  agedRefund,
  holdSeconds,
  makeCharge,
  makeConfirmationToken,
  makeCustomer,
  makePaymentIntent,
  makePaymentMethod,
  makeRefund,
  newId,
} from './objects.ts';
import type { Kept, Store } from './store.ts';

/** What an operation knows of the request besides its form. */
export type Context = {
  store: Store;
  /** Where browsers reach the gateway. */
  publicUrl: string;
  merchant: string;
  /** Seconds: the caller's merchant's time. */
  now: number;
  /** Seconds: the time of the merchant whose object it is. */
  timeOf(merchant: string): number;
  /** A decline that a fault asks for. */
  decline: Refusal | null;
};

/** An answer to give and, for a POST with a key, to keep. A decline is one, so what it wrote stays. */
export type Answer = { status: number; body: object };

const ok = (body: object): Answer => ({ status: 200, body });

// Customers

export function createCustomer(context: Context, form: Form): Answer {
  const given = readForm(form, {
    email: 'string',
    name: 'string',
    phone: 'string',
    description: 'string',
    metadata: 'metadata',
  });
  if (given.email !== undefined && !/^[^\s@]+@[^\s@]+\.[^\s@.]+$/.test(given.email)) {
    throw invalidRequest('Invalid email address.', { code: 'email_invalid', param: 'email' });
  }
  const customer = makeCustomer(context, {
    email: given.email ?? null,
    name: given.name ?? null,
    phone: given.phone ?? null,
    description: given.description ?? null,
    metadata: given.metadata ?? {},
  });
  context.store.save('customer', customer);
  return ok(customer.object);
}

export function retrieveCustomer({ store }: Context, form: Form, id: string): Answer {
  readForm(form, {});
  const customer = store.find('customer', id);
  if (customer === null) throw missing('customer', id);
  return ok(customer.object);
}

// Confirmation tokens

const tokenShape = {
  payment_method: 'string',
  payment_method_data: {
    type: 'string',
    card: { number: 'string', exp_month: 'integer', exp_year: 'integer', cvc: 'string' },
  },
  return_url: 'string',
  setup_future_usage: 'string',
} as const;

/** For the card frame, and for tests without a browser as in Stripe's test mode. */
export function createConfirmationToken(context: Context, form: Form): Answer {
  const given = readForm(form, tokenShape);
  const data = given.payment_method_data;
  if ((given.payment_method === undefined) === (data === undefined)) {
    throw invalidRequest('Pass either payment_method or payment_method_data.', {
      code: 'parameter_missing',
      param: 'payment_method_data',
    });
  }
  const year = new Date(context.now * 1000).getUTCFullYear();
  let card: CardBehaviour;
  let expiry = { exp_month: 12, exp_year: year + 3 };
  if (given.payment_method !== undefined) {
    const known = cardOfPaymentMethod(given.payment_method);
    if (known === null) throw missing('PaymentMethod', given.payment_method, 'payment_method');
    card = known;
  } else {
    if (data?.type !== 'card') {
      throw invalidRequest('The test gateway takes cards only.', {
        param: 'payment_method_data[type]',
      });
    }
    card = readCard(data.card ?? {}, context.now);
    expiry = {
      exp_month: data.card?.exp_month ?? expiry.exp_month,
      exp_year: fullYear(data.card?.exp_year ?? expiry.exp_year),
    };
  }
  const token = makeConfirmationToken(context, {
    card,
    expiry,
    return_url: given.return_url ?? null,
    setup_future_usage: given.setup_future_usage ?? null,
  });
  context.store.save('confirmation_token', token);
  return ok(token.object);
}

function fullYear(year: number): number {
  return year < 100 ? 2000 + year : year;
}

/** Which test card it is. A number that is none is refused unread: it may be somebody's. */
function readCard(
  given: { number?: string; exp_month?: number; exp_year?: number; cvc?: string },
  now: number,
): CardBehaviour {
  const number = (given.number ?? '').replace(/[\s-]/g, '');
  const refuse = (code: string, param: string, message: string, decline_code?: string) =>
    new StripeAnswer(402, {
      type: 'card_error',
      code,
      message,
      param,
      ...(decline_code && { decline_code }),
    });
  if (!/^\d{12,19}$/.test(number) || !passesLuhn(number)) {
    throw refuse('incorrect_number', 'number', 'Your card number is incorrect.');
  }
  const card = cardNumbered(number);
  if (card === null) {
    throw refuse(
      'card_declined',
      'number',
      'Your card was declined. Your request was in test mode, but used a non test card.',
      'test_mode_live_card',
    );
  }
  if (given.exp_month !== undefined && !(given.exp_month >= 1 && given.exp_month <= 12)) {
    throw refuse('invalid_expiry_month', 'exp_month', "Your card's expiration month is invalid.");
  }
  if (given.exp_year !== undefined) {
    const year = fullYear(given.exp_year);
    // A card holds to the end of its month, wherever that ends last.
    const ends = Date.UTC(year, given.exp_month ?? 12, 2) / 1000;
    const tooFar = year > new Date(now * 1000).getUTCFullYear() + 50;
    if (ends <= now || tooFar) {
      throw refuse('invalid_expiry_year', 'exp_year', "Your card's expiration year is invalid.");
    }
  }
  if (given.cvc !== undefined && !/^\d{3,4}$/.test(given.cvc)) {
    throw refuse('invalid_cvc', 'cvc', "Your card's security code is invalid.");
  }
  return card;
}

export function retrieveConfirmationToken({ store }: Context, form: Form, id: string): Answer {
  readForm(form, {});
  const token = store.find('confirmation_token', id);
  if (token === null) throw missing('confirmation token', id);
  return ok(token.object);
}

// Payment intents

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
  payment_method_options: { card: { stored_credential_usage: 'string' } },
  description: 'string',
  receipt_email: 'string',
  metadata: 'metadata',
  expand: 'strings',
} as const;

export function createPaymentIntent(context: Context, form: Form): Answer {
  const { store } = context;
  const given = readForm(form, intentShape);
  const expand = readExpand(given.expand);
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
  if (given.confirm !== true) {
    throw invalidRequest('The test gateway takes payments that are confirmed at creation only.', {
      param: 'confirm',
    });
  }
  oneOf(given.capture_method, ['automatic', 'automatic_async', 'manual'], 'capture_method');
  oneOf(given.setup_future_usage, ['off_session', 'on_session'], 'setup_future_usage');
  const usage = given.payment_method_options?.card?.stored_credential_usage;
  oneOf(
    usage,
    ['installment', 'recurring', 'unscheduled'],
    'payment_method_options[card][stored_credential_usage]',
  );
  for (const type of given.allowed_payment_method_types ?? []) {
    oneOf(type, ['card'], 'allowed_payment_method_types');
  }
  const customer = given.customer === undefined ? null : store.find('customer', given.customer);
  if (given.customer !== undefined && customer === null) {
    throw missing('customer', given.customer, 'customer');
  }
  if (amount > 99_999_999 || refusesEverything(customer)) {
    throw invalidRequest('Amount must be no more than 999,999.99.', {
      code: 'amount_too_large',
      param: 'amount',
    });
  }

  if (given.confirmation_token !== undefined && given.payment_method !== undefined) {
    throw invalidRequest('Pass confirmation_token or payment_method, not both.', {
      code: 'parameters_exclusive',
      param: 'payment_method',
    });
  }
  const method =
    given.confirmation_token !== undefined
      ? useToken(context, given.confirmation_token)
      : storedMethod(
          context,
          given.payment_method ?? throwMissing('payment_method'),
          given.customer,
        );
  if (given.off_session !== true && given.return_url === undefined) throwMissing('return_url');

  const intent = makePaymentIntent(context, {
    amount,
    currency,
    customer: given.customer ?? null,
    capture_method: given.capture_method === 'manual' ? 'manual' : 'automatic_async',
    setup_future_usage: (given.setup_future_usage ?? null) as 'off_session' | null,
    stored_credential_usage: usage ?? null,
    description: given.description ?? null,
    receipt_email: given.receipt_email ?? null,
    metadata: given.metadata ?? {},
    payment_method: method.object.id,
    return_url: given.return_url ?? null,
  });

  const card = cardNamed(method.hidden.card);
  if (given.off_session !== true && card.challenge && context.decline === null) {
    challenge(context, intent);
    store.save('payment_method', method);
    store.save('payment_intent', intent);
    return ok(present(context, intent, expand));
  }
  const refusal = context.decline ?? refusalOf(card, method, given.off_session === true);
  const error = attempt(context, intent, method, refusal);
  if (error === null) return ok(present(context, intent, expand));
  return { status: 402, body: { error: { ...error, payment_intent: intent.object } } };
}

const currencies = new Set(Intl.supportedValuesOf('currency'));

/** The way to see a checkout's data refused (D20): a shopper whose address begins so. */
function refusesEverything(customer: Kept<'customer'> | null): boolean {
  return /^refused(\+[^@]*)?@/i.test(customer?.object.email ?? '');
}

function refusalOf(
  card: CardBehaviour,
  method: Kept<'payment_method'>,
  off_session: boolean,
): Refusal | null {
  if (!off_session) return card.payment ?? null;
  if (card.later === 'unless_authenticated') {
    return method.hidden.authenticated ? null : authenticationRequired;
  }
  return card.later ?? null;
}

/** A token pays once; what it becomes is the payment's card. */
function useToken(context: Context, id: string): Kept<'payment_method'> {
  const { store } = context;
  const token = store.find('confirmation_token', id);
  const param = 'confirmation_token';
  if (token === null) throw missing('confirmation token', id, param);
  if (token.hidden.used) {
    throw invalidRequest('This confirmation token has been used.', {
      code: 'token_already_used',
      param,
    });
  }
  const method = makePaymentMethod(context, token);
  store.save('confirmation_token', { ...token, hidden: { ...token.hidden, used: true } });
  return method;
}

function storedMethod(
  { store }: Context,
  id: string,
  customer: string | undefined,
): Kept<'payment_method'> {
  const method = store.find('payment_method', id);
  if (method === null) throw missing('PaymentMethod', id, 'payment_method');
  if (method.object.customer === null || method.object.customer !== customer) {
    throw invalidRequest(
      'The provided PaymentMethod is not attached to this customer and may not be used again.',
      { param: 'payment_method' },
    );
  }
  return method;
}

function challenge({ publicUrl }: Context, intent: Kept<'payment_intent'>): void {
  intent.hidden.challenge = newId('challenge');
  intent.object.status = 'requires_action';
  intent.object.next_action = {
    type: 'redirect_to_url',
    redirect_to_url: {
      return_url: intent.hidden.return_url,
      url: `${publicUrl}/challenge/${intent.object.id}/${intent.hidden.challenge}`,
    },
  };
}

/** Tries the card: the intent and its charge are written, whatever came of it. */
function attempt(
  context: Context,
  intent: Kept<'payment_intent'>,
  method: Kept<'payment_method'>,
  refusal: Refusal | null,
): ErrorBody | null {
  const { store, now } = context;
  const { object } = intent;
  const charge = makeCharge({ merchant: intent.merchant, now }, object, method, refusal);
  object.latest_charge = charge.object.id;
  object.next_action = null;
  let error: ErrorBody | null = null;
  if (refusal === null) {
    object.last_payment_error = null;
    if (object.capture_method === 'manual') {
      object.status = 'requires_capture';
      object.amount_capturable = object.amount;
      intent.hidden.capture_before = now + holdSeconds;
    } else {
      object.status = 'succeeded';
      object.amount_received = object.amount;
    }
    if (object.setup_future_usage !== null && typeof object.customer === 'string') {
      method.object.customer = object.customer;
    }
  } else {
    const { code, decline_code, advice_code, message } = refusal;
    error = {
      type: 'card_error',
      code,
      decline_code,
      advice_code,
      message,
      charge: charge.object.id,
      payment_method: method.object,
    };
    object.status = 'requires_payment_method';
    object.payment_method = null;
    object.last_payment_error = error;
  }
  store.save('payment_method', method);
  store.save('charge', charge);
  store.save('payment_intent', intent);
  return error;
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
  const given = readForm(form, {
    customer: 'string',
    limit: 'integer',
    starting_after: 'string',
    expand: 'strings',
  });
  const expand = readExpand(given.expand, 'data.');
  const limit = readLimit(given.limit);
  const { customer, starting_after: after } = given;
  if (after !== undefined) findIntent(context, after);
  const found = context.store.list('payment_intent', { customer, after, limit: limit + 1 });
  const body: Stripe.ApiList<Stripe.PaymentIntent> = {
    object: 'list',
    data: found
      .slice(0, limit)
      .map((intent) => agedIntent(intent, context.timeOf(intent.merchant)))
      .map((intent) => present(context, intent, expand)),
    has_more: found.length > limit,
    url: '/v1/payment_intents',
  };
  return ok(body);
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
  object.status = 'succeeded';
  object.amount_capturable = 0;
  object.amount_received = amount;
  const charge = store.find('charge', String(object.latest_charge));
  if (charge !== null) {
    charge.object.captured = true;
    charge.object.amount_captured = amount;
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

export type Decision = 'approve' | 'decline' | 'close';

/** What the shopper told the issuer. Only an intent that still waits for it is moved. */
export function decideChallenge(
  context: Context,
  intent: Kept<'payment_intent'>,
  decision: Decision,
): Kept<'payment_intent'> {
  const { store } = context;
  if (decision === 'close' || intent.object.status !== 'requires_action') return intent;
  const method = store.find('payment_method', String(intent.object.payment_method));
  if (method === null) throw new Error('an intent with a challenge has a card');
  const at = { ...context, now: context.timeOf(intent.merchant) };
  if (decision === 'approve') {
    method.hidden.authenticated = true;
    attempt(at, intent, method, cardNamed(method.hidden.card).payment ?? null);
    return intent;
  }
  intent.object.status = 'requires_payment_method';
  intent.object.next_action = null;
  intent.object.payment_method = null;
  intent.object.last_payment_error = {
    type: 'invalid_request_error',
    code: 'payment_intent_authentication_failure',
    message:
      'The provided PaymentMethod has failed authentication. Provide a new one to try this payment again.',
    payment_method: method.object,
  };
  store.save('payment_intent', intent);
  return intent;
}

// Refunds

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
  return ok(refund.object);
}

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
  const given = readForm(form, {
    payment_intent: 'string',
    limit: 'integer',
    starting_after: 'string',
  });
  const limit = readLimit(given.limit);
  const { starting_after: after, payment_intent } = given;
  const intent = payment_intent === undefined ? null : findIntent(context, payment_intent);
  const customer =
    intent === null ? undefined : ((intent.object.customer as string | null) ?? undefined);
  const found = context.store
    .list('refund', { customer, after, limit: Number.MAX_SAFE_INTEGER })
    .filter(({ object }) => intent === null || object.payment_intent === payment_intent);
  const body: Stripe.ApiList<Stripe.Refund> = {
    object: 'list',
    data: found
      .slice(0, limit)
      .map((refund) => agedRefund(refund, context.timeOf(refund.merchant)).object),
    has_more: found.length > limit,
    url: '/v1/refunds',
  };
  return ok(body);
}

function refundedAmount(context: Context, charge: Kept<'charge'>): number {
  return context.store
    .refundsOf(charge.object.id)
    .map((refund) => agedRefund(refund, context.timeOf(refund.merchant)).object)
    .filter(({ status }) => status !== 'failed' && status !== 'canceled')
    .reduce((sum, { amount }) => sum + amount, 0);
}

// Books

/** Everything that happened, aged to now, for tests that compare books. */
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

// Presentation

const expandable = ['latest_charge', 'payment_method', 'customer'] as const;
type Expand = Set<(typeof expandable)[number]>;

function readExpand(given: string[] | undefined, prefix = ''): Expand {
  const members = (given ?? []).map((name) => {
    const member = expandable.find((known) => `${prefix}${known}` === name);
    if (member === undefined) {
      throw invalidRequest(`This property cannot be expanded (${name}).`, { param: 'expand' });
    }
    return member;
  });
  return new Set(members);
}

function present(
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

function presentCharge(context: Context, charge: Kept<'charge'>): Stripe.Charge {
  const amount_refunded = refundedAmount(context, charge);
  const { object } = charge;
  return {
    ...object,
    amount_refunded,
    refunded: object.captured && amount_refunded === object.amount_captured,
  };
}

function readLimit(given: number | undefined): number {
  const limit = given ?? 10;
  if (limit >= 1 && limit <= 100) return limit;
  throw invalidRequest('Invalid limit: it must be between 1 and 100.', { param: 'limit' });
}

function throwMissing(param: string): never {
  throw invalidRequest(`Missing required param: ${param}.`, { code: 'parameter_missing', param });
}

function oneOf(value: string | undefined, allowed: string[], param: string): void {
  if (value === undefined || allowed.includes(value)) return;
  throw invalidRequest(`Invalid ${param}: must be one of ${allowed.join(', ')}`, { param });
}
