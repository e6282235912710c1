import Stripe from 'stripe';
import {
  type CardVerification,
  type Gateway,
  type MerchantTime,
  RequestRefused,
} from '#gateway/gateway.ts';
import { type StripeApi, sendOnce } from './api.ts';
import { describeCard } from './card.ts';
import { type CardRefusal, cardToEnterAgain, declineOf } from './declines.ts';
import { fail, isCode, isTokenRefused } from './errors.ts';
import { expandedSetup, verification } from './states.ts';

type VerificationCalls = Pick<
  Gateway,
  | 'enteredCard'
  | 'beginVerification'
  | 'cardVerification'
  | 'findCardVerification'
  | 'voidVerification'
>;

/** The calls of the gateway's port that verify a card without charging it. */
export function verificationCalls(api: StripeApi): VerificationCalls {
  const { stripe } = api;
  return {
    async enteredCard(merchant, card_token) {
      try {
        const token = await stripe.confirmationTokens.retrieve(
          card_token,
          {},
          api.options(merchant),
        );
        return describeCard(token.payment_method_preview?.card);
      } catch (error) {
        // The attempt that follows says that the card must be entered again.
        if (isTokenRefused(error) || isCode(error, 'resource_missing')) return describeCard(null);
        fail(error);
      }
    },

    beginVerification: (card) => beginVerification(api, card),

    async cardVerification(merchant, verification_ref) {
      return verification(await retrieveSetup(api, merchant, verification_ref));
    },

    async findCardVerification(merchant, { customer_ref, attempt_id }) {
      const setup = await findSetup(api, merchant, customer_ref, attempt_id);
      return setup === null ? null : verification(setup);
    },

    async voidVerification({ key, merchant, verification_ref }) {
      const find = async () => {
        const found = await retrieveSetup(api, merchant, verification_ref);
        return found.status === 'canceled' || found.status === 'succeeded' ? found : null;
      };
      try {
        const send = (how: Stripe.RequestOptions) =>
          stripe.setupIntents.cancel(verification_ref, { expand: [...expandedSetup] }, how);
        return verification(await sendOnce(api, { key, merchant, send, find, isSafe: true }));
      } catch (error) {
        if (!isCode(error, 'setup_intent_unexpected_state')) fail(error);
        return verification(await retrieveSetup(api, merchant, verification_ref));
      }
    },
  };
}

async function beginVerification(
  api: StripeApi,
  card: Parameters<Gateway['beginVerification']>[0],
): Promise<CardVerification> {
  const { key, merchant, checkout_id, attempt_id, customer_ref, card_token } = card;
  if (card_token === null) throw new RequestRefused('the attempt has no card');
  try {
    const params: Stripe.SetupIntentCreateParams = {
      customer: customer_ref,
      confirm: true,
      confirmation_token: card_token,
      usage: 'off_session',
      allowed_payment_method_types: ['card'],
      payment_method_options: {
        card: { request_three_d_secure: 'any', setup_credential_usage: 'installment' },
      },
      return_url: card.return_url,
      metadata: { checkout_id, attempt_id },
      expand: [...expandedSetup],
    };
    const setup = await sendOnce(api, {
      key,
      merchant,
      send: (how) => api.stripe.setupIntents.create(params, how),
      find: () => findSetup(api, merchant, customer_ref, attempt_id),
    });
    return verification(setup);
  } catch (error) {
    if (error instanceof Stripe.errors.StripeCardError) {
      const verification_ref = error.setup_intent?.id ?? null;
      return { outcome: 'declined', verification_ref, decline: declineOf(error as CardRefusal) };
    }
    if (!isTokenRefused(error)) fail(error);
    return { outcome: 'declined', verification_ref: null, decline: cardToEnterAgain };
  }
}

const retrieveSetup = (
  { stripe, options }: StripeApi,
  merchant: MerchantTime,
  verification_ref: string,
) =>
  stripe.setupIntents
    .retrieve(verification_ref, { expand: [...expandedSetup] }, options(merchant))
    .catch(fail);

async function findSetup(
  { stripe, options }: StripeApi,
  merchant: MerchantTime,
  customer_ref: string,
  attempt_id: string,
): Promise<Stripe.SetupIntent | null> {
  const expand = expandedSetup.map((name) => `data.${name}`);
  const query = { customer: customer_ref, limit: 100, expand };
  try {
    for await (const setup of stripe.setupIntents.list(query, options(merchant))) {
      if (setup.metadata?.attempt_id === attempt_id) return setup;
    }
    return null;
  } catch (error) {
    fail(error);
  }
}
