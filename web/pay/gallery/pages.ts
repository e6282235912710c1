import type { CardEntry } from '#gateway/gateway.ts';
import { planPayments } from '#purchases/instalments/instalment.ts';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import type { Plan, PlanPayment } from '#purchases/shoppers/plan.ts';

// The documents that most states of the gallery are made from.

export type Pages = ReturnType<typeof makePages>;

export const mailbox_url = 'http://localhost:3004';

const firstDay = Temporal.PlainDate.from('2026-11-15');

/**
 * The pages of a checkout before its first payment, in test mode and live, and after the payment.
 */
export function makePages(card_entry: CardEntry, shopUrl: string) {
  const open = openPage(card_entry);
  const live: PayPage = { ...open, test_mode: false, mailbox_url: null };
  const declined: PayPage = {
    ...live,
    decline: { reason: 'insufficient_funds', may_retry: true },
  };
  const paid: PayPage = {
    ...live,
    status: 'successful',
    return_url: `${shopUrl}?paid`,
    plan: planOf(['paid', 'next', 'planned']),
  };
  const challenge: PayPage = { ...live, status: 'challenge', challenge_url: `${shopUrl}?bank` };
  // The card is entered in the session of a payment that has begun, in the form of another adapter.
  const inSession: PayPage = {
    ...live,
    card_entry: {
      ...card_entry,
      ...({ form: 'hyperswitch', entersCard: 'after' } as const),
      scriptUrl: card_entry.scriptUrl.replace(/[^/]+$/, 'HyperLoader.js'),
    },
  };
  const begun: PayPage = {
    ...inSession,
    status: 'begun',
    card_session: { client_secret: 'pay_gallery_secret_1' },
  };
  const cancelled: PayPage = { ...live, status: 'cancelled', return_url: `${shopUrl}?cancelled` };
  return { open, live, declined, paid, challenge, cancelled, inSession, begun };
}

export function offer(amount: number, terms: number[]): Pick<PayPage, 'amount' | 'plans'> {
  const plans = terms.map((number_of_payments) => ({
    number_of_payments,
    payments: planPayments(amount, number_of_payments, firstDay),
  }));
  return { amount, plans };
}

function openPage(card_entry: CardEntry): PayPage {
  return {
    ...offer(150_000, [1, 3, 6]),
    status: 'open',
    test_mode: true,
    mailbox_url,
    merchant_name: 'Karoo Coffee Roasters',
    currency: 'ZAR',
    language: 'en',
    locale: 'en-ZA',
    time_zone: 'Africa/Johannesburg',
    client_reference_id: 'KC-20418',
    line_items: [
      { name: 'Hand grinder, steel', amount: 89_900, quantity: 1 },
      { name: 'Filter papers, pack of 100', amount: 7_550, quantity: 2 },
      { name: 'Ethiopia Guji, 1 kg', amount: 38_000, quantity: 1 },
    ],
    no_fees: true,
    number_of_payments: 3,
    decline: null,
    paused: false,
    plan: null,
    sends_links: true,
    session: null,
    attempt: null,
    challenge_url: null,
    card_session: null,
    return_url: null,
    may_cancel: false,
    merchant: {
      contact: 'hello@karoo.example',
      address: '12 Long Street\nCape Town\n8001',
      vat_number: '4123456789',
      logo: null,
    },
    conversation: null,
    answer_days: 2,
    expires_at: '2099-01-01T00:00:00.000Z',
    card_entry,
    gateway: 'main',
    card_brands: ['visa', 'mastercard', 'amex'],
    operator: {
      terms_url: 'https://pay.example/terms',
      privacy_url: 'https://pay.example/privacy',
      contact: 'help@pay.example',
      complaints: 'complaints@pay.example',
    },
    consent_version: 'gallery',
  };
}

/** A plan of monthly payments of R 500,00 from 15 November 2026 on, with some changes. */
export function planOf(
  states: PlanPayment['status'][],
  changes: Record<number, Partial<PlanPayment>> = {},
  more: Partial<Plan> = {},
): Plan {
  const payments = states.map((status, index): PlanPayment => {
    const due_on = firstDay.add({ months: index }).toString();
    return {
      number: index + 1,
      due_on,
      amount: status === 'cancelled' ? 0 : 50_000,
      status,
      reduced: status === 'cancelled' ? 50_000 : 0,
      refunded: 0,
      paid_at: status === 'paid' && index > 0 ? `${due_on}T06:00:00.000Z` : null,
      late:
        status === 'late'
          ? { reason: 'insufficient_funds', retries_at: `${due_on.slice(0, 8)}18T06:00:00.000Z` }
          : null,
      dispute: null,
      ...changes[index + 1],
    };
  });
  const sum = (wanted: (status: PlanPayment['status']) => boolean) =>
    payments
      .filter(({ status }) => wanted(status))
      .reduce((total, { amount }) => total + amount, 0);
  return {
    payments,
    card: { brand: 'visa', last4: '4242' },
    is_card_stored: true,
    paid: sum((status) => status === 'paid'),
    outstanding: sum((status) => status !== 'paid' && status !== 'cancelled'),
    refunds: [],
    refunds_before: 0,
    is_paused: false,
    is_blocked: false,
    dispute: null,
    ...more,
  };
}
