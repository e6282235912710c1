import type { Context } from '../books/context.ts';
import { type EnteredCard, fullYear, readEnteredCard } from '../books/entered-card.ts';
import { type CardBehaviour, cardOfPaymentMethod } from '../cards.ts';
import { makeConfirmationToken } from '../objects/card.ts';
import { invalidRequest, missing, StripeAnswer } from './errors.ts';
import { type Form, readForm } from './form.ts';
import { type Answer, ok } from './operation.ts';

const tokenShape = {
  payment_method: 'string',
  payment_method_data: {
    type: 'string',
    card: { number: 'string', exp_month: 'integer', exp_year: 'integer', cvc: 'string' },
  },
  return_url: 'string',
  setup_future_usage: 'string',
} as const;

/** The card frame calls this. Tests without a browser call it too, as in Stripe's test mode. */
export function createConfirmationToken(context: Context, form: Form): Answer {
  const given = readForm(form, tokenShape);
  const data = given.payment_method_data;
  if ((given.payment_method === undefined) === (data === undefined)) {
    throw invalidRequest('Pass either payment_method or payment_method_data.', {
      code: 'parameter_missing',
      param: 'payment_method_data',
    });
  }
  const year = new Date(context.now * 1000).getUTCFullYear();
  let card: CardBehaviour;
  let expiry = { exp_month: 12, exp_year: year + 3 };
  if (given.payment_method !== undefined) {
    const known = cardOfPaymentMethod(given.payment_method);
    if (known === null) throw missing('PaymentMethod', given.payment_method, 'payment_method');
    card = known;
  } else {
    if (data?.type !== 'card') {
      throw invalidRequest('The test gateway takes cards only.', {
        param: 'payment_method_data[type]',
      });
    }
    card = readCard(data.card ?? {}, context.now);
    expiry = {
      exp_month: data.card?.exp_month ?? expiry.exp_month,
      exp_year: fullYear(data.card?.exp_year ?? expiry.exp_year),
    };
  }
  const token = makeConfirmationToken(context, {
    card,
    expiry,
    return_url: given.return_url ?? null,
    setup_future_usage: given.setup_future_usage ?? null,
  });
  context.store.save('confirmation_token', token);
  return ok(token.object);
}

/** Finds the test card. A real card's number is refused and not stored. */
function readCard(given: EnteredCard, now: number): CardBehaviour {
  const read = readEnteredCard(given, now);
  if ('card' in read) return read.card;
  throw new StripeAnswer(402, { type: 'card_error', ...read.problem });
}

export function retrieveConfirmationToken({ store }: Context, form: Form, id: string): Answer {
  readForm(form, {});
  const token = store.find('confirmation_token', id);
  if (token === null) throw missing('confirmation token', id);
  return ok(token.object);
}
