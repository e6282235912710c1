import type Stripe from 'stripe';
import { type Gateway, type MerchantTime, RequestRefused } from '#gateway/gateway.ts';
import { type StripeApi, sendOnce } from './api.ts';
import { differs, fail } from './errors.ts';
import { expanded, isStored } from './states.ts';

// Reads and creates payments at the gateway.

export async function retrieveIntent(
  { stripe, options }: StripeApi,
  merchant: MerchantTime,
  payment_ref: string,
): Promise<Stripe.PaymentIntent> {
  return await stripe.paymentIntents
    .retrieve(payment_ref, { expand: [...expanded] }, options(merchant))
    .catch(fail);
}

/** Stripe's search lags by a minute. The list is up to date. */
export function listIntents(
  { stripe, options }: StripeApi,
  merchant: MerchantTime,
  customer_ref: string,
): AsyncIterable<Stripe.PaymentIntent> {
  return stripe.paymentIntents.list(
    { customer: customer_ref, limit: 100, expand: expanded.map((member) => `data.${member}`) },
    options(merchant),
  );
}

export async function findIntent(
  api: StripeApi,
  merchant: MerchantTime,
  customer_ref: string,
  attempt_id: string,
): Promise<Stripe.PaymentIntent | null> {
  try {
    for await (const intent of listIntents(api, merchant, customer_ref)) {
      if (intent.metadata.attempt_id === attempt_id) return intent;
    }
    return null;
  } catch (error) {
    fail(error);
  }
}

type NewPayment = Parameters<Gateway['charge' | 'begin']>[0];

/** Creates the payment of an attempt only once. */
export async function createIntent(
  api: StripeApi,
  payment: NewPayment,
  params: Stripe.PaymentIntentCreateParams,
): Promise<Stripe.PaymentIntent> {
  return await sendOnce(api, {
    key: payment.key,
    merchant: payment.merchant,
    send: (how) => api.stripe.paymentIntents.create(params, how),
    find: () => findSameIntent(api, payment),
  });
}

/** The payment that an earlier request made for an attempt, or null. Throws if they differ. */
async function findSameIntent(
  api: StripeApi,
  payment: NewPayment,
): Promise<Stripe.PaymentIntent | null> {
  const { merchant, customer_ref, attempt_id, amount, currency } = payment;
  const found = await findIntent(api, merchant, customer_ref, attempt_id);
  // A payment that neither took nor holds money needs no comparison.
  if (found === null || ['requires_payment_method', 'canceled'].includes(found.status)) {
    return found;
  }
  const isSame = found.amount === amount && found.currency === currency.toLowerCase();
  if (!isSame) throw differs('payment', amount, found.amount);
  // A charge does not store its card: the card is stored already.
  if ('store_card' in payment && payment.store_card !== isStored(found)) {
    throw new RequestRefused('the gateway has a payment for this attempt with another term');
  }
  return found;
}
