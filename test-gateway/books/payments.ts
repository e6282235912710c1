import { authenticationRequired, type CardBehaviour, cardNamed, type Refusal } from '../cards.ts';
import { type CardError, cardError } from '../objects/card-error.ts';
import { type Authentication, makeCharge } from '../objects/charge.ts';
import { newId } from '../objects/made.ts';
import { agedIntent, holdSeconds } from '../objects/payment-intent.ts';
import type { Kept } from '../store.ts';
import { settleCharge } from './balance.ts';
import type { Context } from './context.ts';
import { asStored } from './customers.ts';

export type CardOptions = {
  stored_credential_usage?: string | undefined;
  setup_credential_usage?: string | undefined;
  request_three_d_secure?: string | undefined;
};

/**
 * The result of 3-D Secure. Null without the shopper, and if neither the card nor the caller
 * demands 3-D Secure.
 */
export function authenticationOf(
  card: CardBehaviour,
  off_session: boolean,
  { request_three_d_secure: requested = 'automatic' }: CardOptions,
): Authentication | null {
  if (off_session) return null;
  if (card.challenge) return 'challenge';
  return requested === 'automatic' ? null : (card.three_d_secure ?? 'frictionless');
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

/** A payment in its current state; null for an unknown id. */
export function findIntent(context: Context, id: string): Kept<'payment_intent'> | null {
  const intent = context.store.find('payment_intent', id);
  return intent === null ? null : agedIntent(intent, context.timeOf(intent.merchant));
}

/** The URL of the issuer's page about a payment or a card. */
export function challengeUrl({ publicUrl }: Context, id: string, secret: string): string {
  return `${publicUrl}/challenge/${id}/${secret}`;
}

/**
 * Charges the card, or places a hold on it. If the bank challenges the shopper first, only begins
 * the challenge. Saves everything. Returns why the card was declined, or null.
 */
export function confirmIntent(
  context: Context,
  intent: Kept<'payment_intent'>,
  method: Kept<'payment_method'>,
  off_session: boolean,
): CardError | null {
  const { store } = context;
  const card = cardNamed(method.hidden.card);
  const options = (intent.object.payment_method_options?.card ?? {}) as CardOptions;
  const authentication = authenticationOf(card, off_session, options);
  intent.object.payment_method = method.object.id;
  if (authentication !== 'challenge' || context.decline !== null) {
    const refusal = context.decline ?? refusalOf(card, method, off_session);
    return chargeCard(context, intent, method, refusal, authentication);
  }
  intent.hidden.challenge = newId('challenge');
  intent.object.status = 'requires_action';
  intent.object.next_action = {
    type: 'redirect_to_url',
    redirect_to_url: {
      return_url: intent.hidden.return_url,
      url: challengeUrl(context, intent.object.id, intent.hidden.challenge),
    },
  };
  store.save('payment_method', method);
  store.save('payment_intent', intent);
  return null;
}

/** Saves the intent and its charge, even if the card was declined. */
function chargeCard(
  context: Context,
  intent: Kept<'payment_intent'>,
  used: Kept<'payment_method'>,
  refusal: Refusal | null,
  authentication: Authentication | null,
): CardError | null {
  const { store } = context;
  const now = context.timeOf(intent.merchant);
  const { object } = intent;
  const isStored =
    refusal === null && object.setup_future_usage !== null && typeof object.customer === 'string';
  const method = isStored
    ? asStored(context, used, String(object.customer), intent.hidden.hyperswitch !== undefined)
    : used;
  const charge = makeCharge({ merchant: intent.merchant, now }, object, method, refusal, {
    authentication,
    descriptorPrefix: context.account.descriptorPrefix,
  });
  object.latest_charge = charge.object.id;
  object.next_action = null;
  const error = refusal && cardError(refusal, method.object, charge.object.id);
  object.last_payment_error = error;
  if (refusal === null) {
    if (object.capture_method === 'manual') {
      object.status = 'requires_capture';
      object.amount_capturable = object.amount;
      intent.hidden.capture_before = now + holdSeconds;
    } else {
      object.status = 'succeeded';
      object.amount_received = object.amount;
      settleCharge(context, charge, method);
    }
    object.payment_method = method.object.id;
    if (isStored) method.hidden.stored_by = charge.object.id;
  } else {
    object.status = 'requires_payment_method';
    object.payment_method = null;
  }
  store.save('payment_method', method);
  store.save('charge', charge);
  store.save('payment_intent', intent);
  return error;
}

/** Captures a hold, wholly or in part. The rest is voided. */
export function captureIntent(
  context: Context,
  intent: Kept<'payment_intent'>,
  amount: number,
): void {
  const { store } = context;
  const { object } = intent;
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
}

export function cancelIntent(
  context: Context,
  intent: Kept<'payment_intent'>,
  reason: string | null,
): void {
  const { object } = intent;
  object.status = 'canceled';
  object.amount_capturable = 0;
  object.canceled_at = context.timeOf(intent.merchant);
  object.cancellation_reason = reason as typeof object.cancellation_reason;
  object.next_action = null;
  context.store.save('payment_intent', intent);
}

export type Decision = 'approve' | 'decline' | 'close';

/** How long a bank waits for an answer after the end of the session in which it asked. */
const challengeSeconds = 10 * 60;

/**
 * Whether the bank still takes an answer. When Hyperswitch cancels a payment that is waiting for an
 * answer, it changes only its own tables, and learns of the answer afterwards.
 */
export function awaitsBank(
  context: Context,
  { object, hidden, merchant }: Kept<'payment_intent'> | Kept<'setup_intent'>,
) {
  const { hyperswitch, challenge } = hidden;
  if (hyperswitch && context.timeOf(merchant) >= hyperswitch.expires_at + challengeSeconds) {
    return false;
  }
  if (object.status === 'requires_action') return true;
  const wasHeld = 'latest_charge' in object && object.latest_charge !== null;
  const wasAsked = hyperswitch !== undefined && challenge !== null;
  return object.status === 'canceled' && wasAsked && !wasHeld;
}

/** Applies the shopper's answer to a challenge, if the bank still takes one. */
export function decideChallenge(
  context: Context,
  intent: Kept<'payment_intent'>,
  decision: Decision,
): Kept<'payment_intent'> {
  const { store } = context;
  if (decision === 'close' || !awaitsBank(context, intent)) return intent;
  const method = store.find('payment_method', String(intent.object.payment_method));
  if (method === null) throw new Error('a challenged intent has a payment method');
  if (decision === 'approve') {
    method.hidden.authenticated = true;
    const refusal = cardNamed(method.hidden.card).payment ?? null;
    chargeCard(context, intent, method, refusal, 'challenge');
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
