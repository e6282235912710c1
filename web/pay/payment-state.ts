import type { CancelRequest, PayPage, PayRequest } from '#purchases/shoppers/pay-page.ts';
import type {
  PayPlanRequest,
  PlanAttempt,
  ReplaceCardRequest,
} from '#purchases/shoppers/plan-attempt.ts';
import type { CardProblem, SubmittedCard } from '../card-forms/card-form.ts';

// The state of the payment in this tab, as a pure function of what happens: `react`. The server
// decides everything. The only rule here: the page pays only if the server's last answer was `open`
// (or a session or a challenge that the shopper leaves to pay in another way) and no request is in
// flight. A missing answer never counts as "no": the page asks again until it gets an answer.
// `payment.ts` carries out the effects.

export type Activity =
  /** Nothing is in flight: the shopper is choosing, or the status is final. */
  | 'idle'
  /** The gateway's frame is checking the input, or confirming the payment with it. */
  | 'checking'
  /** The request to pay is in flight. */
  | 'paying'
  | 'cancelling'
  /** The connection broke before the answer: the page is asking for the outcome. */
  | 'lost'
  /** The browser is on its way to the bank. */
  | 'leaving';

export type View = {
  /** Null if the link is unknown. */
  page: PayPage | null;
  activity: Activity;
  /** Whether the shopper finished in this tab and is being returned to the merchant. */
  returning: boolean;
  /** The problem with the card before the request to pay. */
  problem: CardProblem | null;
  /** Whether an attempt ended without an outcome or a reason. */
  unfinished: boolean;
  /** The number of the last attempt on the plan that had ended when this tab asked for another. */
  seenAttempt: number;
  /** This tab's last request on the plan. A notice about a new card must not mention a payment. */
  askedFor: PlanAttempt['purpose'] | null;
  /** Whether the shopper left the session, or the bank's challenge, to choose again how to pay. */
  choosesAgain: boolean;
  /** Whether the wait has been long enough for the page to say so. */
  slow: boolean;
};

/** An attempt on the plan, without the card's token. */
export type PlanRequest =
  | ({ step: 'plan/pay' } & Omit<PayPlanRequest, 'card_token'>)
  | ({ step: 'plan/card' } & Omit<ReplaceCardRequest, 'card_token'>);

type FirstRequest = { step: 'pay' } & Omit<PayRequest, 'card_token' | 'gateway'>;
/** Confirms a payment that has already begun, with the card in the form. */
type Confirm = { step: 'confirm' };
export type CardRequest = FirstRequest | PlanRequest | Confirm;
type Cancel = { step: 'cancel' } & CancelRequest;
type Step = 'state' | (CardRequest | Cancel)['step'];

export type Tab = {
  view: View;
  /** This tab's request whose outcome it has not seen yet. */
  asked: 'pay' | 'confirm' | 'cancel' | PlanRequest | null;
  /** Whether no answer to that request arrived, so that the server may still carry it out. */
  isUnanswered: boolean;
  /**
   * The document as it was when this tab last sent a payment. If an attempt was waiting for the
   * shopper in it (a session or a challenge), the shopper left that attempt for the new payment.
   */
  left: PayPage | null;
  /** The request that waits until its card is checked, and the number of that check. */
  wanted: { number: number; request: CardRequest } | null;
  /** Numbers the requests. Only the answer to the newest one counts. */
  newest: number;
  /** How many times in a row the page has asked for the state. */
  polls: number;
};

export type PayEvent =
  /** The page was loaded. `remembers` means that this tab was paying before. */
  | { type: 'opened'; remembers: boolean }
  /** The shopper pays, or changes the plan, with the card in the form or with the stored one. */
  | { type: 'submitted'; request: CardRequest; withCard: boolean }
  | { type: 'cancelled'; request: CancelRequest }
  /** The gateway's frame has checked the card, or confirmed the payment with it. */
  | { type: 'checked'; number: number; made: SubmittedCard }
  /** An answer arrived. `status` is 0 if the connection failed. */
  | {
      type: 'answered';
      number: number;
      step: Step;
      status: number;
      page: PayPage | null;
      remembers: boolean;
      /** When this was asked, counted from the tab's last request other than for the state. */
      millisecondsSinceSent: number;
    }
  /** The server has changed the language. */
  | { type: 'spoken'; page: PayPage; remembers: boolean }
  /** The page must ask for the state now. */
  | { type: 'due' }
  /** The shopper is back in this tab. Meanwhile another tab or time may have changed the state. */
  | { type: 'returned'; millisecondsSinceAsked: number }
  /** The browser shows the page from its cache, which may be long out of date. */
  | { type: 'restored' }
  | { type: 'waited' }
  /** The shopper begins something else, so a notice about the last attempt disappears. */
  | { type: 'dismissed' }
  | { type: 'chose_again' }
  | { type: 'continued_at_bank' };

