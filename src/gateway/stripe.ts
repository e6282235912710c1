import Stripe from 'stripe';
import { timestamp } from '../shared/clock.ts';
import {
  type Authorisation,
  type CardEntry,
  type Decline,
  type DeclineReason,
  type Gateway,
  type HeldCard,
  type MerchantTime,
  OutcomeUnknown,
  type PaymentState,
  type RefundState,
} from './gateway.ts';

export type StripeSettings = {
  environment: 'sandbox' | 'production';
  secretKey: string;
  publicKey: string;
  /** Stripe's own address when absent. */
  apiUrl?: string;
  /** Stripe's own script when absent. */
  scriptUrl?: string;
  /** The gateway is our test gateway: it is told the merchant's time (D36), which Stripe never is. */
  testGateway?: boolean;
  timeoutMs?: number;
};

/** The port spoken to Stripe, or to the test gateway that speaks as Stripe does. */
export function createStripeGateway(settings: StripeSettings): Gateway {
  const problems = stripeProblems(settings);
  if (problems.length > 0) throw new Error(problems.join(' '));
  const api = new URL(settings.apiUrl ?? 'https://api.stripe.com');
  const stripe = new Stripe(settings.secretKey, {
    host: api.hostname.replace(/^\[|\]$/g, ''),
    port: api.port || (api.protocol === 'https:' ? 443 : 80),
    protocol: api.protocol === 'https:' ? 'https' : 'http',
    timeout: settings.timeoutMs ?? 15_000,
    // Whoever asked keeps a row open and asks again; a second hidden round of tries would only
    // hide from it how long that takes.
    maxNetworkRetries: 0,
    telemetry: false,
  });

  // Every request carries its key: the SDK repeats one whose connection was closed, retries or not.
  function options(merchant: MerchantTime, key?: string): Stripe.RequestOptions {
    return {
      ...(key !== undefined && { idempotencyKey: key }),
      ...(settings.testGateway && {
        headers: { 'Tranche-Merchant': merchant.id, 'Tranche-Merchant-Time': merchant.now },
      }),
    };
  }

  async function lookUp(
    merchant: MerchantTime,
    payment_ref: string,
  ): Promise<Stripe.PaymentIntent> {
    return await stripe.paymentIntents
      .retrieve(payment_ref, { expand: [...expanded] }, options(merchant))
      .catch(fail);
  }

  return {
    cardEntry: cardEntry(settings),

    async createCustomer({ key, merchant, checkout_id, shopper }) {
      const metadata = { checkout_id };
      const contact = {
        email: shopper.email,
        ...(shopper.name !== undefined && { name: shopper.name }),
        ...(shopper.phone_number !== undefined && { phone: shopper.phone_number }),
      };
      try {
        const customer = await stripe.customers.create(
          { ...contact, metadata },
          options(merchant, key),
        );
        return { customer_ref: customer.id };
      } catch (error) {
        // The contact is a courtesy to the gateway. One that it finds fault with is left out, so
        // that nobody fails to pay for it.
        if (!isContactRefused(error)) fail(error);
        const customer = await stripe.customers
          .create({ metadata }, options(merchant, `${key}:bare`))
          .catch(fail);
        return { customer_ref: customer.id };
      }
    },

    async authorise(payment) {
      try {
        const intent = await stripe.paymentIntents.create(
          {
            amount: payment.amount,
            currency: payment.currency.toLowerCase(),
            customer: payment.customer_ref,
            confirm: true,
            confirmation_token: payment.card_token,
            capture_method: 'manual',
            allowed_payment_method_types: ['card'],
            return_url: payment.return_url,
            ...(payment.store_card && { setup_future_usage: 'off_session' }),
            metadata: { checkout_id: payment.checkout_id, attempt_id: payment.attempt_id },
            expand: [...expanded],
          },
          options(payment.merchant, payment.key),
        );
        return authorisation(intent);
      } catch (error) {
        if (error instanceof Stripe.errors.StripeCardError) return declinedBy(error);
        if (error instanceof Stripe.errors.StripeInvalidRequestError) {
          // The token came from the browser: whatever is wrong with it, entering the card again helps.
          if (error.param === 'confirmation_token') {
            return { outcome: 'declined', payment_ref: null, decline: cardToEnterAgain };
          }
          if (isDataRefused(error)) {
            return {
              outcome: 'refused',
              detail: `${error.param ?? ''} ${error.code ?? ''}`.trim(),
            };
          }
        }
        fail(error);
      }
    },

    async payment(merchant, payment_ref) {
      return paymentState(await lookUp(merchant, payment_ref));
    },

    async findPayment(merchant, { customer_ref, attempt_id }) {
      try {
        // Not Stripe's search, which lags behind by a minute: the list has what was answered for.
        const intents = stripe.paymentIntents.list(
          {
            customer: customer_ref,
            limit: 100,
            expand: expanded.map((member) => `data.${member}`),
          },
          options(merchant),
        );
        for await (const intent of intents) {
          if (intent.metadata.attempt_id === attempt_id) return paymentState(intent);
        }
        return null;
      } catch (error) {
        fail(error);
      }
    },

    async capture({ key, merchant, payment_ref, amount }) {
      try {
        await stripe.paymentIntents.capture(
          payment_ref,
          { amount_to_capture: amount },
          options(merchant, key),
        );
        return { outcome: 'captured' };
      } catch (error) {
        if (isCode(error, 'charge_expired_for_capture', 'capture_charge_authorization_expired')) {
          return { outcome: 'lapsed' };
        }
        if (!isCode(error, 'payment_intent_unexpected_state')) fail(error);
        const intent = await lookUp(merchant, payment_ref);
        // An earlier try of ours, under a key that the gateway no longer knows.
        if (intent.status === 'succeeded' && intent.amount_received === amount) {
          return { outcome: 'captured' };
        }
        if (intent.status === 'canceled') return { outcome: 'lapsed' };
        throw new Error(`a payment that is ${intent.status} cannot be captured for this amount`);
      }
    },

    async void({ key, merchant, payment_ref }) {
      try {
        await stripe.paymentIntents.cancel(payment_ref, {}, options(merchant, key));
        return { outcome: 'voided' };
      } catch (error) {
        if (!isCode(error, 'payment_intent_unexpected_state')) fail(error);
        const { status } = await lookUp(merchant, payment_ref);
        if (status === 'canceled') return { outcome: 'voided' };
        if (status === 'succeeded') return { outcome: 'captured' };
        throw new OutcomeUnknown(`a payment that is ${status} could not be voided`);
      }
    },

    async charge(payment) {
      try {
        const intent = await stripe.paymentIntents.create(
          {
            amount: payment.amount,
            currency: payment.currency.toLowerCase(),
            customer: payment.customer_ref,
            payment_method: payment.card_ref,
            confirm: true,
            off_session: true,
            allowed_payment_method_types: ['card'],
            payment_method_options: { card: { stored_credential_usage: 'installment' } },
            metadata: { checkout_id: payment.checkout_id, attempt_id: payment.attempt_id },
          },
          options(payment.merchant, payment.key),
        );
        if (intent.status === 'succeeded') return { outcome: 'charged', payment_ref: intent.id };
        throw new OutcomeUnknown(`a charge without the shopper is ${intent.status}`);
      } catch (error) {
        if (error instanceof Stripe.errors.StripeCardError) return declinedBy(error);
        if (error instanceof Stripe.errors.StripeInvalidRequestError) {
          // The stored card is gone, or the amount can never be charged: no try will change that.
          if (error.param === 'payment_method' || isDataRefused(error)) {
            const decline = { reason: 'processing_error', may_retry: false } as const;
            return { outcome: 'declined', payment_ref: null, decline };
          }
        }
        fail(error);
      }
    },

    async refund({ key, merchant, payment_ref, amount, refund_id }) {
      try {
        const refund = await stripe.refunds.create(
          { payment_intent: payment_ref, amount, metadata: { refund_id } },
          options(merchant, key),
        );
        return refundState(refund);
      } catch (error) {
        const refused =
          isCode(error, 'charge_already_refunded', 'charge_not_refundable', 'charge_disputed') ||
          isCode(error, 'refund_disputed_payment') ||
          (error instanceof Stripe.errors.StripeInvalidRequestError && error.param === 'amount');
        if (refused) return { refund_ref: null, status: 'failed' };
        fail(error);
      }
    },

    async refundStatus(merchant, refund_ref) {
      const refund = await stripe.refunds.retrieve(refund_ref, {}, options(merchant)).catch(fail);
      return refundState(refund);
    },
  };
}

