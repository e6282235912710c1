// Shows every state of the hosted page without a service, for people and for tests:
//
//   node web/pay/gallery.ts [port]   after `npm run build:web`

import { readFileSync } from 'node:fs';
import http from 'node:http';
import { pathToFileURL } from 'node:url';
import type { CardEntry } from '#gateway/gateway.ts';
import type { Language } from '#platform/shared/language.ts';
import { words } from '#platform/shared/words/words.ts';
import { planPayments } from '#purchases/instalments/instalment.ts';
import { loadPayHtml } from '#purchases/shoppers/pay-html.ts';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import { type Plan, type PlanPayment, withoutReasons } from '#purchases/shoppers/plan.ts';
import type { PlanAttempt } from '#purchases/shoppers/plan-attempt.ts';
import { startTestGateway } from '../../test-gateway/gateway.ts';

/** A page, no answer at all, or a broken connection. */
type Answer = PayPage | 'never' | 'broken';

export type GalleryState = {
  page: PayPage | null;
  /** The step that shows the state on the page. */
  act?: 'pay' | 'cancel' | 'open-test-cards' | 'show-order';
  /** Buttons and radios to click, by their names, before the last step. */
  clicks?: string[];
  /** A field to fill, by its label, and the button to press then. */
  fills?: { label: string; text: string; press: string };
  /** The card is typed after the clicks. */
  typesCard?: boolean;
  /** The button to press once the card is typed. */
  presses?: string;
  /** The page is opened by a one-time link, which the server answers so. */
  link?: 'opens' | 'ended';
  /** Text that appears once the state is reached, if that takes a moment. */
  sees?: string;
  pay?: Answer;
  cancel?: Answer;
  /** The answer to later state requests; the page itself if absent. */
  state?: Answer;
};

const noCards: CardEntry = {
  scriptUrl: 'http://127.0.0.1:9/none.js',
  publicKey: 'pk_test_gallery',
  scriptOrigins: ['http://127.0.0.1:9'],
  frameOrigins: ['http://127.0.0.1:9'],
  connectOrigins: ['http://127.0.0.1:9'],
};

const mailbox_url = 'http://localhost:3004';

export function galleryStates(
  card_entry: CardEntry,
  shopUrl: string,
): Record<string, GalleryState> {
  const today = Temporal.PlainDate.from('2026-11-15');
  function offer(amount: number, terms: number[]): Pick<PayPage, 'amount' | 'plans'> {
    const plans = terms.map((number_of_payments) => ({
      number_of_payments,
      payments: planPayments(amount, number_of_payments, today),
    }));
    return { amount, plans };
  }
  const open: PayPage = {
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
    act: null,
    challenge_url: null,
    return_url: null,
    expires_at: '2099-01-01T00:00:00.000Z',
    card_entry,
    card_brands: ['visa', 'mastercard', 'amex'],
    operator: {
      terms_url: 'https://pay.example/terms',
      privacy_url: 'https://pay.example/privacy',
      contact: 'help@pay.example',
    },
    consent_version: 'gallery',
  };
  const inAfrikaans = { language: 'af' } as const;
  const inZulu = { language: 'zu' } as const;
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
  const cancelled: PayPage = { ...live, status: 'cancelled', return_url: `${shopUrl}?cancelled` };
  return {
    open: { page: live },
    'open-test-mode': { page: open },
    'open-test-cards': { page: open, act: 'open-test-cards' },
    'open-order': { page: live, act: 'show-order' },
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
    'open-extremes': {
      page: {
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
          amount: index,
          quantity: (index % 3) + 1,
        })),
      },
      act: 'show-order',
    },
    paused: {
      page: live,
      act: 'pay',
      pay: { ...live, paused: true },
      sees: 'Payments are paused at the moment. Nothing was charged.',
    },
    'paused-afrikaans': { page: { ...live, ...inAfrikaans, paused: true } },
    declined: { page: live, act: 'pay', pay: declined, sees: 'Nothing was charged. Try again' },
    'declined-final': {
      page: { ...live, decline: { reason: 'stolen_card', may_retry: false } },
    },
    'paying-here': { page: live, act: 'pay', pay: 'never', sees: 'Asking your bank…' },
    'paying-elsewhere': { page: { ...live, status: 'paying' } },
    lost: {
      page: live,
      act: 'pay',
      pay: 'broken',
      state: 'broken',
      sees: 'The connection was lost.',
    },
    'lost-then-open': {
      page: live,
      act: 'pay',
      pay: 'broken',
      state: live,
      sees: 'Your payment did not go through.',
    },
    challenge: { page: challenge },
    'sent-to-bank': {
      page: live,
      act: 'pay',
      pay: challenge,
      sees: 'You are being taken to your bank',
    },
    approved: { page: live, act: 'pay', pay: paid, sees: 'Payment approved' },
    cancelled: { page: live, act: 'cancel', cancel: cancelled, sees: 'Payment cancelled' },
    'already-cancelled': { page: cancelled },
    expired: { page: { ...live, status: 'expired', return_url: shopUrl } },
    'expired-test-mode': { page: { ...open, status: 'expired', return_url: shopUrl } },
    'cannot-be-paid': { page: { ...live, status: 'invalid_payload', return_url: shopUrl } },
    'unknown-link': { page: null },
    ...planStates(paid, shopUrl),
    'card-form-missing': {
      page: { ...live, card_entry: noCards },
      sees: 'The card form did not load.',
    },
  };
}

