import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import Fastify from 'fastify';
import { callbackHeaders } from '#purchases/callbacks/delivery/callback-headers.ts';
import {
  type Callback,
  CallbackError,
  callbackHandlers,
  type Event,
  type GivenHeaders,
  RefuseCallback,
  type ReplayStore,
  sign,
  type VerifyOptions,
  verifyCallback,
  verifyEvent,
} from '../../sdk/src/index.ts';
import { readCallback } from '../support/callbacks.ts';
import { type Paying, startPaying } from '../support/payments.ts';

const newKey = () => `sig_sandbox_${randomBytes(32).toString('base64url')}`;
const key = newKey();
const callback: Callback = {
  status: 'successful',
  amount: 150_000,
  currency: 'ZAR',
  client_reference_id: 'order-1001 Zoë',
  number_of_payments: 3,
};
const text = JSON.stringify(callback);
const bytes = Buffer.from(text);

const event: Event = {
  event: 'refund.updated',
  id: '0199a8f4-0d3b-7b90-a1c2-6e5d4c3b2a10',
  sequence: 2,
  created_at: '2026-11-15T08:06:10.000Z',
  merchant_id: '0199a8e0-11f2-7c3d-8b4e-2f1a0b9c8d77',
  data: {
    id: '0199b3d0-64e8-7a1b-9c2f-8d7e6f5a4b31',
    type: 'refund_requests',
    attributes: {
      amount: 50_000,
      currency: 'ZAR',
      status: 'complete',
      created_at: '2026-11-15T08:05:00.000Z',
      checkout_id: '0199a8f2-31b4-7c05-8e6d-5f0a9b3c7e24',
    },
  },
};

describe('events', () => {
  const eventText = JSON.stringify(event);
  const post = async (body: string) =>
    new Request('https://shop.example/callback', {
      method: 'POST',
      headers: { 'x-signature': await sign(body, key) },
      body,
    });
  const undated = { requireTimestamp: false };

  test('are verified like the result of a payment, and neither passes for the other', async () => {
    const signature = await sign(eventText, key);
    assert.deepEqual(await verifyEvent(eventText, signature, key, undated), event);
    await assert.rejects(verifyEvent(eventText, signature, newKey(), undated), {
      code: 'signature_mismatch',
    });
    await assert.rejects(verifyCallback(eventText, signature, key, undated), {
      code: 'not_a_callback',
      message: /the event refund\.updated/,
    });
    await assert.rejects(verifyEvent(text, await sign(text, key), key, undated), {
      code: 'not_a_callback',
      message: /verifyCallback/,
    });
    const other = eventText.replace('refund.updated', 'refund.deleted');
    await assert.rejects(verifyEvent(other, await sign(other, key), key, undated), {
      code: 'not_a_callback',
    });
  });

  test('go to onEvent, and are refused without it', async () => {
    const told: Event[] = [];
    const settings = { signingKey: key, ...undated, onCallback() {}, onError() {} };
    const taking = callbackHandlers({ ...settings, onEvent: (one) => told.push(one) });
    assert.equal((await taking.fetch(await post(eventText))).status, 200);
    assert.equal((await taking.fetch(await post(text))).status, 200);
    assert.deepEqual(told, [event]);
    const refused = await callbackHandlers(settings).fetch(await post(eventText));
    assert.equal(refused.status, 400);
    assert.match(await refused.text(), /onEvent/);
  });
});