/** What is wrong with the settings, all of it at once (D34). */
export function stripeProblems(settings: StripeSettings): string[] {
  const problems: string[] = [];
  const live = /^(sk|rk)_live_/;
  if (settings.environment === 'sandbox' && live.test(settings.secretKey)) {
    problems.push('The sandbox does not take a live gateway key.');
  }
  if (settings.environment === 'production') {
    if (!live.test(settings.secretKey)) {
      problems.push('Production needs a live gateway key (sk_live_… or rk_live_…).');
    }
    if (!settings.publicKey.startsWith('pk_live_')) {
      problems.push('Production needs a live public gateway key (pk_live_…).');
    }
    if (settings.testGateway) problems.push('Production does not run on a test gateway.');
  } else if (settings.publicKey.startsWith('pk_live_')) {
    problems.push('The sandbox does not take a live public gateway key.');
  }
  for (const [name, given] of [
    ['address', settings.apiUrl],
    ['script', settings.scriptUrl],
  ] as const) {
    if (given === undefined) continue;
    if (!URL.canParse(given)) {
      problems.push(`The gateway's ${name} is not a URL.`);
      continue;
    }
    const url = new URL(given);
    const safe =
      url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname));
    if (!safe) problems.push(`The gateway's ${name} must be https (plain http only on loopback).`);
  }
  return problems;
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
}

