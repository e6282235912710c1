import {
  appearance,
  type CardUse,
  type Elements,
  type Failure,
  formLocale,
  loadScript,
  type MountCard,
  mountElement,
  problemOf,
} from './card-form.ts';

// The Stripe.js calls that the page needs: the frame turns the card into a confirmation token, with
// which the server confirms the payment.

type StripeElements = Elements<object> & { submit(): Promise<Failure> };

type Stripe = {
  elements(options: object): StripeElements;
  createConfirmationToken(options: {
    elements: StripeElements;
  }): Promise<Failure & { confirmationToken?: { id: string } }>;
};

declare global {
  interface Window {
    Stripe?: (publicKey: string) => Stripe;
  }
}

export const mountStripe: MountCard = async ({ entry, currency, place, use }) => {
  await loadScript(entry.scriptUrl);
  if (window.Stripe === undefined) throw new Error('the card script did not start');
  const stripe = window.Stripe(entry.publicKey);
  const elements = stripe.elements({
    mode: use.purpose === 'store' ? 'setup' : 'payment',
    currency: currency.toLowerCase(),
    ...(use.purpose === 'hold' && { captureMethod: 'manual' }),
    allowedPaymentMethodTypes: ['card'],
    locale: formLocale,
    appearance: appearance('stripe'),
    ...useOptions(use),
  });
  // The page shows its own consent, with dates and amounts.
  const element = elements.create('payment', { terms: { card: 'never' } });
  const mounted = await mountElement(elements, element, place);
  return {
    ...mounted,
    update: (next) => elements.update?.(useOptions(next)),
    async submit() {
      const checked = await elements.submit();
      if (checked.error) return { problem: problemOf(checked) };
      const made = await stripe.createConfirmationToken({ elements });
      return made.confirmationToken
        ? { token: made.confirmationToken.id }
        : { problem: problemOf(made) };
    },
  };
};

function useOptions(use: CardUse): object {
  if (use.purpose === 'store') return { setupFutureUsage: 'off_session' };
  return { amount: use.amount, setupFutureUsage: use.storeCard ? 'off_session' : null };
}
