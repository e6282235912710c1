import type Stripe from 'stripe';
import { cardNamed, type Refusal } from '../cards.ts';
import { type ErrorBody, invalidRequest, missing, StripeAnswer } from '../errors.ts';
import { type Form, readForm } from '../form.ts';
import { newId } from '../objects/made.ts';
import { authenticateAttempt, makeSetupAttempt } from '../objects/setup-attempt.ts';
import { makeSetupIntent } from '../objects/setup-intent.ts';
import type { Kept } from '../store.ts';
import { authenticationOf, type Decision, readCardOptions, useToken } from './card-payments.ts';
import { findCustomer } from './customers.ts';
import { answerList } from './lists.ts';
import { type Answer, type Context, ok, oneOf, throwMissing } from './operation.ts';

const setupShape = {
  confirm: 'boolean',
  confirmation_token: 'string',
  customer: 'string',
  description: 'string',
  usage: 'string',
  return_url: 'string',
  allowed_payment_method_types: 'strings',
  payment_method_options: {
    card: { setup_credential_usage: 'string', request_three_d_secure: 'string' },
  },
  metadata: 'metadata',
  expand: 'strings',
} as const;

/** Stores another card for a customer, after a challenge if the bank demands one. */
export function createSetupIntent(context: Context, form: Form): Answer {
  const { store } = context;
  const given = readForm(form, setupShape);
  const expand = readExpand(given.expand);
  if (given.confirm !== true) {
    throw invalidRequest('The test gateway takes setups that are confirmed at creation only.', {
      param: 'confirm',
    });
  }
  oneOf(given.usage, ['off_session', 'on_session'], 'usage');
  for (const type of given.allowed_payment_method_types ?? []) {
    oneOf(type, ['card'], 'allowed_payment_method_types');
  }
  const options = readCardOptions(given.payment_method_options?.card);
  if (given.customer !== undefined && findCustomer(context, given.customer) === null) {
    throw missing('customer', given.customer, 'customer');
  }
  if (given.return_url === undefined) throwMissing('return_url');
  const method = useToken(context, given.confirmation_token ?? throwMissing('confirmation_token'));
  const intent = makeSetupIntent(context, {
    customer: given.customer ?? null,
    payment_method: method.object.id,
    description: given.description ?? null,
    metadata: given.metadata ?? {},
    usage: given.usage ?? 'off_session',
    card_options: options,
    return_url: given.return_url ?? null,
  });
  const made = makeSetupAttempt(intent.object, method);
  intent.hidden.attempt = made;
  const card = cardNamed(method.hidden.card);
  const authentication = authenticationOf(card, false, options);
  if (authentication === 'challenge' && context.decline === null) {
    intent.hidden.challenge = newId('challenge');
    intent.object.status = 'requires_action';
    intent.object.next_action = {
      type: 'redirect_to_url',
      redirect_to_url: {
        return_url: intent.hidden.return_url,
        url: `${context.publicUrl}/challenge/${intent.object.id}/${intent.hidden.challenge}`,
      },
    };
    store.save('payment_method', method);
    store.save('setup_intent', intent);
    return ok(present(context, intent, expand));
  }
  if (authentication !== null) authenticateAttempt(made, authentication);
  const refusal = context.decline ?? (card.setup === 'succeeds' ? null : (card.payment ?? null));
  const error = finish(context, intent, method, refusal);
  if (error === null) return ok(present(context, intent, expand));
  return { status: 402, body: { error: { ...error, setup_intent: intent.object } } };
}

/** Attaches the card to the customer, or records why it was refused. */
function finish(
  { store }: Context,
  intent: Kept<'setup_intent'>,
  method: Kept<'payment_method'>,
  refusal: Refusal | null,
): ErrorBody | null {
  const { object } = intent;
  const { attempt } = intent.hidden;
  object.next_action = null;
  let error: ErrorBody | null = null;
  if (attempt) attempt.status = refusal === null ? 'succeeded' : 'failed';
  if (refusal === null) {
    object.status = 'succeeded';
    object.last_setup_error = null;
    method.object.customer = object.customer as string | null;
  } else {
    const { code, decline_code, advice_code, message } = refusal;
    error = {
      type: 'card_error',
      code,
      decline_code,
      advice_code,
      message,
      payment_method: method.object,
    };
    object.status = 'requires_payment_method';
    object.payment_method = null;
    object.last_setup_error = error as Stripe.SetupIntent.LastSetupError;
    if (attempt) attempt.setup_error = error as Stripe.SetupAttempt.SetupError;
  }
  store.save('payment_method', method);
  store.save('setup_intent', intent);
  return error;
}

