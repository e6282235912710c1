import type Stripe from 'stripe';
import type { Context } from '../books/context.ts';
import { findCustomer } from '../books/customers.ts';
import { cancelSetup, confirmSetup } from '../books/setups.ts';
import { makeSetupIntent } from '../objects/setup-intent.ts';
import type { Kept } from '../store.ts';
import { readCardOptions, useToken } from './entered-cards.ts';
import { invalidRequest, missing, StripeAnswer } from './errors.ts';
import { type Form, readForm } from './form.ts';
import { answerList } from './lists.ts';
import { type Answer, ok, oneOf, throwMissing } from './operation.ts';

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
  const error = confirmSetup(context, intent, method);
  if (error === null) return ok(present(context, intent, expand));
  return { status: 402, body: { error: { ...error, setup_intent: intent.object } } };
}

function findSetup({ store }: Context, id: string): Kept<'setup_intent'> {
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
  cancelSetup(context, intent, given.cancellation_reason ?? null);
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
