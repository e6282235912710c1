import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { createIntegration } from '#merchants/integrations/create-integration.ts';
import { insertLimit } from '#merchants/integrations/integration.sql.ts';
import {
  assertLimited,
  assertRefused,
  countStatuses,
  createIntermediary,
  frozenClock,
  inParallel,
  invalidToken,
  randomSecret,
} from '../support/expectations.ts';
import {
  type Account,
  type Answer,
  checkoutBody,
  createAccount,
  createCheckout,
  type Service,
  send,
  startService,
} from '../support/service.ts';

type Request = ['GET' | 'POST', string, object?];

/**
 * Requests with the number that a window allows and its seconds, from the contract's table and
 * ours. Every request counts, so the answers do not matter here.
 */
const table: [Request, number, number][] = [
  [['GET', '/api/config'], 5, 3600],
  [['GET', `/api/merchants/${randomUUID()}/config`], 5, 3600],
  [['POST', '/api/checkouts', checkoutBody()], 1, 1],
  [['GET', '/api/checkouts'], 1, 60],
  [['GET', `/api/checkouts/${randomUUID()}`], 5, 60],
  [['POST', '/api/refunds', { checkout_id: randomUUID(), amount: 1 }], 1, 1],
  [['GET', '/api/refunds'], 1, 60],
  [['GET', `/api/refunds/${randomUUID()}`], 5, 60],
  [['POST', '/api/payment-links', {}], 1, 1],
  [['GET', '/api/payment-links'], 1, 60],
  [['GET', `/api/payment-links/${randomUUID()}`], 5, 60],
  [['GET', '/api/payouts'], 1, 60],
  [['GET', `/api/payouts/${randomUUID()}`], 5, 60],
];

