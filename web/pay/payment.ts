import type { Language } from '#platform/shared/language.ts';
import type { PageWords } from '#platform/shared/words/words.ts';
import type {
  CancelRequest,
  PayPage,
  PayRequest,
  SpokenPage,
} from '#purchases/shoppers/pay-page.ts';
import type { SubmittedCard } from '../card-forms/card-form.ts';
import {
  type CardRequest,
  type Effect,
  firstTab,
  isBusy,
  type PayEvent,
  type PlanRequest,
  react,
  type View,
} from './payment-state.ts';

// Carries out what `payment-state.ts` chooses: requests, timers, and leaving the page.

export type Payment = ReturnType<typeof startPayment>;

type Timer = ReturnType<typeof setTimeout> | undefined;
type Asking = Extract<Effect, { type: 'ask' }>;

const cardMilliseconds = 30_000;
/** The gateway may ask the bank while the form confirms. */
const confirmMilliseconds = 60_000;
const answerMilliseconds = 60_000;
const slowMilliseconds = 8_000;

type SubmitCard = () => Promise<SubmittedCard>;

/** The timers and functions with which one tab carries out effects. */
type Carrier = {
  path: string;
  /** Submits the card in the form; null if the request has no card from a form. */
  submitCard: SubmitCard | null;
  pollTimer: Timer;
  slowTimer: Timer;
  lastAskedAt: number;
  /** When a request other than for the state was last sent. */
  lastSentAt: number;
  /** Resolves when the requests that the event causes have been answered. */
  tell: (event: PayEvent) => Promise<void>;
};

export function startPayment(first: PayPage, path: string, show: (view: View) => void) {
  let tab = firstTab(first);

  async function tell(event: PayEvent): Promise<void> {
    const before = tab.view;
    const reaction = react(tab, event);
    tab = reaction.tab;
    if (tab.view !== before) show(tab.view);
    await Promise.all(reaction.effects.map((effect) => carryOut(carrier, effect)));
  }

  const carrier: Carrier = {
    path,
    submitCard: null,
    pollTimer: undefined,
    slowTimer: undefined,
    lastAskedAt: performance.now(),
    lastSentAt: performance.now(),
    tell,
  };
  function begin(request: CardRequest, submit: SubmitCard | null): Promise<void> {
    carrier.submitCard = submit;
    return tell({ type: 'submitted', request, withCard: submit !== null });
  }
  void tell({ type: 'opened', remembers: remembers(path) });
  listen(carrier, first.expires_at);

  return {
    /** Pays the checkout. Without `submit`, a card is entered in the session that begins. */
    pay(request: Omit<PayRequest, 'card_token'>, submit: SubmitCard | null): Promise<void> {
      return begin({ step: 'pay', ...request }, submit);
    },
    /**
     * Pays payments of the plan, or replaces its card. Without `submit`, either the stored card
     * pays, or a card is entered in the session that begins.
     */
    attempt: (request: PlanRequest, submit: SubmitCard | null) => begin(request, submit),
    /** Confirms the payment that has begun, with the card in the form. */
    confirm: (submit: SubmitCard) => begin({ step: 'confirm' }, submit),
    /** Reads the document again after this tab has changed something. */
    reload: () => tell({ type: 'due' }),
    cancel: (request: CancelRequest) => tell({ type: 'cancelled', request }),
    dismiss: () => void tell({ type: 'dismissed' }),
    continueAtBank: () => void tell({ type: 'continued_at_bank' }),
    chooseAgain: () => void tell({ type: 'chose_again' }),
    /**
     * Stores another language with the checkout and returns its texts. Null if the request fails,
     * or if the page is busy when the answer comes.
     */
    async speak(language: Language): Promise<PageWords | null> {
      const spoken = await sendLanguage(path, language);
      if (spoken === null || isBusy(tab.view)) return null;
      void tell({ type: 'spoken', page: spoken.page, remembers: remembers(path) });
      return spoken.words;
    },
  };
}

async function carryOut(carrier: Carrier, effect: Effect): Promise<void> {
  const { path, tell } = carrier;
  switch (effect.type) {
    case 'check_card': {
      const made = await checkCard(carrier.submitCard, effect.confirms);
      return tell({ type: 'checked', number: effect.number, made });
    }
    case 'ask': {
      clearTimeout(carrier.pollTimer);
      carrier.lastAskedAt = performance.now();
      const { number, step } = effect;
      if (step !== 'state') carrier.lastSentAt = carrier.lastAskedAt;
      const millisecondsSinceSent = carrier.lastAskedAt - carrier.lastSentAt;
      const answer = await send(path, effect);
      return tell({
        type: 'answered',
        ...{ number, step, ...answer, remembers: remembers(path), millisecondsSinceSent },
      });
    }
    case 'ask_later':
      clearTimeout(carrier.pollTimer);
      carrier.pollTimer = setTimeout(() => tell({ type: 'due' }), effect.milliseconds);
      return;
    case 'load_again':
      location.reload();
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
      carrier.slowTimer = setTimeout(() => tell({ type: 'waited' }), slowMilliseconds);
      return;
    case 'stop_waiting':
      clearTimeout(carrier.slowTimer);
  }
}

/** Reports when another tab or the passing of time may have changed the state. */
function listen(carrier: Carrier, expiresAt: string): void {
  const refresh = () => {
    const millisecondsSinceAsked = performance.now() - carrier.lastAskedAt;
    void carrier.tell({ type: 'returned', millisecondsSinceAsked });
  };
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted) void carrier.tell({ type: 'restored' });
  });
  addEventListener('online', refresh);
  addEventListener('focus', () => {
    // The window also gets focus events when the focus moves into or out of the card frame.
    if (document.activeElement?.tagName !== 'IFRAME') refresh();
  });
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') refresh();
  });
  const untilExpiry = Date.parse(expiresAt) - Date.now();
  if (untilExpiry > 0 && untilExpiry < 86_400_000) setTimeout(refresh, untilExpiry + 1_000);
}

/** A form that does not answer while it confirms may have paid. Only the server can find out. */
async function checkCard(submit: SubmitCard | null, confirms: boolean): Promise<SubmittedCard> {
  const milliseconds = confirms ? confirmMilliseconds : cardMilliseconds;
  const timeout = new Promise<never>((_, reject) => setTimeout(reject, milliseconds));
  try {
    return await Promise.race([submit?.() ?? timeout, timeout]);
  } catch {
    return confirms ? { token: null } : { problem: { key: 'card_silent' } };
  }
}

/** Sends a request. If the connection fails, the status is 0. */
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

/** The only way to leave the page: to an http or https URL from the server. */
function leave(url: string, how: 'assign' | 'replace'): void {
  if (/^https?:\/\//i.test(url)) location[how](url);
}

// The key in the tab's session storage under which the page notes that this tab is paying. If the
// browser refuses to store it, a shopper who returns from the bank follows a link to the merchant
// instead of being redirected.
const storageKey = 'tranche-paying';

function remember(path: string): void {
  try {
    sessionStorage.setItem(storageKey, path);
  } catch {
    // The browser may refuse, as above.
  }
}

function forget(): void {
  try {
    sessionStorage.removeItem(storageKey);
  } catch {
    // The browser may refuse, as above.
  }
}

function remembers(path: string): boolean {
  try {
    return sessionStorage.getItem(storageKey) === path;
  } catch {
    return false;
  }
}