function cardEntry({ publicKey, scriptUrl }: StripeSettings): CardEntry {
  // The script's release is the API's that the pinned SDK speaks.
  if (scriptUrl === undefined) {
    return {
      scriptUrl: `https://js.stripe.com/${Stripe.API_VERSION.split('.')[1]}/stripe.js`,
      publicKey,
      scriptOrigins: ['https://js.stripe.com', 'https://*.js.stripe.com'],
      frameOrigins: [
        'https://js.stripe.com',
        'https://*.js.stripe.com',
        'https://hooks.stripe.com',
      ],
      connectOrigins: ['https://api.stripe.com'],
    };
  }
  const { origin } = new URL(scriptUrl);
  return {
    scriptUrl,
    publicKey,
    scriptOrigins: [origin],
    frameOrigins: [origin],
    connectOrigins: [],
  };
}

const expanded = ['latest_charge', 'payment_method'] as const;

function paymentState(intent: Stripe.PaymentIntent): PaymentState {
  const payment_ref = intent.id;
  switch (intent.status) {
    case 'requires_capture':
      return {
        outcome: 'authorised',
        payment_ref,
        card: heldCard(intent),
        capture_before: captureBefore(intent),
      };
    case 'requires_action': {
      const url = intent.next_action?.redirect_to_url?.url;
      return url
        ? { outcome: 'challenge', payment_ref, url }
        : { outcome: 'processing', payment_ref };
    }
    case 'requires_payment_method':
      return {
        outcome: 'declined',
        payment_ref,
        decline: declineOf(intent.last_payment_error ?? {}),
      };
    case 'succeeded':
      return { outcome: 'captured', payment_ref, amount: intent.amount_received };
    case 'canceled':
      return { outcome: 'voided', payment_ref };
    default:
      return { outcome: 'processing', payment_ref };
  }
}

function authorisation(intent: Stripe.PaymentIntent): Authorisation {
  const state = paymentState(intent);
  switch (state.outcome) {
    case 'authorised':
    case 'challenge':
    case 'declined':
      return state;
    default:
      // Under a used key the answer is the first one, so this is no later state of it.
      throw new OutcomeUnknown(`a payment just begun is ${intent.status}`);
  }
}

function heldCard(intent: Stripe.PaymentIntent): HeldCard {
  const method = typeof intent.payment_method === 'object' ? intent.payment_method : null;
  const stored = intent.setup_future_usage === 'off_session';
  return {
    card_ref: stored ? (method?.id ?? null) : null,
    brand: method?.card?.brand ?? null,
    last4: method?.card?.last4 ?? null,
  };
}

