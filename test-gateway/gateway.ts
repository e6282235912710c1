import { createHash, timingSafeEqual } from 'node:crypto';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { refusalNamed } from './cards.ts';
import { type ErrorBody, invalidRequest, StripeAnswer } from './errors.ts';
import { createFaults, type Fault } from './faults.ts';
import { type Form, parseForm } from './form.ts';
import { newId } from './objects.ts';
import { type Page, servePage } from './pages.ts';
import {
  type Answer,
  books,
  type Context,
  cancelPaymentIntent,
  capturePaymentIntent,
  createConfirmationToken,
  createCustomer,
  createPaymentIntent,
  createRefund,
  listPaymentIntents,
  listRefunds,
  retrieveConfirmationToken,
  retrieveCustomer,
  retrievePaymentIntent,
  retrieveRefund,
} from './payments.ts';
import { openStore } from './store.ts';

export type TestGatewayOptions = {
  /** 0 takes any free one. */
  port: number;
  host?: string;
  /** Where the state is kept across restarts; `:memory:` keeps none. */
  stateFile: string;
  secretKey: string;
  publishableKey: string;
  /** Where browsers reach the gateway, when that is another address than it listens on. */
  publicUrl?: string;
  /** Origins whose pages may show the card frame. Read at each request, so it may grow. */
  pageOrigins?: string[];
  /** Milliseconds since the epoch, for merchants who told no time of their own. */
  now?: () => number;
};

export type TestGateway = { url: string; close(): Promise<void> };

const keyLifeMs = 24 * 60 * 60 * 1000;
const maxBodyBytes = 128 * 1024;

type Operation = {
  run: (context: Context, form: Form, id: string) => Answer;
  /** Where Stripe takes a publishable key. */
  publishable?: boolean;
};

const operations: [method: string, path: RegExp, operation: Operation][] = [
  ['POST', /^\/v1\/customers$/, { run: createCustomer }],
  ['GET', /^\/v1\/customers\/([^/]+)$/, { run: retrieveCustomer }],
  ['POST', /^\/v1\/confirmation_tokens$/, { run: createConfirmationToken, publishable: true }],
  ['POST', /^\/v1\/test_helpers\/confirmation_tokens$/, { run: createConfirmationToken }],
  ['GET', /^\/v1\/confirmation_tokens\/([^/]+)$/, { run: retrieveConfirmationToken }],
  ['POST', /^\/v1\/payment_intents$/, { run: createPaymentIntent }],
  ['GET', /^\/v1\/payment_intents$/, { run: listPaymentIntents }],
  ['GET', /^\/v1\/payment_intents\/([^/]+)$/, { run: retrievePaymentIntent, publishable: true }],
  ['POST', /^\/v1\/payment_intents\/([^/]+)\/capture$/, { run: capturePaymentIntent }],
  ['POST', /^\/v1\/payment_intents\/([^/]+)\/cancel$/, { run: cancelPaymentIntent }],
  ['POST', /^\/v1\/refunds$/, { run: createRefund }],
  ['GET', /^\/v1\/refunds$/, { run: listRefunds }],
  ['GET', /^\/v1\/refunds\/([^/]+)$/, { run: retrieveRefund }],
  ['GET', /^\/_test\/books$/, { run: books }],
];

