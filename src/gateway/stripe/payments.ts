import type {
  Authorisation,
  Charge,
  Gateway,
  PaymentState,
  ShopperPayment,
  Statement,
} from '#gateway/gateway.ts';
import { OutcomeUnknown } from '#gateway/gateway.ts';
import { type StripeSettings, statementPrefix } from '#gateway/settings.ts';
import { paymentDescription, statementSuffix } from '#gateway/statement.ts';
import type { StripeApi } from './api.ts';
import { declinedByBank, declinedForGood, declinedToken } from './declines.ts';
import { fail, isDataRefused } from './errors.ts';
import { createIntent, findIntent, listIntents, retrieveIntent } from './intents.ts';
import { authorisation, expanded, paymentState, shopperPayment } from './states.ts';

type PaymentCalls = Pick<
  Gateway,
  'authorise' | 'charge' | 'pay' | 'payment' | 'findPayment' | 'listInstalmentPayments'
>;

/** The part of the port that makes payments and looks them up. */
export function paymentCalls(api: StripeApi): PaymentCalls {
  return {
    authorise: (payment) => authorise(api, payment),
    charge: (payment) => charge(api, payment),
    pay: (payment) => pay(api, payment),

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
  };
}

async function authorise(
  api: StripeApi,
  payment: Parameters<Gateway['authorise']>[0],
): Promise<Authorisation> {
  try {
    const intent = await createIntent(api, payment, {
      amount: payment.amount,
      currency: payment.currency.toLowerCase(),
      customer: payment.customer_ref,
      confirm: true,
      confirmation_token: payment.card_token,
      capture_method: 'manual',
      allowed_payment_method_types: ['card'],
      return_url: payment.return_url,
      ...withShopper(payment.store_card),
      ...words(api.settings, payment.statement),
      metadata: {
        checkout_id: payment.checkout_id,
        instalment: 1,
        number_of_payments: payment.statement.number_of_payments,
        attempt_id: payment.attempt_id,
      },
      expand: [...expanded],
    });
    return authorisation(intent);
  } catch (error) {
    const declined = declinedByBank(error) ?? declinedToken(error);
    if (declined !== null) return declined;
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
    });
    if (intent.status === 'succeeded') return { outcome: 'charged', payment_ref: intent.id };
    const state = paymentState(intent);
    if (state.outcome === 'declined') return state;
    throw new OutcomeUnknown(`a charge without the shopper is ${intent.status}`);
  } catch (error) {
    return declinedByBank(error) ?? declinedForGood(error) ?? fail(error);
  }
}

async function pay(
  api: StripeApi,
  payment: Parameters<Gateway['pay']>[0],
): Promise<ShopperPayment> {
  const { card, instalments } = payment;
  const isNew = 'card_token' in card;
  try {
    const intent = await createIntent(api, payment, {
      amount: payment.amount,
      currency: payment.currency.toLowerCase(),
      customer: payment.customer_ref,
      confirm: true,
      ...(isNew ? { confirmation_token: card.card_token } : { payment_method: card.card_ref }),
      allowed_payment_method_types: ['card'],
      return_url: payment.return_url,
      ...withShopper(isNew && card.store),
      ...(payment.statement && words(api.settings, payment.statement)),
      metadata: {
        checkout_id: payment.checkout_id,
        [instalments.length === 1 ? 'instalment' : 'instalments']: instalments.join(','),
        attempt_id: payment.attempt_id,
      },
      expand: [...expanded],
    });
    return shopperPayment(intent);
  } catch (error) {
    return declinedByBank(error) ?? declinedToken(error) ?? declinedForGood(error) ?? fail(error);
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
const words = (settings: StripeSettings, statement: Statement) => ({
  statement_descriptor_suffix: statementSuffix(
    statementPrefix(settings),
    statement.merchant_name,
    statement,
  ),
  description: paymentDescription(statement.merchant_name, statement),
});