describe('verifyCallback', () => {
  /** Options for tests that are about the signature alone. */
  const undated = { requireTimestamp: false };

  test('returns the callback if one of the keys signed its bytes', async () => {
    const signature = await sign(bytes, key);
    const bodies = [
      text,
      bytes,
      new Uint8Array(bytes),
      new DataView(Uint8Array.from(bytes).buffer) as unknown as Uint8Array,
      Uint8Array.from(bytes).buffer,
    ];
    for (const body of bodies) {
      for (const keys of [key, [key], [newKey(), key], [key, newKey()]]) {
        assert.deepEqual(await verifyCallback(body, signature, keys, undated), callback);
      }
    }
    assert.deepEqual(await verifyCallback(bytes, [signature], key, undated), callback);
  });

  test('throws for anything else, says why, and never shows a key', async () => {
    const signature = await sign(bytes, key);
    const respelled = JSON.stringify(callback, null, 2);
    const signed = async (body: string) => [body, await sign(body, key), key] as const;
    type Arguments = Parameters<typeof verifyCallback>;
    const cases: [CallbackError['code'], ...Arguments][] = [
      ['signature_missing', bytes, undefined, key],
      ['signature_missing', bytes, null, key],
      ['signature_missing', bytes, '', key],
      ['signature_malformed', bytes, Buffer.from(signature, 'base64').toString('hex'), key],
      ['signature_malformed', bytes, Buffer.from(signature, 'base64').toString('base64url'), key],
      ['signature_malformed', bytes, `${signature}\n`, key],
      ['signature_malformed', bytes, `${signature}, ${signature}`, key],
      ['signature_malformed', bytes, [signature, signature], key],
      ['signature_malformed', bytes, 'AAAA', key],
      // These are the same bytes with non-zero padding bits, which is not canonical Base64.
      ['signature_malformed', bytes, `${signature.slice(0, 85)}B==`, key],
      ['signature_mismatch', bytes, await sign(bytes, newKey()), [key, newKey()]],
      ['signature_mismatch', respelled, signature, key],
      ['signature_mismatch', text.replace('150000', '150001'), signature, key],
      ['signature_mismatch', '', signature, key],
      ['body_already_parsed', callback as unknown as string, signature, key],
      ['body_already_parsed', undefined as unknown as string, signature, key],
      // A request that the merchant itself signed, sent back by an attacker.
      ['not_a_callback', ...(await signed('{"checkout":{"amount":150000}}'))],
      ['not_a_callback', ...(await signed('{"checkout_id":"x","amount":1}'))],
      ['not_a_callback', ...(await signed(text.replace('successful', 'failed')))],
      ['not_a_callback', ...(await signed(text.replace('150000', '"150000"')))],
      ['not_a_callback', ...(await signed('null'))],
      ['not_a_callback', ...(await signed('{'))],
    ];
    for (const [code, ...args] of cases) {
      const error = await verifyCallback(...args).then(
        () => assert.fail(`${code} was taken`),
        (reason) => reason,
      );
      assert.ok(error instanceof CallbackError);
      assert.equal(error.code, code);
      assert.ok(!`${error.stack}`.includes(key));
    }
    assert.match((await rejection(callback)).message, /raw bytes/);
    for (const wrong of [[], '', ['cs_sandbox_x'], `${key}\n`]) {
      await assert.rejects(verifyCallback(bytes, signature, wrong), TypeError);
    }
  });

  const now = Temporal.Instant.from('2026-11-15T08:00:00Z');
  /** The headers that the service sends with the callback at a given moment. */
  const headersAt = (
    seconds: number,
    changes: Partial<Parameters<typeof callbackHeaders>[0]> = {},
  ) =>
    callbackHeaders({
      id: crypto.randomUUID(),
      payload: bytes,
      number: 1,
      key,
      now: now.add({ seconds }),
      ...changes,
    });
  const atNow = (options: VerifyOptions = {}) => ({
    now: () => now.epochMilliseconds,
    ...options,
  });

  test('takes a dated callback within the tolerance, however the headers are given', async () => {
    for (const seconds of [-300, -1, 0, 1, 300]) {
      for (const spell of [
        (headers: Record<string, string>) => headers,
        (headers: Record<string, string>) => new Headers(headers),
        (headers: Record<string, string>) =>
          Object.fromEntries(Object.entries(headers).map(([name, v]) => [name.toUpperCase(), [v]])),
      ]) {
        const given = spell(headersAt(seconds));
        assert.deepEqual(await verifyCallback(bytes, given, [newKey(), key], atNow()), callback);
      }
    }
    const late = headersAt(-3000);
    assert.ok(await verifyCallback(bytes, late, key, atNow({ toleranceSeconds: 3600 })));
    assert.ok(await verifyCallback(bytes, late, key, atNow({ toleranceSeconds: null })));
    const both = headersAt(0);
    both['webhook-signature'] = `v2,AAAA v1,${'A'.repeat(43)}= ${both['webhook-signature']}`;
    assert.ok(await verifyCallback(bytes, both, key, atNow()), 'several signatures');
    const signedOnly = { 'x-signature': await sign(bytes, key) };
    for (const lax of [{ requireTimestamp: false }, { toleranceSeconds: null }]) {
      assert.ok(await verifyCallback(bytes, signedOnly, key, atNow(lax)));
    }
  });

  test('refuses an old, undated or altered date, and the same delivery again', async () => {
    const headers = headersAt(0);
    const late = headersAt(-301);
    const without = (name: string) => ({ ...headers, [name]: undefined });
    const cases: [CallbackError['code'], GivenHeaders, VerifyOptions?][] = [
      ['timestamp_outside_tolerance', late],
      ['timestamp_outside_tolerance', headersAt(301)],
      ['timestamp_outside_tolerance', headersAt(-11), { toleranceSeconds: 10 }],
      // X-Signature is genuine; only webhook-signature covers the date.
      ['signature_mismatch', { ...late, 'webhook-timestamp': headers['webhook-timestamp'] }],
      ['signature_mismatch', { ...headers, 'webhook-id': 'another' }],
      ['signature_mismatch', headersAt(0, { key: newKey() })],
      [
        'signature_mismatch',
        { ...headersAt(0, { key: newKey() }), 'x-signature': headers['x-signature'] },
      ],
      ['signature_mismatch', without('webhook-signature')],
      ['signature_mismatch', { ...headers, 'webhook-signature': 'v1,AAAA' }],
      ['timestamp_malformed', { ...headers, 'webhook-timestamp': '2026-11-15T08:00:00Z' }],
      ['timestamp_malformed', { ...headers, 'webhook-timestamp': ['1', '2'] }],
      ['timestamp_missing', without('webhook-timestamp')],
      ['timestamp_missing', headers['x-signature']],
      [
        'timestamp_missing',
        headers['x-signature'],
        { toleranceSeconds: null, requireTimestamp: true },
      ],
      ['signature_missing', without('x-signature')],
    ];
    for (const [code, given, options] of cases) {
      const error = await verifyCallback(bytes, given, key, atNow(options)).then(
        () => assert.fail(`${code} was taken`),
        (reason) => reason,
      );
      assert.ok(error instanceof CallbackError, String(error));
      assert.equal(error.code, code);
    }
    assert.ok(await verifyCallback(bytes, headers, key, atNow()));
    await assert.rejects(verifyCallback(bytes, headers, key, atNow()), { code: 'replayed' });
    const retried = headersAt(1, { id: headers['webhook-id'] ?? '' });
    assert.ok(await verifyCallback(bytes, retried, key, atNow()), 'a retry has a date of its own');
    for (const wrong of [0, -1, Number.NaN, 86_401, '300' as unknown as number]) {
      await assert.rejects(
        verifyCallback(bytes, headers, key, { toleranceSeconds: wrong }),
        TypeError,
      );
    }
  });

  async function rejection(body: unknown): Promise<Error> {
    return await verifyCallback(body as string, '', key).catch((error) => error);
  }
});

