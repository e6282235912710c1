import assert from 'node:assert/strict';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import type { PayablePart } from '#purchases/shoppers/plan-attempt.ts';
import { answerChallenge } from '../support/gateway.ts';
import { confirmInSession } from '../support/hyperswitch.ts';
import { cards } from '../support/money.ts';
import { challengeCard, type Shopper, visa } from '../support/payments.ts';
import { type Acting, actingOn } from '../support/plan-attempts.ts';
import { isClosed, type MerchantServer } from './merchant-server.ts';
import type { Scene, Work } from './play.ts';
import type { Process } from './stage.ts';

const mastercard = '5555555555554444';
const declined = '4000000000000002';
const brokeAfterChallenge = '4000008260003178';
const purse = [
  ...[visa, visa, visa, challengeCard, challengeCard, declined, brokeAfterChallenge],
  ...[cards.laterInsufficientFunds, cards.laterInsufficientFunds, cards.laterLost],
  ...[cards.laterNeedsShopper, cards.refundPending, cards.refundFails, cards.refundFails],
];
/** The holder disputes every payment with these cards. For the last the bank inquires first. */
const disputed = ['4000000000002685', '4000000000002685', '4000000000001976'];
/** Some cards fail only later: a payment of the plan, or a refund. */
const lastPurse = [
  ...[visa, visa, cards.laterInsufficientFunds, visa, cards.refundFails, cards.laterLost, visa],
  ...[cards.laterInsufficientFunds, visa, cards.refundPending, cards.laterNeedsShopper],
];
const lateCards = [cards.laterInsufficientFunds, cards.laterLost, cards.laterNeedsShopper];
const planPurse = [null, null, visa, mastercard, challengeCard, challengeCard, declined];
const decisions = ['approve', 'approve', 'approve', 'approve', 'decline', 'close'] as const;
const ends = ['successful', 'cancelled', 'invalid_payload'];

export type StoryShopper = ReturnType<typeof createShopper>;

/**
 * Plays a shopper with two tabs on the payment link, and with the bank and the gateway's card form.
 */
