import type { CancelRequest, PayPage, PayRequest } from '../../src/payments/pay-page.ts';
import type { CardToken } from './card-entry.ts';

// What this tab is doing about the payment. The server decides everything; the one rule here is
// that paying is offered only while the server's last word is `open` and nothing is under way. No
// answer is never taken for "no": the page goes on asking until it is told.

export type Activity =
  /** Nothing: the shopper is choosing, or the server's word is final. */
  | 'idle'
  /** The gateway's frame is checking what was typed. */
  | 'checking'
  /** The server has been asked to pay and has not answered. */
  | 'paying'
  | 'cancelling'
  /** The server was asked and the connection broke: what became of it is being found out. */
  | 'lost'
  /** The browser is on its way to the bank. */
  | 'leaving';

export type View = {
  /** Null when the link leads nowhere (any more). */
  page: PayPage | null;
  activity: Activity;
  /** The shopper brought this end about here, and is being taken back to the merchant. */
  returning: boolean;
  /** What went wrong with the card before the server was asked. */
  problem: string | null;
  /** An attempt ended without an outcome and without a reason. */
  unfinished: boolean;
  /** The shopper turned away from the bank's question to use another card. */
  anotherCard: boolean;
  /** Waiting has taken long enough to say so. */
  slow: boolean;
};

export function firstView(page: PayPage | null): View {
  return {
    page,
    activity: 'idle',
    returning: false,
    problem: null,
    unfinished: false,
    anotherCard: false,
    slow: false,
  };
}

export function isBusy({ page, activity }: View): boolean {
  return activity !== 'idle' || page?.status === 'paying';
}

export type Payment = ReturnType<typeof startPayment>;

const cardMilliseconds = 30_000;
const answerMilliseconds = 60_000;
const slowMilliseconds = 8_000;
const returnMilliseconds = 1_800;
/** How long to wait before the next question, the last for all further ones. */
const pauses = [800, 1_000, 1_500, 2_000, 3_000, 5_000, 8_000, 10_000];

export function startPayment(first: PayPage, path: string, show: (view: View) => void) {
  let view = firstView(first);
  /** What this tab asked for and has not seen the end of. */
  let asked: 'pay' | 'cancel' | null = null;
  /** The number of the newest question: an answer to an older one is out of date. */
  let newest = 0;
  let pause = 0;
  let pollTimer: ReturnType<typeof setTimeout> | undefined;
  let slowTimer: ReturnType<typeof setTimeout> | undefined;
  let lastLook = performance.now();

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

  /** Null: no answer that can be relied on. Undefined: overtaken by a newer question. */
  async function ask(step: 'state' | 'pay' | 'cancel', body?: PayRequest | CancelRequest) {
    newest += 1;
    const mine = newest;
    clearTimeout(pollTimer);
    lastLook = performance.now();
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), answerMilliseconds);
    let page: PayPage | null = null;
    let known = true;
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
    } catch {
      // The same as an answer that says nothing.
    } finally {
      clearTimeout(timer);
    }
    if (mine !== newest) return undefined;
    if (!known) set({ page: null, activity: 'idle' });
    return known ? page : undefined;
  }

  function accept(page: PayPage): void {
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
        set({ page, activity: 'idle', unfinished: asked === 'pay' && page.decline === null });
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

  async function look(): Promise<void> {
    const page = await ask('state');
    if (page) {
      accept(page);
    } else if (page === null && isWaiting()) {
      // It said `paying` before, and now nothing is heard of it any more.
      if (pause > 1) set({ activity: 'lost' });
      pollLater();
    }
  }

  function isWaiting(): boolean {
    return view.activity === 'lost' || view.page?.status === 'paying';
  }

  function pollLater(): void {
    clearTimeout(pollTimer);
    pollTimer = setTimeout(look, pauses[Math.min(pause, pauses.length - 1)]);
    pause += 1;
  }

  async function submit(step: 'pay' | 'cancel', body: PayRequest | CancelRequest): Promise<void> {
    asked = step;
    pause = 0;
    // Reloaded or sent to the bank in the middle, this tab still knows that it was paying.
    remember(path);
    const page = await ask(step, body);
    if (page) {
      accept(page);
    } else if (page === null) {
      set({ activity: 'lost' });
      pollLater();
    }
  }

  /** For the moments at which another tab, or time, may have changed things. */
  function glance(): void {
    if (view.page === null || view.returning) return;
    if (isWaiting()) void look();
    else if (view.activity === 'idle' && performance.now() - lastLook > 2_000) void look();
  }

  if (first.status === 'paying') pollLater();
  else if (first.status === 'open') forget();
  else if (first.status !== 'challenge' && remembers(path)) accept(first);

  // A page that comes back from the browser's memory may be long out of date.
  addEventListener('pageshow', (event) => {
    if (!event.persisted) return;
    asked = null;
    set({ activity: 'idle', returning: false });
    void look();
  });
  addEventListener('online', glance);
  addEventListener('focus', () => {
    // Leaving the card frame is not coming back to the page.
    if (document.activeElement?.tagName !== 'IFRAME') glance();
  });
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') glance();
  });
  const untilExpiry = Date.parse(first.expires_at) - Date.now();
  if (untilExpiry > 0 && untilExpiry < 86_400_000) setTimeout(glance, untilExpiry + 1_000);

  return {
    async pay(
      request: Omit<PayRequest, 'card_token'>,
      createToken: () => Promise<CardToken>,
    ): Promise<void> {
      if (isBusy(view)) return;
      // The answer to a question asked before this is not about it.
      newest += 1;
      set({ activity: 'checking', problem: null, unfinished: false });
      const silence = new Promise<never>((_, reject) => setTimeout(reject, cardMilliseconds));
      const made = await Promise.race([createToken(), silence]).catch(() => ({
        problem: 'The card form does not answer. Check your connection and try again.',
      }));
      if ('problem' in made) {
        set({ activity: 'idle', problem: made.problem });
        return;
      }
      set({ activity: 'paying' });
      await submit('pay', { ...request, card_token: made.token });
    },
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
    useAnotherCard(): void {
      set({ anotherCard: true });
    },
  };
}

/** The only way out of the page: to an address that the server named, on the web. */
function leave(url: string | null, how: 'assign' | 'replace' = 'assign'): void {
  if (url !== null && /^https?:\/\//i.test(url)) location[how](url);
}

// Kept for the tab only, and gone with it. Where a browser refuses to keep it, a shopper who comes
// back from the bank follows a link instead of being taken along.
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
