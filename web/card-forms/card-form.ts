import type { CardEntry, CardSession } from '#gateway/gateway.ts';
import type { PageKey } from '#platform/shared/words/words.ts';

// The shopper types the card into the gateway's frame, so no card data passes through the page.
// Each adapter has a card form here, which is its browser side. The page knows only this type.

/** The gateway's form on the page. */
export type CardForm = {
  /** Tells the frame the new amount, or that the card is to be stored. */
  update(use: CardUse): void;
  /** Names the frame for screen readers. */
  name(title: string): void;
  /** Turns the card into a token, or confirms the session's payment with it. */
  submit(): Promise<SubmittedCard>;
  destroy(): void;
};

/**
 * The token is null if the payment was confirmed in the browser: then the server asks the gateway
 * for its outcome. A problem is null if the frame itself shows it beside the field.
 */
export type SubmittedCard = { token: string | null } | { problem: CardProblem | null };

/** The gateway's own words, or one of our texts. */
export type CardProblem = { text: string } | { key: PageKey };

/**
 * The purpose of the card. `hold`: the first payment, captured later. `charge`: a payment of a
 * plan, taken at once. `store`: only for later charges, without an amount.
 */
export type CardUse =
  | { purpose: 'hold' | 'charge'; amount: number; storeCard: boolean }
  | { purpose: 'store' };

export type CardPlace = {
  entry: CardEntry;
  /** The session of the payment that has begun; null if the card is entered before that. */
  session: CardSession | null;
  currency: string;
  /** The address to which the shopper's bank sends them back. */
  returnUrl: string;
  place: HTMLElement;
  use: CardUse;
};

/** Resolves once the frame accepts input; rejects if it does not load. */
export type MountCard = (where: CardPlace) => Promise<CardForm>;

/** The gateways' scripts support neither Afrikaans nor isiZulu. */
export const formLocale = 'en';
const readyTimeoutMilliseconds = 20_000;

/** The calls that the gateways' scripts have in common. */
export type Elements<Options> = {
  create(type: 'payment', options: object): CardElement;
  update?(options: Options): void;
};

export type CardElement = {
  mount(place: HTMLElement): void;
  destroy?(): void;
  on(event: 'ready' | 'loaderror' | 'change', listener: () => void): void;
};

export type Failure = { error?: { message?: string; type?: string } };

/**
 * Mounts the frame, and updates its colours when the browser changes between light and dark.
 * Returns functions that name the frame and remove it.
 */
export async function mountElement(
  elements: Elements<object>,
  element: CardElement,
  place: HTMLElement,
): Promise<{ name(title: string): void; destroy(): void }> {
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
  return {
    name: (title) => place.querySelector('iframe')?.setAttribute('title', title),
    destroy() {
      darkness.removeEventListener('change', recolour);
      element.destroy?.();
    },
  };
}

export function problemOf({ error }: Failure): CardProblem | null {
  if (error?.type === 'validation_error') return null;
  return error?.message === undefined ? { key: 'card_silent' } : { text: error.message };
}

let script: Promise<void> | null = null;

/** Loads the script once per page; after a failure the next call retries. */
export function loadScript(url: string): Promise<void> {
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
export function appearance(lightTheme = 'default'): object {
  const style = getComputedStyle(document.documentElement);
  const token = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    theme: matchMedia('(prefers-color-scheme: dark)').matches ? 'night' : lightTheme,
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
