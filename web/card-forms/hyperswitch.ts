import {
  appearance,
  type Elements,
  type Failure,
  formLocale,
  loadScript,
  type MountCard,
  mountElement,
  problemOf,
} from './card-form.ts';

// The HyperLoader.js calls that the page needs: the frame confirms the payment that the server has
// begun.

type Hyper = {
  elements(options: object): Elements<object>;
  confirmPayment(options: {
    elements: Elements<object>;
    confirmParams: { return_url: string };
    redirect: 'if_required';
  }): Promise<Failure>;
};

declare global {
  interface Window {
    Hyper?: (publicKey: string, options: { customBackendUrl?: string }) => Hyper;
  }
}

export const mountHyperswitch: MountCard = async ({ entry, session, returnUrl, place }) => {
  if (session === null) throw new Error('the card form needs a session');
  await loadScript(entry.scriptUrl);
  if (window.Hyper === undefined) throw new Error('the card script did not start');
  const hyper = window.Hyper(
    entry.publicKey,
    entry.apiUrl === undefined ? {} : { customBackendUrl: entry.apiUrl },
  );
  const elements = hyper.elements({
    clientSecret: session.client_secret,
    locale: formLocale,
    appearance: appearance(),
  });
  const element = elements.create('payment', {
    // The page shows its own consent, and the server decides whether the card is stored.
    displaySavedPaymentMethodsCheckbox: false,
    displaySavedPaymentMethods: false,
    wallets: { walletReturnUrl: returnUrl, applePay: 'never', googlePay: 'never' },
  });
  const mounted = await mountElement(elements, element, place);
  return {
    ...mounted,
    // The session determines the amount and the term.
    update() {},
    async submit() {
      // If the bank asks for confirmation, the browser leaves the page here.
      const { error } = await hyper.confirmPayment({
        elements,
        confirmParams: { return_url: returnUrl },
        redirect: 'if_required',
      });
      // Only the server can find out the outcome of a payment that was sent.
      return error?.type === 'validation_error'
        ? { problem: problemOf({ error }) }
        : { token: null };
    },
  };
};