for (const rateLimitStore of ['memory', 'postgres'] as const) {
  describe(`counts in ${rateLimitStore}`, () => {
    const clock = frozenClock();
    let service: Service;
    before(async () => {
      service = await startService({ clock, rateLimitStore });
    });
    after(() => service.close());

    const request = (caller: Account, [method, path, body]: Request, on = service) =>
      send(on, caller, method, path, body ? { body } : {});

    for (const [one, max, windowSeconds] of table) {
      const name = `${one[0]} ${one[1].replace(/[0-9a-f-]{36}/, '{id}')}`;
      test(`${name}: ${max} in ${windowSeconds} s, from the first request on`, async () => {
        const caller = await createAccount(service, { limits: 'spec' });
        for (let count = 0; count < max; count++) {
          assert.notEqual((await request(caller, one)).status, 429);
        }
        const refused = await request(caller, one);
        assertLimited(refused, windowSeconds);
        assert.equal(refused.headers['retry-after'], String(windowSeconds));
        clock.advance({ milliseconds: windowSeconds * 1000 - 1 });
        const late = await request(caller, one);
        assertLimited(late, windowSeconds);
        assert.equal(late.headers['retry-after'], '1');
        clock.advance({ milliseconds: 1 });
        for (let count = 0; count < max; count++) {
          assert.notEqual((await request(caller, one)).status, 429);
        }
        assertLimited(await request(caller, one), windowSeconds);
      });

      test(`${name}: exact under concurrency`, async () => {
        const caller = await createAccount(service, { limits: 'spec' });
        const answers = await inParallel(40, () => request(caller, one));
        assert.equal(countStatuses(answers)[429], 40 - max);
      });
    }

    test('endpoints and integrations have windows of their own', async () => {
      const caller = await createAccount(service, { limits: 'spec' });
      const second = await createIntegration(service.deps, 'test', {
        merchant_id: caller.merchant.id,
        refund_mode: 'manual',
      });
      for (const [one, max] of table) {
        for (let count = 0; count < max; count++) await request(caller, one);
      }
      for (const [one, , windowSeconds] of table) {
        assertLimited(await request(caller, one), windowSeconds);
        const fresh = await request({ ...second, merchant: caller.merchant }, one);
        assert.notEqual(fresh.status, 429);
      }
    });

    test('a window does not slide: it begins with its first request', async () => {
      const caller = await createAccount(service, { limits: 'spec' });
      for (let count = 0; count < 5; count++) {
        assert.equal((await request(caller, ['GET', '/api/config'])).status, 200);
        clock.advance({ minutes: 14 });
      }
      // 70 minutes have passed since the first request, so a new window has begun.
      for (let count = 0; count < 5; count++) {
        assert.equal((await request(caller, ['GET', '/api/config'])).status, 200);
      }
      assertLimited(await request(caller, ['GET', '/api/config']), 3600);
    });

    test('Retry-After says how many whole seconds are left', async () => {
      const caller = await createAccount(service, { limits: 'spec' });
      await request(caller, ['GET', '/api/checkouts']);
      for (const [milliseconds, left] of [
        [0, 60],
        [500, 60],
        [500, 59],
        [29_000, 30],
        [29_100, 1],
      ] as const) {
        clock.advance({ milliseconds });
        const answer = await request(caller, ['GET', '/api/checkouts']);
        assertLimited(answer, 60);
        assert.equal(answer.headers['retry-after'], String(left));
      }
    });

    test("an operator's limit replaces the contract's", async () => {
      const caller = await createAccount(service, { limits: 'spec' });
      const limit = async (endpoint: string, max_requests: number, window_seconds: number) => {
        const change = { integration_id: caller.id, endpoint, max_requests, window_seconds };
        await insertLimit(service.deps.database.db, change);
      };
      await limit('POST /api/checkouts', 3, 10);
      await limit('GET /api/config', 0, 30);
      const statuses = [];
      for (let count = 0; count < 4; count++) {
        statuses.push((await request(caller, ['POST', '/api/checkouts', checkoutBody()])).status);
      }
      assert.deepEqual(statuses, [200, 200, 200, 429]);
      assertLimited(await request(caller, ['POST', '/api/checkouts', checkoutBody()]), 10);
      assertLimited(await request(caller, ['GET', '/api/config']), 30);
      clock.advance({ seconds: 10 });
      await limit('GET /api/config', 1, 30);
      assert.equal((await request(caller, ['POST', '/api/checkouts', checkoutBody()])).status, 200);
    });

    test('a limited request has no effect', async () => {
      const caller = await createAccount(service, { limits: 'spec' });
      const answers = await inParallel(10, () =>
        request(caller, ['POST', '/api/checkouts', checkoutBody()]),
      );
      assert.deepEqual(countStatuses(answers), { 200: 1, 429: 9 });
      const { body } = await request(caller, ['GET', '/api/checkouts']);
      assert.equal(body.data.length, 1);
    });

    test('failed authentications: 60 a minute per address, exact under concurrency', async () => {
      const attempt = async (remoteAddress: string, secret = randomSecret('sandbox')) => {
        const response = await service.app.inject({
          url: '/api/config',
          remoteAddress,
          headers: { authorization: `Bearer ${secret}` },
        });
        return {
          status: response.statusCode,
          body: response.json(),
          headers: response.headers,
        } as Answer;
      };
      const answers = await inParallel(90, () => attempt('192.0.2.1'));
      assert.deepEqual(countStatuses(answers), { 401: 60, 429: 30 });
      for (const answer of answers) {
        if (answer.status === 401) assertRefused(answer, 401, invalidToken);
        else assertLimited(answer, 60);
      }
      // A valid secret from the same address still works, and a failure from another address is
      // still answered.
      const caller = await createAccount(service);
      assert.equal((await attempt('192.0.2.1', caller.client_secret)).status, 200);
      assert.equal((await attempt('192.0.2.2')).status, 401);
      // Valid secrets never count as failures.
      const many = await inParallel(70, () => attempt('192.0.2.3', caller.client_secret));
      assert.deepEqual(countStatuses(many), { 200: 70 });
      assert.equal((await attempt('192.0.2.3')).status, 401);
      // A missing header and a secret of the other environment count as failures.
      assertLimited(await attempt('192.0.2.1', ''), 60);
      assertLimited(await attempt('192.0.2.1', randomSecret('production')), 60);
      clock.advance({ seconds: 60 });
      assert.equal((await attempt('192.0.2.1')).status, 401);
    });
  });
}

