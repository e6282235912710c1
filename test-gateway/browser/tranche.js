// The test gateway's script for payment pages. It has the few calls of Stripe.js that a page needs
// to take a card.
import { CardElement, noForm } from './card-element.js';

function Stripe(publishableKey) {
  if (typeof publishableKey !== 'string' || !publishableKey.startsWith('pk_')) {
    throw new Error('Stripe() needs a publishable key (pk_…).');
  }
  return {
    elements: (options) => createElements(publishableKey, options ?? {}),

    async createConfirmationToken({ elements }) {
      const card = elements.getElement('payment');
      if (card === null) return noForm;
      return await card._ask('createToken');
    },
  };
}

/** Stripe.js refuses this option since its release Endive. */
function check(options) {
  if ('paymentMethodTypes' in options) throw new Error('paymentMethodTypes is not an option.');
  return options;
}

function createElements(publishableKey, given) {
  let options = check(given);
  let element = null;
  return {
    create(type, elementOptions) {
      if (type !== 'payment' && type !== 'card') throw new Error(`There is no element ${type}.`);
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
    getElement: (type) => (type === 'payment' || type === 'card' ? element : null),
    update(changed) {
      options = { ...options, ...check(changed) };
      if (changed.appearance) element?._tell('update', { appearance: changed.appearance });
    },
    async submit() {
      if (element === null) return noForm;
      const { error } = await element._ask('submit');
      return error ? { error } : { selectedPaymentMethod: 'card' };
    },
    async fetchUpdates() {
      return {};
    },
  };
}

window.Stripe = Stripe;
