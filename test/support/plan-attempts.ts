import assert from 'node:assert/strict';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import type { PayablePart } from '#purchases/shoppers/plan-attempt.ts';
import { hashToken } from '#purchases/shoppers/send-link.ts';
import { answerChallenge } from './gateway.ts';
import { confirmInSession } from './hyperswitch.ts';
import type { Paying, Shopper } from './payments.ts';

// A shopper who is signed in and acts on the plan as the page would.

type PayOptions = {
  /** Another card; if absent, the stored one. */
  card?: string;
  keep?: boolean;
  /** The page as it was shown, if the plan has changed since. */
  shown?: PayPage;
  changes?: object;
};

export type Acting = Awaited<ReturnType<typeof actingOn>>;

/** Opens a session without a mail. `plan.test.ts` tests signing in through a mail. */
export async function actingOn(paying: Paying, shopper: Shopper, through: Shopper = shopper) {
  const session = paying.service.deps.random.bytes(32).toString('base64url');
  const now = paying.clock.now();
  await paying.service.deps.database.pool.query(
    `insert into plan_sessions (merchant_id, checkout_id, session_hash, created_at, expires_at)
     select merchant_id, id, $2, $3, $4 from checkouts where id = $1`,
    [shopper.id, hashToken(session), now.toString(), now.add({ hours: 24 * 800 }).toString()],
  );
  const headers = { cookie: `plan-${shopper.id}=${session}` };

  async function state(): Promise<PayPage> {
    const answer = await through.send('GET', 'state', undefined, headers);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return answer.body;
  }

  /** Enters a card, before the attempt begins or in its session. */
  async function entered(card: string | null) {
    if (card === null) return { card_token: null };
    return paying.gateway.protocol === 'stripe'
      ? { card_token: await paying.gateway.tokenFor(card) }
      : { card_token: null, enters_card: true };
  }

  /** Begins an attempt, and confirms it if it has a session. */
  async function begin(path: string, body: unknown, card: string): Promise<PayPage> {
    const began = await page(path, body);
    const session = began.attempt?.card_session;
    if (!session) return began;
    const token = await paying.gateway.tokenFor(card);
    await confirmInSession(paying.gateway.url, session.client_secret, token);
    return await page('confirm', {});
  }

  async function payBody(what: PayablePart, options: PayOptions = {}) {
    const { plan, consent_version } = options.shown ?? (await state());
    assert(plan);
    const late = plan.payments.filter(({ status }) => status === 'late');
    const next = plan.payments.filter(({ status }) => status === 'next');
    const planned = plan.payments.filter(({ status }) => status === 'planned');
    const covered = { late, next, rest: [...late, ...next, ...planned] }[what].sort(
      (one, other) => one.number - other.number,
    );
    const rest = [...late, ...next, ...planned].filter((one) => !covered.includes(one));
    return {
      what,
      payments: covered.map(({ number }) => number),
      amount: covered.reduce((sum, { amount }) => sum + amount, 0),
      ...(await entered(options.card ?? null)),
      keep_card: options.keep ?? false,
      consent: options.keep ? consentTo(consent_version, rest) : null,
      ...options.changes,
    };
  }

  async function cardBody(card: string) {
    const { plan, consent_version } = await state();
    assert(plan);
    const rest = plan.payments.filter(({ status }) => !['paid', 'cancelled'].includes(status));
    const { card_token } = await entered(card);
    return { card_token, consent: consentTo(consent_version, rest) };
  }

  const post = (path: string, body: unknown, more: Record<string, string> = {}) =>
    through.send('POST', path, body, { ...headers, ...more });

  async function page(path: string, body: unknown): Promise<PayPage> {
    const answer = await post(path, body);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return answer.body;
  }

  return {
    headers,
    state,
    post,
    payBody,
    cardBody,
    pay: async (what: PayablePart, options: PayOptions = {}) =>
      await begin('plan/pay', await payBody(what, options), options.card ?? ''),
    replaceCard: async (card: string) => await begin('plan/card', await cardBody(card), card),
    /** Answers the bank's challenge and, if `returns`, comes back from the bank. */
    async decide(decision: 'approve' | 'decline' | 'close', returns = true): Promise<PayPage> {
      const { attempt } = await state();
      assert(attempt?.challenge_url, 'there is a challenge');
      await answerChallenge(attempt.challenge_url, decision);
      if (returns) await through.send('GET', 'return', undefined, headers);
      return await state();
    },
    async attempts(): Promise<string[]> {
      const attempts = await shopper.planAttempts();
      return attempts.map(({ purpose, status, instalments, amount }) =>
        purpose === 'plan_payment'
          ? `${status} ${instalments.join('+')} ${amount}`
          : `card ${status}`,
      );
    },
  };
}

const consentTo = (
  version: string,
  payments: { number: number; amount: number; due_on: string }[],
) => ({
  version,
  payments: payments
    .sort((one, other) => one.number - other.number)
    .map(({ number, amount, due_on }) => ({ number, amount, due_on })),
});
