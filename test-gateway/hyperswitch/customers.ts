import type { Static } from 'typebox';
import type { Context } from '../books/context.ts';
import { removeCustomer } from '../books/customers.ts';
import { makeCustomer } from '../objects/customer.ts';
import { newId } from '../objects/made.ts';
import type { Kept } from '../store.ts';
import { HyperswitchError, missing } from './errors.ts';
import { findPayment, presentPayment } from './payment.ts';
import type * as schemas from './schemas.ts';

/** Finds the customer. Refuses one that does not exist or was deleted. */
export function usableCustomer({ store }: Context, id: string): Kept<'customer'> {
  const customer = store.find('customer', id);
  if (customer === null) throw missing('Customer');
  if (customer.hidden.deleted) {
    throw new HyperswitchError(400, 'IR_11', 'Customer has already been redacted');
  }
  return customer;
}

function present({ object }: Kept<'customer'>): Static<typeof schemas.customer> {
  return {
    customer_id: object.id,
    name: object.name ?? null,
    email: object.email,
    phone: object.phone ?? null,
    phone_country_code: null,
    description: object.description,
    address: null,
    created_at: new Date(object.created * 1000).toISOString(),
    metadata: object.metadata,
    default_payment_method_id: null,
  };
}

const texts = (metadata: Record<string, unknown> | null | undefined) =>
  Object.fromEntries(Object.entries(metadata ?? {}).map(([name, value]) => [name, String(value)]));

function checkEmail(email: string | null | undefined): void {
  if (!email || /^[^\s@]+@[^\s@]+\.[^\s@.]+$/.test(email)) return;
  throw new HyperswitchError(400, 'IR_07', 'Invalid value provided: email');
}

export function createCustomer(
  context: Context,
  given: Static<typeof schemas.createCustomer>,
): object {
  const id = given.customer_id ?? newId('cus');
  if (context.store.find('customer', id) !== null) {
    throw new HyperswitchError(
      400,
      'IR_12',
      'Customer with the given `customer_id` already exists',
    );
  }
  checkEmail(given.email);
  const customer = makeCustomer(context, {
    id,
    email: given.email ?? null,
    name: given.name ?? null,
    phone: given.phone ?? null,
    description: given.description ?? null,
    metadata: texts(given.metadata),
  });
  context.store.save('customer', customer);
  return present(customer);
}

export const retrieveCustomer = (context: Context, id: string): object =>
  present(usableCustomer(context, id));

/** The metadata is replaced as a whole. */
export function updateCustomer(
  context: Context,
  given: Static<typeof schemas.updateCustomer>,
  id: string,
): object {
  const customer = usableCustomer(context, id);
  checkEmail(given.email);
  const { object } = customer;
  if (given.metadata) object.metadata = texts(given.metadata);
  if (given.name) object.name = given.name;
  if (given.email) object.email = given.email;
  if (given.phone) object.phone = given.phone;
  if (given.description) object.description = given.description;
  context.store.save('customer', customer);
  return present(customer);
}

export function deleteCustomer(context: Context, id: string): object {
  const customer = usableCustomer(context, id);
  const payments = context.store.payments({ customer: id, limit: 1_000 });
  const hasMandate = payments.some(({ id: payment_id }) => {
    const payment = findPayment(context, payment_id);
    return payment !== null && presentPayment(context, payment).mandate_id !== null;
  });
  if (hasMandate) {
    throw new HyperswitchError(400, 'IR_10', 'Customer has active mandate/subsciption');
  }
  removeCustomer(context, customer);
  return {
    customer_id: id,
    customer_deleted: true,
    address_deleted: true,
    payment_methods_deleted: true,
  };
}

function storedMethod({ store }: Context, id: string): Kept<'payment_method'> {
  const method = store.find('payment_method', id);
  if (method === null || method.object.customer === null) throw missing('Payment method');
  return method;
}

export function retrievePaymentMethod(context: Context, id: string): object {
  const { object } = storedMethod(context, id);
  return {
    merchant_id: 'merchant_test',
    customer_id: String(object.customer),
    payment_method_id: id,
    payment_method: 'card',
    recurring_enabled: true,
  };
}

/** A removed card can neither be charged nor stored again. */
export function deletePaymentMethod(context: Context, id: string): object {
  const method = storedMethod(context, id);
  method.object.customer = null;
  context.store.save('payment_method', method);
  return { payment_method_id: id, deleted: true };
}
