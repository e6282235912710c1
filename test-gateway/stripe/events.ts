import type { Context } from '../books/context.ts';
import { missing } from './errors.ts';
import { type Form, readForm } from './form.ts';
import { answerList } from './lists.ts';
import { type Answer, ok } from './operation.ts';

export function retrieveEvent(context: Context, form: Form, id: string): Answer {
  readForm(form, {});
  const event = context.store.find('event', id);
  if (event === null) throw missing('event', id);
  return ok(event.object);
}

export function listEvents(context: Context, form: Form): Answer {
  return answerList(context, form, {
    kind: 'event',
    url: '/v1/events',
    filters: ['type'],
    present: ({ object }) => object,
  });
}
