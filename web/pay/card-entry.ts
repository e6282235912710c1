import type { PageKey } from '#platform/shared/words/words.ts';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';

// The shopper types the card into the gateway's frame, which turns it into a token. No card data
// passes through this page. The calls of Stripe.js that this needs are below.

type Failure = { error?: { message?: string; type?: string } };

type Elements = {
  create(type: 'payment', options: object): CardElement;
  update?(options: object): void;
  submit(): Promise<Failure>;
};

type CardElement = {
  mount(place: HTMLElement): void;
  destroy?(): void;
  on(event: 'ready' | 'loaderror' | 'change', listener: () => void): void;
};

type Stripe = {
  elements(options: object): Elements;
  createConfirmationToken(options: {
    elements: Elements;
  }): Promise<Failure & { confirmationToken?: { id: string } }>;
};

declare global {
  interface Window {
    Stripe?: (publicKey: string) => Stripe;
  }
}

export type CardForm = {
  /** Tells the frame the new amount, or that the card is to be stored. */
  update(use: CardUse): void;
  /** Names the frame for screen readers. */
  name(title: string): void;
  createToken(): Promise<CardToken>;
  destroy(): void;
};

/** A problem is null if the frame itself shows it beside the field. */
export type CardToken = { token: string } | { problem: CardProblem | null };

/** The gateway's own words, or a text of ours. */
export type CardProblem = { text: string } | { key: PageKey };

/**
 * The purpose of the card. `hold`: the first payment, captured later. `charge`: a payment of a
 * plan, taken at once. `store`: only for later charges; then there is no amount.
 */
export type CardUse =
  | { purpose: 'hold' | 'charge'; amount: number; storeCard: boolean }
  | { purpose: 'store' };

/** Stripe speaks neither Afrikaans nor isiZulu. */
const gatewayLocale = 'en';
const readyTimeoutMilliseconds = 20_000;

/** Resolves once the frame accepts input; rejects if it does not load. */
export async function mountCard(page: PayPage, place: HTMLElement, use: CardUse) {
  await loadScript(page.card_entry.scriptUrl);
  if (window.Stripe === undefined) throw new Error('the card script did not start');
  const stripe = window.Stripe(page.card_entry.publicKey);
  const elements = stripe.elements({
    mode: use.purpose === 'store' ? 'setup' : 'payment',
    currency: page.currency.toLowerCase(),
    ...(use.purpose === 'hold' && { captureMethod: 'manual' }),
    paymentMethodTypes: ['card'],
    locale: gatewayLocale,
    appearance: appearance(),
    ...useOptions(use),
  });
  // The page shows its own consent, with dates and amounts.
  const element = elements.create('payment', { terms: { card: 'never' } });
  await new Promise<void>((resolve, reject) => {
    const timeout = setTimeout(
      () => reject(new Error('the card frame did not answer')),
      readyTimeoutMilliseconds,
    );
    element.on('ready', () => {
      clearTimeout(timeout);
      resolve();
    });
    element.on('loaderror', () => {
      clearTimeout(timeout);
      reject(new Error('the card frame did not load'));
    });
    element.mount(place);
  }).catch((error) => {
    element.destroy?.();
    throw error;
  });

  const darkness = matchMedia('(prefers-color-scheme: dark)');
  const recolour = () => elements.update?.({ appearance: appearance() });
  darkness.addEventListener('change', recolour);

  const form: CardForm = {
    update: (next) => elements.update?.(useOptions(next)),
    name: (title) => place.querySelector('iframe')?.setAttribute('title', title),
    async createToken() {
      const checked = await elements.submit();
      if (checked.error) return { problem: problemOf(checked) };
      const made = await stripe.createConfirmationToken({ elements });
      return made.confirmationToken
        ? { token: made.confirmationToken.id }
        : { problem: problemOf(made) };
    },
    destroy() {
      darkness.removeEventListener('change', recolour);
      element.destroy?.();
    },
  };
  return form;
}

function useOptions(use: CardUse): object {
  if (use.purpose === 'store') return { setupFutureUsage: 'off_session' };
  return { amount: use.amount, setupFutureUsage: use.storeCard ? 'off_session' : null };
}

function problemOf({ error }: Failure): CardProblem | null {
  if (error?.type === 'validation_error') return null;
  return error?.message === undefined ? { key: 'card_silent' } : { text: error.message };
}

let script: Promise<void> | null = null;

/** Loads the script once per page; after a failure the next call retries. */
function loadScript(url: string): Promise<void> {
  script ??= new Promise<void>((resolve, reject) => {
    const tag = document.createElement('script');
    tag.src = url;
    tag.async = true;
    tag.onload = () => resolve();
    tag.onerror = () => {
      tag.remove();
      script = null;
      reject(new Error('the card script did not load'));
    };
    document.head.append(tag);
  });
  return script;
}

/** Gives the gateway's frame the look of the page. */
function appearance(): object {
  const style = getComputedStyle(document.documentElement);
  const token = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    theme: matchMedia('(prefers-color-scheme: dark)').matches ? 'night' : 'stripe',
    variables: {
      colorPrimary: token('accent'),
      colorBackground: token('surface'),
      colorText: token('ink'),
      colorTextSecondary: token('quiet'),
      colorDanger: token('danger'),
      fontFamily: token('sans'),
      borderRadius: token('radius-control'),
    },
  };
}
