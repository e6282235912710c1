import type Stripe from 'stripe';
import type { Refusal } from '../cards.ts';

/** Why a card was declined, as an object stores it. */
export type CardError = {
  type: 'card_error';
  code: string;
  decline_code: string;
  advice_code: string;
  network_decline_code?: string;
  message: string;
  charge?: string;
  payment_method: Stripe.PaymentMethod;
};

/** Makes the error. When a card is stored without a payment, there is no charge or network code. */
export function cardError(
  refusal: Refusal,
  payment_method: Stripe.PaymentMethod,
  charge?: string,
): CardError {
  const { code, decline_code, advice_code, message, network_decline_code } = refusal;
  return {
    type: 'card_error',
    code,
    decline_code,
    advice_code,
    ...(charge !== undefined && network_decline_code !== undefined && { network_decline_code }),
    message,
    ...(charge !== undefined && { charge }),
    payment_method,
  };
}
