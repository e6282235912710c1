import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import {
  type Effect,
  firstTab,
  isBusy,
  newsOf,
  type PayEvent,
  type PlanRequest,
  react,
  type Tab,
  type View,
} from './payment-state.ts';

const shop = 'https://shop.example/paid';
const bank = 'https://bank.example/challenge';
const base = {
  attempt: null,
  session: null,
  decline: null,
  paused: false,
  challenge_url: null,
  return_url: null,
};
const pageOf = (status: PayPage['status'], changes: object = {}) =>
  ({ ...base, status, ...changes }) as PayPage;

const open = pageOf('open');
const declined = pageOf('open', { decline: { reason: 'insufficient_funds', may_retry: true } });
const paying = pageOf('paying');
const challenge = pageOf('challenge', { challenge_url: bank });
const begun = pageOf('begun', { card_session: { client_secret: 's' } });
const successful = pageOf('successful', { return_url: shop });
const cancelled = pageOf('cancelled', { return_url: shop });
const expired = pageOf('expired', { return_url: shop });

const pay = { step: 'pay', number_of_payments: 3, consent: null } as const;
const payLate = {
  step: 'plan/pay',
  what: 'late',
  payments: [2],
  amount: 500,
  keep_card: false,
  consent: null,
} as PlanRequest;
const session = { expires_at: '2026-12-16T08:30:00.000Z', scope: 'plan' };
const planWith = (attempt: object | null, changes: object = { session }) =>
  pageOf('successful', {
    ...changes,
    attempt: attempt && {
      number: 1,
      purpose: 'plan_payment',
      payments: [2],
      challenge_url: null,
      ...attempt,
    },
  });

/** An event, or a function that makes an event with the number of a request from the tab. */
type Step = PayEvent | ((tab: Tab) => PayEvent);

const submitted: Step = { type: 'submitted', request: pay, withCard: true };
const goesOn: Step = { type: 'submitted', request: pay, withCard: false };
const confirms: Step = { type: 'submitted', request: { step: 'confirm' }, withCard: true };
const checked: Step = ({ newest }) => ({ type: 'checked', number: newest, made: { token: 't' } });
const cancels: Step = { type: 'cancelled', request: { number_of_payments: 1 } };
const due: Step = { type: 'due' };
const restored: Step = { type: 'restored' };
const returnsAfter = (millisecondsSinceAsked: number): Step => ({
  type: 'returned',
  millisecondsSinceAsked,
});

type Answered = Extract<PayEvent, { type: 'answered' }>;
const answers =
  (step: Answered['step'], page: PayPage | null, status = page ? 200 : 0, remembers = false) =>
  ({ newest }: Tab): PayEvent => ({
    type: 'answered',
    number: newest,
    step,
    status,
    page,
    remembers,
    millisecondsSinceSent: 60_000,
  });
/** The state when the server is certainly done with the request that got no answer. */
const answersLate =
  (page: PayPage) =>
  (tab: Tab): PayEvent =>
    ({ ...answers('state', page)(tab), millisecondsSinceSent: 60_001 }) as PayEvent;

function play(page: PayPage, steps: Step[]): { tab: Tab; effects: Effect[] } {
  let [tab, effects]: [Tab, Effect[]] = [firstTab(page), []];
  for (const step of steps) {
    ({ tab, effects } = react(tab, typeof step === 'function' ? step(tab) : step));
  }
  return { tab, effects };
}

/** The effects of the last event, in short. */
const inShort = (effects: Effect[]) =>
  effects.map((effect) => {
    if (effect.type === 'ask') return `ask ${effect.step}`;
    if (effect.type === 'ask_later') return `ask in ${effect.milliseconds}`;
    if (effect.type !== 'leave') return effect.type;
    return `${effect.how} ${effect.url} in ${effect.milliseconds}`;
  });

type Row = [title: string, first: PayPage, steps: Step[], view: Partial<View>, effects: string[]];

const sent = [submitted, checked];
/** The shopper leaves the bank's challenge, or a session, and pays again. */
const choosesAgain: Step = { type: 'chose_again' };
const sentAgain = [choosesAgain, ...sent];
const laterBank = 'https://bank.example/later';
const here = [payLate, { ...payLate }] as const;
const challengedPlan = planWith({ status: 'challenge', challenge_url: bank });
const signedOut = planWith(null, { session: null });
const submits: Step = { type: 'submitted', request: here[0], withCard: false };

