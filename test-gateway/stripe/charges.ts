import type { Context } from '../books/context.ts';
import { presentCharge } from '../books/refunds.ts';
import { missing } from './errors.ts';
import { type Form, readForm } from './form.ts';
import { answerList } from './lists.ts';
import { type Answer, ok } from './operation.ts';

export function retrieveCharge(context: Context, form: Form, id: string): Answer {
  readForm(form, {});
  const charge = context.store.find('charge', id);
  if (charge === null) throw missing('charge', id);
  return ok(presentCharge(context, charge));
}

export function listCharges(context: Context, form: Form): Answer {
  return answerList(context, form, {
    kind: 'charge',
    url: '/v1/charges',
    filters: ['customer', 'payment_intent'],
    present: (charge) => presentCharge(context, charge),
  });
}
