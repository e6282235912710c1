import type { Context } from '../books/context.ts';
import type { CardOptions } from '../books/payments.ts';
import { makePaymentMethod } from '../objects/card.ts';
import type { Kept } from '../store.ts';
import { invalidRequest, missing } from './errors.ts';
import { oneOf } from './operation.ts';

export function readCardOptions(given: CardOptions = {}): CardOptions {
  const usages = ['installment', 'recurring', 'unscheduled'];
  const under = (name: string) => `payment_method_options[card][${name}]`;
  oneOf(given.stored_credential_usage, usages, under('stored_credential_usage'));
  oneOf(given.setup_credential_usage, usages, under('setup_credential_usage'));
  const requests = ['any', 'automatic', 'challenge'];
  oneOf(given.request_three_d_secure, requests, under('request_three_d_secure'));
  return given;
}

/** Turns a token into a payment method. A token can be used only once. */
export function useToken(context: Context, id: string): Kept<'payment_method'> {
  const { store } = context;
  const token = store.find('confirmation_token', id);
  const param = 'confirmation_token';
  if (token === null) throw missing('confirmation token', id, param);
  if (token.hidden.used) {
    throw invalidRequest('This confirmation token has been used.', {
      code: 'token_already_used',
      param,
    });
  }
  const method = makePaymentMethod(context, token.hidden);
  store.save('confirmation_token', { ...token, hidden: { ...token.hidden, used: true } });
  return method;
}

export function storedMethod(
  { store }: Context,
  id: string,
  customer: string | undefined,
): Kept<'payment_method'> {
  const method = store.find('payment_method', id);
  if (method === null) throw missing('PaymentMethod', id, 'payment_method');
  if (method.object.customer === null || method.object.customer !== customer) {
    throw invalidRequest(
      'The provided PaymentMethod is not attached to this customer and may not be used again.',
      { param: 'payment_method' },
    );
  }
  return method;
}
