import Stripe from 'stripe';
import type { Gateway } from '#gateway/gateway.ts';
import { type StripeApi, sendOnce } from './api.ts';
import { fail, isCode, isContactRefused } from './errors.ts';

type CustomerCalls = Pick<
  Gateway,
  'createCustomer' | 'deleteCustomer' | 'findCustomers' | 'detachCard'
>;

/** The calls of the gateway's port for its records of shoppers and their stored cards. */
export function customerCalls(api: StripeApi): CustomerCalls {
  const { stripe, options } = api;
  return {
    createCustomer: (customer) => createCustomer(api, customer),

    async deleteCustomer({ merchant, customer_ref }) {
      try {
        // Deleting twice is the same as deleting once, so a DELETE needs no key.
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

    async detachCard({ key, merchant, card_ref }) {
      const find = async () => {
        const found = await stripe.paymentMethods.retrieve(card_ref, {}, options(merchant));
        return found.customer === null ? found : null;
      };
      try {
        const send = (how: Stripe.RequestOptions) =>
          stripe.paymentMethods.detach(card_ref, {}, how);
        await sendOnce(api, { key, merchant, send, find, isSafe: true });
      } catch (error) {
        if (isCode(error, 'resource_missing')) return;
        if (!(error instanceof Stripe.errors.StripeInvalidRequestError)) fail(error);
        // The card may be detached already, by a request whose key the gateway has forgotten.
        if ((await find().catch(fail)) === null) fail(error);
      }
    },
  };
}

async function createCustomer(
  api: StripeApi,
  { key, merchant, checkout_id, shopper }: Parameters<Gateway['createCustomer']>[0],
): Promise<{ customer_ref: string }> {
  const metadata = { checkout_id };
  const contact = {
    email: shopper.email,
    ...(shopper.name !== undefined && { name: shopper.name }),
    ...(shopper.phone_number !== undefined && { phone: shopper.phone_number }),
  };
  const create = async (params: Stripe.CustomerCreateParams, key: string) => {
    const send = (how: Stripe.RequestOptions) => api.stripe.customers.create(params, how);
    // An earlier customer need not be found: a second one does no harm.
    const find = async () => null;
    const customer = await sendOnce(api, { key, merchant, send, find, isSafe: true });
    return { customer_ref: customer.id };
  };
  try {
    return await create({ ...contact, metadata }, key);
  } catch (error) {
    // The gateway does not need the contact details. Refused ones are left out, so that the shopper
    // can pay.
    if (!isContactRefused(error)) fail(error);
    return await create({ metadata }, `${key}:bare`).catch(fail);
  }
}
