import type Stripe from 'stripe';
import { type Gateway, OutcomeUnknown } from '#gateway/gateway.ts';
import { type StripeApi, sendOnce } from './api.ts';
import { fail, isCode } from './errors.ts';
import { retrieveIntent } from './intents.ts';

/** The calls of the gateway's port that end a hold: its money is captured, or it is voided. */
export function holdCalls(api: StripeApi): Pick<Gateway, 'capture' | 'void'> {
  const { stripe } = api;
  return {
    async capture({ key, merchant, payment_ref, amount }) {
      const params = { amount_to_capture: amount };
      try {
        const intent = await sendOnce(api, {
          key,
          merchant,
          send: (how) => stripe.paymentIntents.capture(payment_ref, params, how),
          find: async () => {
            const found = await retrieveIntent(api, merchant, payment_ref);
            return found.status === 'requires_capture' ? null : found;
          },
          isSafe: true,
        });
        return captured(intent, amount);
      } catch (error) {
        if (isCode(error, 'charge_expired_for_capture', 'capture_charge_authorization_expired')) {
          return { outcome: 'lapsed' };
        }
        if (!isCode(error, 'payment_intent_unexpected_state')) fail(error);
        return captured(await retrieveIntent(api, merchant, payment_ref), amount);
      }
    },

    async void({ key, merchant, payment_ref }) {
      try {
        const intent = await sendOnce(api, {
          key,
          merchant,
          send: (how) => stripe.paymentIntents.cancel(payment_ref, {}, how),
          find: async () => {
            const found = await retrieveIntent(api, merchant, payment_ref);
            return found.status === 'canceled' || found.status === 'succeeded' ? found : null;
          },
          isSafe: true,
          // A payment that is being processed cannot be voided yet.
          mayPass: true,
        });
        return voided(intent);
      } catch (error) {
        if (!isCode(error, 'payment_intent_unexpected_state')) fail(error);
        return voided(await retrieveIntent(api, merchant, payment_ref));
      }
    },
  };
}

function captured(
  intent: Stripe.PaymentIntent,
  amount: number,
): { outcome: 'captured' | 'lapsed' } {
  // An earlier request, whose key the gateway has forgotten, may have captured the hold.
  if (intent.status === 'succeeded' && intent.amount_received === amount) {
    return { outcome: 'captured' };
  }
  if (intent.status === 'canceled') return { outcome: 'lapsed' };
  throw new Error(`a payment that is ${intent.status} cannot be captured for this amount`);
}

function voided({ status }: Stripe.PaymentIntent): { outcome: 'voided' | 'captured' } {
  if (status === 'canceled') return { outcome: 'voided' };
  if (status === 'succeeded') return { outcome: 'captured' };
  throw new OutcomeUnknown(`a payment that is ${status} could not be voided`);
}
