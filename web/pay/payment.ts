import type { Language } from '#platform/shared/language.ts';
import type { PageWords } from '#platform/shared/words/words.ts';
import type {
  CancelRequest,
  PayPage,
  PayRequest,
  SpokenPage,
} from '#purchases/shoppers/pay-page.ts';
import type { CardToken } from './card-entry.ts';
import {
  type ActRequest,
  type Effect,
  firstTab,
  isBusy,
  type PayEvent,
  react,
  type View,
} from './payment-state.ts';

// Carries out what `payment-state.ts` chooses: requests, timers, and the way out of the page.

export type Payment = ReturnType<typeof startPayment>;

type Timer = ReturnType<typeof setTimeout> | undefined;
type Asking = Extract<Effect, { type: 'ask' }>;

const cardMilliseconds = 30_000;
const answerMilliseconds = 60_000;
const slowMilliseconds = 8_000;

export function startPayment(first: PayPage, path: string, show: (view: View) => void) {
  let tab = firstTab(first);
  let createToken: (() => Promise<CardToken>) | null = null;
  let pollTimer: Timer;
  let slowTimer: Timer;
  let lastAskedAt = performance.now();

  /** Resolves when the requests that the event causes have been answered. */
  async function tell(event: PayEvent): Promise<void> {
    const before = tab.view;
    const reaction = react(tab, event);
    tab = reaction.tab;
    if (tab.view !== before) show(tab.view);
    await Promise.all(reaction.effects.map(carryOut));
  }

  async function carryOut(effect: Effect): Promise<void> {
    switch (effect.type) {
      case 'check_card':
        return tell({ type: 'checked', number: effect.number, made: await checkCard(createToken) });
      case 'ask': {
        clearTimeout(pollTimer);
        lastAskedAt = performance.now();
        const { number, step } = effect;
        const answer = await send(path, effect);
        return tell({ type: 'answered', number, step, ...answer, remembers: remembers(path) });
      }
      case 'ask_later':
        clearTimeout(pollTimer);
        pollTimer = setTimeout(() => tell({ type: 'due' }), effect.milliseconds);
        return;
      case 'leave':
        if (effect.milliseconds === 0) leave(effect.url, effect.how);
        else setTimeout(() => leave(effect.url, effect.how), effect.milliseconds);
        return;
      case 'remember':
        return remember(path);
      case 'forget':
        return forget();
      case 'wait':
        slowTimer = setTimeout(() => tell({ type: 'waited' }), slowMilliseconds);
        return;
      case 'stop_waiting':
        clearTimeout(slowTimer);
    }
  }

  const refresh = () =>
    void tell({ type: 'returned', millisecondsSinceAsked: performance.now() - lastAskedAt });

  void tell({ type: 'opened', remembers: remembers(path) });
  listen(refresh, () => void tell({ type: 'restored' }));
  const untilExpiry = Date.parse(first.expires_at) - Date.now();
  if (untilExpiry > 0 && untilExpiry < 86_400_000) setTimeout(refresh, untilExpiry + 1_000);

  return {
    pay(request: Omit<PayRequest, 'card_token'>, create: () => Promise<CardToken>): Promise<void> {
      createToken = create;
      return tell({ type: 'submitted', request: { step: 'pay', ...request }, withCard: true });
    },
    /** Acts on the plan, with another card or, without `create`, with the stored one. */
    act(request: ActRequest, create: (() => Promise<CardToken>) | null): Promise<void> {
      createToken = create;
      return tell({ type: 'submitted', request, withCard: create !== null });
    },
    /** Asks for the document again, after this tab has changed something. */
    reload: () => tell({ type: 'due' }),
    cancel: (request: CancelRequest) => tell({ type: 'cancelled', request }),
    dismiss: () => void tell({ type: 'dismissed' }),
    continueAtBank: () => void tell({ type: 'continued_at_bank' }),
    useAnotherCard: () => void tell({ type: 'chose_another_card' }),
    /** The texts in another language, which the server keeps with the checkout; null if it fails. */
    async speak(language: Language): Promise<PageWords | null> {
      const spoken = await sendLanguage(path, language);
      if (spoken === null || isBusy(tab.view)) return null;
      void tell({ type: 'spoken', page: spoken.page, remembers: remembers(path) });
      return spoken.words;
    },
  };
}

/** Calls back when another tab or the passing of time may have changed the state. */
function listen(refresh: () => void, restored: () => void): void {
  addEventListener('pageshow', ({ persisted }) => persisted && restored());
  addEventListener('online', refresh);
  addEventListener('focus', () => {
    // The window also gets focus events when the focus moves into or out of the card frame.
    if (document.activeElement?.tagName !== 'IFRAME') refresh();
  });
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') refresh();
  });
}

async function checkCard(createToken: (() => Promise<CardToken>) | null): Promise<CardToken> {
  const timeout = new Promise<never>((_, reject) => setTimeout(reject, cardMilliseconds));
  try {
    return await Promise.race([createToken?.() ?? timeout, timeout]);
  } catch {
    return { problem: { key: 'card_silent' } };
  }
}

/** A failed connection has the status 0. */
async function send(
  path: string,
  { step, body }: Asking,
): Promise<{ status: number; page: PayPage | null }> {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), answerMilliseconds);
  try {
    const response = await fetch(`${path}/${step}`, {
      signal: limit.signal,
      cache: 'no-store',
      ...(body && post(body)),
    });
    const { status } = response;
    return { status, page: status === 200 ? ((await response.json()) as PayPage) : null };
  } catch {
    return { status: 0, page: null };
  } finally {
    clearTimeout(timer);
  }
}

async function sendLanguage(path: string, language: Language): Promise<SpokenPage | null> {
  try {
    const response = await fetch(`${path}/language`, post({ language }));
    return response.status === 200 ? ((await response.json()) as SpokenPage) : null;
  } catch {
    return null;
  }
}

const post = (body: object) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

/** The only way out of the page: to a web address that the server named. */
function leave(url: string, how: 'assign' | 'replace'): void {
  if (/^https?:\/\//i.test(url)) location[how](url);
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