/** Starts the sandbox's card gateway: the part of Stripe's API that Tranche uses, and its pages. */
export async function startTestGateway(options: TestGatewayOptions): Promise<TestGateway> {
  const store = openStore(options.stateFile);
  const faults = createFaults();
  const inFlight = new Set<string>();
  const realNow = options.now ?? Date.now;
  const host = options.host ?? '127.0.0.1';
  let publicUrl = options.publicUrl ?? '';

  function timeOf(merchant: string): number {
    const told = merchant === '' ? null : store.time(merchant);
    return Math.floor((told ?? realNow()) / 1000);
  }

  /** Whoever has the secret key says whose request it is and what time it is there. */
  function contextFor(request: IncomingMessage, isTrusted: boolean): Context {
    const merchant = (isTrusted && header(request, 'tranche-merchant')) || '';
    const time = Date.parse(header(request, 'tranche-merchant-time') ?? '');
    if (merchant !== '' && Number.isFinite(time)) store.tellTime(merchant, time);
    return { store, publicUrl, merchant, now: timeOf(merchant), timeOf, decline: null };
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://gateway');
    const method = request.method ?? 'GET';
    const page: Page = {
      method,
      url,
      publicUrl,
      pageOrigins: options.pageOrigins ?? [],
      publishableKey: options.publishableKey,
      readBody: () => readBody(request),
      context: () => contextFor(request, false),
    };
    if (await servePage(page, response)) return;
    const id = newId('req');
    response.setHeader('Request-Id', id);
    response.setHeader('Cache-Control', 'no-cache, no-store');
    const version = header(request, 'stripe-version');
    if (version !== null) response.setHeader('Stripe-Version', version);
    try {
      if (url.pathname.startsWith('/_test/faults')) {
        await controlFaults(request, response, url);
        return;
      }
      await call(request, response, url, id);
    } catch (error) {
      if (!(error instanceof StripeAnswer)) throw error;
      send(response, error.status, JSON.stringify({ error: error.body }));
    }
  }

  async function call(
    request: IncomingMessage,
    response: ServerResponse,
    url: URL,
    id: string,
  ): Promise<void> {
    const method = request.method ?? 'GET';
    const key = keyOf(request);
    if (key === null) throw unauthorized('You did not provide an API key.');
    const publishable = isSame(key, options.publishableKey);
    if (!publishable && !isSame(key, options.secretKey)) {
      throw unauthorized('Invalid API Key provided.');
    }
    const found = findOperation(method, url.pathname);
    if (found === null) {
      throw invalidRequest(`Unrecognized request URL (${method}: ${url.pathname.slice(0, 200)}).`, {
        status: 404,
      });
    }
    const { operation, objectId } = found;
    if (publishable && !operation.publishable) {
      throw invalidRequest(
        'This API call cannot be made with a publishable API key. Please use a secret API key.',
        { status: 403, code: 'secret_key_required' },
      );
    }
    const text = method === 'POST' ? await readBody(request) : url.search.slice(1);
    const form = parseForm(text);
    if (publishable && method === 'GET' && form.client_secret === undefined) {
      throw invalidRequest('Missing required param: client_secret.', {
        code: 'parameter_missing',
        param: 'client_secret',
      });
    }
    const context = contextFor(request, !publishable);
    const idempotencyKey = method === 'POST' ? header(request, 'idempotency-key') : null;
    if (idempotencyKey !== null && idempotencyKey.length > 255) {
      throw invalidRequest('An idempotency key has at most 255 characters.', { status: 400 });
    }
    const fault = faults.strike({ method, path: url.pathname, key: idempotencyKey });
    const decline = fault?.fault === 'decline' ? refusalNamed(fault.decline_code) : null;
    // The effect and what is answered for it. A fault may make the two disagree.
    const run = (): Answer => {
      if (fault?.fault === 'error_before') return failure();
      const answer = operation.run({ ...context, decline }, form, objectId);
      return fault?.fault === 'error_after' ? failure() : answer;
    };
    const write = (work: () => Answer): Answer =>
      store.transaction(() => {
        store.saveTime(context.merchant);
        return work();
      });
    if (idempotencyKey === null) {
      const work = method === 'POST' ? () => write(run) : run;
      await withFault(fault, request.socket, () => {
        const { status, body } = work();
        return () => send(response, status, JSON.stringify(body));
      });
      return;
    }

    response.setHeader('Idempotency-Key', idempotencyKey);
    if (inFlight.has(idempotencyKey)) {
      throw invalidRequest(
        'There is currently another in-progress request using this idempotency key.',
        { status: 409, code: 'idempotency_key_in_use' },
      );
    }
    const fingerprint = fingerprintOf(method, url.pathname, form);
    const before = store.findKey(idempotencyKey);
    if (before !== null && before.at > timeOf(before.merchant) * 1000 - keyLifeMs) {
      if (before.fingerprint !== fingerprint) {
        throw new StripeAnswer(400, {
          type: 'idempotency_error',
          message:
            'Keys for idempotent requests can only be used with the same parameters they were first used with.',
        });
      }
      response.setHeader('Idempotent-Replayed', 'true');
      response.setHeader('Original-Request', before.request);
      // A repeated answer can be lost on the way as well as a first one.
      const { status, body } = before;
      await withFault(fault, request.socket, () => () => send(response, status, body));
      return;
    }

    const keep = (answer: Answer): Answer => {
      const at = timeOf(context.merchant) * 1000;
      store.pruneKeys(context.merchant, at - keyLifeMs);
      store.saveKey(idempotencyKey, {
        fingerprint,
        status: answer.status,
        body: JSON.stringify(answer.body),
        request: id,
        merchant: context.merchant,
        at,
      });
      return answer;
    };
    const effect = (): Answer => {
      try {
        // What was answered first is answered again, a mistake of the gateway's own included.
        return write(() => keep(run()));
      } catch (error) {
        if (!(error instanceof StripeAnswer) || !error.executed) throw error;
        const refusal = { status: error.status, body: { error: error.body } };
        return write(() => keep(refusal));
      }
    };
    inFlight.add(idempotencyKey);
    try {
      await withFault(fault, request.socket, () => {
        const { status, body } = effect();
        return () => send(response, status, JSON.stringify(body));
      });
    } finally {
      inFlight.delete(idempotencyKey);
    }
  }

  /** Does the work and gives its answer, or does not, as the fault has it. */
  async function withFault(
    fault: Fault | null,
    socket: Socket,
    work: () => () => void,
  ): Promise<void> {
    switch (fault?.fault) {
      case 'latency':
      case 'hold_key':
        await faults.wait(fault);
        work()();
        break;
      case 'latency_after': {
        const answer = work();
        await faults.wait(fault);
        answer();
        break;
      }
      case 'drop_before':
        socket.destroy();
        break;
      case 'drop_after':
        work();
        socket.destroy();
        break;
      default:
        work()();
    }
  }

  async function controlFaults(
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

  const server = http.createServer((request, response) => {
    handle(request, response).catch((error: Error) => {
      // A client that left in the middle of its request is no fault of ours.
      if (request.destroyed && !request.complete) return;
      process.stderr.write(`test gateway: ${error.stack}\n`);
      if (!response.headersSent) send(response, 500, JSON.stringify(failure().body));
      else response.destroy();
    });
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, host, resolve);
  }).catch((error) => {
    store.close();
    throw error;
  });
  const { port } = server.address() as AddressInfo;
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  publicUrl ||= url;

  return {
    url,
    async close() {
      faults.remove(null);
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
      store.close();
    },
  };
}