type Seen = { callbacks: Callback[]; errors: unknown[] };

/** One receiver and its stop function. */
type Receiver = Seen & { url: string; close(): unknown };

const receivers: Record<string, (keys: string | string[]) => Promise<Receiver>> = {
  async 'node:http'(keys) {
    const { handlers, seen } = watched(keys);
    return await listen(handlers.node, seen);
  },
  async Express(keys) {
    const { handlers, seen } = watched(keys);
    // Express adds members to Node's objects, which do not matter here. Its third argument does.
    return await listen(
      (request, response) => handlers.express(request, response, ...([() => {}] as never as [])),
      seen,
    );
  },
  async 'Express with express.raw()'(keys) {
    const { handlers, seen } = watched(keys);
    return await listen(async (request, response) => {
      const body = Buffer.concat(await Array.fromAsync<Buffer>(request));
      await handlers.express(Object.assign(request, { body }), response);
    }, seen);
  },
  async Fastify(keys) {
    const { handlers, seen } = watched(keys);
    const app = Fastify({ forceCloseConnections: true });
    await app.register(handlers.fastify, { path: '/callback' });
    // Other routes keep their body parser.
    app.post('/other', async ({ body }) => body);
    const url = await app.listen({ host: '127.0.0.1', port: 0 });
    return { ...seen, url: `${url}/callback`, close: () => app.close() };
  },
  async Fetch(keys) {
    const { handlers, seen } = watched(keys);
    return await listen(viaFetch(handlers.fetch), seen);
  },
  async Hono(keys) {
    const { handlers, seen } = watched(keys);
    const app = (request: Request) => handlers.hono({ req: { raw: request } });
    return await listen(viaFetch(app), seen);
  },
};