export type Effect =
  | { type: 'check_card'; number: number; confirms: boolean }
  | { type: 'ask'; number: number; step: Step; body: object | null }
  | { type: 'ask_later'; milliseconds: number }
  | { type: 'leave'; url: string; how: 'assign' | 'replace'; milliseconds: number }
  | { type: 'load_again' }
  /** After a reload, or on return from the bank, the tab still knows that it was paying. */
  | { type: 'remember' }
  | { type: 'forget' }
  /** Begins or ends the wait after which the page says that this is taking long. */
  | { type: 'wait' }
  | { type: 'stop_waiting' };

export type Reaction = { tab: Tab; effects: Effect[] };

const returnMilliseconds = 1_800;
/** The pauses before the next requests for the state; the last one repeats. */
const pauses = [800, 1_000, 1_500, 2_000, 3_000, 5_000, 8_000, 10_000];
/** A page that gets the focus again asks for the state, but at most this often. */
const refreshMilliseconds = 2_000;

/** The server begins no payment after `REQUEST_DEADLINE_SECONDS`, at most 55 from its arrival. */
const beginMilliseconds = 60_000;

/** The statuses with which the server refuses a request, and how the page explains each of them. */
const refusals: Partial<Record<number, CardProblem | null>> = {
  // The page then reads the document again, which shows that the session has ended.
  403: null,
  422: { key: 'outdated' },
  429: { key: 'limited' },
};

export function firstView(page: PayPage | null): View {
  return {
    page,
    activity: 'idle',
    returning: false,
    problem: null,
    unfinished: false,
    seenAttempt: 0,
    askedFor: null,
    choosesAgain: false,
    slow: false,
  };
}

export function firstTab(page: PayPage): Tab {
  return {
    view: firstView(page),
    ...{ asked: null, isUnanswered: false, left: null, wanted: null, newest: 0, polls: 0 },
  };
}

export function isBusy({ page, activity }: View): boolean {
  return activity !== 'idle' || isInFlight(page);
}

/** Whether the shopper may leave what the page shows. The bank's page may be slow to open. */
export function mayLeave({ page, activity }: View): boolean {
  return activity === 'idle' || (activity === 'leaving' && page?.status === 'challenge');
}

/**
 * Whether an attempt by the shopper is waiting for its outcome: the first payment, or one on the
 * plan.
 */
export function isInFlight(page: PayPage | null): boolean {
  return page?.status === 'paying' || page?.attempt?.status === 'working';
}

const isWaiting = ({ page, activity }: View) => activity === 'lost' || isInFlight(page);

const hasEnded = ({ status }: PlanAttempt) =>
  status !== 'working' && status !== 'begun' && status !== 'challenge';

/** The newest attempt, unless it had already ended when this tab asked for another one. */
export function newsOf({ page, seenAttempt }: View): PlanAttempt | null {
  const attempt = page?.attempt ?? null;
  if (attempt === null || attempt.status === 'refused') return attempt;
  return hasEnded(attempt) && attempt.number <= seenAttempt ? null : attempt;
}

const purposeOf = ({ step }: PlanRequest): PlanAttempt['purpose'] =>
  step === 'plan/card' ? 'new_card' : 'plan_payment';

/**
 * Whether the attempt in the document is the one that this tab asked for. An attempt that the
 * shopper left also counts once it has ended, because it may have succeeded meanwhile.
 */
function isAnswer(attempt: PlanAttempt | null, request: PlanRequest, left: PayPage | null) {
  if (attempt?.purpose !== purposeOf(request)) return false;
  if (attempt.number === left?.attempt?.number && !hasEnded(attempt)) return false;
  return request.step === 'plan/card' || attempt.payments.join() === request.payments.join();
}

export function react(tab: Tab, event: PayEvent): Reaction {
  const { tab: next, effects } = choose(tab, event);
  const isNowBusy = isBusy(next.view);
  if (!isNowBusy && next.view.slow) next.view = { ...next.view, slow: false };
  if (isNowBusy && !isBusy(tab.view)) effects.push({ type: 'wait' });
  if (!isNowBusy && isBusy(tab.view)) effects.push({ type: 'stop_waiting' });
  return { tab: next, effects };
}

