import {
  type Charge,
  type Gateway,
  OutcomeUnknown,
  type PaymentState,
  type RefusedData,
  RequestRefused,
  type Statement,
} from '#gateway/gateway.ts';
import { type GatewaySettings, statementPrefix } from '#gateway/settings.ts';
import { paymentDescription, statementSuffix } from '#gateway/statement.ts';
import type { StripeApi } from './api.ts';
import { declinedByBank, declinedForGood, declinedToken } from './declines.ts';
import { fail, isDataRefused } from './errors.ts';
import { createIntent, findIntent, listIntents, retrieveIntent } from './intents.ts';
import { expanded, paymentState, schemeOf, takenState } from './states.ts';

type PaymentCalls = Pick<
  Gateway,
  'begin' | 'charge' | 'payment' | 'findPayment' | 'listInstalmentPayments'
>;

type Begin = Parameters<Gateway['begin']>[0];

/** The calls of the gateway's port that make payments and look them up. */
export function paymentCalls(api: StripeApi): PaymentCalls {
  return {
    begin: (payment) => begin(api, payment),
    charge: (payment) => charge(api, payment),

    async payment(merchant, payment_ref) {
      return paymentState(await retrieveIntent(api, merchant, payment_ref));
    },

    async findPayment(merchant, { customer_ref, attempt_id }) {
      const intent = await findIntent(api, merchant, customer_ref, attempt_id);
      return intent === null ? null : paymentState(intent);
    },

    async listInstalmentPayments(merchant, { customer_ref, checkout_id, instalments }) {
      try {
        const states: (PaymentState & { attempt_id: string | null })[] = [];
        for await (const intent of listIntents(api, merchant, customer_ref)) {
          const { metadata } = intent;
          if (metadata.checkout_id !== checkout_id) continue;
          // A shopper may have paid several instalments at once.
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
  };
}

/**
 * Creates a payment and confirms it with the token of the card, in one request: the browser has no
 * session that it could confirm later, and a declined payment stays declined (decision 0029).
 */
async function begin(api: StripeApi, payment: Begin): Promise<PaymentState | RefusedData> {
  const { card, capture, instalments, statement } = payment;
  if (card === null) throw new RequestRefused('the attempt has no card');
  const isHeld = capture === 'later';
  try {
    const intent = await createIntent(api, payment, {
      amount: payment.amount,
      currency: payment.currency.toLowerCase(),
      customer: payment.customer_ref,
      confirm: true,
      ...('card_token' in card
        ? { confirmation_token: card.card_token }
        : { payment_method: card.card_ref }),
      ...(isHeld && { capture_method: 'manual' as const }),
      allowed_payment_method_types: ['card'],
      return_url: payment.return_url,
      ...withShopper(payment.store_card),
      ...words(api.settings, statement),
      metadata: {
        checkout_id: payment.checkout_id,
        [instalments.length === 1 ? 'instalment' : 'instalments']: instalments.join(','),
        ...(isHeld && { number_of_payments: statement.number_of_payments }),
        attempt_id: payment.attempt_id,
      },
      expand: [...expanded],
    });
    return takenState(intent, isHeld ? 'authorised' : 'captured');
  } catch (error) {
    const declined = declinedByBank(error) ?? declinedToken(error);
    if (declined !== null) return declined;
    if (!isHeld) return declinedForGood(error) ?? fail(error);
    if (!isDataRefused(error)) fail(error);
    return { outcome: 'refused', detail: `${error.param ?? ''} ${error.code ?? ''}`.trim() };
  }
}

async function charge(api: StripeApi, payment: Parameters<Gateway['charge']>[0]): Promise<Charge> {
  try {
    const intent = await createIntent(api, payment, {
      amount: payment.amount,
      currency: payment.currency.toLowerCase(),
      customer: payment.customer_ref,
      payment_method: payment.card_ref,
      confirm: true,
      off_session: true,
      allowed_payment_method_types: ['card'],
      payment_method_options: { card: { stored_credential_usage: 'installment' } },
      ...words(api.settings, payment.statement),
      metadata: {
        checkout_id: payment.checkout_id,
        instalment: payment.instalment,
        number_of_payments: payment.statement.number_of_payments,
        attempt_id: payment.attempt_id,
      },
      expand: ['latest_charge'],
    });
    if (intent.status === 'succeeded') {
      return { outcome: 'charged', payment_ref: intent.id, scheme: schemeOf(intent) };
    }
    const state = paymentState(intent);
    if (state.outcome === 'declined') return state;
    throw new OutcomeUnknown(`a charge without the shopper is ${intent.status}`);
  } catch (error) {
    return declinedByBank(error) ?? declinedForGood(error) ?? fail(error);
  }
}

/** How a card is used while the shopper is present: their bank authenticates them. */
const withShopper = (store: boolean) => ({
  ...(store && { setup_future_usage: 'off_session' as const }),
  payment_method_options: {
    card: {
      request_three_d_secure: 'any' as const,
      ...(store && { setup_credential_usage: 'installment' as const }),
    },
  },
});

/** Describes a payment on statements and in the gateway's records. */
const words = (settings: GatewaySettings, statement: Statement) => ({
  statement_descriptor_suffix: statementSuffix(
    statementPrefix(settings),
    statement.merchant_name,
    statement,
  ),
  description: paymentDescription(statement.merchant_name, statement),
});
