import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import { type Plan, type PlanPayment, withoutReasons } from '#purchases/shoppers/plan.ts';
import type { PlanAttempt, PlanRefusal } from '#purchases/shoppers/plan-attempt.ts';
import { mailbox_url, planOf } from './pages.ts';
import type { GalleryStates } from './state.ts';

type PlanPages = ReturnType<typeof makePlanPages>;

const conversation = {
  is_answered: true,
  entries: [
    {
      name: null,
      text: 'I paid twice this month.\nPlease look at it.',
      at: '2026-12-15T08:12:00.000Z',
    },
    {
      name: 'Karoo Outfitters',
      text: 'Thank you for writing. The second charge was a hold, and your bank lifts it within three days.',
      at: '2026-12-16T07:03:00.000Z',
    },
  ],
} satisfies PayPage['conversation'];

const payNow = 'Pay R 500,00 now';

/** The plan page: every state of a plan, and every choice on it. */
export function planStates(paid: PayPage, shopUrl: string): GalleryStates {
  const pages = makePlanPages(paid);
  return {
    ...runningStates(pages),
    ...otherPlanStates(pages),
    ...proofStates(pages),
    ...payingStates(pages, shopUrl),
    ...newCardStates(pages),
    'plan-report-sent': {
      page: pages.signedIn,
      clicks: ['Something is wrong'],
      fills: { label: 'What is wrong?', text: 'I paid twice.', press: 'Send' },
      state: {
        ...pages.signedIn,
        conversation: { ...conversation, entries: conversation.entries.slice(0, 1) },
      },
      sees: 'We have your message.',
    },
    'plan-report-limited': {
      page: pages.signedIn,
      clicks: ['Something is wrong'],
      fills: { label: 'What is wrong?', text: 'I paid twice.', press: 'Send' },
      report: 'limited',
      sees: 'or write again tomorrow. hello@karoo.example',
    },
    'plan-conversation': {
      page: { ...pages.signedIn, conversation },
      clicks: ['Something is wrong'],
      sees: 'Your messages',
    },
  };
}

function makePlanPages(paid: PayPage) {
  const session = { expires_at: '2026-12-16T08:30:00.000Z', scope: 'plan' as const };
  const late = planOf(['paid', 'late', 'planned']);
  const latePlan = { ...late, payments: next(late.payments) };
  const latePage = { ...paid, plan: withoutReasons(latePlan) };
  const signedIn = { ...paid, session };
  const lateSignedIn = { ...paid, plan: latePlan, session };
  const stopped = planOf(['paid', 'late', 'late', 'next'], {
    2: { late: { reason: 'expired_card', retries_at: null } },
    3: { late: { reason: 'expired_card', retries_at: null } },
  });
  return { paid, session, latePage, signedIn, lateSignedIn, stopped };
}

/** Marks the first planned payment as the next one. */
function next(payments: PlanPayment[]): PlanPayment[] {
  const first = payments.findIndex(({ status }) => status === 'planned');
  return payments.map((one, index) => (index === first ? { ...one, status: 'next' } : one));
}

const attemptOf = (changes: Partial<PlanAttempt>): PlanAttempt => ({
  number: 1,
  purpose: 'plan_payment',
  status: 'done',
  payments: [2],
  amount: 50_000,
  challenge_url: null,
  card_session: null,
  decline: null,
  refusal: null,
  ...changes,
});

/** The plan has payments to come: on time, late, reduced by refunds, or paused. */
function runningStates({
  paid,
  session,
  latePage,
  lateSignedIn,
  stopped,
}: PlanPages): GalleryStates {
  const refunds: Plan['refunds'] = [
    { amount: 85_000, status: 'complete', created_at: '2026-11-20T08:00:00.000Z' },
    { amount: 5_000, status: 'pending', created_at: '2026-12-02T08:00:00.000Z' },
  ];
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
          { refunds, refunds_before: 12, is_paused: true },
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
      sees: 'Nothing is charged until they resume.',
    },
    'plan-stopped': {
      page: { ...lateSignedIn, paused: true },
      sees: 'Nothing is charged until they resume.',
    },
  };
}

/** Plans without links, with one payment or with many, and plans that are over. */
function otherPlanStates({ paid, latePage, signedIn }: PlanPages): GalleryStates {
  const many = (count: number, status: PlanPayment['status']) => Array(count).fill(status);
  const onceLate = planOf(
    ['late'],
    { 1: { amount: 150_000, late: { reason: 'lapsed', retries_at: null } } },
    { is_card_stored: false },
  );
  return {
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
    'plan-disputed-paid': {
      page: {
        ...paid,
        plan: planOf(['paid', 'paid', 'paid'], { 3: { dispute: 'open' } }, { dispute: 'open' }),
      },
    },
    'plan-lost': {
      page: { ...paid, plan: planOf(['paid', 'paid', 'paid'], { 3: { dispute: 'lost' } }) },
    },
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
  };
}

