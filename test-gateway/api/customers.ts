import { invalidRequest, missing } from '../errors.ts';
import { type Form, readForm } from '../form.ts';
import { makeCustomer } from '../objects/customer.ts';
import type { Kept } from '../store.ts';
import { answerList } from './lists.ts';
import { type Answer, type Context, ok } from './operation.ts';

export function createCustomer(context: Context, form: Form): Answer {
  const given = readForm(form, {
    email: 'string',
    name: 'string',
    phone: 'string',
    description: 'string',
    metadata: 'metadata',
  });
  if (given.email !== undefined && !/^[^\s@]+@[^\s@]+\.[^\s@.]+$/.test(given.email)) {
    throw invalidRequest('Invalid email address.', { code: 'email_invalid', param: 'email' });
  }
  const customer = makeCustomer(context, {
    email: given.email ?? null,
    name: given.name ?? null,
    phone: given.phone ?? null,
    description: given.description ?? null,
    metadata: given.metadata ?? {},
  });
  context.store.save('customer', customer);
  return ok(customer.object);
}

export function retrieveCustomer({ store }: Context, form: Form, id: string): Answer {
  readForm(form, {});
  const customer = store.find('customer', id);
  if (customer === null) throw missing('customer', id);
  return ok(customer.hidden.deleted ? deletedCustomer(id) : customer.object);
}

/** Only what Tranche asks for: one member of the metadata. Found at once, where Stripe needs a minute. */
export function searchCustomers({ store }: Context, form: Form): Answer {
  const { query, limit = 10 } = readForm(form, { query: 'string', limit: 'integer' });
  const [, name, value = ''] = /^metadata\['(\w+)'\]:'([^'"\\]*)'$/.exec(query ?? '') ?? [];
  if (name === undefined) {
    throw invalidRequest("The query must be metadata['name']:'value'.", { param: 'query' });
  }
  const found = store.page('customer', {
    members: [[`metadata.${name}`, value]],
    created: {},
    after: undefined,
    before: undefined,
    limit,
  });
  const data = found.filter(({ hidden }) => !hidden.deleted).map(({ object }) => object);
  const url = '/v1/customers/search';
  return ok({ object: 'search_result', data, has_more: false, next_page: null, url });
}

export function listCustomers(context: Context, form: Form): Answer {
  return answerList(context, form, {
    kind: 'customer',
    url: '/v1/customers',
    // A deleted customer has no address.
    filters: ['email'],
    present: ({ object }) => object,
  });
}

/** Changes members of the metadata. Nothing else of a customer is changed. */
export function updateCustomer(context: Context, form: Form, id: string): Answer {
  const { metadata } = readForm(form, { metadata: 'metadata' });
  const customer = findCustomer(context, id);
  if (customer === null) throw missing('customer', id);
  const { object } = customer;
  object.metadata = { ...object.metadata, ...metadata };
  context.store.save('customer', customer);
  return ok(object);
}

const deletedCustomer = (id: string) => ({ id, object: 'customer', deleted: true });

/** Null for a customer that was deleted: it can be used for nothing. */
export function findCustomer({ store }: Context, id: string): Kept<'customer'> | null {
  const customer = store.find('customer', id);
  return customer?.hidden.deleted ? null : customer;
}

/** Removes the customer's data and cards. Payments keep the customer's id. */
export function deleteCustomer(context: Context, form: Form, id: string): Answer {
  readForm(form, {});
  const customer = findCustomer(context, id);
  if (customer === null) throw missing('customer', id);
  const { store } = context;
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
  return ok(deletedCustomer(id));
}
