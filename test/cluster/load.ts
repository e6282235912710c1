import { createHmac, randomUUID } from 'node:crypto';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import type { GatewayUnderTest } from '../support/gateway.ts';
import { type Credentials, request } from '../support/http.ts';
import type { Receiver } from '../support/receiver.ts';

// Merchants' servers that create checkouts at a steady rate, whether the earlier ones were answered
// or not, and shoppers who pay some of them.

/** How long a client waits for one request, its retries included. */
const clientMilliseconds = 45_000;

export type Answer = { status: number; body: unknown };

/** A request of a client, with its retries. */
export type Call = {
  kind: 'create' | 'refund' | 'pay' | 'state';
  /** The id of the integration whose checkout the request is about. */
  integration: string;
  reference: string;
  /**
   * With a key a client retries after a closed connection. Without a key it cannot know whether a
   * retry is safe.
   */
  hasKey: boolean;
  begun: number;
  ended: number | null;
  /** A closed connection counts as 0. */
  statuses: number[];
  isAcknowledged: boolean;
  /** The text of the last answer, if it was an error. */
  detail: string | null;
  id: string | null;
};

export type Load = {
  calls: Call[];
  /** The checkouts that shoppers paid. */
  paid: Set<string>;
  stop(): Promise<void>;
};

/** A paid checkout and its merchant. The checkout can be refunded from the next day. */
export type Paid = { id: string; caller: Credentials };

export type Target = {
  url: string;
  gateway: Pick<GatewayUnderTest, 'tokenFor'>;
  receiver: Receiver;
};

type Options = Target & {
  callers: Credentials[];
  /** Checkouts to create per second. */
  rate: number;
  shoppers: number;
  /** Refunds per second, and the checkouts to refund. */
  refunds: { rate: number; of: Paid[] };
};

/** The amount is small, so that a checkout can be refunded a thousand times. */
const refundAmount = 100;

const visa = '4242424242424242';