function choose(tab: Tab, event: PayEvent): Reaction {
  const { view } = tab;
  switch (event.type) {
    case 'opened':
      return open(tab, event.remembers);
    case 'submitted':
      return maySubmit(view, event.request)
        ? submit(tab, event.request, event.withCard)
        : stay(tab);
    case 'cancelled':
      return mayLeave(view) ? cancel(tab, event.request) : stay(tab);
    case 'checked':
      return takeCard(tab, event.number, event.made);
    case 'answered':
      return event.number === tab.newest ? takeAnswer(tab, event) : stay(tab);
    case 'spoken':
      if (isBusy(view)) return stay(tab);
      // The new number makes the tab ignore answers to earlier requests, which would be in the old
      // language.
      return accept({ ...tab, newest: tab.newest + 1 }, event.page, event.remembers);
    case 'due':
      return ask(tab, 'state', null);
    case 'returned':
      return mayRefresh(view, event.millisecondsSinceAsked) ? ask(tab, 'state', null) : stay(tab);
    case 'restored':
      return ask(
        show({ ...tab, asked: null }, { activity: 'idle', returning: false }),
        'state',
        null,
      );
    case 'waited':
      return stay(show(tab, { slow: isBusy(view) }));
    case 'dismissed':
      return stay(isBusy(view) ? tab : show(tab, { problem: null, unfinished: false }));
    case 'chose_again':
      return stay(
        mayLeave(view) && !isInFlight(view.page)
          ? show(tab, { activity: 'idle', choosesAgain: true, problem: null })
          : tab,
      );
    case 'continued_at_bank':
      return continueAtBank(tab);
  }
}

const show = (tab: Tab, change: Partial<View>): Tab => ({
  ...tab,
  view: { ...tab.view, ...change },
});

const stay = (tab: Tab, ...effects: Effect[]): Reaction => ({ tab, effects });

function ask(tab: Tab, step: Step, body: object | null, ...before: Effect[]): Reaction {
  const number = tab.newest + 1;
  return stay({ ...tab, newest: number }, ...before, { type: 'ask', number, step, body });
}

function askLater(tab: Tab): Reaction {
  const milliseconds = pauses[Math.min(tab.polls, pauses.length - 1)] ?? 0;
  return stay({ ...tab, polls: tab.polls + 1 }, { type: 'ask_later', milliseconds });
}

const leave = (url: string, how: 'assign' | 'replace' = 'assign', milliseconds = 0): Effect => ({
  type: 'leave',
  url,
  how,
  milliseconds,
});

function open(tab: Tab, remembers: boolean): Reaction {
  const { page } = tab.view;
  if (page === null) return stay(tab);
  if (isInFlight(page)) return askLater(tab);
  if (page.status === 'open') return stay(tab, { type: 'forget' });
  return page.status !== 'challenge' && remembers ? accept(tab, page, remembers) : stay(tab);
}

/**
 * Whether a shopper may submit. They may leave a session or the bank's challenge and begin again.
 */
function maySubmit({ page, choosesAgain, ...view }: View, { step }: CardRequest): boolean {
  if (isBusy({ page, choosesAgain, ...view })) return false;
  const status = page?.status;
  const mayLeave = status === 'begun' || status === 'challenge';
  if (step === 'confirm') return status === 'begun' || page?.attempt?.status === 'begun';
  return step !== 'pay' || status === 'open' || (mayLeave && choosesAgain);
}

function mayRefresh(view: View, millisecondsSinceAsked: number): boolean {
  if (view.page === null || view.returning) return false;
  if (isWaiting(view)) return true;
  return view.activity === 'idle' && millisecondsSinceAsked > refreshMilliseconds;
}

function submit(tab: Tab, request: CardRequest, withCard: boolean): Reaction {
  const isOnPlan = request.step === 'plan/pay' || request.step === 'plan/card';
  const askedFor = isOnPlan ? purposeOf(request) : tab.view.askedFor;
  const begun = show(tab, { askedFor, problem: null, unfinished: false });
  if (!withCard) return send(show(begun, { activity: 'paying' }), request, null);
  // The new number makes the tab ignore answers to earlier requests, which lack this payment.
  const number = tab.newest + 1;
  return stay(
    { ...show(begun, { activity: 'checking' }), newest: number, wanted: { number, request } },
    { type: 'check_card', number, confirms: request.step === 'confirm' },
  );
}

