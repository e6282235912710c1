import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { IssuedCredentials } from '#merchants/integrations/create-integration.ts';
import { sign, verifySignature } from '#platform/signing/signature.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { callbackPath } from '../mailbox.ts';
import type { PlannedOrder } from './season.ts';

/** The merchant's server in the story: it calls the API and receives callbacks. */
export type StoryShop = {
  /** While true, the receiver answers 503. */
  isDown: boolean;
  create(order: PlannedOrder, currency: string): Promise<{ id: string; payment_url: string }>;
  requestRefund(checkout_id: string, amount: number): Promise<string>;
  stop(): Promise<void>;
};

type ShopSettings = {
  baseUrl: string;
  /** The URL of the shop, to which browsers return from the payment page. */
  shopUrl: string;
  mailboxUrl: string;
  credentials: Pick<IssuedCredentials, 'client_secret' | 'signing_key'>;
};

export async function openStoryShop(settings: ShopSettings): Promise<StoryShop> {
  const { shopUrl, mailboxUrl, credentials } = settings;
  const receiver = await startReceiver(credentials.signing_key, () => shop.isDown);
  const shop: StoryShop = {
    isDown: false,
    async create({ reference, amount, customer, lines, course }, currency) {
      const { language: _, ...person } = customer;
      const checkout = {
        amount,
        currency,
        client_reference_id: reference,
        // The story's own receiver ends with the story, so only orders during the outage use it.
        notify_url: shop.isDown ? receiver.url : `${mailboxUrl}${callbackPath}`,
        success_url: `${shopUrl}/orders/${reference}`,
        cancel_url: `${shopUrl}/cart`,
        // The test gateway refuses the data of a shopper with this e-mail address.
        customer:
          course === 'data refused' ? { ...person, email: `refused+${person.email}` } : person,
        line_items: lines,
      };
      const { data } = await post<{ id: string; payment_url: string }>(settings, 'checkouts', {
        checkout,
      });
      return data;
    },
    async requestRefund(checkout_id, amount) {
      const body = { checkout_id, amount };
      const { data } = await post<{ id: string }>(settings, 'refunds', body);
      return data.id;
    },
    stop: receiver.stop,
  };
  return shop;
}

async function post<Data>(
  { baseUrl, credentials }: ShopSettings,
  resource: string,
  body: object,
): Promise<{ data: Data }> {
  const text = JSON.stringify(body);
  const response = await fetch(`${baseUrl}/api/${resource}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${credentials.client_secret}`,
      'content-type': 'application/json',
      'x-signature': sign(credentials.signing_key, Buffer.from(text)),
    },
    body: text,
  });
  if (response.ok) return (await response.json()) as { data: Data };
  throw new OperatorError(
    `POST /api/${resource} was answered with ${response.status}: ${await response.text()}`,
  );
}

async function startReceiver(
  signingKey: string,
  isDown: () => boolean,
): Promise<{ url: string; stop(): Promise<void> }> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const isSigned = verifySignature(request.headers['x-signature'], body, [signingKey]) !== null;
    response.writeHead(isDown() ? 503 : isSigned ? 200 : 400).end();
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/callback`,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
