import assert from 'node:assert/strict';
import { type Answer, checkoutBody, send } from '../support/service.ts';
import type { Scene, Work } from './play.ts';
import type { Process } from './stage.ts';

const zone = 'Africa/Johannesburg';

const refusals = [
  /^Refund amount exceeds the refundable remainder of \d+ cents\.$/,
  /^Orders can only be refunded within 100 days of the purchase date\.$/,
  /^Order can't be refunded on the day of purchase\.$/,
  /^The shopper disputes \d+ cents of this checkout with the bank\./,
];

type Asked = {
  key: string;
  path: string;
  body: object;
  about: string;
  /** When it was first requested. A key is remembered for a day. */
  at: Temporal.Instant;
  id?: string;
};
export type MerchantServer = ReturnType<typeof createMerchantServer>;

/** The service closes the connection if the fate of a commit is unknown (decision 0013). */
export function isClosed(error: Error & { code?: string }): null {
  if (error.code !== 'LIGHT_ECONNRESET') throw error;
  return null;
}

/**
 * Plays the merchant's server, which creates a checkout and requests refunds. It repeats a request
 * with the same idempotency key.
 */
export function createMerchantServer({ story, paying, account, tell, time }: Scene) {
  const asked: Asked[] = [];
  const unanswered = new Set<Asked>();
  const { service } = paying;
  const { pool } = service.deps.database;

  async function request(one: Asked, process: Pick<Process, 'app'> & { died?: Promise<null> }) {
    unanswered.add(one);
    const sent = send(process, account, 'POST', one.path, {
      body: one.body,
      headers: { 'idempotency-key': one.key },
    }).catch(isClosed);
    const answer = await (process.died ? Promise.race([sent, process.died]) : sent);
    // By the contract it is safe to repeat a request after a 500 or 503. Without an answer, the key
    // makes it safe.
    if (answer === null || answer.status >= 500) return;
    unanswered.delete(one);
    hear(one, answer);
  }

  function hear(one: Asked, { status, body }: Answer): void {
    if (status === 200) {
      assert.equal(one.id ?? body.data.id, body.data.id, 'a key has one resource');
      one.id = body.data.id;
    }
    const said = status === 200 ? 'accepted' : (body.errors?.[0].detail ?? JSON.stringify(body));
    tell(`merchant hears: ${one.about} ${said}`);
    assert.ok(status === 200 || refusals.some((known) => known.test(said)), said);
  }

  async function refundable() {
    const { rows } = await pool.query({
      name: 'story refundable',
      text: `select c.id, c.amount, c.number_of_payments, c.completed_at,
         c.amount - coalesce((select sum(case status when 'failed' then kept else amount end)
           from refund_requests where checkout_id = c.id), 0)::bigint as remainder
       from checkouts c where c.merchant_id = $1 and c.status = 'successful'`,
      values: [account.merchant.id],
    });
    return rows[0];
  }

  return {
    asked,
    isUnanswered: () => unanswered.size > 0,
    checkoutId: () => asked.find(({ path }) => path === '/api/checkouts')?.id ?? '',
    create(): Work | null {
      if (asked.length > 0) return null;
      const notify_url = `${paying.receiver.url}/${account.merchant.id}`;
      const customer = { email: story.email };
      const body = checkoutBody({ amount: story.amount, notify_url, customer });
      const one = {
        key: 'create',
        path: '/api/checkouts',
        body,
        about: 'checkout',
        at: time.now(),
      };
      asked.push(one);
      const about = `creates a checkout of ${story.amount} cents`;
      return { about, run: (process) => request(one, process) };
    },
    async ask(pick: number): Promise<Work | null> {
      const checkout = await refundable();
      if (!checkout || asked.length > 8) return null;
      // Most requests come while a refund is possible, because a refused one tests little.
      const days =
        time.now().since(Temporal.Instant.from(checkout.completed_at)).total('hours') / 24;
      if (days > 101 || (days < 1.5 && story.refunds === 'auto' && pick % 5 > 0)) return null;
      const { remainder } = checkout;
      const part = Math.ceil(checkout.amount / checkout.number_of_payments);
      const amount = [
        ...[part, remainder, 1 + Math.floor((remainder * (pick % 97)) / 97)],
        ...[Math.ceil(part * 1.5), remainder + 1],
      ][pick % 5] as number;
      const body = { checkout_id: checkout.id, amount: Math.max(1, amount) };
      const one = {
        ...{ key: `refund ${asked.length}`, path: '/api/refunds', body },
        ...{ about: `refund of ${body.amount}`, at: time.now() },
      };
      asked.push(one);
      const about = `asks for a refund of ${body.amount} cents`;
      return { about, run: (process) => request(one, process) };
    },
    repeat(): Work | null {
      const isKnown = ({ at }: Asked) => time.now().since(at).total('hours') < 23;
      const one = [...unanswered].at(0) ?? asked.filter(isKnown).at(-1);
      if (!one) return null;
      return { about: `repeats its ${one.about}`, run: (process) => request(one, process) };
    },
    /** Repeats the requests that got no answer, this time without faults. */
    async repeatAll(): Promise<void> {
      for (const one of [...unanswered]) {
        await request(one, service);
        assert.ok(!unanswered.has(one), 'the API answers when nothing fails');
      }
    },
    zone,
  };
}