function findOperation(method: string, path: string) {
  for (const [wanted, pattern, operation] of operations) {
    const match = wanted === method ? pattern.exec(path) : null;
    if (match !== null) return { operation, objectId: decodeURIComponent(match[1] ?? '') };
  }
  return null;
}

function failure(): Answer {
  const error: ErrorBody = {
    type: 'api_error',
    message: 'An unknown error occurred. Contact support if this persists.',
  };
  return { status: 500, body: { error } };
}

function unauthorized(message: string): StripeAnswer {
  return invalidRequest(message, { status: 401 });
}

function keyOf(request: IncomingMessage): string | null {
  const given = header(request, 'authorization') ?? '';
  const [, scheme = '', value = ''] = /^(\S+)\s+(\S+)$/.exec(given) ?? [];
  if (scheme.toLowerCase() === 'bearer') return value;
  if (scheme.toLowerCase() !== 'basic') return null;
  return Buffer.from(value, 'base64').toString('utf8').split(':')[0] ?? null;
}

function isSame(given: string, wanted: string): boolean {
  const [left, right] = [given, wanted].map((text) => createHash('sha256').update(text).digest());
  return left !== undefined && right !== undefined && timingSafeEqual(left, right);
}

function header(request: IncomingMessage, name: string): string | null {
  const value = request.headers[name];
  return typeof value === 'string' ? value : null;
}

/** The same parameters in another order are the same request. */
function fingerprintOf(method: string, path: string, form: Form): string {
  const sorted = (value: string | Form): unknown =>
    typeof value === 'string'
      ? value
      : Object.entries(value)
          .sort(([left], [right]) => (left < right ? -1 : 1))
          .map(([name, item]) => [name, sorted(item)]);
  return createHash('sha256')
    .update(JSON.stringify([method, path, sorted(form)]))
    .digest('base64');
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > maxBodyBytes) throw invalidRequest('The request is too large.', { status: 413 });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function readJson(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown>;
    }
  } catch {
    // Said below.
  }
  throw invalidRequest('The body must be a JSON object.');
}

function send(response: ServerResponse, status: number, body: string): void {
  if (response.destroyed) return;
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
  });
  response.end(body);
}
