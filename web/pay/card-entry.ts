import type { PayPage } from '../../src/payments/pay-page.ts';

// The card is typed into the gateway's frame and turned into a token there: no part of it passes
// through this page. These are the few calls of Stripe.js that it takes.

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
  /** Tells the frame what will be taken, as the shopper chooses another term. */
  update(charge: Charge): void;
  createToken(): Promise<CardToken>;
  destroy(): void;
};

/** A problem is null when the frame itself tells the shopper, beside the field. */
export type CardToken = { token: string } | { problem: string | null };

export type Charge = { amount: number; storeCard: boolean };

const patienceMilliseconds = 20_000;

/** Resolves once the frame can be typed into; rejects when it cannot be had. */
export async function mountCard(page: PayPage, place: HTMLElement, charge: Charge) {
  await loadScript(page.card_entry.scriptUrl);
  if (window.Stripe === undefined) throw new Error('the card script did not start');
  const stripe = window.Stripe(page.card_entry.publicKey);
  const elements = stripe.elements({
    mode: 'payment',
    currency: page.currency.toLowerCase(),
    captureMethod: 'manual',
    paymentMethodTypes: ['card'],
    locale: page.locale.slice(0, 2),
    appearance: appearance(),
    ...chargeOptions(charge),
  });
  // The consent is ours to show, with its dates and amounts.
  const element = elements.create('payment', { terms: { card: 'never' } });
  await new Promise<void>((resolve, reject) => {
    const impatience = setTimeout(
      () => reject(new Error('the card frame did not answer')),
      patienceMilliseconds,
    );
    element.on('ready', () => {
      clearTimeout(impatience);
      resolve();
    });
    element.on('loaderror', () => {
      clearTimeout(impatience);
      reject(new Error('the card frame did not load'));
    });
    element.mount(place);
  }).catch((error) => {
    element.destroy?.();
    throw error;
  });
  place.querySelector('iframe')?.setAttribute('title', 'Card details');

  const darkness = matchMedia('(prefers-color-scheme: dark)');
  const recolour = () => elements.update?.({ appearance: appearance() });
  darkness.addEventListener('change', recolour);

  const form: CardForm = {
    update: (next) => elements.update?.(chargeOptions(next)),
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

function chargeOptions({ amount, storeCard }: Charge): object {
  return { amount, setupFutureUsage: storeCard ? 'off_session' : null };
}

function problemOf({ error }: Failure): string | null {
  if (error?.type === 'validation_error') return null;
  return error?.message ?? 'The card form does not answer.';
}

let script: Promise<void> | null = null;

/** Once for the page; after a failure the next call tries again. */
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

/** The frame belongs to the gateway; this makes it look as if it belonged to the page. */
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