const tables: Record<string, Row[]> = {
  'a page that opens': [
    [
      'while the order is open forgets that it was paying',
      open,
      [{ type: 'opened', remembers: true }],
      {},
      ['forget'],
    ],
    ['during a payment asks', paying, [{ type: 'opened', remembers: false }], {}, ['ask in 800']],
    [
      'on return from the bank takes the shopper to the shop',
      successful,
      [{ type: 'opened', remembers: true }],
      { returning: true },
      ['forget', `replace ${shop} in 1800`],
    ],
    [
      'after the payment, in another tab, stays',
      successful,
      [{ type: 'opened', remembers: false }],
      { returning: false },
      [],
    ],
    ['at the challenge stays', challenge, [{ type: 'opened', remembers: true }], {}, []],
  ],
  'a shopper who pays': [
    [
      'has the card checked first',
      open,
      [submitted],
      { activity: 'checking' },
      ['check_card', 'wait'],
    ],
    ['then asks once', open, sent, { activity: 'paying' }, ['remember', 'ask pay']],
    [
      'asks once, however often they click',
      open,
      [...sent, submitted, submitted],
      { activity: 'paying' },
      [],
    ],
    [
      'with a card that the frame refuses asks nothing',
      open,
      [
        submitted,
        ({ newest }) => ({ type: 'checked', number: newest, made: { problem: { text: 'x' } } }),
      ],
      { activity: 'idle', problem: { text: 'x' } },
      ['stop_waiting'],
    ],
    [
      'begins nothing if the browser’s cache interrupted the check',
      open,
      [submitted, restored, () => ({ type: 'checked', number: 1, made: { token: 't' } })],
      { activity: 'idle' },
      [],
    ],
    [
      'and is approved goes to the shop',
      open,
      [...sent, answers('pay', successful)],
      { activity: 'idle', returning: true },
      ['forget', `replace ${shop} in 1800`, 'stop_waiting'],
    ],
    [
      'and is declined may try again',
      open,
      [...sent, answers('pay', declined)],
      { activity: 'idle', unfinished: false },
      ['forget', 'stop_waiting'],
    ],
    [
      'and gets no outcome is told so',
      open,
      [...sent, answers('pay', open)],
      { activity: 'idle', unfinished: true },
      ['forget', 'stop_waiting'],
    ],
    [
      'while payments are paused is told that instead',
      open,
      [...sent, answers('pay', pageOf('open', { paused: true }))],
      { unfinished: false },
      ['forget', 'stop_waiting'],
    ],
    [
      'and is challenged goes to the bank',
      open,
      [...sent, answers('pay', challenge)],
      { activity: 'leaving' },
      [`assign ${bank} in 0`],
    ],
    [
      'and whose outcome is not known yet waits',
      open,
      [...sent, answers('pay', paying)],
      { activity: 'idle' },
      ['ask in 800'],
    ],
    [
      'too late is told that it is over, and stays',
      open,
      [...sent, answers('pay', expired)],
      { returning: false },
      ['forget', 'stop_waiting'],
    ],
    [
      'and is refused by the server sees the document again',
      open,
      [...sent, answers('pay', null, 422)],
      { activity: 'idle', problem: { key: 'outdated' } },
      ['forget', 'ask state', 'stop_waiting'],
    ],
    [
      'too often is told so',
      open,
      [...sent, answers('pay', null, 429)],
      { problem: { key: 'limited' } },
      ['forget', 'ask state', 'stop_waiting'],
    ],
    [
      'after the session has ended sees the document again',
      open,
      [...sent, answers('pay', null, 403)],
      { problem: null, unfinished: true },
      ['forget', 'ask state', 'stop_waiting'],
    ],
    ['and waits long is told so', open, [...sent, { type: 'waited' }], { slow: true }, []],
  ],
  'a connection that breaks': [
    [
      'is no answer: the page asks',
      open,
      [...sent, answers('pay', null)],
      { activity: 'lost' },
      ['ask in 800'],
    ],
    [
      'counts the same if a proxy answers with an error',
      open,
      [...sent, answers('pay', null, 502)],
      { activity: 'lost' },
      ['ask in 800'],
    ],
    [
      'keeps the page from paying again',
      open,
      [...sent, answers('pay', null), submitted],
      { activity: 'lost' },
      [],
    ],
    [
      'again is asked about less and less often',
      open,
      [...sent, answers('pay', null), due, answers('state', null)],
      { activity: 'lost' },
      ['ask in 1000'],
    ],
    [
      'and then answers `open` promises nothing while the request may still be carried out',
      open,
      [...sent, answers('pay', null), due, answers('state', open)],
      { activity: 'lost', unfinished: false },
      ['ask in 1000'],
    ],
    [
      'and still answers `open` once it cannot be carried out lets the shopper pay',
      open,
      [...sent, answers('pay', null), due, answers('state', open), due, answersLate(open)],
      { activity: 'idle', unfinished: true },
      ['forget', 'stop_waiting'],
    ],
    [
      'because it is overloaded lets the shopper pay as soon as it answers `open`',
      open,
      [...sent, answers('pay', null, 503), due, answers('state', open)],
      { activity: 'idle', unfinished: true },
      ['forget', 'stop_waiting'],
    ],
    [
      'and then answers with an earlier decline promises nothing either',
      declined,
      [...sent, answers('pay', null), due, answers('state', declined)],
      { activity: 'lost' },
      ['ask in 1000'],
    ],
    [
      'and then answers with a new decline shows it',
      open,
      [...sent, answers('pay', null), due, answers('state', declined)],
      { activity: 'idle', unfinished: false },
      ['forget', 'stop_waiting'],
    ],
    [
      'and then answers `paying` and `open` says that the payment got no outcome',
      open,
      [
        ...[...sent, answers('pay', null), due, answers('state', paying)],
        ...[due, answers('state', open)],
      ],
      { activity: 'idle', unfinished: true },
      ['forget', 'stop_waiting'],
    ],
    [
      'and then answers `successful` takes the shopper to the shop',
      open,
      [...sent, answers('pay', null), due, answers('state', successful)],
      { returning: true },
      ['forget', `replace ${shop} in 1800`, 'stop_waiting'],
    ],
    [
      'is no longer called a failure once the payment went through after all',
      open,
      [
        ...[...sent, answers('pay', null), due, answersLate(open)],
        ...[due, answers('state', paying), due, answers('state', successful)],
      ],
      { unfinished: false },
      ['forget', `replace ${shop} in 1800`, 'stop_waiting'],
    ],
    [
      'while cancelling: the page asks',
      open,
      [cancels, answers('cancel', null, 502)],
      { activity: 'lost' },
      ['ask in 800'],
    ],
    [
      'once while waiting does not worry a shopper',
      paying,
      [due, answers('state', null)],
      { activity: 'idle' },
      ['ask in 800'],
    ],
    [
      'again and again while waiting is mentioned',
      paying,
      [due, answers('state', null), due, answers('state', null), due, answers('state', null)],
      { activity: 'lost' },
      ['ask in 1500'],
    ],
    [
      'while nothing is in flight does not matter',
      open,
      [due, answers('state', null)],
      { activity: 'idle' },
      [],
    ],
  ],
  'answers that come late': [
    [
      'to an earlier request are ignored',
      open,
      [due, submitted, (tab) => ({ ...answers('state', open)(tab), number: 1 }) as PayEvent],
      { activity: 'checking' },
      [],
    ],
    [
      'in the old language do not bring it back',
      open,
      [
        due,
        { type: 'spoken', page: pageOf('open', { language: 'zu' }), remembers: false },
        (tab) => ({ ...answers('state', open)(tab), number: 1 }) as PayEvent,
      ],
      { page: pageOf('open', { language: 'zu' }) },
      [],
    ],
    [
      'in another language change nothing during a payment',
      open,
      [...sent, { type: 'spoken', page: declined, remembers: false }],
      { activity: 'paying', page: open },
      [],
    ],
  ],
  'another tab': [
    [
      'that paid takes this one to the shop, if it was waiting',
      paying,
      [due, answers('state', successful)],
      { returning: true },
      ['forget', `replace ${shop} in 1800`, 'stop_waiting'],
    ],
    [
      'that paid leaves a tab that was not waiting at the outcome',
      open,
      [due, answers('state', successful)],
      { returning: false },
      ['forget'],
    ],
    [
      'that cancelled does so too',
      open,
      [due, answers('state', cancelled)],
      { returning: false },
      ['forget'],
    ],
    [
      'at the bank leaves this one where it is',
      open,
      [due, answers('state', challenge)],
      { activity: 'idle' },
      [],
    ],
    [
      'that pays makes this one wait',
      open,
      [due, answers('state', paying)],
      { activity: 'idle' },
      ['ask in 800', 'wait'],
    ],
    ['is noticed on return to this one', open, [returnsAfter(2_001)], {}, ['ask state']],
    ['is not asked about twice within two seconds', open, [returnsAfter(2_000)], {}, []],
    [
      'is asked about at once while a payment is in flight',
      paying,
      [returnsAfter(0)],
      {},
      ['ask state'],
    ],
    [
      'is not asked about while a request is in flight',
      open,
      [...sent, returnsAfter(9_000)],
      {},
      [],
    ],
    [
      'is not asked about on the way to the shop',
      open,
      [...sent, answers('pay', successful), returnsAfter(9_000)],
      { returning: true },
      [],
    ],
    [
      'is asked about when the browser shows the page from its cache',
      open,
      [...sent, answers('pay', challenge), restored],
      { activity: 'idle', returning: false },
      ['ask state', 'stop_waiting'],
    ],
  ],
  'a shopper who cancels': [
    ['asks once', open, [cancels, cancels], { activity: 'cancelling' }, []],
    [
      'goes to the shop',
      open,
      [cancels, answers('cancel', cancelled)],
      { returning: true },
      ['forget', `replace ${shop} in 1800`, 'stop_waiting'],
    ],
    [
      'too late, because the order was paid, goes to the shop too',
      open,
      [cancels, answers('cancel', successful)],
      { returning: true },
      ['forget', `replace ${shop} in 1800`, 'stop_waiting'],
    ],
    ['while paying does nothing', open, [...sent, cancels], { activity: 'paying' }, []],
    [
      'at the challenge may do so',
      challenge,
      [cancels],
      { activity: 'cancelling' },
      ['remember', 'ask cancel', 'wait'],
    ],
  ],
  'a payment that begins before the card is entered': [
    [
      'begins without a card',
      open,
      [goesOn],
      { activity: 'paying' },
      ['remember', 'ask pay', 'wait'],
    ],
    [
      'shows the form of its session',
      open,
      [goesOn, answers('pay', begun)],
      { page: begun, activity: 'idle', unfinished: false },
      ['stop_waiting'],
    ],
    [
      'is confirmed by the form',
      begun,
      [confirms],
      { activity: 'checking' },
      ['check_card', 'wait'],
    ],
    [
      'is asked about once the form has confirmed it',
      begun,
      [confirms, checked],
      { activity: 'paying' },
      ['remember', 'ask confirm'],
    ],
    [
      'ends as the server says',
      begun,
      [confirms, checked, answers('confirm', successful)],
      { returning: true },
      ['forget', `replace ${shop} in 1800`, 'stop_waiting'],
    ],
    [
      'leads to the bank',
      begun,
      [confirms, checked, answers('confirm', challenge)],
      { activity: 'leaving' },
      [`assign ${bank} in 0`],
    ],
    [
      'that the gateway did not accept is not called paid',
      begun,
      [confirms, checked, answers('confirm', begun)],
      { activity: 'idle', unfinished: true },
      ['stop_waiting'],
    ],
    [
      'with an unknown outcome promises nothing, and asks the gateway again',
      begun,
      [confirms, checked, answers('confirm', null), due, answers('state', begun)],
      { activity: 'lost', unfinished: false },
      ['ask confirm'],
    ],
    [
      'that was asked about too often promises nothing, and asks later',
      begun,
      [confirms, checked, answers('confirm', null, 429)],
      { activity: 'lost', problem: null },
      ['ask in 800'],
    ],
    [
      'and is left does not show its form while another one may still begin',
      begun,
      [choosesAgain, goesOn, answers('pay', null), due, answers('state', begun)],
      { activity: 'lost', unfinished: false },
      ['ask in 1000'],
    ],
    [
      'with a problem in the frame asks nothing',
      begun,
      [confirms, ({ newest }) => ({ type: 'checked', number: newest, made: { problem: null } })],
      { activity: 'idle', problem: null },
      ['stop_waiting'],
    ],
    ['cannot be begun twice', begun, [goesOn], {}, []],
    [
      'is left for another term',
      begun,
      [choosesAgain, goesOn],
      { activity: 'paying' },
      ['remember', 'ask pay', 'wait'],
    ],
    [
      'and is left for one that does not begin says so beside its form',
      begun,
      [choosesAgain, goesOn, answers('pay', begun)],
      { choosesAgain: false, unfinished: true },
      ['stop_waiting'],
    ],
    [
      'in place of another one shows its own form',
      begun,
      [
        choosesAgain,
        goesOn,
        answers('pay', pageOf('begun', { card_session: { client_secret: 'later' } })),
      ],
      { choosesAgain: false, unfinished: false },
      ['stop_waiting'],
    ],
    ['cannot be confirmed before it began', open, [confirms], {}, []],
    [
      'on the plan is confirmed in the same way',
      planWith({ status: 'begun' }),
      [confirms, checked],
      { activity: 'paying' },
      ['ask confirm'],
    ],
    [
      'on the plan is not called paid if the gateway did not accept it',
      planWith({ status: 'begun' }),
      [confirms, checked, answers('confirm', planWith({ status: 'begun' }))],
      { unfinished: true },
      ['stop_waiting'],
    ],
  ],
  'a challenge': [
    [
      'is continued at the bank',
      challenge,
      [{ type: 'continued_at_bank' }],
      {},
      ['remember', `assign ${bank} in 0`],
    ],
    ['is left for another card', challenge, [choosesAgain], { choosesAgain: true }, []],
    [
      'is left for another card while the bank’s page does not open',
      open,
      [...sent, answers('pay', challenge), choosesAgain],
      { activity: 'idle', choosesAgain: true },
      ['stop_waiting'],
    ],
    [
      'is left by cancelling while the bank’s page does not open',
      open,
      [...sent, answers('pay', challenge), cancels],
      { activity: 'cancelling' },
      ['remember', 'ask cancel'],
    ],
    [
      'for the other card leads to its bank',
      challenge,
      [...sentAgain, answers('pay', pageOf('challenge', { challenge_url: laterBank }))],
      { activity: 'leaving' },
      [`assign ${laterBank} in 0`],
    ],
    [
      'that the shopper left does not lead to its bank if the other payment did not begin',
      challenge,
      [...sentAgain, answers('pay', challenge)],
      { activity: 'idle', choosesAgain: false, unfinished: true },
      ['stop_waiting'],
    ],
    [
      'that the shopper left does not lead to its bank if the request was lost',
      challenge,
      [
        ...sentAgain,
        answers('pay', null, 502),
        due,
        answers('state', null),
        due,
        answersLate(challenge),
      ],
      { activity: 'idle', choosesAgain: false, unfinished: true },
      ['stop_waiting'],
    ],
    [
      'that the shopper left is not shown while the other payment may still begin',
      challenge,
      [...sentAgain, answers('pay', null), due, answers('state', challenge)],
      { activity: 'lost', unfinished: false },
      ['ask in 1000'],
    ],
    [
      'for an attempt on the plan is continued at the bank',
      planWith({ status: 'challenge', challenge_url: bank }),
      [{ type: 'continued_at_bank' }],
      {},
      [`assign ${bank} in 0`],
    ],
  ],
  'an attempt on the plan': [
    [
      'asks once',
      planWith(null),
      [submits, submits],
      { activity: 'paying', askedFor: 'plan_payment' },
      [],
    ],
    [
      'waits for its outcome',
      planWith(null),
      [submits, answers('plan/pay', planWith({ status: 'working' }))],
      { activity: 'idle' },
      ['ask in 800'],
    ],
    [
      'shows its outcome',
      planWith(null),
      [submits, answers('plan/pay', planWith({ status: 'declined' }))],
      { activity: 'idle', unfinished: false },
      ['stop_waiting'],
    ],
    [
      'goes to the bank that asks',
      planWith(null),
      [submits, answers('plan/pay', planWith({ status: 'challenge', challenge_url: bank }))],
      { activity: 'leaving' },
      [`assign ${bank} in 0`],
    ],
    [
      'does not go to the bank for another attempt',
      planWith(null),
      [
        submits,
        answers('plan/pay', planWith({ status: 'challenge', payments: [3], challenge_url: bank })),
      ],
      { activity: 'idle', unfinished: true },
      ['stop_waiting'],
    ],
    [
      'that began nothing says so',
      planWith(null),
      [submits, answers('plan/pay', planWith(null))],
      { unfinished: true },
      ['stop_waiting'],
    ],
    [
      'whose outcome a shopper without a session may not see is not called a failure',
      planWith(null),
      [submits, answers('plan/pay', null), due, answers('state', signedOut)],
      { activity: 'idle', unfinished: false },
      ['stop_waiting'],
    ],
    [
      'that ends after the session is not called a failure',
      planWith(null),
      [
        ...[submits, answers('plan/pay', planWith({ status: 'working' }))],
        ...[due, answers('state', signedOut)],
      ],
      { activity: 'idle', unfinished: false },
      ['stop_waiting'],
    ],
    [
      'that its form confirmed does not lead to the shop without a session',
      planWith({ status: 'begun' }),
      [confirms, checked, answers('confirm', signedOut)],
      { activity: 'idle', returning: false, unfinished: false },
      ['stop_waiting'],
    ],
    [
      'that got no answer is not called a failure while it may still begin',
      planWith(null),
      [submits, answers('plan/pay', null), due, answers('state', planWith(null))],
      { activity: 'lost', unfinished: false },
      ['ask in 1000'],
    ],
    [
      'that got no answer is not called a failure because of another one',
      planWith({ status: 'declined' }),
      [submits, answers('plan/pay', null), due, answers('state', planWith({ status: 'declined' }))],
      { activity: 'lost', unfinished: false },
      ['ask in 1000'],
    ],
    [
      'that got no answer and cannot begin any more says so',
      planWith(null),
      [submits, answers('plan/pay', null), due, answersLate(planWith(null))],
      { activity: 'idle', unfinished: true },
      ['stop_waiting'],
    ],
    [
      'that got no answer does not take the end of the one that was left for its own',
      challengedPlan,
      [submits, answers('plan/pay', null), due, answers('state', planWith({ status: 'declined' }))],
      { activity: 'lost', unfinished: false },
      ['ask in 1000'],
    ],
    [
      'that got no answer and whose outcome is there shows it',
      challengedPlan,
      [
        ...[submits, answers('plan/pay', null), due],
        answers('state', planWith({ status: 'declined', number: 2 })),
      ],
      { activity: 'idle', unfinished: false },
      ['stop_waiting'],
    ],
    [
      'that was refused says why instead',
      planWith(null),
      [submits, answers('plan/pay', planWith({ status: 'refused' }))],
      { unfinished: false },
      ['stop_waiting'],
    ],
    [
      'does not take the last one’s outcome for its own',
      planWith({ status: 'declined' }),
      [submits, answers('plan/pay', planWith({ status: 'declined' }))],
      { seenAttempt: 1, unfinished: true },
      ['stop_waiting'],
    ],
    [
      'may be answered by an earlier one that has not ended',
      planWith({ status: 'challenge' }),
      [submits],
      { seenAttempt: 0 },
      ['ask plan/pay', 'wait'],
    ],
    [
      'does not lead to the bank of the attempt that the shopper left',
      challengedPlan,
      [submits, answers('plan/pay', challengedPlan)],
      { activity: 'idle', unfinished: true },
      ['stop_waiting'],
    ],
    [
      'does not lead there either if the gateway took a while to end it',
      challengedPlan,
      [
        ...[submits, answers('plan/pay', planWith({ status: 'working' }))],
        ...[due, answers('state', challengedPlan)],
      ],
      { activity: 'idle', unfinished: true },
      ['stop_waiting'],
    ],
    [
      'in place of another one goes to its own bank',
      challengedPlan,
      [
        submits,
        answers('plan/pay', planWith({ number: 2, status: 'challenge', challenge_url: laterBank })),
      ],
      { activity: 'leaving' },
      [`assign ${laterBank} in 0`],
    ],
    [
      'says that the attempt left for it paid after all, even after a refusal',
      challengedPlan,
      [
        ...[submits, answers('plan/pay', planWith({ status: 'refused' }))],
        ...[
          submits,
          answers('plan/pay', null),
          due,
          answers('state', planWith({ status: 'done' })),
        ],
      ],
      { seenAttempt: 0, unfinished: false },
      ['stop_waiting'],
    ],
    [
      'with another card has it checked first',
      planWith(null),
      [{ type: 'submitted', request: payLate, withCard: true }],
      { activity: 'checking' },
      ['check_card', 'wait'],
    ],
  ],
  'the rest': [
    [
      'a link that leads nowhere any more',
      open,
      [due, answers('state', null, 404)],
      { page: null, activity: 'idle' },
      [],
    ],
    [
      'a problem goes when the shopper turns to something else',
      open,
      [...sent, answers('pay', null, 422), { type: 'dismissed' }],
      { problem: null },
      [],
    ],
    [
      'the notice of a long wait ends with the wait',
      open,
      [...sent, { type: 'waited' }, answers('pay', declined)],
      { slow: false },
      ['forget', 'stop_waiting'],
    ],
  ],
};

