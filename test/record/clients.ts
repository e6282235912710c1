import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PayPage } from '#purchases/shoppers/pay-page.ts';
import type { TestMerchant } from '../cluster/merchants.ts';
import type { GatewayUnderTest } from '../support/gateway.ts';
import { authorised, type HttpAnswer, post, request } from '../support/http.ts';
import { visa } from '../support/payments.ts';
import type { Receiver } from '../support/receiver.ts';
import type { ListedCheckout, ListedRefund, Output, Recorder } from './history.ts';

// Merchants' servers and shoppers. Each client sends one request at a time, and repeats what got no
// answer only if a key makes that safe.

/** A client gives up waiting for an answer, which is then unknown. */
const answerMilliseconds = 60_000;

const itemsOfPage = 20;

type Scene = {
  recorder: Recorder;
  /** Chooses the node that the next request goes to, and returns its address. */
  node(): string;
  merchants: TestMerchant[];
  gateway: Pick<GatewayUnderTest, 'tokenFor'>;
  receiver: Pick<Receiver, 'url'>;
  random(): number;
};

type Sale = { id: string; path: string; amount: number; merchant: TestMerchant };

export type Clients = {
  /** Ends when the last request was answered or given up. */
  stop(): Promise<void>;
};

/** The part that every answer has in a history. */
const basis = ({ status, body }: HttpAnswer): { status: number; detail?: string } =>
  status === 200 ? { status } : { status, detail: body?.errors?.[0]?.detail ?? body?.error };

const listed = ({ id, attributes }: HttpAnswer['body']): ListedCheckout => ({
  id,
  reference: attributes.client_reference_id,
  amount: attributes.amount,
  status: attributes.status,
});

const listedRefund = ({ id, attributes }: HttpAnswer['body']): ListedRefund => ({
  id,
  checkout: attributes.checkout_id,
  amount: attributes.amount,
  status: attributes.status,
});

/** Makes the functions that send and record the requests of one client. */
function createCalls({ recorder, node, gateway, receiver }: Scene, client: string) {
  const signal = () => AbortSignal.timeout(answerMilliseconds);
  const read = ({ caller }: TestMerchant, where: string) =>
    request(`${node()}${where}`, { headers: authorised(caller), signal: signal() });
  const write = (
    { caller }: TestMerchant,
    where: string,
    { key, body }: { key: string | null; body: object },
  ) =>
    post(`${node()}${where}`, caller, body, {
      ...(key !== null && { headers: { 'idempotency-key': key } }),
      signal: signal(),
    });
  const pageOf = (name: 'checkouts' | 'refunds', page: number, items: number) =>
    `/api/${name}?page%5Bnumber%5D=${page}&page%5Bitems%5D=${items}`;

  return {
    async create(
      merchant: TestMerchant,
      order: { key: string | null; reference: string; amount: number },
    ) {
      const input = { merchant: merchant.id, ...order };
      let path = '';
      const output = await recorder.record(client, 'create', input, async () => {
        const body = {
          checkout: {
            ...{ amount: order.amount, currency: 'ZAR', client_reference_id: order.reference },
            notify_url: `${receiver.url}/notify`,
            success_url: 'https://shop.example/paid',
            cancel_url: 'https://shop.example/cart',
            customer: { email: 'thandi@example.com' },
          },
        };
        const answer = await write(merchant, '/api/checkouts', { key: order.key, body });
        if (answer.status !== 200) return basis(answer);
        path = new URL(answer.body.data.payment_url).pathname;
        return { status: 200, id: answer.body.data.id };
      });
      return { output, path };
    },
    get: (merchant: TestMerchant, checkout: string) =>
      recorder.record(client, 'get', { merchant: merchant.id, checkout }, async () => {
        const answer = await read(merchant, `/api/checkouts/${checkout}`);
        return {
          ...basis(answer),
          ...(answer.body.data && { checkout: listed(answer.body.data) }),
        };
      }),
    list: (merchant: TestMerchant, page = 1, items = itemsOfPage) =>
      recorder.record(client, 'list', { merchant: merchant.id, page, items }, async () => {
        const answer = await read(merchant, pageOf('checkouts', page, items));
        if (answer.status !== 200) return basis(answer);
        const { data, links } = answer.body;
        return { status: 200, checkouts: data.map(listed), more: links.next !== null };
      }),
    refund: (
      merchant: TestMerchant,
      asked: { key: string | null; checkout: string; amount: number },
    ) =>
      recorder.record(client, 'refund', { merchant: merchant.id, ...asked }, async () => {
        const body = { checkout_id: asked.checkout, amount: asked.amount };
        const answer = await write(merchant, '/api/refunds', { key: asked.key, body });
        return { ...basis(answer), ...(answer.body.data && { id: answer.body.data.id }) };
      }),
    refunds: (merchant: TestMerchant, page = 1, items = itemsOfPage) =>
      recorder.record(client, 'refunds', { merchant: merchant.id, page, items }, async () => {
        const answer = await read(merchant, pageOf('refunds', page, items));
        if (answer.status !== 200) return basis(answer);
        const { data, links } = answer.body;
        return { status: 200, refunds: data.map(listedRefund), more: links.next !== null };
      }),
    /** Reads the hosted page, or pays there. Returns the page if it was answered. */
    async visit(sale: Sale, call: 'state' | 'pay', before?: PayPage): Promise<PayPage | null> {
      let page: PayPage | null = null;
      await recorder.record(client, call, { checkout: sale.id }, async () => {
        const body = call === 'pay' ? await payment(gateway, before as PayPage) : null;
        const answer = await request(`${node()}${sale.path}/${call}`, {
          ...(body && {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify(body),
          }),
          signal: signal(),
        });
        if (answer.status !== 200) return basis(answer);
        page = answer.body;
        return { status: 200, page: answer.body.status };
      });
      return page;
    },
  };
}