function watched(signingKey: string | string[]) {
  const seen: Seen = { callbacks: [], errors: [] };
  const handlers = callbackHandlers({
    requireTimestamp: false,
    signingKey,
    async onCallback(received) {
      if (received.client_reference_id === 'unlucky') throw new Error('the shop is on fire');
      seen.callbacks.push(received);
      if (received.status === 'successful') return { redirect_url: 'https://shop.example/thanks' };
    },
    onError: (error) => seen.errors.push(error),
  });
  return { handlers, seen };
}

async function listen(
  handler: (request: http.IncomingMessage, response: http.ServerResponse) => Promise<void>,
  seen: Seen,
): Promise<Receiver> {
  const server = http.createServer(handler);
  // A pause of this process must not end a connection that is about to be used again.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { ...seen, url: `http://127.0.0.1:${port}/callback`, close };
}

/** An adapter between Node and the Fetch API. */
function viaFetch(app: (request: Request) => Promise<Response>) {
  return async (request: http.IncomingMessage, response: http.ServerResponse) => {
    const chunks = await Array.fromAsync<Buffer>(request);
    const answer = await app(
      new Request('http://shop.example/callback', {
        method: request.method ?? 'GET',
        headers: request.headers as Record<string, string>,
        ...(request.method === 'POST' && { body: Buffer.concat(chunks) }),
      }),
    );
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.end(await answer.text());
  };
}

async function post(url: string, body: string | Buffer, signature?: string): Promise<Response> {
  return await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(signature && { 'x-signature': signature }) },
    body,
  });
}