/** The shopper signs in by e-mail, or has done so. */
function proofStates({
  paid,
  session,
  latePage,
  signedIn,
  lateSignedIn,
}: PlanPages): GalleryStates {
  return {
    'plan-signed-in': { page: signedIn },
    'plan-late-signed-in': { page: lateSignedIn },
    'plan-late-link': { page: { ...lateSignedIn, session: { ...session, scope: 'late' } } },
    'plan-link-opens': { page: paid, state: signedIn, link: 'opens', sees: 'You are signed in' },
    'plan-link-ended': { page: paid, link: 'ended', sees: 'This link was already used' },
    'plan-prove-sent': {
      page: { ...latePage, test_mode: true, mailbox_url },
      clicks: [payNow],
      fills: { label: 'E-mail address', text: 'thandi@example.com', press: 'Send me a link' },
      sees: 'Check your e-mail.',
    },
    'plan-prove-wrong': {
      page: paid,
      clicks: ['Manage your payments'],
      fills: { label: 'E-mail address', text: 'thandi', press: 'Send me a link' },
      sees: 'Enter an e-mail address',
    },
  };
}

/** The shopper pays a part of the plan. */
function payingStates(pages: PlanPages, shopUrl: string): GalleryStates {
  const { paid, session, latePage, signedIn, lateSignedIn, stopped } = pages;
  const decline = { reason: 'insufficient_funds', may_retry: true } as const;
  const answer = (changes: Partial<PlanAttempt>) => ({
    ...lateSignedIn,
    attempt: attemptOf(changes),
  });
  const paying = { page: lateSignedIn, clicks: [payNow, payNow] };
  const refused = (refusal: PlanRefusal, sees: string) => ({
    ...paying,
    pay: answer({ status: 'refused', refusal }),
    sees,
  });
  return {
    'plan-pay': { page: lateSignedIn, clicks: [payNow], sees: 'Which card?' },
    'plan-pay-other': { page: lateSignedIn, clicks: [payNow, 'Another card'], typesCard: true },
    'plan-pay-one-of-two': {
      page: { ...paid, plan: stopped, session },
      clicks: ['Pay R 1 000,00 now', '15 January 2027'],
      typesCard: true,
    },
    'plan-pay-dead-card': {
      page: { ...paid, plan: stopped, session },
      clicks: ['Pay R 1 000,00 now'],
      typesCard: true,
    },
    'plan-pay-working': {
      ...paying,
      pay: answer({ status: 'working' }),
      sees: 'Asking your bank…',
    },
    'plan-pay-lost': {
      ...paying,
      pay: 'broken',
      state: 'broken',
      sees: 'The connection was lost.',
    },
    'plan-pay-declined': {
      ...paying,
      pay: answer({ status: 'declined', decline }),
      sees: 'not enough funds. Nothing was charged',
    },
    'plan-pay-refused': refused('being_charged', 'being charged at this moment'),
    'plan-pay-card-refused': refused('card_refused', 'Your bank does not allow this card now.'),
    'plan-pay-paused': refused(
      'payments_paused',
      'Payments are paused at the moment. Nothing was charged.',
    ),
    'plan-pay-done': {
      ...paying,
      pay: { ...signedIn, plan: planOf(['paid', 'paid', 'next']), attempt: attemptOf({}) },
      sees: 'R 500,00 is paid.',
    },
    'plan-signed-out': {
      ...paying,
      pay: 'broken',
      state: latePage,
      sees: 'You are signed out.',
    },
    'plan-working': { page: { ...paid, attempt: attemptOf({ status: 'working' }) } },
    'plan-challenge': {
      page: {
        ...lateSignedIn,
        attempt: attemptOf({ status: 'challenge', challenge_url: `${shopUrl}?bank` }),
      },
      sees: payNow,
    },
    'plan-declined': { page: answer({ status: 'declined', decline }) },
  };
}

/** The shopper changes the card for the remaining payments. */
function newCardStates({ signedIn }: PlanPages): GalleryStates {
  const changing = {
    page: signedIn,
    clicks: ['Change the card'],
    typesCard: true,
    presses: 'Use this card',
  };
  const cardDeclined = attemptOf({
    purpose: 'new_card',
    status: 'declined',
    payments: [],
    amount: 0,
    decline: { reason: 'authentication_required', may_retry: true },
  });
  return {
    'plan-card': { page: signedIn, clicks: ['Change the card'], typesCard: true },
    'plan-card-changed': {
      page: {
        ...signedIn,
        plan: planOf(['paid', 'next', 'planned'], {}, { card: { brand: 'amex', last4: '0005' } }),
        attempt: attemptOf({ purpose: 'new_card', payments: [], amount: 0 }),
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
      pay: { ...signedIn, attempt: cardDeclined },
      sees: 'Your bank wants you to confirm the card',
    },
    'plan-card-declined-afrikaans': {
      page: { ...signedIn, language: 'af', attempt: cardDeclined },
      sees: 'U bank wil hê dat u die kaart bevestig',
    },
    'plan-card-declined-isizulu': {
      page: { ...signedIn, language: 'zu', attempt: cardDeclined },
      sees: 'Ibhange lakho lifuna uqinisekise ikhadi',
    },
  };
}
