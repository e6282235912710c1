import type Stripe from 'stripe';
import { missing } from '../errors.ts';
import { type Form, readForm } from '../form.ts';
import { type EventType, makeEvent } from '../objects/event.ts';
import { answerList } from './lists.ts';
import { type Answer, type Context, ok } from './operation.ts';

/** Records what happened. The webhook is called once the transaction is committed. */
export function emit(
  context: Context,
  merchant: string,
  type: EventType,
  object: Stripe.Dispute,
): void {
  const event = makeEvent(
    { merchant, now: context.timeOf(merchant) },
    { type, object, hasWebhook: context.notify !== null },
  );
  context.store.save('event', event);
  context.notify?.(event.object);
}

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