describe('a handler', () => {
  let paying: Paying;
  before(async () => {
    // Handlers compare the date of a callback with the real clock.
    paying = await startPaying({ start: Temporal.Now.instant().toString() });
  });
  after(() => paying.close());

  for (const [name, start] of Object.entries(receivers)) {
    test(`for ${name} accepts what the service sends and refuses everything else`, async () => {
      const { signing_key } = paying.account;
      const receiver = await start([newKey(), signing_key]);
      try {
        const shopper = await paying.shopper({
          notify_url: receiver.url,
          client_reference_id: `${name} Zoë \u{1F97E}`,
        });
        const page = await shopper.pay(3);
        assert.equal(page.return_url, 'https://shop.example/thanks');
        assert.equal((await readCallback(paying.service, shopper.id)).status, 'delivered');
        assert.deepEqual(receiver.callbacks, [
          {
            status: 'successful',
            amount: 150_000,
            currency: 'ZAR',
            client_reference_id: `${name} Zoë \u{1F97E}`,
            number_of_payments: 3,
          },
        ]);
        const cancelled = await paying.shopper({ notify_url: receiver.url });
        assert.equal((await cancelled.cancel()).return_url, 'https://shop.example/cart');
        assert.deepEqual(receiver.callbacks.map(({ status }) => status).slice(1), ['cancelled']);
        assert.deepEqual(receiver.errors, []);

        const headers = callbackHeaders({
          id: crypto.randomUUID(),
          payload: bytes,
          number: 1,
          key: signing_key,
          now: Temporal.Now.instant(),
        });
        const again = () => fetch(receiver.url, { method: 'POST', headers, body: bytes });
        assert.equal((await again()).status, 200);
        assert.equal((await again()).status, 400, 'the same delivery again');
        assert.match(String(receiver.errors.pop()), /accepted before/);
        assert.equal(receiver.callbacks.pop()?.client_reference_id, callback.client_reference_id);

        const forged = await post(receiver.url, bytes, await sign(bytes, newKey()));
        assert.equal(forged.status, 400);
        assert.match(await forged.text(), /does not match/);
        assert.equal((await post(receiver.url, bytes)).status, 400);
        const signature = await sign(bytes, signing_key);
        const spaced = JSON.stringify(callback, null, 2);
        assert.equal((await post(receiver.url, spaced, signature)).status, 400);
        const large = await post(receiver.url, Buffer.alloc(70_000), signature);
        assert.ok([400, 413].includes(large.status));
        const unlucky = JSON.stringify({ ...callback, client_reference_id: 'unlucky' });
        const failed = await post(receiver.url, unlucky, await sign(unlucky, signing_key));
        assert.equal(failed.status, 500);
        assert.doesNotMatch(await failed.text(), /fire/, 'strangers are not told what went wrong');
        assert.match(String(receiver.errors.at(-1)), /fire/);
        const got = await fetch(receiver.url);
        assert.ok([404, 405].includes(got.status));
        assert.equal(receiver.callbacks.length, 2);
      } finally {
        await receiver.close();
      }
    });
  }
});

describe('whatever onCallback does, the service gets an answer', () => {
  const thrower = (error: unknown) => () => {
    throw error;
  };
  const failed = { error: 'The callback was understood and could not be handled.' };
  const redirect_url = 'https://shop.example/thanks';
  const ring: { self?: object; redirect_url: string } = { redirect_url };
  ring.self = ring;
  const cases: [string, () => unknown, number, object][] = [
    ['returns nothing', () => undefined, 200, {}],
    ['returns null', () => null, 200, {}],
    ['returns an address', async () => ({ redirect_url }), 200, { redirect_url }],
    ['returns a whole order', () => ({ id: 1, email: 'a@b.example' }), 200, {}],
    ['returns more than an address', () => ({ redirect_url, id: 1n }), 200, { redirect_url }],
    ['returns what is not JSON', () => ring, 200, { redirect_url }],
    ['returns an address that is not text', () => ({ redirect_url: { toJSON: 1 } }), 200, {}],
    ['returns text', () => 'ok', 200, {}],
    ['throws', thrower(new Error('fire')), 500, failed],
    ['throws nothing', thrower(undefined), 500, failed],
    ['rejects', () => Promise.reject(new Error('fire')), 500, failed],
    ['refuses', thrower(new RefuseCallback('Not ours.')), 422, { error: 'Not ours.' }],
    ['refuses with a status', thrower(new RefuseCallback('Gone.', 410)), 410, { error: 'Gone.' }],
  ];
  const reporters: Record<string, () => unknown> = {
    works: () => {},
    throws: thrower(new Error('no disk')),
    rejects: () => Promise.reject(new Error('no network')),
  };
  for (const [name, onCallback, status, body] of cases) {
    test(`when it ${name}`, async (context) => {
      const said = context.mock.method(console, 'error', () => {});
      for (const [reporter, onError] of Object.entries(reporters)) {
        const handlers = callbackHandlers({
          requireTimestamp: false,
          signingKey: key,
          onCallback: onCallback as () => undefined,
          onError,
        });
        const node = await listen(handlers.node, { callbacks: [], errors: [] });
        const fetched = await listen(viaFetch(handlers.fetch), { callbacks: [], errors: [] });
        const app = Fastify();
        await app.register(handlers.fastify, {});
        const url = await app.listen({ host: '127.0.0.1', port: 0 });
        for (const each of [node.url, fetched.url, `${url}/callback`]) {
          const answer = await post(each, bytes, await sign(bytes, key));
          assert.deepEqual([answer.status, await answer.json()], [status, body], reporter);
        }
        node.close();
        fetched.close();
        app.server.closeAllConnections();
        await app.close();
      }
      // Three handlers, each with the two failing reporters.
      assert.equal(said.mock.callCount(), status === 200 ? 0 : 6);
    });
  }

  test('and does not throw if other code has already answered', async () => {
    const { handlers, seen } = watched(key);
    const { url, close } = await listen(async (request, response) => {
      response.writeHead(504).end();
      await handlers.node(request, response);
    }, seen);
    assert.equal((await post(url, bytes, await sign(bytes, key))).status, 504);
    close();
  });

  test('and a refusal cannot pass for a success', () => {
    for (const status of [200, 302, 399, 500, 422.5, Number.NaN, '422' as unknown as number]) {
      assert.throws(() => new RefuseCallback('No.', status), TypeError);
    }
  });
});

