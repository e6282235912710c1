import type { Context } from '../books/context.ts';
import { findCustomer, removeCustomer } from '../books/customers.ts';
import { makeCustomer } from '../objects/customer.ts';
import { invalidRequest, missing } from './errors.ts';
import { type Form, readForm } from './form.ts';
import { answerList } from './lists.ts';
import { type Answer, ok } from './operation.ts';

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

/**
 * Searches by one member of the metadata, which is all that Tranche asks for. A new customer is
 * found at once, while Stripe needs up to a minute.
 */
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
    // A deleted customer has no e-mail address to filter by.
    filters: ['email'],
    present: ({ object }) => object,
  });
}

/** Changes members of the metadata. Nothing else about a customer can be changed. */
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

export function deleteCustomer(context: Context, form: Form, id: string): Answer {
  readForm(form, {});
  const customer = findCustomer(context, id);
  if (customer === null) throw missing('customer', id);
  removeCustomer(context, customer);
  return ok(deletedCustomer(id));
}