export function createShopper(
  { paying, account, story, say, tell, time }: Scene,
  shop: Pick<MerchantServer, 'checkoutId'>,
) {
  const { gateway, service } = paying;
  const { pool } = service.deps.database;
  const hasTokens = gateway.protocol === 'stripe';
  const cardsOfStory = story.theme === 'disputes' ? [...purse, ...disputed] : purse;
  let shopper: Shopper | null = null;
  let acting: Acting | null = null;
  /** The last card with which the shopper paid. */
  let lastCard = visa;
  /** The sessions that pages showed. A hostile page keeps them all. */
  const secrets: string[] = [];
  /** Final statuses that a page showed. */
  const told = new Set<string>();

  async function statusOf(): Promise<string> {
    const { rows } = await pool.query({
      ...{ name: 'story status', text: 'select status from checkouts where id = $1' },
      values: [shop.checkoutId()],
    });
    return rows[0].status;
  }

  const openUntil = 30 * 60 * 1000;
  const isOpen = async () =>
    time.now().since(time.begun).total('milliseconds') < openUntil &&
    (await statusOf()) === 'received';

  function request(path: string, body: object | undefined, headers: Record<string, string> = {}) {
    const { url } = shopper as Shopper;
    return async ({ app, died }: Process): Promise<void> => {
      const sent = app
        .inject({
          ...{
            method: body ? ('POST' as const) : ('GET' as const),
            url: `${url}/${path}`,
            headers,
          },
          ...(body && { payload: body }),
        })
        .catch(isClosed);
      const answer = await Promise.race([sent, died]);
      if (answer === null) return;
      assert.notEqual(answer.statusCode, 500, `${path}: ${answer.body}`);
      if (answer.statusCode !== 200) return tell(`shopper hears: ${path} ${answer.statusCode}`);
      read(answer.json<PayPage>());
    };
  }

  function read({ status, card_session, attempt }: PayPage): void {
    tell(`shopper sees: ${status}${attempt ? `, ${attempt.refusal ?? attempt.status}` : ''}`);
    for (const session of [card_session, attempt?.card_session]) {
      const secret = session?.client_secret;
      if (secret !== undefined && !secrets.includes(secret)) secrets.push(secret);
    }
    if (ends.includes(status)) told.add(status);
  }

  async function planWork(what: 'plan' | 'card', pick: number): Promise<Work | null> {
    if (!shopper || !acting || (await statusOf()) !== 'successful') return null;
    const payments = await shopper.rows('instalments');
    const isLeft = payments.some(({ status }) => ['scheduled', 'overdue'].includes(status));
    if (!isLeft || payments.length === 1) return null;
    const card = planPurse[pick % planPurse.length] ?? null;
    const { headers } = acting;
    if (what === 'card') {
      const body = await acting.cardBody(card ?? visa);
      return {
        about: `replaces the card by ${card ?? visa}`,
        run: request('plan/card', body, headers),
      };
    }
    const { plan } = await acting.state();
    const has = (status: string) => plan?.payments.some((one) => one.status === status);
    const parts = (['late', 'next'] as PayablePart[]).filter(has);
    const list: PayablePart[] = [...parts, ...parts, 'rest'];
    const part = list[Math.floor(pick / 7) % list.length] as PayablePart;
    const keep = card !== null && part !== 'rest' && has('planned') && pick % 2 === 0;
    const body = await acting.payBody(part, { ...(card && { card }), ...(keep && { keep }) });
    if (body.payments.length === 0) return null;
    const about = `pays ${part} on the plan with ${card ?? 'the stored card'}`;
    return { about, run: request('plan/pay', body, headers) };
  }

  return {
    told,
    statusOf,
    of: () => shopper as Shopper,
    async open(): Promise<void> {
      if (shopper) return;
      shopper = paying.open(shop.checkoutId(), account);
      acting = await actingOn(paying, shopper);
    },
    async onPage(does: 'pay' | 'cancel' | 'return' | 'look', pick: number): Promise<Work | null> {
      if (!shopper || !(await isOpen())) return null;
      if (does === 'return')
        return { about: 'returns from the bank', run: request('return', undefined) };
      if (does === 'look') return { about: 'looks at the page', run: request('state', undefined) };
      if (does === 'cancel') {
        return { about: 'cancels', run: request('cancel', { number_of_payments: story.term }) };
      }
      const card = cardsOfStory[pick % cardsOfStory.length] ?? visa;
      lastCard = card;
      const body = await shopper.payBody(story.term, { card });
      return { about: `pays in ${story.term} with ${card}`, run: request('pay', body) };
    },
    onPlan: planWork,
    /** Whether payments of the plan will be declined. */
    willBeLate: () => story.term > 1 && lateCards.includes(lastCard),
    /** The bank asks, and the shopper answers. */
    async bank(pick: number): Promise<void> {
      const { rows } = await pool.query({
        name: 'story challenges',
        text: `select challenge_url from payment_attempts
               where merchant_id = $1 and challenge_url is not null order by created_at, id`,
        values: [account.merchant.id],
      });
      const [url] = [rows[pick % Math.max(1, rows.length)]?.challenge_url];
      if (!url) return;
      const decision = decisions[pick % decisions.length] ?? 'approve';
      say(`bank: ${decision}`);
      await answerChallenge(url, decision);
    },
    /** Confirms in the card form of a session that a page showed, perhaps long ago. */
    async confirm(pick: number): Promise<void> {
      const secret = secrets[pick % Math.max(1, secrets.length)];
      if (hasTokens || secret === undefined) return;
      const card = cardsOfStory[pick % cardsOfStory.length] ?? visa;
      const { status } = await confirmInSession(gateway.url, secret, card);
      say(`card form confirms session ${secrets.indexOf(secret)} with ${card}: ${status}`);
    },
    /** The shopper pays without a fault, if the link is still open. */
    async persist(pick: number): Promise<void> {
      const card = lastPurse[pick % lastPurse.length] ?? visa;
      for (let round = 0; round < 12 && shopper && (await isOpen()); round += 1) {
        const page = await shopper.state();
        tell(`shopper persists: ${page.status}`);
        if (page.status === 'open') {
          say(`shopper pays in ${story.term} with ${card}`);
          await shopper.pay(story.term, { card });
          lastCard = card;
        } else if (page.status === 'challenge') {
          say('bank: approve');
          await shopper.decide('approve');
          await shopper.comeBack();
        } else if (page.status === 'begun') {
          await shopper.confirm(page, card);
        } else {
          await time.pass(81_000);
          await time.work();
        }
      }
    },
  };
}
