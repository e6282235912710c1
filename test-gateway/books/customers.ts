import type { Kept } from '../store.ts';
import type { Context } from './context.ts';

/** Null if the customer is unknown or deleted. A deleted customer can no longer be used. */
export function findCustomer({ store }: Context, id: string): Kept<'customer'> | null {
  const customer = store.find('customer', id);
  return customer?.hidden.deleted ? null : customer;
}

/**
 * The card as it is stored for a customer. A gateway with a vault knows the card by its number: a
 * card that the customer enters again keeps its id, with the expiry that was entered last.
 */
export function asStored(
  { store }: Context,
  entered: Kept<'payment_method'>,
  customer: string,
  hasVault: boolean,
): Kept<'payment_method'> {
  const known = hasVault
    ? store
        .list('payment_method', { customer, limit: 1_000 })
        .find(({ hidden }) => hidden.card === entered.hidden.card)
    : undefined;
  if (known === undefined) {
    entered.object.customer = customer;
    return entered;
  }
  if (entered.object.card) known.object.card = entered.object.card;
  known.hidden.authenticated ||= entered.hidden.authenticated;
  return known;
}

/** Removes the customer's data and cards. Payments keep the customer's id. */
export function removeCustomer({ store }: Context, customer: Kept<'customer'>): void {
  const { id } = customer.object;
  for (const method of store.list('payment_method', { customer: id, limit: 1_000 })) {
    method.object.customer = null;
    store.save('payment_method', method);
  }
  const gone = { email: null, name: null, phone: null, description: null, metadata: {} };
  store.save('customer', {
    ...customer,
    object: { ...customer.object, ...gone },
    hidden: { deleted: true },
  });
}