test('a callback that failed may come again; one that was handled is remembered elsewhere too', async () => {
  const names = new Map<string, number>();
  const replays: ReplayStore = {
    add: async (name, until) => !names.has(name) && !!names.set(name, until),
    remove: async (name) => names.delete(name),
  };
  let fails = true;
  const now = Temporal.Now.instant();
  const handlers = () =>
    callbackHandlers({
      requireTimestamp: false,
      signingKey: key,
      replays,
      onCallback() {
        if (fails) throw new Error('fire');
      },
      onError: () => {},
    });
  const headers = callbackHeaders({ id: 'callback', payload: bytes, number: 1, key, now });
  const deliver = async () => {
    const request = new Request('http://shop.example', { method: 'POST', headers, body: bytes });
    return (await handlers().fetch(request)).status;
  };
  assert.equal(await deliver(), 500);
  fails = false;
  assert.deepEqual([await deliver(), await deliver()], [200, 400]);
  const seconds = Math.floor(now.epochMilliseconds / 1000);
  assert.deepEqual([...names], [[`callback ${seconds}`, (seconds + 301) * 1000]]);
  assert.throws(
    () => callbackHandlers({ signingKey: key, toleranceSeconds: -1, onCallback() {} }),
    TypeError,
  );
});

test('a handler after a body parser says so', async () => {
  const { handlers, seen } = watched(key);
  const parsedFirst = await listen(async (request, response) => {
    const body = JSON.parse(Buffer.concat(await Array.fromAsync<Buffer>(request)).toString());
    await handlers.express(Object.assign(request, { body }), response);
  }, seen);
  const decodedFirst = await listen(async (request, response) => {
    await handlers.node(request.setEncoding('utf8'), response);
  }, seen);
  const usedFirst = await listen(
    viaFetch(async (request) => {
      await request.json();
      return await handlers.fetch(request);
    }),
    seen,
  );
  for (const { url, close } of [parsedFirst, decodedFirst, usedFirst]) {
    const answer = await post(url, bytes, await sign(bytes, key));
    assert.equal(answer.status, 500, 'the callback is retried once that is mended');
    assert.match(await answer.text(), /parsed before its signature could be verified.*raw bytes/);
    close();
  }
  assert.equal(seen.errors.length, 3);
  assert.deepEqual(seen.callbacks, []);
});

test('the handler for Fastify leaves other routes their parser', async () => {
  const { handlers } = watched(key);
  const app = Fastify();
  await app.register(handlers.fastify, {});
  app.post('/other', async ({ body }) => body);
  const payload = { a: 1 };
  assert.deepEqual((await app.inject({ method: 'POST', url: '/other', payload })).json(), payload);
  const headers = { 'content-type': 'application/json', 'x-signature': await sign(bytes, key) };
  const answer = await app.inject({ method: 'POST', url: '/callback', headers, payload: bytes });
  assert.equal(answer.statusCode, 200);
  await app.close();
});
