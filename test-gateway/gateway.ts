import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Account } from './books/context.ts';
import { createFaults } from './faults.ts';
import { readBody, readUrl, send } from './http.ts';
import { createHyperswitchApi } from './hyperswitch/api.ts';
import { defaultFees } from './objects/balance-transaction.ts';
import { type Page, servePage } from './pages.ts';
import { contextFor, type Running } from './running.ts';
import { Store } from './store.ts';
import { createStripeApi } from './stripe/api.ts';
import { failure } from './stripe/keyed-calls.ts';
import { createWebhooks, type Webhook } from './webhooks.ts';

export type TestGatewayOptions = {
  /** 0 takes any free port. */
  port: number;
  host?: string;
  /** The file that keeps the state across restarts; `:memory:` keeps none. */
  stateFile: string;
  secretKey: string;
  publishableKey: string;
  /** The URL where browsers reach the gateway, if it listens on another URL. */
  publicUrl?: string;
  /** Origins whose pages may show the card frame. The list is read anew at each request. */
  pageOrigins?: string[];
  /**
   * The current time in milliseconds since the epoch, for merchants whose own time is not known.
   */
  now?: () => number;
  account?: Partial<Account>;
  /** Where and how events are posted. Without it, events can only be listed. */
  webhook?: Webhook;
  /** Called when a fault makes a request wait. */
  onWait?: () => void;
};

export type TestGateway = { url: string; close(): Promise<void> };

type Api = (request: IncomingMessage, response: ServerResponse, url: URL) => Promise<void>;

/** The two APIs of the gateway, over the same books. Their paths do not overlap. */
type Apis = { stripe: Api; hyperswitch: Api };

/** Starts the sandbox's card gateway: its books, its APIs and its pages. */
export async function startTestGateway(options: TestGatewayOptions): Promise<TestGateway> {
  const store = new Store(options.stateFile);
  const faults = createFaults(options.onWait);
  const webhooks = options.webhook ? createWebhooks(options.webhook) : null;
  const running: Running = {
    secretKey: options.secretKey,
    publishableKey: options.publishableKey,
    now: options.now ?? Date.now,
    store,
    faults,
    account: {
      amountMin: 1_000,
      descriptorPrefix: 'TRANCHE',
      fees: defaultFees,
      mapsErrors: true,
      hasAgreements: true,
      settlement: null,
      ...options.account,
    },
    notify: webhooks?.notify ?? null,
    publicUrl: options.publicUrl ?? '',
  };
  const apis: Apis = {
    stripe: createStripeApi(running),
    hyperswitch: createHyperswitchApi(running),
  };
  const server = http.createServer((request, response) => {
    handle(running, options, apis, request, response).catch((error: Error) => {
      // The client closed the connection in the middle of its request.
      if (request.destroyed && !request.complete) return;
      process.stderr.write(`test gateway: ${error.stack}\n`);
      if (!response.headersSent) send(response, 500, JSON.stringify(failure().body));
      else response.destroy();
    });
  });
  server.keepAliveTimeout = 60_000;
  const url = await listen(server, options).catch((error) => {
    store.close();
    throw error;
  });
  running.publicUrl ||= url;
  return {
    url,
    async close() {
      faults.remove(null);
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
      await webhooks?.close();
      store.close();
    },
  };
}

async function listen(
  server: http.Server,
  { host = '127.0.0.1', port }: TestGatewayOptions,
): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const address = server.address() as AddressInfo;
  return `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
}

async function handle(
  running: Running,
  options: TestGatewayOptions,
  apis: Apis,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = readUrl(request);
  const page: Page = {
    method: request.method ?? 'GET',
    url,
    publicUrl: running.publicUrl,
    pageOrigins: options.pageOrigins ?? [],
    publishableKey: options.publishableKey,
    readBody: () => readBody(request),
    context: () => contextFor(running, request, false),
  };
  if (await servePage(page, response)) return;
  const isStripe = /^\/(v1|_test)\//.test(url.pathname);
  await (isStripe ? apis.stripe : apis.hyperswitch)(request, response, url);
}