/** A check that was interrupted begins no payment. */
function takeCard(tab: Tab, number: number, made: SubmittedCard): Reaction {
  const { view, wanted } = tab;
  if (wanted?.number !== number || view.activity !== 'checking') return stay(tab);
  const checked = { ...tab, wanted: null };
  if ('problem' in made) return stay(show(checked, { activity: 'idle', problem: made.problem }));
  return send(show(checked, { activity: 'paying' }), wanted.request, made.token);
}

function send(tab: Tab, request: CardRequest, card_token: string | null): Reaction {
  const { step, ...body } = request;
  const sending = { ...tab, isUnanswered: true, left: tab.view.page, polls: 0 };
  if (request.step === 'confirm') {
    const onPlan = tab.view.page?.attempt?.status === 'begun';
    const asked = { ...sending, asked: 'confirm' } as const;
    return ask(asked, step, {}, ...(onPlan ? [] : [{ type: 'remember' } as const]));
  }
  if (request.step === 'pay') {
    const asked = { ...sending, asked: 'pay' } as const;
    const gateway = tab.view.page?.gateway;
    const sent = { ...body, card_token, ...(gateway !== undefined && { gateway }) };
    return ask(asked, step, sent, { type: 'remember' });
  }
  const attempt = tab.view.page?.attempt ?? null;
  // An attempt that has not ended may still succeed, so it is not seen yet. A refused request made
  // no attempt: its number is that of the attempt before it, which may not have ended.
  const seenAttempt =
    attempt === null || attempt.status === 'refused'
      ? tab.view.seenAttempt
      : hasEnded(attempt)
        ? attempt.number
        : attempt.number - 1;
  return ask({ ...show(sending, { seenAttempt }), asked: request }, step, {
    ...body,
    card_token,
  });
}

function cancel(tab: Tab, request: CancelRequest): Reaction {
  const begun = show(tab, { activity: 'cancelling', problem: null, unfinished: false });
  return ask({ ...begun, asked: 'cancel', polls: 0 }, 'cancel', request, { type: 'remember' });
}

function continueAtBank(tab: Tab): Reaction {
  const { page } = tab.view;
  if (page?.attempt?.challenge_url) return stay(tab, leave(page.attempt.challenge_url));
  if (!page?.challenge_url) return stay(tab);
  return stay(tab, { type: 'remember' }, leave(page.challenge_url));
}

function takeAnswer(tab: Tab, answer: PayEvent & { type: 'answered' }): Reaction {
  const { step, status, page, remembers, millisecondsSinceSent: sinceSent } = answer;
  // The card form has confirmed the payment at the gateway, and our rows do not show that yet.
  // Repeating `confirm` makes the server ask the gateway.
  const isBegun = page?.status === 'begun' || page?.attempt?.status === 'begun';
  if (step === 'state' && isBegun && tab.asked === 'confirm') return ask(tab, 'confirm', {});
  if (page !== null) {
    const mayBegin = step === 'state' && tab.isUnanswered && sinceSent <= beginMilliseconds;
    return mayBegin && showsNothing(tab, page)
      ? askLater(show(tab, { activity: 'lost' }))
      : accept({ ...tab, isUnanswered: false }, page, remembers);
  }
  if (step === 'state') {
    if (status === 404) return stay(show(tab, { page: null, activity: 'idle' }));
    if (!isWaiting(tab.view)) return stay(tab);
    // The server no longer answers. A single missing answer need not worry a shopper.
    return askLater(tab.polls > 1 ? show(tab, { activity: 'lost' }) : tab);
  }
  // The form has confirmed the payment already, whether or not the server was asked about it.
  const problem = step === 'confirm' && status === 429 ? undefined : refusals[status];
  if (problem !== undefined) return refuse(tab, problem);
  // With a 503 the server says that it begins nothing.
  const lost = { ...tab, isUnanswered: tab.isUnanswered && status !== 503 };
  return askLater(show(lost, { activity: 'lost' }));
}

/**
 * Whether a document shows nothing of the payment that this tab asked for. The server may then
 * still be about to begin it.
 */
function showsNothing({ asked, left, view }: Tab, page: PayPage): boolean {
  if (asked === 'pay') {
    if (page.status === 'open') {
      return JSON.stringify(page.decline) === JSON.stringify(left?.decline ?? null);
    }
    return page.status === 'begun' || page.status === 'challenge' ? isLeft(page, left) : false;
  }
  if (asked === null || typeof asked !== 'object' || page.session === null) return false;
  const news = newsOf({ ...view, page });
  if (news === null || !isAnswer(news, asked, left)) return true;
  // The attempt that the shopper left for this one has ended. If it was declined, this one follows.
  return news.status !== 'done' && news.number <= (left?.attempt?.number ?? 0);
}

