import type { CardEntry } from '#gateway/gateway.ts';
import { attemptStates, endedStates, openStates } from './first-payment-states.ts';
import { makePages } from './pages.ts';
import { planStates } from './plan-states.ts';
import type { GalleryStates } from './state.ts';

const noCards: CardEntry = {
  form: 'stripe',
  entersCard: 'before',
  scriptUrl: 'http://127.0.0.1:9/none.js',
  publicKey: 'pk_test_gallery',
  scriptOrigins: ['http://127.0.0.1:9'],
  frameOrigins: ['http://127.0.0.1:9'],
  connectOrigins: ['http://127.0.0.1:9'],
};

/** Every state of the hosted page, by its name in the gallery. */
export function galleryStates(card_entry: CardEntry, shopUrl: string): GalleryStates {
  const pages = makePages(card_entry, shopUrl);
  return {
    ...openStates(pages),
    ...attemptStates(pages),
    ...endedStates(pages, shopUrl),
    ...planStates(pages.paid, shopUrl),
    'card-form-missing': {
      page: { ...pages.live, card_entry: noCards },
      sees: 'The card form did not load.',
    },
  };
}
