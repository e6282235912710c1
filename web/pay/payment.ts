import type { Language } from '#platform/shared/language.ts';
import type { PageWords } from '#platform/shared/words/words.ts';
import type {
  CancelRequest,
  PayPage,
  PayRequest,
  SpokenPage,
} from '#purchases/payments/pay-page.ts';
import type { PayPlanRequest, PlanAct, ReplaceCardRequest } from '#purchases/shoppers/plan-act.ts';
import type { CardProblem, CardToken } from './card-entry.ts';

// The state of the payment in this tab. The server decides everything. The one rule here: the page
// offers to pay only while the server's last answer was `open` and no request is in flight. A
// missing answer never counts as "no": the page asks again until it gets one.

export type Activity =
  /** Nothing is in flight: the shopper is choosing, or the status is final. */
  | 'idle'
  /** The gateway's frame is checking the input. */
  | 'checking'
  /** The request to pay is in flight. */
  | 'paying'
  | 'cancelling'
  /** The connection broke before the answer: the page is asking for the outcome. */
  | 'lost'
  /** The browser is on its way to the bank. */
  | 'leaving';

export type View = {
  /** Null if the link leads nowhere. */
  page: PayPage | null;
  activity: Activity;
  /** The shopper finished in this tab and is being taken back to the merchant. */
  returning: boolean;
  /** The problem with the card before the request to pay. */
  problem: CardProblem | null;
  /** An attempt ended without an outcome or a reason. */
  unfinished: boolean;
  /** The number of the last attempt on the plan that had ended when this tab asked for another. */
  seenAct: number;
  /**
   * The last request of this tab on the plan: a notice about the card must not speak of a payment.
   */
  askedFor: PlanAct['purpose'] | null;
  /** The shopper left the bank's challenge to use another card. */
  anotherCard: boolean;
  /** The wait has been long enough for the page to say so. */
  slow: boolean;
};

export function firstView(page: PayPage | null): View {
  return {
    page,
    activity: 'idle',
    returning: false,
    problem: null,
    unfinished: false,
    seenAct: 0,
    askedFor: null,
    anotherCard: false,
    slow: false,
  };
}

export function isBusy({ page, activity }: View): boolean {
  return activity !== 'idle' || isInFlight(page);
}

/**
 * An attempt of the shopper waits for its outcome: the first payment, or an attempt on the plan.
 */
export function isInFlight(page: PayPage | null): boolean {
  return page?.status === 'paying' || page?.act?.status === 'working';
}

/** An attempt on the plan, without the card's token. */
export type ActRequest =
  | ({ step: 'plan/pay' } & Omit<PayPlanRequest, 'card_token'>)
  | ({ step: 'plan/card' } & Omit<ReplaceCardRequest, 'card_token'>);

const hasEnded = ({ status }: PlanAct) => status !== 'working' && status !== 'challenge';

/** The newest attempt, unless it had ended before this tab asked for another one. */
export function newsOf({ page, seenAct }: View): PlanAct | null {
  const act = page?.act ?? null;
  if (act === null || act.status === 'refused') return act;
  return hasEnded(act) && act.number <= seenAct ? null : act;
}

/** Whether an attempt in the document is the one that this tab asked for. */
function isAnswer(act: PlanAct | null, request: ActRequest): boolean {
  if (act === null) return false;
  if (request.step === 'plan/card') return act.purpose === 'replace_card';
  return act.purpose === 'pay' && act.payments.join() === request.payments.join();
}

/** Responses with which the server began nothing, and what the page says about them. */
const refusals: Partial<Record<number, CardProblem | null>> = {
  // The document that follows says that the session has ended.
  403: null,
  422: { key: 'outdated' },
  429: { key: 'limited' },
};

export type Payment = ReturnType<typeof startPayment>;

const cardMilliseconds = 30_000;
const answerMilliseconds = 60_000;
const slowMilliseconds = 8_000;
const returnMilliseconds = 1_800;
/** Pauses before each next state request; the last one repeats. */
const pauses = [800, 1_000, 1_500, 2_000, 3_000, 5_000, 8_000, 10_000];

