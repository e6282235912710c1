import { invalidRequest, missing } from '../errors.ts';
import { type Form, readForm } from '../form.ts';
import { makeCustomer } from '../objects/customer.ts';
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
  return ok(customer.object);
}
