import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Account, Context } from './api/operation.ts';
import { invalidRequest, StripeAnswer } from './errors.ts';
import { createFaults, type Faults } from './faults.ts';
import { parseForm } from './form.ts';
import { header, isSame, keyOf, readBody, readJson, send } from './http.ts';
import { createCaller, failure } from './keyed-calls.ts';
import { defaultFees } from './objects/balance-transaction.ts';
import { newId } from './objects/made.ts';
import { type Page, servePage } from './pages.ts';
import { findOperation } from './routes.ts';
import { Store } from './store.ts';
import { createWebhooks, type Webhook } from './webhooks.ts';

export type TestGatewayOptions = {
  /** 0 takes any free port. */
  port: number;
  host?: string;
  /** Where the state is kept across restarts; `:memory:` keeps none. */
  stateFile: string;
  secretKey: string;
  publishableKey: string;
  /** Where browsers reach the gateway, if that differs from the address it listens on. */
  publicUrl?: string;
  /** Origins whose pages may show the card frame. Read at each request, so it may grow. */
  pageOrigins?: string[];
  /** Milliseconds since the epoch, for merchants whose own time is not known. */
  now?: () => number;
  account?: Partial<Account>;
  /** Where events are posted. */
  webhook?: Webhook;
};

export type TestGateway = { url: string; close(): Promise<void> };

/** A gateway that runs. */
type Running = {
  readonly options: TestGatewayOptions;
  readonly store: Store;
  readonly faults: Faults;
  readonly callOperation: ReturnType<typeof createCaller>;
  readonly account: Account;
  readonly notify: Context['notify'];
  /** Where browsers reach it. Known once it listens. */
  publicUrl: string;
};

/** Starts the sandbox's card gateway: the part of Stripe's API that Tranche uses, and its pages. */
export async function startTestGateway(options: TestGatewayOptions): Promise<TestGateway> {
  const store = new Store(options.stateFile);
  const faults = createFaults();
  const webhooks = options.webhook ? createWebhooks(options.webhook) : null;
  const running: Running = {
    options,
    store,
    faults,
    callOperation: createCaller(store, faults),
    account: {
      amountMin: 1_000,
      descriptorPrefix: 'TRANCHE',
      fees: defaultFees,
      settlement: null,
      ...options.account,
    },
    notify: webhooks?.notify ?? null,
    publicUrl: options.publicUrl ?? '',
  };
  const server = http.createServer((request, response) => {
    handle(running, request, response).catch((error: Error) => {
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

/** A caller with the secret key says which merchant it calls for and what time it is there. */
function contextFor(running: Running, request: IncomingMessage, isTrusted: boolean): Context {
  const { store, publicUrl, account, notify } = running;
  const realNow = running.options.now ?? Date.now;
  const merchant = (isTrusted && header(request, 'tranche-merchant')) || '';
  const time = Date.parse(header(request, 'tranche-merchant-time') ?? '');
  if (merchant !== '' && Number.isFinite(time)) store.advanceTime(merchant, time);
  const timeOf = (id: string) => {
    const known = id === '' ? null : store.time(id);
    return Math.floor((known ?? realNow()) / 1000);
  };
  const now = timeOf(merchant);
  return { store, publicUrl, merchant, now, timeOf, decline: null, account, notify };
}

async function handle(
  running: Running,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { options, publicUrl } = running;
  const url = new URL(request.url ?? '/', 'http://gateway');
  const page: Page = {
    method: request.method ?? 'GET',
    url,
    publicUrl,
    pageOrigins: options.pageOrigins ?? [],
    publishableKey: options.publishableKey,
    readBody: () => readBody(request),
    context: () => contextFor(running, request, false),
  };
  if (await servePage(page, response)) return;
  const id = newId('req');
  response.setHeader('Request-Id', id);
  response.setHeader('Cache-Control', 'no-cache, no-store');
  const version = header(request, 'stripe-version');
  if (version !== null) response.setHeader('Stripe-Version', version);
  try {
    if (url.pathname.startsWith('/_test/faults')) {
      await controlFaults(running, request, response, url);
    } else {
      await call(running, request, response, url, id);
    }
  } catch (error) {
    if (!(error instanceof StripeAnswer)) throw error;
    send(response, error.status, JSON.stringify({ error: error.body }));
  }
}

async function call(
  running: Running,
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
  id: string,
): Promise<void> {
  const { options, callOperation } = running;
  const method = request.method ?? 'GET';
  const path = url.pathname;
  const key = keyOf(request);
  if (key === null) throw unauthorized('You did not provide an API key.');
  const publishable = isSame(key, options.publishableKey);
  if (!publishable && !isSame(key, options.secretKey)) {
    throw unauthorized('Invalid API Key provided.');
  }
  const found = findOperation(method, path);
  if (found === null) {
    throw invalidRequest(`Unrecognized request URL (${method}: ${path.slice(0, 200)}).`, {
      status: 404,
    });
  }
  if (publishable && !found.operation.publishable) {
    throw invalidRequest(
      'This API call cannot be made with a publishable API key. Please use a secret API key.',
      { status: 403, code: 'secret_key_required' },
    );
  }
  const form = parseForm(method === 'POST' ? await readBody(request) : url.search.slice(1));
  if (publishable && method === 'GET' && form.client_secret === undefined) {
    throw invalidRequest('Missing required param: client_secret.', {
      code: 'parameter_missing',
      param: 'client_secret',
    });
  }
  const context = contextFor(running, request, !publishable);
  await callOperation({ request, response, id, method, path, form, ...found, context });
}

async function controlFaults(
  { options, faults }: Running,
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
): Promise<void> {
  const key = keyOf(request);
  if (key === null || !isSame(key, options.secretKey)) {
    throw unauthorized('The control of faults needs the secret key.');
  }
  const id = url.pathname.match(/^\/_test\/faults\/([^/]+)$/)?.[1] ?? null;
  const all = url.pathname === '/_test/faults';
  if (request.method === 'GET' && all) {
    send(response, 200, JSON.stringify({ data: faults.list() }));
  } else if (request.method === 'DELETE' && (all || id !== null)) {
    send(response, 200, JSON.stringify({ removed: faults.remove(id) }));
  } else if (request.method === 'POST' && all) {
    const added = faults.add(readJson(await readBody(request)));
    if (typeof added === 'string') throw invalidRequest(added);
    send(response, 200, JSON.stringify(added));
  } else {
    throw invalidRequest('Unrecognized request URL.', { status: 404 });
  }
}

function unauthorized(message: string): StripeAnswer {
  return invalidRequest(message, { status: 401 });
}