export function startPayment(first: PayPage, path: string, show: (view: View) => void) {
  let view = firstView(first);
  /** The requests of this tab whose outcome it has not seen. */
  let asked: 'pay' | 'cancel' | ActRequest | null = null;
  /** Numbers the requests: only the answer to the newest one counts. */
  let newest = 0;
  let pause = 0;
  let pollTimer: ReturnType<typeof setTimeout> | undefined;
  let slowTimer: ReturnType<typeof setTimeout> | undefined;
  let lastAskedAt = performance.now();

  function set(change: Partial<View>): void {
    const wasBusy = isBusy(view);
    view = { ...view, ...change };
    if (!isBusy(view)) {
      clearTimeout(slowTimer);
      view.slow = false;
    } else if (!wasBusy) {
      slowTimer = setTimeout(() => set({ slow: true }), slowMilliseconds);
    }
    show(view);
  }

  /**
   * Null if there was no usable answer; undefined if a newer request replaced this one, or it was
   * refused.
   */
  async function ask(
    step: 'state' | 'pay' | 'cancel' | ActRequest['step'],
    body?: PayRequest | CancelRequest | PayPlanRequest | ReplaceCardRequest,
  ) {
    newest += 1;
    const mine = newest;
    clearTimeout(pollTimer);
    lastAskedAt = performance.now();
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), answerMilliseconds);
    let page: PayPage | null = null;
    let known = true;
    let refusal: CardProblem | null | undefined;
    try {
      const response = await fetch(`${path}/${step}`, {
        signal: limit.signal,
        cache: 'no-store',
        ...(body && {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        }),
      });
      if (response.status === 200) page = (await response.json()) as PayPage;
      else if (response.status === 404 && step === 'state') known = false;
      else if (step !== 'state') refusal = refusals[response.status];
    } catch {
      // A failed connection is the same as an answer without a page.
    } finally {
      clearTimeout(timer);
    }
    if (mine !== newest) return undefined;
    if (refusal !== undefined) {
      refuse(refusal);
      return undefined;
    }
    if (!known) set({ page: null, activity: 'idle' });
    return known ? page : undefined;
  }

  /** Nothing was begun. The shopper can go on with the document as it is now. */
  function refuse(problem: CardProblem | null): void {
    asked = null;
    forget();
    set({ activity: 'idle', problem, unfinished: problem === null });
    void poll();
  }

  function accept(page: PayPage): void {
    if (page.act !== null || (asked !== null && typeof asked === 'object')) {
      acceptAct(page);
      return;
    }
    const awaited = asked !== null || view.page?.status === 'paying' || remembers(path);
    switch (page.status) {
      case 'paying':
        set({ page, activity: 'idle' });
        pollLater();
        return;
      case 'challenge':
        if (asked === 'pay' && page.challenge_url !== null) {
          set({ page, activity: 'leaving', anotherCard: false });
          leave(page.challenge_url);
        } else {
          set({ page, activity: 'idle' });
        }
        asked = null;
        return;
      case 'open':
        set({
          page,
          activity: 'idle',
          unfinished: asked === 'pay' && page.decline === null && !page.paused,
        });
        asked = null;
        forget();
        return;
      default: {
        const returns = page.status === 'successful' || page.status === 'cancelled';
        const returning = view.returning || (returns && awaited && page.return_url !== null);
        asked = null;
        forget();
        if (returning && !view.returning) {
          setTimeout(() => leave(page.return_url, 'replace'), returnMilliseconds);
        }
        set({ page, activity: 'idle', returning });
      }
    }
  }

  /** The plan is shown in every case; `act` says what became of the shopper's request. */
  function acceptAct(page: PayPage): void {
    const { act } = page;
    const request = asked !== null && typeof asked === 'object' ? asked : null;
    if (act?.status === 'working') {
      set({ page, activity: 'idle' });
      pollLater();
      return;
    }
    asked = null;
    const news = newsOf({ ...view, page });
    const isAnswered = request !== null && isAnswer(news, request);
    if (isAnswered && news?.status === 'challenge' && news.challenge_url) {
      set({ page, activity: 'leaving' });
      leave(news.challenge_url);
      return;
    }
    const unfinished = request !== null && !isAnswered && news?.status !== 'refused';
    set({ page, activity: 'idle', unfinished });
  }

  async function poll(): Promise<void> {
    const page = await ask('state');
    if (page) {
      accept(page);
    } else if (page === null && isWaiting()) {
      // The last status was `paying`, and the server no longer answers.
      if (pause > 1) set({ activity: 'lost' });
      pollLater();
    }
  }

  function isWaiting(): boolean {
    return view.activity === 'lost' || isInFlight(view.page);
  }

  function pollLater(): void {
    clearTimeout(pollTimer);
    pollTimer = setTimeout(poll, pauses[Math.min(pause, pauses.length - 1)]);
    pause += 1;
  }

  async function submit(step: 'pay' | 'cancel', body: PayRequest | CancelRequest): Promise<void> {
    asked = step;
    pause = 0;
    // After a reload, or on return from the bank, this tab still knows that it was paying.
    remember(path);
    answered(await ask(step, body));
  }

  async function submitAct(request: ActRequest, card_token: string | null): Promise<void> {
    asked = request;
    pause = 0;
    const act = view.page?.act ?? null;
    // An attempt that has not ended may still become the answer.
    if (act !== null) set({ seenAct: hasEnded(act) ? act.number : act.number - 1 });
    const { step, ...body } = request;
    answered(await ask(step, { ...body, card_token } as PayPlanRequest));
  }

  function answered(page: PayPage | null | undefined): void {
    if (page) {
      accept(page);
    } else if (page === null) {
      set({ activity: 'lost' });
      pollLater();
    }
  }

  /** Asks for the state when another tab or the passing of time may have changed it. */
  function refresh(): void {
    if (view.page === null || view.returning) return;
    if (isWaiting()) void poll();
    else if (view.activity === 'idle' && performance.now() - lastAskedAt > 2_000) void poll();
  }

  if (isInFlight(first)) pollLater();
  else if (first.status === 'open') forget();
  else if (first.status !== 'challenge' && remembers(path)) accept(first);

  // A page restored from the browser's cache may be long out of date.
  addEventListener('pageshow', (event) => {
    if (!event.persisted) return;
    asked = null;
    set({ activity: 'idle', returning: false });
    void poll();
  });
  addEventListener('online', refresh);
  addEventListener('focus', () => {
    // The window also gets focus events when the focus moves into or out of the card frame.
    if (document.activeElement?.tagName !== 'IFRAME') refresh();
  });
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') refresh();
  });
  const untilExpiry = Date.parse(first.expires_at) - Date.now();
  if (untilExpiry > 0 && untilExpiry < 86_400_000) setTimeout(refresh, untilExpiry + 1_000);

  /** The gateway's token for the typed card; null if the gateway refused it, and the page says why. */
  async function takeCard(createToken: () => Promise<CardToken>): Promise<string | null> {
    if (isBusy(view)) return null;
    // An answer to an earlier request does not know about this payment.
    newest += 1;
    set({ activity: 'checking', problem: null, unfinished: false });
    const timeout = new Promise<never>((_, reject) => setTimeout(reject, cardMilliseconds));
    const made = await Promise.race([createToken(), timeout]).catch(() => ({
      problem: { key: 'card_silent' } as const,
    }));
    if ('problem' in made) {
      set({ activity: 'idle', problem: made.problem });
      return null;
    }
    set({ activity: 'paying' });
    return made.token;
  }

  return {
    async pay(
      request: Omit<PayRequest, 'card_token'>,
      createToken: () => Promise<CardToken>,
    ): Promise<void> {
      const card_token = await takeCard(createToken);
      if (card_token !== null) await submit('pay', { ...request, card_token });
    },
    /** Acts on the plan, with another card or, without `createToken`, with the stored one. */
    async act(request: ActRequest, createToken: (() => Promise<CardToken>) | null): Promise<void> {
      if (isBusy(view)) return;
      set({ askedFor: request.step === 'plan/card' ? 'replace_card' : 'pay' });
      if (createToken === null) {
        newest += 1;
        set({ activity: 'paying', problem: null, unfinished: false });
        await submitAct(request, null);
        return;
      }
      const card_token = await takeCard(createToken);
      if (card_token !== null) await submitAct(request, card_token);
    },
    continueActAtBank(): void {
      leave(view.page?.act?.challenge_url ?? null);
    },
    /** Forgets what went wrong, when the shopper turns to something else. */
    dismiss(): void {
      if (!isBusy(view)) set({ problem: null, unfinished: false });
    },
    /** Asks for the document again, after this tab has changed something. */
    reload: poll,
    async cancel(request: CancelRequest): Promise<void> {
      if (view.activity !== 'idle') return;
      set({ activity: 'cancelling', problem: null, unfinished: false });
      await submit('cancel', request);
    },
    continueAtBank(): void {
      if (!view.page?.challenge_url) return;
      remember(path);
      leave(view.page.challenge_url);
    },
    /** The texts in another language, which the server keeps with the checkout; null if it fails. */
    async speak(language: Language): Promise<PageWords | null> {
      try {
        const response = await fetch(`${path}/language`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ language }),
        });
        if (response.status !== 200 || isBusy(view)) return null;
        const { page, words } = (await response.json()) as SpokenPage;
        // An answer to an earlier request does not know the new language.
        newest += 1;
        accept(page);
        return words;
      } catch {
        return null;
      }
    },
    useAnotherCard(): void {
      set({ anotherCard: true });
    },
  };
}

/** The only way out of the page: to a web address that the server named. */
function leave(url: string | null, how: 'assign' | 'replace' = 'assign'): void {
  if (url !== null && /^https?:\/\//i.test(url)) location[how](url);
}

// The browser keeps this for the tab only. If it refuses to, a shopper who comes back from the bank
// follows a link instead of being redirected.
const storageKey = 'tranche-paying';

function remember(path: string): void {
  try {
    sessionStorage.setItem(storageKey, path);
  } catch {
    // See above.
  }
}

function forget(): void {
  try {
    sessionStorage.removeItem(storageKey);
  } catch {
    // See above.
  }
}

function remembers(path: string): boolean {
  try {
    return sessionStorage.getItem(storageKey) === path;
  } catch {
    return false;
  }
}