describe('every answer that was counted shows what is left', () => {
  const clock = frozenClock();
  let service: Service;
  before(async () => {
    service = await startService({ clock });
  });
  after(() => service.close());

  const quotaOf = ({ headers }: Answer) =>
    ['limit', 'remaining', 'reset'].map((name) => Number(headers[`ratelimit-${name}`]));

  test('of the endpoint, down to the 429 and after the window', async () => {
    const caller = await createAccount(service, { limits: 'spec' });
    const read = () => send(service, caller, 'GET', `/api/checkouts/${randomUUID()}`);
    for (const remaining of [4, 3, 2, 1, 0]) {
      const answer = await read();
      assert.equal(answer.status, 404);
      assert.deepEqual(quotaOf(answer), [5, remaining, 60]);
    }
    clock.advance({ seconds: 20 });
    const limited = await read();
    assert.equal(limited.status, 429);
    assert.deepEqual(quotaOf(limited), [5, 0, 40]);
    clock.advance({ seconds: 40 });
    assert.deepEqual(quotaOf(await read()), [5, 4, 60]);
  });

  test('also on a malformed body, a wrong signature and a replay', async () => {
    const caller = await createAccount(service, { limits: 'spec' });
    const create = async (options: Parameters<typeof send>[4]) => {
      clock.advance({ seconds: 1 });
      return quotaOf(await send(service, caller, 'POST', '/api/checkouts', options));
    };
    const headers = { 'idempotency-key': 'k' };
    assert.deepEqual(await create({ body: '{' }), [1, 0, 1]);
    assert.deepEqual(
      await create({ body: checkoutBody(), headers: { 'x-signature': 'x' } }),
      [1, 0, 1],
    );
    assert.deepEqual(await create({ body: checkoutBody(), headers }), [1, 0, 1]);
    assert.deepEqual(await create({ body: checkoutBody(), headers }), [1, 0, 1]);
  });

  test('of the address, on a failed authentication', async () => {
    const response = await service.app.inject({ url: '/api/config', remoteAddress: '192.0.2.77' });
    assert.equal(response.headers['ratelimit-limit'], '60');
    assert.equal(response.headers['ratelimit-remaining'], '59');
  });
});

describe('every authenticated request counts, whatever its answer', () => {
  const clock = frozenClock();
  let service: Service;
  before(async () => {
    service = await startService({ clock });
  });
  after(() => service.close());

  const postText = (
    caller: Account,
    path: string,
    body: string,
    headers: Record<string, string> = {},
  ) => send(service, caller, 'POST', path, { body, signed: false, headers });

  for (const [name, path, body, status, headers] of [
    ['malformed JSON', '/api/checkouts', '{', 400],
    ['an empty body', '/api/refunds', '', 400],
    ['a body that is too large', '/api/checkouts', ' '.repeat(300_000), 400],
    ['a wrong Content-Type', '/api/checkouts', '{}', 400, { 'content-type': 'text/plain' }],
    ['a malformed Content-Type', '/api/checkouts', '{}', 400, { 'content-type': 'json' }],
    ['a wrong signature', '/api/checkouts', '{"checkout":{}}', 400, { 'x-signature': 'x' }],
    ['a bad Idempotency-Key', '/api/refunds', '{}', 400, { 'idempotency-key': '' }],
    ['a bad field', '/api/checkouts', '{"checkout":{}}', 422],
    ['a bad field', '/api/refunds', '{}', 422],
    ['an unknown checkout', '/api/refunds', '{"checkout_id":"x","amount":1}', 404],
  ] as [string, string, string, number, Record<string, string>?][]) {
    test(`${path}: ${name} (${status})`, async () => {
      const caller = await createAccount(service, { limits: 'spec' });
      assert.equal((await postText(caller, path, body, headers)).status, status);
      assertLimited(await postText(caller, path, body, headers), 1);
    });
  }

  for (const [path, status, max, windowSeconds] of [
    ['/api/checkouts?page[number]=0', 400, 1, 60],
    ['/api/refunds?page[items]=abc', 400, 1, 60],
    ['/api/checkouts/nonsense', 404, 5, 60],
    ['/api/refunds/nonsense', 404, 5, 60],
    ['/api/merchants/nonsense/config', 404, 5, 3600],
  ] as const) {
    test(`GET ${path} (${status})`, async () => {
      const caller = await createAccount(service, { limits: 'spec' });
      for (let count = 0; count < max; count++) {
        assert.equal((await send(service, caller, 'GET', path)).status, status);
      }
      assertLimited(await send(service, caller, 'GET', path), windowSeconds);
    });
  }

  test('a replayed answer counts too, and a 429 leaves the key free', async () => {
    const caller = await createAccount(service, { limits: 'spec' });
    const create = (key: string) =>
      send(service, caller, 'POST', '/api/checkouts', {
        body: checkoutBody(),
        headers: { 'idempotency-key': key },
      });
    const first = await create('a');
    assertLimited(await create('a'), 1);
    assertLimited(await create('b'), 1);
    clock.advance({ seconds: 1 });
    const replay = await create('a');
    assert.deepEqual(replay.body, first.body);
    assertLimited(await create('b'), 1);
    clock.advance({ seconds: 1 });
    const other = await create('b');
    assert.equal(other.status, 200);
    assert.equal(other.headers['idempotent-replayed'], undefined);
  });
});