async function payment(gateway: Scene['gateway'], { plans, consent_version }: PayPage) {
  const plan = plans.at(-1);
  const number_of_payments = plan?.number_of_payments ?? 1;
  return {
    number_of_payments,
    card_token: await gateway.tokenFor(visa),
    consent:
      plan && number_of_payments > 1 ? { version: consent_version, payments: plan.payments } : null,
  };
}

/**
 * An answer that says nothing about the outcome, or says that nothing was done and the request may
 * be repeated.
 */
const isOpen = (output: Output<'create' | 'refund'> | null) =>
  output === null || output.status >= 500;

export function startClients(scene: Scene, counts: { servers: number; shoppers: number }): Clients {
  const { merchants, random } = scene;
  const pick = <T>(all: readonly T[]): T | undefined => all[Math.floor(random() * all.length)];
  const unpaid: Sale[] = [];
  const paid: Sale[] = [];
  let isStopping = false;

  /** With a key a client repeats the request until it is answered. */
  async function repeat(
    key: string | null,
    send: () => Promise<Output<'create' | 'refund'> | null>,
  ) {
    let output = await send();
    while (isOpen(output) && (key !== null || output !== null) && !isStopping) {
      await sleep(200);
      output = await send();
    }
    return output;
  }

  async function serve(name: string, merchant: TestMerchant): Promise<void> {
    const calls = createCalls(scene, name);
    const twin = createCalls(scene, `${name} again`);
    const create = async () => {
      const key = random() < 0.7 ? randomUUID() : null;
      const order = { key, reference: randomUUID(), amount: 20_000 + Math.floor(random() * 1e6) };
      let path = '';
      const send = async () => {
        const made = await calls.create(merchant, order);
        path ||= made.path;
        return made.output;
      };
      // An impatient client sends its key over a second connection at the same moment.
      const sent = repeat(key, send);
      if (key !== null && random() < 0.3) await twin.create(merchant, order);
      const output = await sent;
      if (output?.id) unpaid.push({ id: output.id, path, amount: order.amount, merchant });
      // A client reads what it wrote.
      await calls.list(merchant);
    };
    const refund = async () => {
      const sale = pick(paid.filter((one) => one.merchant === merchant).slice(-10));
      if (sale === undefined) return;
      const key = random() < 0.7 ? randomUUID() : null;
      const amount = 1 + Math.floor(random() * sale.amount * 0.5);
      const asked = { key, checkout: sale.id, amount };
      await repeat(key, () => calls.refund(merchant, asked));
      await calls.refunds(merchant);
    };
    while (!isStopping) {
      await (random() < 0.5 ? create() : refund());
      const sale = pick([...unpaid, ...paid.slice(-10)]);
      if (sale?.merchant === merchant) await calls.get(merchant, sale.id);
      await sleep(50 * random());
    }
  }

  async function shop(name: string): Promise<void> {
    const calls = createCalls(scene, name);
    while (!isStopping) {
      const sale = unpaid.shift();
      if (sale === undefined) {
        await sleep(100);
        continue;
      }
      for (let looks = 0; looks < 100 && !isStopping; looks += 1) {
        const page = await calls.visit(sale, 'state');
        if (page?.status === 'successful') {
          paid.push(sale);
          break;
        }
        if (page?.status === 'open') await calls.visit(sale, 'pay', page);
        else await sleep(200);
      }
    }
  }

  const running = [
    ...merchants.flatMap((merchant, place) =>
      Array.from({ length: counts.servers }, (_, number) =>
        serve(`server ${place + 1}.${number + 1}`, merchant),
      ),
    ),
    ...Array.from({ length: counts.shoppers }, (_, number) => shop(`shopper ${number + 1}`)),
  ];
  return {
    async stop() {
      isStopping = true;
      await Promise.all(running);
    },
  };
}

/** Reads every page of every list while nothing else happens. Only these readings show a loss. */
export async function readEverything(scene: Scene): Promise<void> {
  const calls = createCalls(scene, 'reader');
  for (const merchant of scene.merchants) {
    for (const list of [calls.list, calls.refunds]) {
      for (let page = 1, more = true; more; page += 1) {
        let output = await list(merchant, page, 100);
        // A node that was killed last may still be starting.
        for (let attempts = 1; output?.status !== 200 && attempts < 20; attempts += 1) {
          await sleep(500);
          output = await list(merchant, page, 100);
        }
        if (output?.status !== 200)
          throw new Error(`a list was not answered: ${JSON.stringify(output)}`);
        more = output.more ?? false;
      }
    }
  }
}
