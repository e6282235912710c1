// The test gateway's script for payment pages that use Hyperswitch's protocol. It has the few calls
// of HyperLoader.js that a page needs to take a card and to confirm a payment with it.
import { CardElement, gatewayOrigin, noForm } from './card-element.js';

function Hyper(publishableKey, options) {
  if (typeof publishableKey !== 'string' || !publishableKey.startsWith('pk_')) {
    throw new Error('Hyper() needs a publishable key (pk_…).');
  }
  const backend = options?.customBackendUrl;
  if (backend && new URL(backend).origin !== gatewayOrigin) {
    throw new Error('The test gateway has its script and its API on one origin.');
  }
  return {
    elements: (given) => createElements(publishableKey, given ?? {}),
    confirmPayment,
  };
}

function createElements(publishableKey, given) {
  if (typeof given.clientSecret !== 'string') throw new Error('elements() needs a client secret.');
  let options = given;
  let element = null;
  return {
    _clientSecret: given.clientSecret,
    create(type, elementOptions) {
      if (type !== 'payment') throw new Error(`There is no element ${type}.`);
      if (element !== null) throw new Error('There is already a card form.');
      element = new CardElement(
        publishableKey,
        () => options,
        elementOptions ?? {},
        () => {
          element = null;
        },
      );
      return element;
    },
    getElement: (type) => (type === 'payment' ? element : null),
    update(changed) {
      options = { ...options, ...changed };
      if (changed.appearance) element?._tell('update', { appearance: changed.appearance });
    },
    async fetchUpdates() {
      return {};
    },
  };
}

/**
 * Resolves with the payment, or with an error. If the bank asks for a challenge, the shopper leaves
 * the page.
 */
async function confirmPayment({ elements, confirmParams, redirect }) {
  const card = elements.getElement('payment');
  if (card === null) return noForm;
  const { error, payment } = await card._ask('confirm', {
    clientSecret: elements._clientSecret,
    returnUrl: confirmParams?.return_url,
  });
  if (error) return { error };
  const url = payment.next_action?.redirect_to_url;
  if (url) return await leave(url);
  if (redirect === 'if_required') return payment;
  const back = new URL(confirmParams.return_url);
  back.searchParams.set('status', payment.status);
  back.searchParams.set('payment_intent_client_secret', elements._clientSecret);
  return await leave(back.href);
}

/** The page is about to be left, so this never resolves. */
function leave(url) {
  location.assign(url);
  return new Promise(() => {});
}

window.Hyper = Hyper;
