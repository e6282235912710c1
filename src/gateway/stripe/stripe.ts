import Stripe from 'stripe';
import {
  type Authentication,
  type Authorisation,
  type CardEntry,
  type CardVerification,
  type Decline,
  type DeclineReason,
  type Gateway,
  type HeldCard,
  type MerchantTime,
  OutcomeUnknown,
  type PaymentState,
  type RefundState,
  RequestRefused,
  type ShopperPayment,
  type Statement,
} from '#gateway/gateway.ts';
import { type StripeSettings, statementPrefix, stripeProblems } from '#gateway/settings.ts';
import { paymentDescription, statementSuffix } from '#gateway/statement.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { traceHeaders } from '#platform/tracing/trace.ts';
import { disputeCalls } from './stripe-disputes.ts';
import { markCalls } from './stripe-marks.ts';
import { recordCalls } from './stripe-records.ts';

/** The gateway port over Stripe, or over the test gateway, which speaks Stripe's protocol. */
export function createStripeGateway(settings: StripeSettings): Gateway {
  const problems = stripeProblems(settings);
  if (problems.length > 0) throw new Error(problems.join(' '));
  const api = new URL(settings.apiUrl ?? 'https://api.stripe.com');
  const stripe = new Stripe(settings.secretKey, {
    host: api.hostname.replace(/^\[|\]$/g, ''),
    port: api.port || (api.protocol === 'https:' ? 443 : 80),
    protocol: api.protocol === 'https:' ? 'https' : 'http',
    timeout: settings.timeoutMs ?? 15_000,
    // The caller keeps a row open and retries. Hidden retries here would only make that slower.
    maxNetworkRetries: 0,
    telemetry: false,
  });

  // Every POST carries a key, because the SDK repeats a request whose connection was closed.
  function options(merchant: MerchantTime, key?: string): Stripe.RequestOptions {
    return {
      ...(key !== undefined && { idempotencyKey: key }),
      headers: {
        ...traceHeaders(),
        ...(settings.testGateway && {
          'Tranche-Merchant': merchant.id,
          'Tranche-Merchant-Time': merchant.now,
        }),
      },
    };
  }

  /** What statements and the gateway's records say about a payment. */
  function words(statement: Statement) {
    const { merchant_name } = statement;
    return {
      statement_descriptor_suffix: statementSuffix(
        statementPrefix(settings),
        merchant_name,
        statement,
      ),
      description: paymentDescription(merchant_name, statement),
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

  // Stripe's search lags behind by a minute. The list is up to date.
  const listIntents = (merchant: MerchantTime, customer_ref: string) =>
    stripe.paymentIntents.list(
      { customer: customer_ref, limit: 100, expand: expanded.map((member) => `data.${member}`) },
      options(merchant),
    );

  async function findIntent(
    merchant: MerchantTime,
    customer_ref: string,
    attempt_id: string,
  ): Promise<Stripe.PaymentIntent | null> {
    try {
      for await (const intent of listIntents(merchant, customer_ref)) {
        if (intent.metadata.attempt_id === attempt_id) return intent;
      }
      return null;
    } catch (error) {
      fail(error);
    }
  }

  async function findRefund(
    merchant: MerchantTime,
    { payment_ref, amount, refund_id }: { payment_ref: string; amount: number; refund_id: string },
  ): Promise<Stripe.Refund | null> {
    const refunds = stripe.refunds.list(
      { payment_intent: payment_ref, limit: 100 },
      options(merchant),
    );
    for await (const refund of refunds) {
      if (refund.metadata?.refund_id !== refund_id) continue;
      if (refund.amount !== amount) throw differs('refund', amount, refund.amount);
      return refund;
    }
    return null;
  }

  /**
   * Sends a request under its key. Stripe stores a 500 with the key and repeats it for a day,
   * whatever really happened. A repeated 500 means that the request has ended: look whether it had
   * its effect. If not, send it under the next key. A retry reaches that key by the same steps.
   *
   * A key that was used with other parameters says nothing about the request that used it: it may
   * be in flight. What the gateway does only once by itself (`isSafe`) is sent under the next key.
   * Anything else is looked up and not sent (decision 0049).
   */
  async function sendOnce<T>(
    merchant: MerchantTime,
    key: string,
    send: (options: Stripe.RequestOptions) => Promise<T>,
    find: () => Promise<T | null>,
    isSafe = false,
  ): Promise<T> {
    for (let round = 1; round <= 10; round += 1) {
      try {
        return await send(options(merchant, round === 1 ? key : `${key}:${round}`));
      } catch (error) {
        const isOther = isOtherRequest(error);
        if (!isOther && !isRepeatedFailure(error)) throw error;
        const found = await find();
        if (found !== null) return found;
        if (isOther && !isSafe) {
          throw new OutcomeUnknown('the key belongs to another request, which was not found');
        }
      }
    }
    throw new OutcomeUnknown('the gateway failed under every key');
  }

  /** The payment that an earlier request made for an attempt, if it is what we ask for. */
  async function findSameIntent(
    payment: Parameters<Gateway['charge' | 'authorise' | 'pay']>[0],
  ): Promise<Stripe.PaymentIntent | null> {
    const { merchant, customer_ref, attempt_id, amount, currency } = payment;
    const found = await findIntent(merchant, customer_ref, attempt_id);
    // A payment that took and holds nothing cannot be wrong.
    if (found === null || ['requires_payment_method', 'canceled'].includes(found.status)) {
      return found;
    }
    const isSame = found.amount === amount && found.currency === currency.toLowerCase();
    if (!isSame) throw differs('payment', amount, found.amount);
    const stores = storesCard(payment);
    if (stores !== null && stores !== isStored(found)) {
      throw new RequestRefused('the gateway holds a payment of the attempt with another term');
    }
    return found;
  }

  const retrieveSetup = (merchant: MerchantTime, verification_ref: string) =>
    stripe.setupIntents
      .retrieve(verification_ref, { expand: [...expandedSetup] }, options(merchant))
      .catch(fail);

  async function findSetup(
    merchant: MerchantTime,
    customer_ref: string,
    attempt_id: string,
  ): Promise<Stripe.SetupIntent | null> {
    try {
      const setups = stripe.setupIntents.list(
        {
          customer: customer_ref,
          limit: 100,
          expand: expandedSetup.map((name) => `data.${name}`),
        },
        options(merchant),
      );
      for await (const setup of setups) {
        if (setup.metadata?.attempt_id === attempt_id) return setup;
      }
      return null;
    } catch (error) {
      fail(error);
    }
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
      const create = async (params: Stripe.CustomerCreateParams, under: string) => {
        // A second customer does no harm.
        const send = (how: Stripe.RequestOptions) => stripe.customers.create(params, how);
        const customer = await sendOnce(merchant, under, send, async () => null, true);
        return { customer_ref: customer.id };
      };
      try {
        return await create({ ...contact, metadata }, key);
      } catch (error) {
        // The gateway does not need the contact. Leave out what it refuses, so that the shopper
        // can pay.
        if (!isContactRefused(error)) fail(error);
        return await create({ metadata }, `${key}:bare`).catch(fail);
      }
    },

    async authorise(payment) {
      try {
        const params: Stripe.PaymentIntentCreateParams = {
          amount: payment.amount,
          currency: payment.currency.toLowerCase(),
          customer: payment.customer_ref,
          confirm: true,
          confirmation_token: payment.card_token,
          capture_method: 'manual',
          allowed_payment_method_types: ['card'],
          return_url: payment.return_url,
          ...(payment.store_card && { setup_future_usage: 'off_session' }),
          payment_method_options: {
            card: {
              request_three_d_secure: 'any',
              ...(payment.store_card && { setup_credential_usage: 'installment' }),
            },
          },
          ...words(payment.statement),
          metadata: {
            checkout_id: payment.checkout_id,
            instalment: 1,
            number_of_payments: payment.statement.number_of_payments,
            attempt_id: payment.attempt_id,
          },
          expand: [...expanded],
        };
        const intent = await sendOnce(
          payment.merchant,
          payment.key,
          (how) => stripe.paymentIntents.create(params, how),
          () => findSameIntent(payment),
        );
        return authorisation(intent);
      } catch (error) {
        if (error instanceof Stripe.errors.StripeCardError) return declinedBy(error);
        if (error instanceof Stripe.errors.StripeInvalidRequestError) {
          // The token came from the browser. Entering the card again gives a new one.
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
      const intent = await findIntent(merchant, customer_ref, attempt_id);
      return intent === null ? null : paymentState(intent);
    },

    async listInstalmentPayments(merchant, { customer_ref, checkout_id, instalments }) {
      try {
        const states: (PaymentState & { attempt_id: string | null })[] = [];
        for await (const intent of listIntents(merchant, customer_ref)) {
          const { metadata } = intent;
          if (metadata.checkout_id !== checkout_id) continue;
          // A shopper may have paid several at once.
          const covered = (metadata.instalments ?? metadata.instalment ?? '').split(',');
          if (instalments.some((number) => covered.includes(String(number)))) {
            states.push({ ...paymentState(intent), attempt_id: metadata.attempt_id ?? null });
          }
        }
        return states;
      } catch (error) {
        fail(error);
      }
    },

    async capture({ key, merchant, payment_ref, amount }) {
      const settled = (intent: Stripe.PaymentIntent): { outcome: 'captured' | 'lapsed' } => {
        // An earlier request may have captured it, under a key that the gateway has forgotten.
        if (intent.status === 'succeeded' && intent.amount_received === amount) {
          return { outcome: 'captured' };
        }
        if (intent.status === 'canceled') return { outcome: 'lapsed' };
        throw new Error(`a payment that is ${intent.status} cannot be captured for this amount`);
      };
      try {
        const intent = await sendOnce(
          merchant,
          key,
          (how) => stripe.paymentIntents.capture(payment_ref, { amount_to_capture: amount }, how),
          async () => {
            const found = await lookUp(merchant, payment_ref);
            return found.status === 'requires_capture' ? null : found;
          },
          true,
        );
        return settled(intent);
      } catch (error) {
        if (isCode(error, 'charge_expired_for_capture', 'capture_charge_authorization_expired')) {
          return { outcome: 'lapsed' };
        }
        if (!isCode(error, 'payment_intent_unexpected_state')) fail(error);
        return settled(await lookUp(merchant, payment_ref));
      }
    },

    async void({ key, merchant, payment_ref }) {
      const settled = ({ status }: Stripe.PaymentIntent): { outcome: 'voided' | 'captured' } => {
        if (status === 'canceled') return { outcome: 'voided' };
        if (status === 'succeeded') return { outcome: 'captured' };
        throw new OutcomeUnknown(`a payment that is ${status} could not be voided`);
      };
      try {
        const intent = await sendOnce(
          merchant,
          key,
          (how) => stripe.paymentIntents.cancel(payment_ref, {}, how),
          async () => {
            const found = await lookUp(merchant, payment_ref);
            return found.status === 'canceled' || found.status === 'succeeded' ? found : null;
          },
          true,
        );
        return settled(intent);
      } catch (error) {
        if (!isCode(error, 'payment_intent_unexpected_state')) fail(error);
        return settled(await lookUp(merchant, payment_ref));
      }
    },

    async charge(payment) {
      try {
        const params: Stripe.PaymentIntentCreateParams = {
          amount: payment.amount,
          currency: payment.currency.toLowerCase(),
          customer: payment.customer_ref,
          payment_method: payment.card_ref,
          confirm: true,
          off_session: true,
          allowed_payment_method_types: ['card'],
          payment_method_options: { card: { stored_credential_usage: 'installment' } },
          ...words(payment.statement),
          metadata: {
            checkout_id: payment.checkout_id,
            instalment: payment.instalment,
            number_of_payments: payment.statement.number_of_payments,
            attempt_id: payment.attempt_id,
          },
        };
        const intent = await sendOnce(
          payment.merchant,
          payment.key,
          (how) => stripe.paymentIntents.create(params, how),
          () => findSameIntent(payment),
        );
        if (intent.status === 'succeeded') return { outcome: 'charged', payment_ref: intent.id };
        const state = paymentState(intent);
        if (state.outcome === 'declined') return state;
        throw new OutcomeUnknown(`a charge without the shopper is ${intent.status}`);
      } catch (error) {
        if (error instanceof Stripe.errors.StripeCardError) return declinedBy(error);
        if (error instanceof Stripe.errors.StripeInvalidRequestError) {
          // The stored card is gone, or the amount can never be charged. A retry cannot help.
          if (error.param === 'payment_method' || isDataRefused(error)) {
            const decline = { reason: 'processing_error', may_retry: false } as const;
            return { outcome: 'declined', payment_ref: null, decline };
          }
        }
        fail(error);
      }
    },

    async pay(payment) {
      const { card, instalments } = payment;
      const isNew = 'card_token' in card;
      const store = isNew && card.store;
      try {
        const params: Stripe.PaymentIntentCreateParams = {
          amount: payment.amount,
          currency: payment.currency.toLowerCase(),
          customer: payment.customer_ref,
          confirm: true,
          ...(isNew ? { confirmation_token: card.card_token } : { payment_method: card.card_ref }),
          allowed_payment_method_types: ['card'],
          return_url: payment.return_url,
          ...(store && { setup_future_usage: 'off_session' }),
          payment_method_options: {
            card: {
              request_three_d_secure: 'any',
              ...(store && { setup_credential_usage: 'installment' }),
            },
          },
          ...(payment.statement && words(payment.statement)),
          metadata: {
            checkout_id: payment.checkout_id,
            [instalments.length === 1 ? 'instalment' : 'instalments']: instalments.join(','),
            attempt_id: payment.attempt_id,
          },
          expand: [...expanded],
        };
        const intent = await sendOnce(
          payment.merchant,
          payment.key,
          (how) => stripe.paymentIntents.create(params, how),
          () => findSameIntent(payment),
        );
        return shopperPayment(intent);
      } catch (error) {
        if (error instanceof Stripe.errors.StripeCardError) return declinedBy(error);
        if (error instanceof Stripe.errors.StripeInvalidRequestError) {
          if (error.param === 'confirmation_token') {
            return { outcome: 'declined', payment_ref: null, decline: cardToEnterAgain };
          }
          // The stored card is gone, or the amount can never be charged.
          if (error.param === 'payment_method' || isDataRefused(error)) {
            const decline = { reason: 'processing_error', may_retry: false } as const;
            return { outcome: 'declined', payment_ref: null, decline };
          }
        }
        fail(error);
      }
    },

    async verifyCard({ key, merchant, checkout_id, attempt_id, customer_ref, ...card }) {
      try {
        const params: Stripe.SetupIntentCreateParams = {
          customer: customer_ref,
          confirm: true,
          confirmation_token: card.card_token,
          usage: 'off_session',
          allowed_payment_method_types: ['card'],
          payment_method_options: {
            card: { request_three_d_secure: 'any', setup_credential_usage: 'installment' },
          },
          return_url: card.return_url,
          metadata: { checkout_id, attempt_id },
          expand: [...expandedSetup],
        };
        const setup = await sendOnce(
          merchant,
          key,
          (how) => stripe.setupIntents.create(params, how),
          () => findSetup(merchant, customer_ref, attempt_id),
        );
        return verification(setup);
      } catch (error) {
        if (error instanceof Stripe.errors.StripeCardError) {
          const verification_ref = error.setup_intent?.id ?? null;
          const decline = declineOf(error as CardRefusal);
          return { outcome: 'declined', verification_ref, decline };
        }
        const isToken =
          error instanceof Stripe.errors.StripeInvalidRequestError &&
          error.param === 'confirmation_token';
        if (!isToken) fail(error);
        return { outcome: 'declined', verification_ref: null, decline: cardToEnterAgain };
      }
    },

    async cardVerification(merchant, verification_ref) {
      return verification(await retrieveSetup(merchant, verification_ref));
    },

    async findCardVerification(merchant, { customer_ref, attempt_id }) {
      const setup = await findSetup(merchant, customer_ref, attempt_id);
      return setup === null ? null : verification(setup);
    },

    async voidVerification({ key, merchant, verification_ref }) {
      const find = async () => {
        const found = await retrieveSetup(merchant, verification_ref);
        return found.status === 'canceled' || found.status === 'succeeded' ? found : null;
      };
      try {
        const send = (how: Stripe.RequestOptions) =>
          stripe.setupIntents.cancel(verification_ref, { expand: [...expandedSetup] }, how);
        return verification(await sendOnce(merchant, key, send, find, true));
      } catch (error) {
        if (!isCode(error, 'setup_intent_unexpected_state')) fail(error);
        return verification(await retrieveSetup(merchant, verification_ref));
      }
    },

    async detachCard({ key, merchant, card_ref }) {
      const find = async () => {
        const found = await stripe.paymentMethods.retrieve(card_ref, {}, options(merchant));
        return found.customer === null ? found : null;
      };
      try {
        const send = (how: Stripe.RequestOptions) =>
          stripe.paymentMethods.detach(card_ref, {}, how);
        await sendOnce(merchant, key, send, find, true);
      } catch (error) {
        if (isCode(error, 'resource_missing')) return;
        if (!(error instanceof Stripe.errors.StripeInvalidRequestError)) fail(error);
        // It may be detached already, by a request under a key that the gateway has forgotten.
        if ((await find().catch(fail)) === null) fail(error);
      }
    },

    async deleteCustomer({ merchant, customer_ref }) {
      try {
        // A DELETE needs no key: deleting twice is the same as once.
        await stripe.customers.del(customer_ref, {}, options(merchant));
      } catch (error) {
        if (!isCode(error, 'resource_missing')) fail(error);
      }
    },

    async findCustomers(merchant, checkout_id) {
      const query = `metadata['checkout_id']:'${checkout_id}'`;
      const found = stripe.customers.search({ query, limit: 100 }, options(merchant));
      return (await found.catch(fail)).data.map(({ id }) => id);
    },

    async refund({ key, merchant, payment_ref, amount, refund_id, request }) {
      try {
        const metadata = {
          refund_id,
          ...(request && {
            request_id: request.id,
            request_amount: request.amount,
            request_created_at: request.created_at,
          }),
        };
        const params = { payment_intent: payment_ref, amount, metadata };
        const refund = await sendOnce(
          merchant,
          key,
          (how) => stripe.refunds.create(params, how),
          () => findRefund(merchant, { payment_ref, amount, refund_id }),
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

    async findRefund(merchant, wanted) {
      const refund = await findRefund(merchant, wanted).catch(fail);
      return refund === null ? null : refundState(refund);
    },

    ...disputeCalls(stripe, options, fail, settings.webhookSecret),
    ...recordCalls(stripe, fail),
    ...markCalls(stripe, fail),

    async refundStatus(merchant, refund_ref) {
      const refund = await stripe.refunds.retrieve(refund_ref, {}, options(merchant)).catch(fail);
      return refundState(refund);
    },
  };
}

function cardEntry({ publicKey, scriptUrl }: StripeSettings): CardEntry {
  // The script's release is that of the pinned SDK's API version.
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
const expandedSetup = ['latest_attempt', 'payment_method'] as const;

function paymentState(intent: Stripe.PaymentIntent): PaymentState {
  const payment_ref = intent.id;
  switch (intent.status) {
    case 'requires_capture':
      return {
        outcome: 'authorised',
        payment_ref,
        card: heldCard(intent),
        capture_before: captureBefore(intent),
        authentication: authenticationOf(intent),
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
      return {
        outcome: 'captured',
        payment_ref,
        amount: intent.amount_received,
        card: heldCard(intent),
        authentication: authenticationOf(intent),
      };
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
    case 'voided':
      // It was voided before we learnt of it, after a failed answer. Nothing is held.
      return { outcome: 'declined', payment_ref: state.payment_ref, decline: cardToEnterAgain };
    default:
      throw new OutcomeUnknown(`a payment to be authorised is ${intent.status}`);
  }
}

function shopperPayment(intent: Stripe.PaymentIntent): ShopperPayment {
  const state = paymentState(intent);
  switch (state.outcome) {
    case 'captured':
    case 'challenge':
    case 'declined':
      return state;
    case 'voided':
      return { outcome: 'declined', payment_ref: state.payment_ref, decline: cardToEnterAgain };
    default:
      throw new OutcomeUnknown(`a payment of the shopper is ${intent.status}`);
  }
}

function verification(setup: Stripe.SetupIntent): CardVerification {
  const verification_ref = setup.id;
  switch (setup.status) {
    case 'succeeded': {
      const method = typeof setup.payment_method === 'object' ? setup.payment_method : null;
      if (method === null) throw new OutcomeUnknown('a verified card has no reference');
      const attempt = typeof setup.latest_attempt === 'object' ? setup.latest_attempt : null;
      const authentication = readSecure(attempt?.payment_method_details.card?.three_d_secure);
      return { outcome: 'verified', verification_ref, card: cardOf(method), authentication };
    }
    case 'requires_action': {
      const url = setup.next_action?.redirect_to_url?.url;
      return url
        ? { outcome: 'challenge', verification_ref, url }
        : { outcome: 'processing', verification_ref };
    }
    case 'requires_payment_method': {
      const decline = declineOf(setup.last_setup_error ?? {});
      return { outcome: 'declined', verification_ref, decline };
    }
    case 'canceled':
      return { outcome: 'voided', verification_ref };
    default:
      return { outcome: 'processing', verification_ref };
  }
}

const cardOf = ({ id, card }: Stripe.PaymentMethod) => ({
  card_ref: id,
  brand: card?.brand ?? null,
  last4: card?.last4 ?? null,
  expires: card ? expiryOf(card) : null,
});

const isStored = (intent: Stripe.PaymentIntent) => intent.setup_future_usage === 'off_session';

function heldCard(intent: Stripe.PaymentIntent): HeldCard {
  const method = typeof intent.payment_method === 'object' ? intent.payment_method : null;
  return {
    card_ref: isStored(intent) ? (method?.id ?? null) : null,
    brand: method?.card?.brand ?? null,
    last4: method?.card?.last4 ?? null,
    expires: method?.card ? expiryOf(method.card) : null,
  };
}

const expiryOf = ({ exp_year, exp_month }: { exp_year: number; exp_month: number }) =>
  `${exp_year}-${String(exp_month).padStart(2, '0')}`;

const chargeOf = ({ latest_charge }: Stripe.PaymentIntent) =>
  typeof latest_charge === 'object' ? latest_charge : null;

const authenticationOf = (intent: Stripe.PaymentIntent) =>
  readSecure(chargeOf(intent)?.payment_method_details?.card?.three_d_secure);

/** A charge and the attempt of a setup say it in the same words. */
function readSecure(
  secure:
    | Stripe.Charge.PaymentMethodDetails.Card.ThreeDSecure
    | Stripe.SetupAttempt.PaymentMethodDetails.Card.ThreeDSecure
    | null
    | undefined,
): Authentication | null {
  if (!secure) return null;
  return {
    flow: secure.authentication_flow,
    result: secure.result,
    eci: secure.electronic_commerce_indicator,
    version: secure.version,
    transaction_id: secure.transaction_id,
  };
}

/** Most holds last seven days; the charge says if this one does not. */
function captureBefore(intent: Stripe.PaymentIntent): string {
  const card = chargeOf(intent)?.payment_method_details?.card;
  const seconds = card?.capture_before ?? intent.created + 7 * 24 * 60 * 60;
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

type CardRefusal = {
  code?: string;
  decline_code?: string;
  advice_code?: string;
  network_decline_code?: string;
};

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
  setup_intent_authentication_failure: 'authentication_failed',
};

/** After these a retry with the same card is pointless, whatever the network advises. */
const final: ReadonlySet<DeclineReason> = new Set<DeclineReason>([
  'lost_card',
  'stolen_card',
  'expired_card',
  'incorrect_number',
  'authentication_required',
]);

/** After these the issuer forbids a retry, even if it does not say so in its advice. */
const finalCodes: ReadonlySet<string> = new Set([
  'fraudulent',
  'invalid_account',
  'merchant_blacklist',
  'pickup_card',
  'restricted_card',
  'revocation_of_all_authorizations',
  'revocation_of_authorization',
  'security_violation',
  'stop_payment_order',
]);

const cardToEnterAgain: Decline = { reason: 'processing_error', may_retry: true };

function declineOf(refusal: CardRefusal): Decline {
  const { code, decline_code, advice_code, network_decline_code } = refusal;
  const reason = reasons[decline_code ?? ''] ?? reasons[code ?? ''] ?? 'generic';
  const isForbidden = advice_code === 'do_not_try_again' || finalCodes.has(decline_code ?? '');
  return {
    reason,
    may_retry: !isForbidden && !final.has(reason),
    code: decline_code ?? code ?? null,
    network_code: network_decline_code ?? null,
  };
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

/** The gateway refuses the checkout's amount or currency (decision 0011). */
function isDataRefused(error: Stripe.errors.StripeInvalidRequestError): boolean {
  if (error.statusCode !== 400) return false;
  if (error.code === 'parameter_unknown' || error.code === 'parameter_missing') return false;
  return (
    error.param === 'amount' ||
    error.param === 'currency' ||
    isCode(error, 'amount_too_large', 'amount_too_small', 'invalid_charge_amount')
  );
}

/**
 * The key was used with other parameters: by a process with another address or master key, or
 * before the database was restored from a backup.
 */
function isOtherRequest(error: unknown): boolean {
  return error instanceof Stripe.errors.StripeIdempotencyError && error.statusCode === 400;
}

/** Null: a charge of a stored card says nothing about it. */
function storesCard(payment: Parameters<Gateway['charge' | 'authorise' | 'pay']>[0]) {
  if ('store_card' in payment) return payment.store_card;
  return 'card' in payment ? 'card_token' in payment.card && payment.card.store : null;
}

const differs = (what: string, ours: number, theirs: number) =>
  new RequestRefused(`the gateway made this ${what} of ${ours} cents over ${theirs} cents`);

/** The request under this key has ended, and the key does not say how. */
function isRepeatedFailure(error: unknown): boolean {
  return (
    error instanceof Stripe.errors.StripeError &&
    (error.statusCode ?? 0) >= 500 &&
    error.headers?.['idempotent-replayed'] === 'true'
  );
}

function isContactRefused(error: unknown): boolean {
  return (
    error instanceof Stripe.errors.StripeInvalidRequestError &&
    error.statusCode === 400 &&
    ['email', 'name', 'phone'].includes(error.param ?? '')
  );
}

/** What `Retry-After` asks for, if it is a number of seconds. */
function retryAfterOf({ headers }: InstanceType<typeof Stripe.errors.StripeError>): number | null {
  const seconds = headers?.['retry-after'];
  return seconds !== undefined && /^\d{1,6}$/.test(seconds) ? Number(seconds) * 1000 : null;
}

/** Throws without the error's message, headers and body, because they may repeat what we sent. */
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
    // Too many requests, or a key in use. This call did nothing, but another one may have.
    statusCode === 409 ||
    statusCode === 429;
  if (unknown) {
    const isAnswer = statusCode === 409 || statusCode === 429;
    const why = !isAnswer ? 'no_answer' : statusCode === 429 ? 'too_many' : 'undecided';
    const retryAfterMs = why === 'too_many' ? retryAfterOf(error) : null;
    throw new OutcomeUnknown(`the gateway did not say what happened (${facts})`, why, retryAfterMs);
  }
  throw new RequestRefused(`the gateway refused the request (${facts})`);
}