for (const [about, rows] of Object.entries(tables)) {
  describe(about, () => {
    for (const [title, first, steps, view, effects] of rows) {
      test(title, () => {
        const reached = play(first, steps);
        assert.deepEqual({ ...reached.tab.view, ...view }, reached.tab.view);
        assert.deepEqual(inShort(reached.effects), effects);
      });
    }
  });
}

test('the body of a payment has the card’s token, and the request as it was given', () => {
  const { effects } = play(open, sent);
  const { step: _, ...request } = pay;
  const body = { ...request, card_token: 't' };
  assert.deepEqual(effects[1], { type: 'ask', number: 2, step: 'pay', body });
});

test('an ended attempt that the page has shown is not shown again after the next request', () => {
  const { tab } = play(planWith({ status: 'declined' }), []);
  assert.notEqual(newsOf(tab.view), null);
  assert.equal(newsOf(play(planWith({ status: 'declined' }), [submits]).tab.view), null);
});

test('in every order of six events, the page pays only after `open` and with nothing in flight', () => {
  const alphabet: Step[] = [
    submitted,
    checked,
    cancels,
    due,
    restored,
    returnsAfter(9_000),
    answers('pay', null),
    answers('state', null),
    answers('state', open),
    answersLate(open),
    answers('state', paying),
    answers('pay', declined),
    answers('pay', successful),
  ];
  let orders = 0;
  const explore = (tab: Tab, known: Known, depth: number) => {
    orders += 1;
    if (depth === 0) return;
    for (const step of alphabet) {
      const event = typeof step === 'function' ? step(tab) : step;
      const isAnswer = event.type === 'answered';
      if (isAnswer && event.step !== known.asking) continue;
      const { tab: next, effects } = react(tab, event);
      const asks = effects.find(({ type }) => type === 'ask') as Asking | undefined;
      const status = (isAnswer ? event.page?.status : null) ?? known.status;
      if (asks?.step === 'pay') {
        assert.deepEqual([known.status, known.isUnanswered], ['open', false]);
        assert.equal(isBusy(tab.view), event.type === 'checked');
      }
      // A payment stays unanswered until an answer brings a document with its outcome, or brings any
      // document when it cannot begin any more. A page that is restored from the browser's cache
      // forgets what it asked.
      const isEnd =
        isAnswer &&
        event.page !== null &&
        (event.page !== open || event.millisecondsSinceSent > 60_000);
      const forgets = event.type === 'restored' || isEnd;
      const isUnanswered = asks?.step === 'pay' || (known.isUnanswered && !forgets);
      const asking = asks?.step ?? (isAnswer ? null : known.asking);
      explore(next, { status, asking, isUnanswered }, depth - 1);
    }
  };
  explore(firstTab(open), { status: 'open', asking: null, isUnanswered: false }, 6);
  assert.ok(orders > 50_000, `${orders}`);
});

type Asking = Extract<Effect, { type: 'ask' }>;
/** The last status of the server, the request in flight, and whether a payment has no answer. */
type Known = { status: PayPage['status']; asking: string | null; isUnanswered: boolean };
