import { cardNamed, type Refusal } from '../cards.ts';
import { type CardError, cardError } from '../objects/card-error.ts';
import { newId } from '../objects/made.ts';
import { authenticateAttempt, makeSetupAttempt } from '../objects/setup-attempt.ts';
import type { Kept } from '../store.ts';
import type { Context } from './context.ts';
import { asStored } from './customers.ts';
import {
  authenticationOf,
  awaitsBank,
  type CardOptions,
  challengeUrl,
  type Decision,
} from './payments.ts';

// A setup stores a card without a payment.

/** A card whose payments are refused may still be stored. */
function refusalOf(method: Kept<'payment_method'>): Refusal | null {
  const card = cardNamed(method.hidden.card);
  return card.setup === 'succeeds' ? null : (card.payment ?? null);
}

/**
 * Stores the card, after a challenge if the bank demands one. Returns why the card was declined, or
 * null.
 */
export function confirmSetup(
  context: Context,
  intent: Kept<'setup_intent'>,
  method: Kept<'payment_method'>,
): CardError | null {
  const { store } = context;
  const { object } = intent;
  object.payment_method = method.object.id;
  const attempt = makeSetupAttempt(object, method);
  intent.hidden.attempt = attempt;
  const options = (object.payment_method_options?.card ?? {}) as CardOptions;
  const authentication = authenticationOf(cardNamed(method.hidden.card), false, options);
  if (authentication !== 'challenge' || context.decline !== null) {
    if (authentication !== null) authenticateAttempt(attempt, authentication);
    return finish(context, intent, method, context.decline ?? refusalOf(method));
  }
  intent.hidden.challenge = newId('challenge');
  object.status = 'requires_action';
  object.next_action = {
    type: 'redirect_to_url',
    redirect_to_url: {
      return_url: intent.hidden.return_url,
      url: challengeUrl(context, object.id, intent.hidden.challenge),
    },
  };
  store.save('payment_method', method);
  store.save('setup_intent', intent);
  return null;
}

/** Attaches the card to the customer, or records why it was refused. */
function finish(
  context: Context,
  intent: Kept<'setup_intent'>,
  entered: Kept<'payment_method'>,
  refusal: Refusal | null,
): CardError | null {
  const { store } = context;
  const { object } = intent;
  const { attempt } = intent.hidden;
  const isStored = refusal === null && typeof object.customer === 'string';
  const method = isStored
    ? asStored(context, entered, String(object.customer), intent.hidden.hyperswitch !== undefined)
    : entered;
  const error = refusal && cardError(refusal, method.object);
  object.next_action = null;
  object.last_setup_error = error;
  if (attempt) attempt.status = refusal === null ? 'succeeded' : 'failed';
  if (refusal === null) {
    object.status = 'succeeded';
    object.payment_method = method.object.id;
  } else {
    object.status = 'requires_payment_method';
    object.payment_method = null;
    if (attempt) attempt.setup_error = error;
  }
  store.save('payment_method', method);
  store.save('setup_intent', intent);
  return error;
}

/** Applies the shopper's answer to the challenge of a setup, if the bank still takes one. */
export function decideSetupChallenge(
  context: Context,
  intent: Kept<'setup_intent'>,
  decision: Decision,
): Kept<'setup_intent'> {
  const { store } = context;
  const { object } = intent;
  const { attempt } = intent.hidden;
  if (decision === 'close' || !awaitsBank(context, intent)) return intent;
  const method = store.find('payment_method', String(object.payment_method));
  if (method === null) throw new Error('a challenged intent has a payment method');
  if (decision === 'approve') {
    method.hidden.authenticated = true;
    if (attempt) authenticateAttempt(attempt, 'challenge');
    finish(context, intent, method, refusalOf(method));
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

export function cancelSetup(
  { store }: Context,
  intent: Kept<'setup_intent'>,
  reason: string | null,
): void {
  const { object } = intent;
  object.status = 'canceled';
  object.cancellation_reason = reason as typeof object.cancellation_reason;
  object.next_action = null;
  if (intent.hidden.attempt) intent.hidden.attempt.status = 'abandoned';
  store.save('setup_intent', intent);
}