/** Applies the shopper's answer to the challenge of a setup. */
export function decideSetupChallenge(
  context: Context,
  intent: Kept<'setup_intent'>,
  decision: Decision,
): Kept<'setup_intent'> {
  const { store } = context;
  const { object } = intent;
  const { attempt } = intent.hidden;
  if (decision === 'close' || object.status !== 'requires_action') return intent;
  const method = store.find('payment_method', String(object.payment_method));
  if (method === null) throw new Error('an intent in requires_action has a payment method');
  if (decision === 'approve') {
    method.hidden.authenticated = true;
    if (attempt) authenticateAttempt(attempt, 'challenge');
    const card = cardNamed(method.hidden.card);
    finish(context, intent, method, card.setup === 'succeeds' ? null : (card.payment ?? null));
    return intent;
  }
  object.status = 'requires_payment_method';
  object.next_action = null;
  object.payment_method = null;
  object.last_setup_error = {
    type: 'invalid_request_error',
    code: 'setup_intent_authentication_failure',
    message:
      'The provided PaymentMethod has failed authentication. Provide a new one to set up this SetupIntent again.',
    payment_method: method.object,
  };
  if (attempt) {
    attempt.status = 'failed';
    authenticateAttempt(attempt, 'failed');
  }
  store.save('setup_intent', intent);
  return intent;
}

export function findSetup({ store }: Context, id: string): Kept<'setup_intent'> {
  const intent = store.find('setup_intent', id);
  if (intent === null) throw missing('setupintent', id, 'intent');
  return intent;
}

export function retrieveSetupIntent(context: Context, form: Form, id: string): Answer {
  const given = readForm(form, { client_secret: 'string', expand: 'strings' });
  const intent = findSetup(context, id);
  if (given.client_secret !== undefined && given.client_secret !== intent.object.client_secret) {
    throw invalidRequest('The client_secret provided does not match this SetupIntent.', {
      code: 'setup_intent_invalid_parameter',
      param: 'client_secret',
    });
  }
  return ok(present(context, intent, readExpand(given.expand)));
}

export function listSetupIntents(context: Context, form: Form): Answer {
  return answerList(context, form, {
    isExpandable: true,
    kind: 'setup_intent',
    url: '/v1/setup_intents',
    filters: ['customer', 'payment_method'],
    present: (intent, expand) => present(context, intent, readExpand(expand, 'data.')),
  });
}

export function cancelSetupIntent(context: Context, form: Form, id: string): Answer {
  const given = readForm(form, { cancellation_reason: 'string', expand: 'strings' });
  const reasons = ['abandoned', 'duplicate', 'requested_by_customer'];
  oneOf(given.cancellation_reason, reasons, 'cancellation_reason');
  const intent = findSetup(context, id);
  const { object } = intent;
  if (object.status === 'succeeded' || object.status === 'canceled') {
    throw new StripeAnswer(
      400,
      {
        type: 'invalid_request_error',
        code: 'setup_intent_unexpected_state',
        message: `You cannot cancel this SetupIntent because it has a status of ${object.status}.`,
        setup_intent: object,
      },
      true,
    );
  }
  object.status = 'canceled';
  object.cancellation_reason = given.cancellation_reason ?? null;
  object.next_action = null;
  if (intent.hidden.attempt) intent.hidden.attempt.status = 'abandoned';
  context.store.save('setup_intent', intent);
  return ok(present(context, intent, readExpand(given.expand)));
}

type Expand = { method: boolean; attempt: boolean };

function readExpand(given: string[] = [], prefix = ''): Expand {
  const [method, attempt] = [`${prefix}payment_method`, `${prefix}latest_attempt`];
  const unknown = given.find((name) => name !== method && name !== attempt);
  if (unknown !== undefined) {
    throw invalidRequest(`This property cannot be expanded (${unknown}).`, { param: 'expand' });
  }
  return { method: given.includes(method), attempt: given.includes(attempt) };
}

function present(
  { store }: Context,
  { object, hidden }: Kept<'setup_intent'>,
  expand: Expand,
): Stripe.SetupIntent {
  const method = expand.method ? store.find('payment_method', String(object.payment_method)) : null;
  return {
    ...object,
    ...(method !== null && { payment_method: method.object }),
    ...(expand.attempt && hidden.attempt && { latest_attempt: hidden.attempt }),
  };
}
