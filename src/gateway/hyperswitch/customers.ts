import type { Gateway, Heartbeat } from '#gateway/gateway.ts';
import { slotOf, slots } from '#gateway/heartbeat-slots.ts';
import type { Customer } from './answers.ts';
import { codes, fail, type HyperswitchApi, isCode } from './api.ts';
import { customerId } from './ids.ts';

type CustomerCalls = Pick<
  Gateway,
  | 'createCustomer'
  | 'deleteCustomer'
  | 'findCustomers'
  | 'detachCard'
  | 'listHeartbeats'
  | 'writeHeartbeat'
>;

/**
 * The gateway cannot store notes on an account, so customers without payments serve as notes. An
 * update replaces a customer's metadata as a whole, so each heartbeat slot has its own customer.
 */
const heartbeats = 'tranche_heartbeats';
const slotId = (slot: number) => `${heartbeats}_${slot}`;

/** The calls of the gateway's port for its records of shoppers and their stored cards. */
export function customerCalls(api: HyperswitchApi): CustomerCalls {
  const pathOf = (id: string) => `/customers/${encodeURIComponent(id)}`;
  return {
    createCustomer: (customer) => createCustomer(api, customer),

    async deleteCustomer({ merchant, customer_ref }) {
      try {
        await api.call('DELETE', pathOf(customer_ref), { merchant });
      } catch (error) {
        if (!isCode(error, codes.missing, codes.redacted)) fail(error);
      }
    },

    async findCustomers(merchant, checkout_id) {
      const id = customerId(checkout_id);
      try {
        await api.call('GET', pathOf(id), { merchant });
        return [id];
      } catch (error) {
        return isCode(error, codes.missing, codes.redacted) ? [] : fail(error);
      }
    },

    async detachCard({ merchant, card_ref }) {
      try {
        await api.call('DELETE', `/payment_methods/${encodeURIComponent(card_ref)}`, { merchant });
      } catch (error) {
        if (!isCode(error, codes.missing, codes.redacted)) fail(error);
      }
    },

    async listHeartbeats() {
      const found = await Promise.all(slots.map((slot) => readSlot(api, slotId(slot))));
      const highest = new Map<string, Heartbeat>();
      for (const [database, value] of found.flatMap((slot) => Object.entries(slot ?? {}))) {
        const [text, gateway] = String(value).split(' ');
        const named = gateway === undefined ? {} : { gateway };
        const count = Number(text);
        if (count < (highest.get(database)?.count ?? 0)) continue;
        highest.set(database, { heartbeat_ref: heartbeats, database, ...named, count });
      }
      return [...highest.values()];
    },

    /**
     * If two databases write to a slot at once, one heartbeat is missing until its database writes
     * the next one (decision 0097).
     */
    async writeHeartbeat({ database, gateway, count }) {
      const slot = slotId(slotOf(count));
      const found = await readSlot(api, slot);
      const value = gateway === undefined ? String(count) : `${count} ${gateway}`;
      const metadata = { ...found, [database]: value };
      const description =
        'The heartbeat of Tranche. Do not delete it: it protects against restores.';
      const isNew = found === null;
      const body = isNew ? { customer_id: slot, description, metadata } : { metadata };
      await api.call('POST', isNew ? '/customers' : pathOf(slot), { body }).catch(fail);
    },
  };
}

async function readSlot(
  api: HyperswitchApi,
  slot: string,
): Promise<Record<string, unknown> | null> {
  try {
    const { metadata } = await api.call<Customer>('GET', `/customers/${slot}`, {});
    return metadata ?? {};
  } catch (error) {
    return isCode(error, codes.missing) ? null : fail(error);
  }
}

async function createCustomer(
  api: HyperswitchApi,
  { merchant, checkout_id, shopper }: Parameters<Gateway['createCustomer']>[0],
): Promise<{ customer_ref: string }> {
  const customer_id = customerId(checkout_id);
  const create = async (contact: object) => {
    const body = { customer_id, ...contact, metadata: { checkout_id } };
    try {
      await api.call('POST', '/customers', { merchant, body });
    } catch (error) {
      // The id is derived from the checkout, so the existing customer is the same shopper.
      if (!isCode(error, codes.tooMany)) throw error;
    }
  };
  const contact = {
    email: shopper.email,
    ...(shopper.name !== undefined && { name: shopper.name }),
    ...(shopper.phone_number !== undefined && { phone: shopper.phone_number }),
  };
  try {
    await create(contact);
  } catch (error) {
    // The gateway does not need the contact details. They are left out, so that the shopper can
    // pay.
    if (!isCode(error, codes.invalidValue, codes.invalidFormat, codes.unreadable)) fail(error);
    await create({}).catch(fail);
  }
  return { customer_ref: customer_id };
}
