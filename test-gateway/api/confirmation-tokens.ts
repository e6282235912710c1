import { type CardBehaviour, cardNumbered, cardOfPaymentMethod, passesLuhn } from '../cards.ts';
import { invalidRequest, missing, StripeAnswer } from '../errors.ts';
import { type Form, readForm } from '../form.ts';
import { makeConfirmationToken } from '../objects/card.ts';
import { type Answer, type Context, ok } from './operation.ts';

const tokenShape = {
  payment_method: 'string',
  payment_method_data: {
    type: 'string',
    card: { number: 'string', exp_month: 'integer', exp_year: 'integer', cvc: 'string' },
  },
  return_url: 'string',
  setup_future_usage: 'string',
} as const;

/** Used by the card frame, and by tests without a browser, as in Stripe's test mode. */
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

function fullYear(year: number): number {
  return year < 100 ? 2000 + year : year;
}

/** Finds the test card. Any other number is refused and not stored: it may be a real card. */
function readCard(
  given: { number?: string; exp_month?: number; exp_year?: number; cvc?: string },
  now: number,
): CardBehaviour {
  const number = (given.number ?? '').replace(/[\s-]/g, '');
  const refuse = (code: string, param: string, message: string, decline_code?: string) =>
    new StripeAnswer(402, {
      type: 'card_error',
      code,
      message,
      param,
      ...(decline_code && { decline_code }),
    });
  if (!/^\d{12,19}$/.test(number) || !passesLuhn(number)) {
    throw refuse('incorrect_number', 'number', 'Your card number is incorrect.');
  }
  const card = cardNumbered(number);
  if (card === null) {
    throw refuse(
      'card_declined',
      'number',
      'Your card was declined. Your request was in test mode, but used a non test card.',
      'test_mode_live_card',
    );
  }
  if (given.exp_month !== undefined && !(given.exp_month >= 1 && given.exp_month <= 12)) {
    throw refuse('invalid_expiry_month', 'exp_month', "Your card's expiration month is invalid.");
  }
  if (given.exp_year !== undefined) {
    const year = fullYear(given.exp_year);
    // A card is valid to the end of its month in every time zone.
    const ends = Date.UTC(year, given.exp_month ?? 12, 2) / 1000;
    const tooFar = year > new Date(now * 1000).getUTCFullYear() + 50;
    if (ends <= now || tooFar) {
      throw refuse('invalid_expiry_year', 'exp_year', "Your card's expiration year is invalid.");
    }
  }
  if (given.cvc !== undefined && !/^\d{3,4}$/.test(given.cvc)) {
    throw refuse('invalid_cvc', 'cvc', "Your card's security code is invalid.");
  }
  return card;
}

export function retrieveConfirmationToken({ store }: Context, form: Form, id: string): Answer {
  readForm(form, {});
  const token = store.find('confirmation_token', id);
  if (token === null) throw missing('confirmation token', id);
  return ok(token.object);
}