test('limits are exact across two processes on one database', async () => {
  const clock = frozenClock();
  const first = await startService({ clock, rateLimitStore: 'postgres' });
  const second = await startService({
    clock,
    rateLimitStore: 'postgres',
    databaseUrl: first.databaseUrl,
  });
  try {
    const callers = await inParallel(3, () => createAccount(first, { limits: 'spec' }));
    await inParallel(3, async (index) => {
      const caller = callers[index] as Account;
      for (const [one, max] of table) {
        const [method, path, body] = one;
        const answers = await inParallel(30, (count) =>
          send(count % 2 ? first : second, caller, method, path, body ? { body } : {}),
        );
        assert.equal(countStatuses(answers)[429], 30 - max, `${method} ${path}`);
      }
    });
  } finally {
    await second.close();
    await first.close();
  }
});

describe('an intermediary', () => {
  const clock = frozenClock();
  let service: Service;
  let shops: Account[];
  before(async () => {
    service = await startService({ clock });
    shops = await inParallel(3, () => createAccount(service));
  });
  after(() => service.close());

  const merchantId = (index: number) => shops[index]?.merchant.id as string;
  const managing = () =>
    createIntermediary(service, [merchantId(0), merchantId(1)], { limits: 'spec' });
  const checkoutFor = (merchant_id: unknown) => ({ body: checkoutBody({ merchant_id }) });

  test('has a window per merchant that it manages, on every endpoint', async () => {
    const caller = await managing();
    const checkouts: string[] = [];
    for (const index of [0, 1]) {
      const answer = await send(
        service,
        caller,
        'POST',
        '/api/checkouts',
        checkoutFor(merchantId(index)),
      );
      assert.equal(answer.status, 200);
      checkouts.push(answer.body.data.id);
    }
    const requests = (index: number): [Request, number, number, number][] => [
      [['GET', `/api/merchants/${merchantId(index)}/config`], 5, 3600, 200],
      [['GET', `/api/checkouts/${checkouts[index]}`], 5, 60, 200],
      [['GET', `/api/checkouts?filter[merchant_id]=${merchantId(index)}`], 1, 60, 200],
      [['GET', `/api/refunds?filter[merchant_id]=${merchantId(index)}`], 1, 60, 200],
      [['POST', '/api/refunds', { checkout_id: checkouts[index], amount: 1 }], 1, 1, 422],
    ];
    for (const index of [0, 1]) {
      for (const [[method, path, body], max, windowSeconds, status] of requests(index)) {
        const one = () => send(service, caller, method, path, body ? { body } : {});
        for (let count = 0; count < max; count++) assert.equal((await one()).status, status);
        assertLimited(await one(), windowSeconds);
      }
      const again = checkoutFor(merchantId(index));
      assertLimited(await send(service, caller, 'POST', '/api/checkouts', again), 1);
    }
  });

  test('gets no new window by spelling a merchant differently or by naming one that it does not manage', async () => {
    const caller = await managing();
    const config = (id: string) => send(service, caller, 'GET', `/api/merchants/${id}/config`);
    for (let count = 0; count < 5; count++) {
      const id = count % 2 ? merchantId(0) : merchantId(0).toUpperCase();
      assert.equal((await config(id)).status, 200);
    }
    assertLimited(await config(merchantId(0)), 3600);
    // All merchants that the intermediary does not manage share one window.
    for (const id of [randomUUID(), 'x', merchantId(2), randomUUID(), '%00']) {
      assert.equal((await config(id)).status, 404);
    }
    assertLimited(await config(randomUUID()), 3600);
    assertLimited(await config(merchantId(2)), 3600);
    assert.equal((await config(merchantId(1))).status, 200);

    const create = (merchant_id: unknown) =>
      send(service, caller, 'POST', '/api/checkouts', checkoutFor(merchant_id));
    assert.equal((await create(randomUUID())).status, 404);
    assertLimited(await create(randomUUID()), 1);
    assertLimited(await create(undefined), 1);
    assertLimited(await create(5), 1);
    assert.equal((await create(merchantId(0))).status, 200);

    const get = (id: string) => send(service, caller, 'GET', `/api/checkouts/${id}`);
    const foreign = await createCheckout(service, shops[2] as Account);
    for (const id of [foreign, randomUUID(), 'x', foreign, randomUUID()]) {
      assert.equal((await get(id)).status, 404);
    }
    assertLimited(await get(randomUUID()), 60);
  });

  test('has ten large bodies a second parsed, whatever merchants they name', async () => {
    const shop = await createAccount(service, { limits: 'spec' });
    const caller = await createIntermediary(service, [shop.merchant.id], { limits: 'spec' });
    const large = { body: `{"checkout":${' '.repeat(40 * 1024)}{"merchant_id":` };
    const answers = await inParallel(15, () =>
      send(service, caller, 'POST', '/api/checkouts', large),
    );
    // Requests that name no merchant have one window of their own.
    assert.deepEqual(countStatuses(answers), { 400: 1, 429: 14 });
    const limits = answers.map(({ headers }) => Number(headers['ratelimit-limit']));
    assert.equal(limits.filter((limit) => limit === 10).length, 5);
    const small = await send(
      service,
      caller,
      'POST',
      '/api/checkouts',
      checkoutFor(shop.merchant.id),
    );
    assert.equal(small.status, 200);
  });

  test("does not use up the merchant's own windows", async () => {
    const shop = await createAccount(service, { limits: 'spec' });
    const caller = await createIntermediary(service, [shop.merchant.id], { limits: 'spec' });
    const path = `/api/checkouts?filter[merchant_id]=${shop.merchant.id}`;
    assert.equal((await send(service, caller, 'GET', path)).status, 200);
    assert.equal((await send(service, shop, 'GET', '/api/checkouts')).status, 200);
  });
});