/** Whether the session or the challenge is the one that the shopper left. */
const isLeft = (page: PayPage, left: PayPage | null): boolean =>
  page.status === 'begun'
    ? page.card_session?.client_secret === left?.card_session?.client_secret
    : page.challenge_url === left?.challenge_url;

/** The server refused the request, so nothing has begun. The shopper can continue on this page. */
function refuse(tab: Tab, problem: CardProblem | null): Reaction {
  const unfinished = problem === null;
  const refused = show({ ...tab, asked: null }, { activity: 'idle', problem, unfinished });
  return ask(refused, 'state', null, { type: 'forget' });
}

function accept(tab: Tab, page: PayPage, remembers: boolean): Reaction {
  const { asked, left, view } = tab;
  // The payment moved to another gateway, whose card form needs the page to be loaded again.
  if (view.page !== null && page.gateway !== view.page.gateway) {
    const gone = show({ ...tab, asked: null }, { activity: 'leaving' });
    return stay(gone, { type: 'forget' }, { type: 'load_again' });
  }
  // A shopper without a session gets a document without attempts, even if this tab asked for an
  // attempt on the plan.
  if (page.attempt !== null || (asked !== null && left?.status === 'successful')) {
    return acceptAttempt(tab, page);
  }
  // After a change of the status, an earlier notice that a payment did not go through may be wrong.
  const isSame = page.status === view.page?.status;
  const change = { page, activity: 'idle', unfinished: view.unfinished && isSame } as const;
  const shown = show({ ...tab, asked: null }, change);
  const isPaying = asked === 'pay' || asked === 'confirm';
  switch (page.status) {
    case 'paying':
      return askLater(show(tab, { page, activity: 'idle' }));
    case 'begun': {
      // The payment still waits for a card: the form's confirmation did not reach the gateway, or
      // the request to pay did not replace the session that the shopper left.
      const unfinished = asked === 'confirm' || (asked === 'pay' && isLeft(page, left));
      return stay(show(shown, { choosesAgain: false, unfinished }));
    }
    case 'challenge':
      if (!isPaying || page.challenge_url === null) return stay(shown);
      // The same challenge as before: the request began no new payment. The page must not send the
      // shopper to the bank, where they would pay with the card that they left.
      if (isLeft(page, left)) {
        return stay(show(shown, { choosesAgain: false, unfinished: true }));
      }
      return stay(
        show(shown, { activity: 'leaving', choosesAgain: false }),
        leave(page.challenge_url),
      );
    case 'open': {
      const unfinished = isPaying && page.decline === null && !page.paused;
      return stay(show(shown, { unfinished }), { type: 'forget' });
    }
    default: {
      const isAwaited = asked !== null || view.page?.status === 'paying' || remembers;
      const returns = page.status === 'successful' || page.status === 'cancelled';
      const url = returns && isAwaited && !view.returning ? page.return_url : null;
      const effects = url === null ? [] : [leave(url, 'replace', returnMilliseconds)];
      const returning = view.returning || url !== null;
      return stay(show(shown, { returning }), { type: 'forget' }, ...effects);
    }
  }
}

/** The plan is shown in any case; `attempt` has the outcome of the shopper's request. */
function acceptAttempt(tab: Tab, page: PayPage): Reaction {
  const { asked, left } = tab;
  const shown = show(tab, { page, activity: 'idle' });
  if (page.attempt?.status === 'working') return askLater(shown);
  const request = asked !== null && typeof asked === 'object' ? asked : null;
  const news = newsOf(shown.view);
  const isAnswered = request !== null && isAnswer(news, request, left);
  const ended = { ...shown, asked: null };
  if (isAnswered && news?.status === 'challenge' && news.challenge_url) {
    return stay(show(ended, { activity: 'leaving' }), leave(news.challenge_url));
  }
  // Without a session the page cannot know the outcome. The plan shows what is paid.
  const maySee = page.session !== null;
  const isLost = request !== null && maySee && !isAnswered && news?.status !== 'refused';
  const unfinished = isLost || (asked === 'confirm' && news?.status === 'begun');
  return stay(show(ended, { unfinished }));
}