export function startLoad(options: Options): Load {
  const { url, callers, gateway, receiver, rate, shoppers, refunds } = options;
  // Idle connections are closed here before HAProxy closes them.
  const agent = new http.Agent({ keepAlive: true, timeout: 50_000 });
  const calls: Call[] = [];
  const paid = new Set<string>();
  const flights = new Set<Promise<unknown>>();
  const stopping = new AbortController();

  const callerOf = (index: number) => callers[index % callers.length] as Credentials;

  /** Sends a request until it is acknowledged, refused, or out of time. */
  async function retry(
    call: Pick<Call, 'kind' | 'integration' | 'reference' | 'hasKey'>,
    send: (signal: AbortSignal) => Promise<Answer>,
  ): Promise<{ call: Call; answer: Answer | null }> {
    const made: Call = {
      ...call,
      begun: performance.now(),
      ended: null,
      statuses: [],
      isAcknowledged: false,
      detail: null,
      id: null,
    };
    calls.push(made);
    const signal = AbortSignal.timeout(clientMilliseconds);
    let answer: Answer | null = null;
    while (!signal.aborted) {
      answer = await send(signal).catch(() => null);
      // HAProxy says 502 when a node closed the connection without an answer.
      const status = answer === null || answer.status === 502 ? 0 : answer.status;
      made.statuses.push(status);
      made.isAcknowledged = status === 200;
      made.detail = status === 200 ? null : JSON.stringify(answer?.body ?? null).slice(0, 200);
      // A 503 promises that nothing was done. After a closed connection only a key makes a retry
      // safe.
      const mayRetry = status === 503 || (call.hasKey && (status === 0 || status >= 500));
      if (!mayRetry) break;
      await sleep(500);
    }
    made.ended = performance.now();
    return { call: made, answer };
  }

  async function create(index: number, changes: object, hasKey: boolean): Promise<Created | null> {
    const reference = randomUUID();
    const caller = callerOf(index);
    const text = JSON.stringify({
      checkout: {
        amount: 150_000,
        currency: 'ZAR',
        client_reference_id: reference,
        notify_url: `${receiver.url}/${reference}`,
        success_url: 'https://shop.example/paid',
        cancel_url: 'https://shop.example/cart',
        customer: { email: 'thandi@example.com' },
        ...changes,
      },
    });
    const key: Record<string, string> = hasKey ? { 'idempotency-key': reference } : {};
    const { call, answer } = await retry(
      { kind: 'create', integration: caller.id, reference, hasKey },
      (signal) => post(agent, `${url}/api/checkouts`, signed(caller, text, key), text, signal),
    );
    if (!call.isAcknowledged) return null;
    const { data } = (answer as Acknowledged).body;
    call.id = data.id;
    return data;
  }

  /** A shopper pays, and retries after a failure as the page allows. */
  async function shop(index: number): Promise<void> {
    const checkout = await create(index, {}, true);
    if (checkout === null) return;
    const integration = callerOf(index).id;
    const page = async (kind: 'pay' | 'state', body?: object) => {
      const text = body ? JSON.stringify(body) : '';
      const { answer } = await retry(
        { kind, integration, reference: checkout.id, hasKey: kind === 'state' },
        (signal) =>
          body
            ? post(agent, `${checkout.payment_url}/${kind}`, json(text), text, signal)
            : get(agent, `${checkout.payment_url}/${kind}`, signal),
      );
      return answer?.status === 200 ? (answer.body as PayPage) : null;
    };
    for (let round = 0; round < 100; round += 1) {
      const state = await page('state');
      if (state?.status === 'successful') {
        paid.add(checkout.id);
        return;
      }
      if (state?.status === 'open') {
        const number_of_payments = 3;
        const plan = state.plans.find((one) => one.number_of_payments === number_of_payments);
        await page('pay', {
          number_of_payments,
          card_token: await gateway.tokenFor(visa),
          consent: plan && { version: state.consent_version, payments: plan.payments },
        });
      } else await sleep(500);
    }
  }

  async function refund({ id, caller }: Paid): Promise<void> {
    const text = JSON.stringify({ checkout_id: id, amount: refundAmount });
    const headers = signed(caller, text, { 'idempotency-key': randomUUID() });
    const { call, answer } = await retry(
      { kind: 'refund', integration: caller.id, reference: id, hasKey: true },
      (signal) => post(agent, `${url}/api/refunds`, headers, text, signal),
    );
    if (call.isAcknowledged) call.id = (answer as Acknowledged).body.data.id;
  }

  const track = (flight: Promise<unknown>) => {
    const tracked = flight.finally(() => flights.delete(tracked));
    flights.add(tracked);
  };
  /** Begins work at a steady rate, whether the earlier work has ended or not. */
  const steadily = async (perSecond: number, begin: (index: number) => Promise<unknown>) => {
    const start = performance.now();
    for (let count = 0; !stopping.signal.aborted; ) {
      const due = ((performance.now() - start) / 1_000) * perSecond;
      for (; count < due; count += 1) track(begin(count));
      await sleep(10);
    }
  };
  const creating = steadily(rate, (index) => create(index, {}, index % 3 === 0));
  const refunding = steadily(refunds.of.length > 0 ? refunds.rate : 0, (index) =>
    refund(refunds.of[index % refunds.of.length] as Paid),
  );
  const shopping = Array.from({ length: shoppers }, async (_, shopper) => {
    for (let round = 0; !stopping.signal.aborted; round += 1) {
      await shop(shopper + round * shoppers);
      await sleep(500);
    }
  });
  return {
    calls,
    paid,
    async stop() {
      stopping.abort();
      await Promise.all([creating, refunding]);
      await Promise.all([...shopping, ...flights]);
      agent.destroy();
    },
  };
}

/**
 * Asks for many refunds of one checkout at the same moment, once each, and waits for all answers.
 */
export async function refundAtOnce(
  url: string,
  { id, caller }: Paid,
  { count, amount }: { count: number; amount: number },
): Promise<Answer[]> {
  const agent = new http.Agent();
  const text = JSON.stringify({ checkout_id: id, amount });
  const answers = Array.from({ length: count }, () => {
    const headers = signed(caller, text, { 'idempotency-key': randomUUID() });
    const signal = AbortSignal.timeout(5 * 60_000);
    return post(agent, `${url}/api/refunds`, headers, text, signal).catch(
      (error): Answer => ({ status: 0, body: String(error) }),
    );
  });
  return await Promise.all(answers);
}

type Created = { id: string; payment_url: string };
type Acknowledged = { body: { data: Created } };

const json = (text: string) => ({
  'content-type': 'application/json',
  'content-length': String(Buffer.byteLength(text)),
});

const signed = (caller: Credentials, text: string, headers: Record<string, string>) => ({
  ...json(text),
  ...headers,
  authorization: `Bearer ${caller.client_secret}`,
  'x-signature': createHmac('sha512', caller.signing_key).update(text).digest('base64'),
});

const get = (agent: http.Agent, url: string, signal: AbortSignal) =>
  request(url, { agent, signal });
const post = (
  agent: http.Agent,
  url: string,
  headers: Record<string, string>,
  text: string,
  signal: AbortSignal,
) => request(url, { method: 'POST', headers, body: text, agent, signal });