describe('the address of a client', () => {
  async function failures(
    service: Service,
    count: number,
    remoteAddress: string,
    forwarded?: (index: number) => string,
  ): Promise<Record<number, number>> {
    const answers = await inParallel(count, async (index) => {
      const response = await service.app.inject({
        url: '/api/config',
        remoteAddress,
        headers: forwarded ? { 'x-forwarded-for': forwarded(index) } : {},
      });
      return { status: response.statusCode, body: null, headers: {} };
    });
    return countStatuses(answers);
  }

  async function using(env: NodeJS.ProcessEnv, body: (service: Service) => Promise<void>) {
    const service = await startService({ env, clock: frozenClock() });
    try {
      await body(service);
    } finally {
      await service.close();
    }
  }

  test('is that of the connection: by default a forwarded address is ignored', () =>
    using({}, async (service) => {
      const forwarded = (index: number) => `203.0.113.${index}`;
      assert.deepEqual(await failures(service, 70, '192.0.2.1', forwarded), { 401: 60, 429: 10 });
    }));

  test('is the forwarded one behind the proxies that TRUST_PROXY names, and only those', () =>
    using({ TRUST_PROXY: '10.0.0.0/8' }, async (service) => {
      const forwarded = (index: number) => `203.0.113.${index}`;
      assert.deepEqual(await failures(service, 70, '10.1.2.3', forwarded), { 401: 70 });
      assert.deepEqual(await failures(service, 70, '10.1.2.4', () => '198.51.100.1'), {
        401: 60,
        429: 10,
      });
      // The proxy appends the address that it saw. The entries before it were written by the
      // client, and are ignored.
      const chosen = (index: number) => `1.2.3.${index}, 198.51.100.1`;
      assert.deepEqual(await failures(service, 5, '10.1.2.3', chosen), { 429: 5 });
      assert.deepEqual(await failures(service, 70, '192.0.2.1', forwarded), { 401: 60, 429: 10 });
    }));

  test('is the last forwarded one under TRUST_PROXY=true, whatever the client writes before it', () =>
    using({ TRUST_PROXY: 'true' }, async (service) => {
      const rotating = (index: number) => `203.0.113.${index}, 198.51.100.7`;
      assert.deepEqual(await failures(service, 70, '10.0.0.1', rotating), { 401: 60, 429: 10 });
      assert.deepEqual(await failures(service, 1, '10.0.0.1', () => '198.51.100.8'), { 401: 1 });
    }));

  for (const trust of ['true', '1', '10.0.0.0/8']) {
    test(`is that of the proxy when the forwarded one is not an address: TRUST_PROXY=${trust}`, () =>
      using({ TRUST_PROXY: trust, RATE_LIMIT_STORE: 'postgres' }, async (service) => {
        const garbage = (index: number) => `${index}${'x'.repeat(6_600)}`;
        assert.deepEqual(await failures(service, 70, '10.0.0.2', garbage), { 401: 60, 429: 10 });
      }));
  }

  test('is counted without the zone that a client may invent', () =>
    using({ TRUST_PROXY: '1', RATE_LIMIT_STORE: 'postgres' }, async (service) => {
      const zoned = (index: number) =>
        `fe80::1%${index}.${Array.from({ length: 300 }, randomUUID).join('')}`;
      assert.deepEqual(await failures(service, 70, '10.0.0.3', zoned), { 401: 60, 429: 10 });
    }));

  test('is the same in every spelling', () =>
    using({ TRUST_PROXY: '1' }, async (service) => {
      const spellings = ['2001:db8::1', '2001:0DB8::1', '2001:db8:0:0:0::7', '[2001:db8::9]:443'];
      const spelled = (index: number) => spellings[index % spellings.length] as string;
      assert.deepEqual(await failures(service, 70, '10.0.0.1', spelled), { 401: 60, 429: 10 });
      const mapped = (index: number) =>
        ['198.51.100.4', '::ffff:198.51.100.4', '::ffff:c633:6404'][index % 3] as string;
      assert.deepEqual(await failures(service, 70, '10.0.0.1', mapped), { 401: 60, 429: 10 });
    }));

  test('is counted without the port that a proxy adds', () =>
    using({ TRUST_PROXY: '1' }, async (service) => {
      const ported = (index: number) => `198.51.100.9:${1024 + index}`;
      assert.deepEqual(await failures(service, 70, '10.0.0.1', ported), { 401: 60, 429: 10 });
      const bare = () => '198.51.100.9';
      assert.deepEqual(await failures(service, 1, '10.0.0.1', bare), { 429: 1 });
    }));

  test('counts one IPv6 customer once, whichever of its addresses it uses', () =>
    using({ TRUST_PROXY: '1' }, async (service) => {
      const sameNetwork = (index: number) => `2001:db8:1:2:${index.toString(16)}::9`;
      assert.deepEqual(await failures(service, 70, '10.0.0.1', sameNetwork), { 401: 60, 429: 10 });
      const short = () => '2001:db8:1:2::1';
      assert.deepEqual(await failures(service, 3, '10.0.0.1', short), { 429: 3 });
      const others = (index: number) => `2001:db8:1:${(index + 3).toString(16)}::9`;
      assert.deepEqual(await failures(service, 70, '10.0.0.1', others), { 401: 70 });
    }));
});
