import type { Clock } from '#platform/shared/clock.ts';
import type { Language } from '#platform/shared/language.ts';
import type { CancelRequest, PayPage, PayRequest } from '#purchases/shoppers/pay-page.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { type CardGateway, confirmCard, enterCard } from './card-frame.ts';

// A shopper without a browser. It calls the same endpoints as the payment page, and sends only the
// card directly to the test gateway.

export const approvedCard = '4242424242424242';
export const challengeAnswers = ['approve', 'decline', 'abandon'] as const;
export type ChallengeAnswer = (typeof challengeAnswers)[number];

/** The page's limits refused the shopper. */
export class TooManyRequests extends OperatorError {}

export type ShopperDeps = { clock: Clock; gateway: CardGateway };

export type Shopper = {
  deps: ShopperDeps;
  /** Loads the whole page, as a browser does. */
  open(language: Language): Promise<void>;
  state(): Promise<PayPage>;
  post<Answer = PayPage>(path: string, body: object): Promise<Answer>;
};

/** A shopper with a payment link. It keeps the cookie of the plan page. */
export function shopperAt(deps: ShopperDeps, url: string): Shopper {
  let cookie: string | null = null;
  const send = async (path: string, init: RequestInit = {}) => {
    const headers = new Headers(init.headers);
    if (cookie !== null) headers.set('cookie', cookie);
    const response = await fetch(`${url}${path}`, { ...init, headers });
    const [set] = response.headers.getSetCookie();
    if (set !== undefined) cookie = set.split(';', 1)[0] ?? null;
    return response;
  };
  return {
    deps,
    async open(language) {
      const response = await send('', { headers: { 'accept-language': language } });
      await response.arrayBuffer();
    },
    state: async () => await read(await send('/state')),
    post: async (path, body) =>
      await read(
        await send(`/${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        }),
      ),
  };
}

export async function payAs(
  shopper: Shopper,
  how: { term: number | null; card: string; challenge: ChallengeAnswer; language?: Language },
): Promise<PayPage> {
  let page = await shopper.state();
  if (page.status === 'open') page = await payOnce(shopper, page, how);
  page = await settled(shopper, page);
  if (page.status === 'challenge' && how.challenge !== 'abandon') {
    await answerChallenge(page.challenge_url, how.challenge);
    page = await settled(shopper, await shopper.state());
  }
  return page;
}

export async function cancelAs(shopper: Shopper): Promise<PayPage> {
  const { number_of_payments } = await shopper.state();
  return await shopper.post('cancel', { number_of_payments } satisfies CancelRequest);
}

async function read<Answer>(response: Response): Promise<Answer> {
  if (response.ok) return (await response.json()) as Answer;
  const { errors } = (await response.json()) as { errors?: { detail: string }[] };
  const detail = errors?.map(({ detail }) => detail).join(' ') ?? response.statusText;
  throw response.status === 429 ? new TooManyRequests(detail) : new OperatorError(detail);
}

async function payOnce(
  shopper: Shopper,
  page: PayPage,
  { term, card, language }: { term: number | null; card: string; language?: Language },
): Promise<PayPage> {
  const number_of_payments = term ?? page.number_of_payments;
  const plan = page.plans.find((one) => one.number_of_payments === number_of_payments);
  if (!plan) {
    const terms = page.plans.map((one) => one.number_of_payments).join(', ');
    throw new OperatorError(`This checkout has no term of ${number_of_payments}. It has ${terms}.`);
  }
  const token = await tokenOf(shopper, page, card);
  // The card frame itself refuses a bad number. The page shows the refusal and sends no request.
  if (token !== null && typeof token !== 'string') return { ...page, decline: token };
  const began = await shopper.post('pay', {
    number_of_payments,
    card_token: token,
    consent:
      number_of_payments === 1 ? null : { version: page.consent_version, payments: plan.payments },
    ...(language !== undefined && { language }),
  } satisfies PayRequest);
  return await confirm(shopper, await settled(shopper, began), card);
}

/**
 * Makes a token for the card. Returns null if the card is entered later, in the session of a
 * payment that has begun.
 */
export const tokenOf = (shopper: Shopper, { card_entry }: PayPage, card: string) =>
  card_entry?.entersCard === 'before' ? enterCard(shopper.deps.gateway, card) : null;

/** Enters the card in the session of a payment that has begun, if there is one. */
export async function confirm(shopper: Shopper, page: PayPage, card: string): Promise<PayPage> {
  const session = page.card_session ?? page.attempt?.card_session ?? null;
  if (session === null || page.card_entry === null) return page;
  const decline = await confirmCard(page.card_entry, session, card);
  return decline ? { ...page, decline } : await shopper.post('confirm', {});
}

export async function answerChallenge(
  challenge_url: string | null,
  decision: 'approve' | 'decline',
): Promise<void> {
  const answer = await fetch(challenge_url ?? '', {
    method: 'POST',
    redirect: 'manual',
    body: new URLSearchParams({ decision }),
  });
  const back = answer.headers.get('location');
  if (back === null) throw new OperatorError('The bank did not send the shopper back.');
  await fetch(back, { redirect: 'manual' });
}

/** Waits while an attempt is in flight, as the page does. */
async function settled(shopper: Shopper, page: PayPage): Promise<PayPage> {
  let current = page;
  for (let looks = 0; current.status === 'paying' && looks < 300; looks += 1) {
    await shopper.deps.clock.sleep(200);
    current = await shopper.state();
  }
  return current;
}
