import { authenticationRequired, type CardBehaviour, cardNamed, type Refusal } from '../cards.ts';
import { type ErrorBody, invalidRequest, missing } from '../errors.ts';
import { makePaymentMethod } from '../objects/card.ts';
import { type Authentication, makeCharge } from '../objects/charge.ts';
import { newId } from '../objects/made.ts';
import { holdSeconds } from '../objects/payment-intent.ts';
import type { Kept } from '../store.ts';
import { settleCharge } from './balance.ts';
import { type Context, oneOf } from './operation.ts';

type CardOptions = {
  stored_credential_usage?: string | undefined;
  setup_credential_usage?: string | undefined;
  request_three_d_secure?: string | undefined;
};

export function readCardOptions(given: CardOptions = {}): CardOptions {
  const usages = ['installment', 'recurring', 'unscheduled'];
  const under = (name: string) => `payment_method_options[card][${name}]`;
  oneOf(given.stored_credential_usage, usages, under('stored_credential_usage'));
  oneOf(given.setup_credential_usage, usages, under('setup_credential_usage'));
  const requests = ['any', 'automatic', 'challenge'];
  oneOf(given.request_three_d_secure, requests, under('request_three_d_secure'));
  return given;
}

/** The effect of 3-D Secure: none without the shopper, or if neither card nor caller demands it. */
export function authenticationOf(
  card: CardBehaviour,
  off_session: boolean,
  { request_three_d_secure: requested = 'automatic' }: CardOptions,
): Authentication | null {
  if (off_session) return null;
  if (card.challenge) return 'challenge';
  return requested === 'automatic' ? null : (card.three_d_secure ?? 'frictionless');
}

export function refusalOf(
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

/** Turns a token into a payment method. A token can be used once. */
export function useToken(context: Context, id: string): Kept<'payment_method'> {
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

export function storedMethod(
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

export function challenge({ publicUrl }: Context, intent: Kept<'payment_intent'>): void {
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

/**
 * Charges or holds the card, and saves the intent and its charge whether it was declined or not.
 */
export function attempt(
  context: Context,
  intent: Kept<'payment_intent'>,
  method: Kept<'payment_method'>,
  refusal: Refusal | null,
  authentication: Authentication | null,
): ErrorBody | null {
  const { store, now } = context;
  const { object } = intent;
  const charge = makeCharge({ merchant: intent.merchant, now }, object, method, refusal, {
    authentication,
    descriptorPrefix: context.account.descriptorPrefix,
  });
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
      settleCharge(context, charge, method);
    }
    if (object.setup_future_usage !== null && typeof object.customer === 'string') {
      method.object.customer = object.customer;
    }
  } else {
    const { code, decline_code, advice_code, message, network_decline_code } = refusal;
    error = {
      type: 'card_error',
      code,
      decline_code,
      advice_code,
      ...(network_decline_code !== undefined && { network_decline_code }),
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

export type Decision = 'approve' | 'decline' | 'close';

/** Applies the shopper's answer to a challenge. Only an intent in `requires_action` changes. */
export function decideChallenge(
  context: Context,
  intent: Kept<'payment_intent'>,
  decision: Decision,
): Kept<'payment_intent'> {
  const { store } = context;
  if (decision === 'close' || intent.object.status !== 'requires_action') return intent;
  const method = store.find('payment_method', String(intent.object.payment_method));
  if (method === null) throw new Error('an intent in requires_action has a payment method');
  const at = { ...context, now: context.timeOf(intent.merchant) };
  if (decision === 'approve') {
    method.hidden.authenticated = true;
    attempt(at, intent, method, cardNamed(method.hidden.card).payment ?? null, 'challenge');
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