/** Most holds last seven days; the charge says so when this one's is another. */
function captureBefore(intent: Stripe.PaymentIntent): string {
  const charge = typeof intent.latest_charge === 'object' ? intent.latest_charge : null;
  const seconds =
    charge?.payment_method_details?.card?.capture_before ?? intent.created + 7 * 24 * 60 * 60;
  return timestamp(Temporal.Instant.fromEpochMilliseconds(seconds * 1000));
}

function refundState(refund: Stripe.Refund): RefundState {
  const refund_ref = refund.id;
  if (refund.status === 'succeeded') return { refund_ref, status: 'succeeded' };
  if (refund.status === 'failed' || refund.status === 'canceled') {
    return { refund_ref, status: 'failed' };
  }
  return { refund_ref, status: 'pending' };
}

type CardRefusal = { code?: string; decline_code?: string; advice_code?: string };

const reasons: Record<string, DeclineReason> = {
  insufficient_funds: 'insufficient_funds',
  lost_card: 'lost_card',
  stolen_card: 'stolen_card',
  card_velocity_exceeded: 'velocity_exceeded',
  withdrawal_count_limit_exceeded: 'velocity_exceeded',
  expired_card: 'expired_card',
  incorrect_cvc: 'incorrect_cvc',
  invalid_cvc: 'incorrect_cvc',
  incorrect_number: 'incorrect_number',
  invalid_number: 'incorrect_number',
  invalid_expiry_month: 'expired_card',
  invalid_expiry_year: 'expired_card',
  processing_error: 'processing_error',
  issuer_not_available: 'processing_error',
  try_again_later: 'processing_error',
  authentication_required: 'authentication_required',
  payment_intent_authentication_failure: 'authentication_failed',
};

/** Of these the same card will not do better next time, whatever the network advises. */
const final: ReadonlySet<DeclineReason> = new Set<DeclineReason>([
  'lost_card',
  'stolen_card',
  'expired_card',
  'incorrect_number',
  'authentication_required',
]);

const cardToEnterAgain: Decline = { reason: 'processing_error', may_retry: true };

function declineOf({ code, decline_code, advice_code }: CardRefusal): Decline {
  const reason = reasons[decline_code ?? ''] ?? reasons[code ?? ''] ?? 'generic';
  return { reason, may_retry: advice_code !== 'do_not_try_again' && !final.has(reason) };
}

function declinedBy(error: Stripe.errors.StripeCardError): {
  outcome: 'declined';
  payment_ref: string | null;
  decline: Decline;
} {
  return {
    outcome: 'declined',
    payment_ref: error.payment_intent?.id ?? null,
    decline: declineOf(error as CardRefusal),
  };
}

function isCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Stripe.errors.StripeError && codes.includes(error.code ?? '');
}

/** The checkout's own data, as far as a checkout can be wrong in the gateway's eyes (D20). */
function isDataRefused(error: Stripe.errors.StripeInvalidRequestError): boolean {
  if (error.statusCode !== 400) return false;
  if (error.code === 'parameter_unknown' || error.code === 'parameter_missing') return false;
  return (
    error.param === 'amount' ||
    error.param === 'currency' ||
    isCode(error, 'amount_too_large', 'amount_too_small', 'invalid_charge_amount')
  );
}

function isContactRefused(error: unknown): boolean {
  return (
    error instanceof Stripe.errors.StripeInvalidRequestError &&
    error.statusCode === 400 &&
    ['email', 'name', 'phone'].includes(error.param ?? '')
  );
}

/**
 * Throws what the caller may see of an error. Never its message, headers or body: they may repeat
 * what we sent.
 */
function fail(error: unknown): never {
  if (!(error instanceof Stripe.errors.StripeError)) throw error;
  const { type, statusCode, code, param, requestId } = error;
  const facts = Object.entries({ type, status: statusCode, code, param, request: requestId })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ');
  const unknown =
    error instanceof Stripe.errors.StripeConnectionError ||
    statusCode === undefined ||
    statusCode >= 500 ||
    // Too many requests, or a key in use: nothing was done by this call, but perhaps by another.
    statusCode === 409 ||
    statusCode === 429;
  if (unknown) throw new OutcomeUnknown(`the gateway did not say what happened (${facts})`);
  throw new Error(`the gateway refused the request (${facts})`);
}
