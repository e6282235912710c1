import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import { offer, type Pages } from './pages.ts';
import type { GalleryStates } from './state.ts';

const inAfrikaans = { language: 'af' } as const;
const inZulu = { language: 'zu' } as const;

/** States in which the shopper has not tried to pay, or opens the page again after a decline. */
export function openStates({ open, live, declined }: Pages): GalleryStates {
  return {
    open: { page: live },
    'open-test-mode': { page: open },
    'open-test-cards': { page: open, step: 'open-test-cards' },
    'open-order': { page: live, step: 'show-order' },
    'open-uneven': {
      page: { ...live, ...offer(100_000, [3, 6, 12, 24]), number_of_payments: 24 },
    },
    'open-odd-amounts': { page: { ...live, ...offer(100_001, [1, 3, 6]) } },
    'open-afrikaans': { page: { ...live, ...offer(100_001, [1, 3, 6]), ...inAfrikaans } },
    'open-isizulu': { page: { ...live, ...offer(100_001, [1, 3, 6]), ...inZulu } },
    'declined-afrikaans': { page: { ...declined, ...inAfrikaans } },
    'declined-isizulu': { page: { ...declined, ...inZulu } },
    'open-single-term': {
      page: { ...live, ...offer(150_000, [1]), number_of_payments: 1, line_items: [] },
    },
    'open-extremes': { page: extremes(live), step: 'show-order' },
  };
}

/** The longest texts and the largest amounts that a merchant can send. */
function extremes(live: PayPage): PayPage {
  return {
    ...live,
    ...offer(987_654_321_099, [1, 2]),
    number_of_payments: 2,
    merchant_name: `Die Groot Karoo se Koffie- en Teehandelsmaatskappy (Eiendoms) Beperk ${'Koffie'.repeat(16)} <b>&amp;</b>`,
    client_reference_id: 'ref-'.repeat(40),
    line_items: Array.from({ length: 500 }, (_, index) => ({
      name:
        index === 0
          ? '<script>alert("text, not markup")</script>'
          : index === 1
            ? 'قهوة عربية مطحونة 250 غ'
            : `${'Unbroken'.repeat(index === 2 ? 30 : 1)} item ${index + 1} ☕️`,
      amount: index === 3 ? -5_000 : index,
      quantity: (index % 3) + 1,
    })),
  };
}

/** The shopper pays or cancels, and the page shows the result. */
export function attemptStates({
  live,
  declined,
  paid,
  challenge,
  cancelled,
  inSession,
  begun,
}: Pages): GalleryStates {
  return {
    paused: {
      page: live,
      step: 'pay',
      pay: { ...live, paused: true },
      sees: 'Payments are paused at the moment. Nothing was charged.',
    },
    'paused-afrikaans': { page: { ...live, ...inAfrikaans, paused: true } },
    declined: { page: live, step: 'pay', pay: declined, sees: 'Nothing was charged. Try again' },
    'declined-final': {
      page: { ...live, decline: { reason: 'stolen_card', may_retry: false } },
    },
    'paying-here': { page: live, step: 'pay', pay: 'never', sees: 'Asking your bank…' },
    'paying-elsewhere': { page: { ...live, status: 'paying' } },
    lost: {
      page: live,
      step: 'pay',
      pay: 'broken',
      state: 'broken',
      sees: 'The connection was lost.',
    },
    'lost-then-open': {
      page: live,
      step: 'pay',
      pay: 'broken',
      state: live,
      // The payment may still begin, for a minute.
      sees: 'The connection was lost.',
    },
    'open-card-later': { page: inSession },
    begun: { page: begun },
    'begun-isizulu': { page: { ...begun, ...inZulu } },
    challenge: { page: challenge },
    'challenge-left-in-vain': {
      page: challenge,
      clicks: ['Use another card'],
      step: 'pay',
      pay: challenge,
      sees: 'Your payment did not go through.',
    },
    'sent-to-bank': {
      page: live,
      step: 'pay',
      pay: challenge,
      sees: 'You are being taken to your bank',
    },
    approved: { page: live, step: 'pay', pay: paid, sees: 'Payment approved' },
    cancelled: { page: live, step: 'cancel', cancel: cancelled, sees: 'Payment cancelled' },
  };
}

/** Nothing can be paid on the page any more. */
export function endedStates({ open, live, cancelled }: Pages, shopUrl: string): GalleryStates {
  return {
    'already-cancelled': { page: cancelled },
    expired: { page: { ...live, status: 'expired', return_url: shopUrl } },
    'used-up': {
      page: { ...live, status: 'expired', return_url: shopUrl, may_cancel: true },
      step: 'cancel',
      cancel: cancelled,
      sees: 'Payment cancelled',
    },
    'expired-test-mode': { page: { ...open, status: 'expired', return_url: shopUrl } },
    'cannot-be-paid': { page: { ...live, status: 'invalid_payload', return_url: shopUrl } },
    'unknown-link': { page: null },
  };
}
