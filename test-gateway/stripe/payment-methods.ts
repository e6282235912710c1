import type { Context } from '../books/context.ts';
import type { Kept } from '../store.ts';
import { invalidRequest, missing } from './errors.ts';
import { type Form, readForm } from './form.ts';
import { answerList } from './lists.ts';
import { type Answer, ok } from './operation.ts';

function findMethod({ store }: Context, id: string): Kept<'payment_method'> {
  const method = store.find('payment_method', id);
  if (method === null) throw missing('PaymentMethod', id);
  return method;
}

export function retrievePaymentMethod(context: Context, form: Form, id: string): Answer {
  readForm(form, {});
  return ok(findMethod(context, id).object);
}

export function listPaymentMethods(context: Context, form: Form): Answer {
  return answerList(context, form, {
    kind: 'payment_method',
    url: '/v1/payment_methods',
    filters: ['customer', 'type'],
    present: ({ object }) => object,
  });
}

/** A detached card can neither be charged nor attached again. */
export function detachPaymentMethod(context: Context, form: Form, id: string): Answer {
  readForm(form, {});
  const method = findMethod(context, id);
  if (method.object.customer === null) {
    throw invalidRequest(
      'The payment method you provided is not attached to a customer so detachment is impossible.',
      { param: 'payment_method' },
    );
  }
  method.object.customer = null;
  context.store.save('payment_method', method);
  return ok(method.object);
}