/** A plan of monthly payments of R 500,00 from 15 November 2026 on, with what is special about it. */
function planOf(
  states: PlanPayment['status'][],
  changes: Record<number, Partial<PlanPayment>> = {},
  more: Partial<Plan> = {},
): Plan {
  const first = Temporal.PlainDate.from('2026-11-15');
  const payments = states.map((status, index): PlanPayment => {
    const due_on = first.add({ months: index }).toString();
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
    is_paused: false,
    is_blocked: false,
    dispute: null,
    ...more,
  };
}

/** The plan page: every state of a plan, and every choice on it. */
function planStates(paid: PayPage, shopUrl: string): Record<string, GalleryState> {
  const session = { expires_at: '2026-12-16T08:30:00.000Z' };
  const many = (count: number, status: PlanPayment['status']) => Array(count).fill(status);
  const late = planOf(['paid', 'late', 'planned']);
  const latePlan = { ...late, payments: next(late.payments) };
  const latePage = { ...paid, plan: withoutReasons(latePlan) };
  const signedIn = { ...paid, session };
  const lateSignedIn = { ...paid, plan: latePlan, session };
  const stopped = planOf(['paid', 'late', 'late', 'next'], {
    2: { late: { reason: 'expired_card', retries_at: null } },
    3: { late: { reason: 'expired_card', retries_at: null } },
  });
  const onceLate = planOf(
    ['late'],
    { 1: { amount: 150_000, late: { reason: null, retries_at: null } } },
    { is_card_stored: false },
  );
  const act = (changes: Partial<PlanAttempt>): PlanAttempt => ({
    number: 1,
    purpose: 'plan_payment',
    status: 'done',
    payments: [2],
    amount: 50_000,
    challenge_url: null,
    decline: null,
    refusal: null,
    ...changes,
  });
  const refunds: Plan['refunds'] = [
    { amount: 85_000, status: 'complete', created_at: '2026-11-20T08:00:00.000Z' },
    { amount: 5_000, status: 'pending', created_at: '2026-12-02T08:00:00.000Z' },
  ];
  const declined = {
    ...lateSignedIn,
    act: act({ status: 'declined', decline: { reason: 'insufficient_funds', may_retry: true } }),
  };
  const payStored = ['Pay R 500,00 now'];
  const changing = {
    page: signedIn,
    clicks: ['Change the card'],
    typesCard: true,
    presses: 'Use this card',
  };
  const cardDeclined = act({
    purpose: 'new_card',
    status: 'declined',
    payments: [],
    amount: 0,
    decline: { reason: 'authentication_required', may_retry: true },
  });
  return {
    plan: { page: paid },
    'plan-late': { page: latePage },
    'plan-late-afrikaans': { page: { ...latePage, language: 'af' } },
    'plan-late-isizulu': { page: { ...latePage, language: 'zu' } },
    'plan-late-several': { page: { ...paid, plan: withoutReasons(stopped) } },
    'plan-refunds': {
      page: {
        ...paid,
        plan: planOf(
          ['paid', 'next', 'cancelled'],
          { 1: { refunded: 5_000 }, 2: { amount: 20_000, reduced: 30_000 } },
          { refunds, is_paused: true },
        ),
      },
    },
    'plan-disputed': {
      page: {
        ...paid,
        session,
        plan: planOf(
          ['paid', 'late', 'next'],
          { 1: { dispute: 'open' } },
          { is_paused: true, dispute: 'open' },
        ),
      },
    },
    'plan-blocked': {
      page: { ...lateSignedIn, plan: { ...lateSignedIn.plan, is_blocked: true } },
      sees: 'Nothing is charged until they go on.',
    },
    'plan-stopped': {
      page: { ...lateSignedIn, paused: true },
      sees: 'Nothing is charged until they go on.',
    },
    'plan-no-links-early': { page: { ...paid, sends_links: false } },
    'plan-no-links': { page: { ...latePage, sends_links: false } },
    'plan-no-links-afrikaans': { page: { ...latePage, sends_links: false, language: 'af' } },
    'plan-no-links-isizulu': { page: { ...latePage, sends_links: false, language: 'zu' } },
    'plan-once-late': {
      page: { ...signedIn, plan: onceLate },
      clicks: ['Pay R 1 500,00 now'],
      typesCard: true,
    },
    'plan-finished': { page: { ...paid, plan: planOf(['paid', 'paid', 'paid']) } },
    'plan-refunded': {
      page: {
        ...paid,
        plan: planOf(
          ['paid', 'cancelled', 'cancelled'],
          { 1: { refunded: 50_000 } },
          {
            refunds: [
              { amount: 150_000, status: 'complete', created_at: '2026-11-20T08:00:00.000Z' },
            ],
          },
        ),
      },
    },
    'plan-once': {
      page: { ...paid, plan: planOf(['paid'], { 1: { amount: 150_000 } }) },
    },
    'plan-long': {
      page: { ...paid, plan: planOf([...many(9, 'paid'), 'next', ...many(14, 'planned')]) },
    },
    'plan-signed-in': { page: signedIn },
    'plan-late-signed-in': { page: lateSignedIn },
    'plan-link-opens': { page: paid, state: signedIn, link: 'opens', sees: 'You are signed in' },
    'plan-link-ended': { page: paid, link: 'ended', sees: 'This link was used already' },
    'plan-prove-sent': {
      page: { ...latePage, test_mode: true, mailbox_url },
      clicks: payStored,
      fills: { label: 'E-mail address', text: 'thandi@example.com', press: 'Send me a link' },
      sees: 'Look at your mail.',
    },
    'plan-prove-wrong': {
      page: paid,
      clicks: ['Manage your payments'],
      fills: { label: 'E-mail address', text: 'thandi', press: 'Send me a link' },
      sees: 'Enter an e-mail address',
    },
    'plan-pay': { page: lateSignedIn, clicks: payStored, sees: 'Which card?' },
    'plan-pay-other': {
      page: lateSignedIn,
      clicks: [...payStored, 'Another card'],
      typesCard: true,
    },
    'plan-pay-dead-card': {
      page: { ...paid, plan: stopped, session },
      clicks: ['Pay R 1 000,00 now'],
      typesCard: true,
    },
    'plan-pay-working': {
      page: lateSignedIn,
      clicks: [...payStored, 'Pay R 500,00 now'],
      pay: { ...lateSignedIn, act: act({ status: 'working' }) },
      sees: 'Asking your bank…',
    },
    'plan-pay-lost': {
      page: lateSignedIn,
      clicks: [...payStored, 'Pay R 500,00 now'],
      pay: 'broken',
      state: 'broken',
      sees: 'The connection was lost.',
    },
    'plan-pay-declined': {
      page: lateSignedIn,
      clicks: [...payStored, 'Pay R 500,00 now'],
      pay: declined,
      sees: 'not enough funds. Nothing was charged',
    },
    'plan-pay-refused': {
      page: lateSignedIn,
      clicks: [...payStored, 'Pay R 500,00 now'],
      pay: { ...lateSignedIn, act: act({ status: 'refused', refusal: 'being_charged' }) },
      sees: 'being charged at this moment',
    },
    'plan-pay-paused': {
      page: lateSignedIn,
      clicks: [...payStored, 'Pay R 500,00 now'],
      pay: { ...lateSignedIn, act: act({ status: 'refused', refusal: 'payments_paused' }) },
      sees: 'Payments are paused at the moment. Nothing was charged.',
    },
    'plan-pay-done': {
      page: lateSignedIn,
      clicks: [...payStored, 'Pay R 500,00 now'],
      pay: { ...signedIn, plan: planOf(['paid', 'paid', 'next']), act: act({}) },
      sees: 'R 500,00 is paid.',
    },
    'plan-signed-out': {
      page: lateSignedIn,
      clicks: [...payStored, 'Pay R 500,00 now'],
      pay: 'broken',
      state: latePage,
      sees: 'You are signed out.',
    },
    'plan-working': { page: { ...paid, act: act({ status: 'working' }) } },
    'plan-challenge': {
      page: {
        ...lateSignedIn,
        act: act({ status: 'challenge', challenge_url: `${shopUrl}?bank` }),
      },
    },
    'plan-declined': { page: declined },
    'plan-card': { page: signedIn, clicks: ['Change the card'], typesCard: true },
    'plan-card-changed': {
      page: {
        ...signedIn,
        plan: planOf(['paid', 'next', 'planned'], {}, { card: { brand: 'amex', last4: '0005' } }),
        act: act({ purpose: 'new_card', payments: [], amount: 0 }),
      },
    },
    'plan-card-lost': {
      ...changing,
      pay: 'broken',
      state: 'broken',
      sees: 'We are finding out whether your card was changed.',
    },
    'plan-card-unchanged': {
      ...changing,
      pay: 'broken',
      state: signedIn,
      sees: 'Your card was not changed.',
    },
    'plan-card-declined': {
      ...changing,
      pay: { ...signedIn, act: cardDeclined },
      sees: 'Your bank wants you to confirm the card',
    },
    'plan-card-declined-afrikaans': {
      page: { ...signedIn, language: 'af', act: cardDeclined },
      sees: 'U bank wil hê dat u die kaart bevestig',
    },
    'plan-card-declined-isizulu': {
      page: { ...signedIn, language: 'zu', act: cardDeclined },
      sees: 'Ibhange lakho lifuna uqinisekise ikhadi',
    },
    'plan-report-sent': {
      page: signedIn,
      clicks: ['Something is wrong'],
      fills: { label: 'What is wrong?', text: 'I paid twice.', press: 'Send' },
      sees: 'We have your message.',
    },
  };
}

/** Marks the first planned payment as the next one. */
function next(payments: PlanPayment[]): PlanPayment[] {
  const first = payments.findIndex(({ status }) => status === 'planned');
  return payments.map((one, index) => (index === first ? { ...one, status: 'next' } : one));
}

export async function startGallery(card_entry: CardEntry, port = 0) {
  const html = await loadPayHtml();
  const asked: { path: string; body: unknown }[] = [];
  let states: Record<string, GalleryState> = {};
  /** States whose page has posted a payment or a cancellation: later answers differ. */
  const acted = new Set<string>();

  const server = http.createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://gallery');
    const asset = html.assets.find((each) => pathname === `/pay/assets/${each.name}`);
    if (asset) return response.writeHead(200, { 'content-type': asset.type }).end(asset.bytes);
    if (pathname === '/favicon.ico') {
      const icon = new URL('../../src/operating/docs/favicon.ico', import.meta.url);
      return response.writeHead(200, { 'content-type': 'image/x-icon' }).end(readFileSync(icon));
    }
    const [, place, name = '', ...steps] = pathname.split('/');
    const step = steps.at(-1);
    const state = states[name];
    if (place === 'shop') return page(response, '<title>The shop</title><h1>The shop</h1>');
    if (place !== 'pay') {
      const links = Object.keys(states).map((each) => `<li><a href="/pay/${each}">${each}</a>`);
      return page(response, `<title>Gallery</title><h1>Gallery</h1><ul>${links.join('')}</ul>`);
    }
    if (step === undefined || step === 'manage') {
      const nonce = crypto.randomUUID();
      acted.delete(name);
      const { html: text, csp } = html.render(state?.page ?? null, {
        token: name,
        nonce,
        language: state?.page?.language ?? 'en',
      });
      return page(response, text, { 'content-security-policy': csp });
    }
    let body = '';
    for await (const chunk of request) body += chunk;
    asked.push({ path: pathname, body: body === '' ? null : JSON.parse(body) });
    if (step === 'language' && state?.page) {
      const { language } = JSON.parse(body) as { language: Language };
      const page = { ...state.page, language };
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ page, words: words[language].page }));
      return;
    }
    if (step === 'session' && state?.link === 'ended') return response.writeHead(422).end();
    if (step !== 'state') acted.add(name);
    if (step === 'link' || step === 'report' || step === 'session') {
      return response.writeHead(202).end();
    }
    const after = acted.has(name) ? (state?.state ?? state?.pay ?? state?.cancel) : state?.page;
    const answer =
      step === 'pay' || step === 'card' ? state?.pay : step === 'cancel' ? state?.cancel : after;
    if (answer === 'never') return;
    if (answer === 'broken') return response.destroy();
    if (!answer) return response.writeHead(404).end();
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
  states = galleryStates(card_entry, `${url}/shop`);
  return {
    url,
    states,
    /** Every request that the pages sent, in order. */
    asked,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function page(response: http.ServerResponse, text: string, headers: Record<string, string> = {}) {
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', ...headers }).end(text);
}

/** Card entry as in the sandbox: the test gateway, in memory. */
export async function startCardEntry() {
  const pageOrigins: string[] = [];
  const gateway = await startTestGateway({
    port: 0,
    stateFile: ':memory:',
    secretKey: 'sk_test_gallery',
    publishableKey: 'pk_test_gallery',
    pageOrigins,
  });
  const origins = [gateway.url];
  const cardEntry: CardEntry = {
    scriptUrl: `${gateway.url}/v1/tranche.js`,
    publicKey: 'pk_test_gallery',
    scriptOrigins: origins,
    frameOrigins: origins,
    connectOrigins: origins,
  };
  return { cardEntry, pageOrigins, stop: () => gateway.close() };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { cardEntry, pageOrigins } = await startCardEntry();
  const gallery = await startGallery(cardEntry, Number(process.argv[2] ?? 4400));
  pageOrigins.push(gallery.url);
  process.stdout.write(`${gallery.url}\n`);
}
