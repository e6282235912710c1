import assert from 'node:assert/strict';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { manageMerchants } from '#merchants/integrations/manage-merchants.ts';
import { revokeIntegration } from '#merchants/integrations/revoke-integration.ts';
import { setLimit } from '#merchants/integrations/set-limit.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { disableLegacy } from '#purchases/legacy/disable-legacy.ts';
import { enableLegacy } from '#purchases/legacy/enable-legacy.ts';
import { deleteExpiredTokens } from '#purchases/legacy/legacy-token.sql.ts';
import {
  assertLimited,
  assertRefused,
  countStatuses,
  createIntermediary,
  frozenClock,
  inParallel,
  invalidToken,
  randomSecret,
  uuidPattern,
} from '../support/expectations.ts';
import {
  createLegacyCheckout,
  createPlugin,
  credentialsOf,
  enablePlugin,
  legacyBody,
  logIn,
  type Plugin,
  sendLegacy,
  toForm,
} from '../support/legacy.ts';
import { createAccount, type Service, send, startService } from '../support/service.ts';

const clock = frozenClock();
let service: Service;
before(async () => {
  service = await startService({ clock });
});
after(() => service.close());

const invalid = 'The client_id and client_secret are not valid.';
const invalidMerchant =
  'The merchant_id is not the merchant of these credentials, nor one that they manage.';
const tokenNeeded = `${invalidToken} A token is what POST /login answers; after an hour another one is needed.`;

let addresses = 0;
/** An address without failed logins. */
const elsewhere = () => {
  addresses += 1;
  return `198.51.100.${addresses}`;
};

const login = (body: object | string, address = elsewhere()) =>
  sendLegacy(service, '/login', body, { address });

const pay = (token: string, address = elsewhere()) =>
  sendLegacy(service, '/payment/checkout', legacyBody(), { token, address });

const within = () => clock.advance({ seconds: 1 });

describe('a login', () => {
  test('issues a new token for an hour each time, from JSON and from a form', async () => {
    const { plugin } = await createPlugin(service);
    const tokens = new Set<string>();
    for (const body of [credentialsOf(plugin), toForm(credentialsOf(plugin))]) {
      const answer = await login(body);
      assert.equal(answer.status, 200);
      const { token } = answer.body;
      assert.deepEqual(answer.body, { token, token_type: 'Bearer', expires_in: 3600 });
      assert.match(token, /^v1t_sandbox_[\w-]{43}$/);
      assert.equal(answer.headers['cache-control'], 'no-store');
      assert.equal((await pay(token)).status, 200);
      tokens.add(token);
    }
    assert.equal(tokens.size, 2);
  });

  test('stores only a hash of the token', async () => {
    const { account, plugin } = await createPlugin(service);
    const token = await logIn(service, plugin);
    const { rows } = await service.deps.database.pool.query(
      'select * from legacy_tokens where client_id = $1',
      [plugin.client_id],
    );
    const [row] = rows;
    assert.deepEqual(row.token_hash, createHash('sha256').update(token).digest());
    assert.equal(row.merchant_id, account.merchant.id);
    assert.equal(row.expires_at, timestamp(clock.now().add({ hours: 1 })));
    assert.match(plugin.client_id, uuidPattern);
    assert.match(plugin.client_secret, /^v1s_sandbox_[\w-]{43}$/);
  });

  test('with wrong credentials is a 401 that does not say which one is wrong', async () => {
    const { account, plugin } = await createPlugin(service);
    const other = await createPlugin(service);
    const right = credentialsOf(plugin);
    const wrong: [Partial<Plugin>, string][] = [
      [{ client_id: randomUUID() }, invalid],
      [{ client_id: 'shop' }, invalid],
      [{ client_id: '' }, invalid],
      [{ client_id: other.plugin.client_id }, invalid],
      [{ client_id: account.id }, invalid],
      [{ client_secret: '' }, invalid],
      [{ client_secret: `${plugin.client_secret}x` }, invalid],
      [{ client_secret: other.plugin.client_secret }, invalid],
      [{ client_secret: account.signing_key }, invalid],
      [{ client_secret: randomBytes(32).toString('hex') }, invalid],
      [
        { client_secret: account.client_secret },
        `${invalid} This client_secret is one of v2, which needs no login: v1 has its own.`,
      ],
      [
        { client_secret: plugin.client_secret.replace('sandbox', 'production') },
        `${invalid} This client_secret belongs to the production environment and this is sandbox.`,
      ],
      [{ merchant_id: other.plugin.merchant_id }, invalidMerchant],
      [{ merchant_id: randomUUID() }, invalidMerchant],
      [{ merchant_id: 'mine' }, invalidMerchant],
      [{ merchant_id: '' }, invalidMerchant],
    ];
    for (const [change, detail] of wrong) {
      clock.advance({ minutes: 1 });
      assertRefused(await login({ ...right, ...change }), 401, detail);
    }
    assert.equal((await login(right)).status, 200);
    const shouting = { ...right, merchant_id: right.merchant_id.toUpperCase() };
    assert.equal((await login(shouting)).status, 200);
  });

  test('with a missing or malformed field is a 422 that names it', async () => {
    const { plugin } = await createPlugin(service);
    const right = credentialsOf(plugin);
    for (const field of ['client_id', 'client_secret', 'merchant_id'] as const) {
      const { [field]: _, ...rest } = right;
      assertRefused(await login(rest), 422, `Validation failed: ${field} is required.`);
      assertRefused(await login(toForm(rest)), 422, `Validation failed: ${field} is required.`);
      for (const value of [5, null, true, [right[field]], { value: right[field] }]) {
        const answer = await login({ ...right, [field]: value });
        assertRefused(answer, 422, `Validation failed: ${field} must be a string.`);
      }
    }
    const all = ['client_id', 'client_secret', 'merchant_id'];
    const missing = all.map((name) => `Validation failed: ${name} is required.`);
    assertRefused(await login({}), 422, ...missing);
  });

  test('that cannot be read is a 400', async () => {
    for (const [body, headers, detail] of [
      ['', {}, 'The body is empty.'],
      ['[]', {}, 'The body must be a JSON object.'],
      ['{"client_id":1,"client_id":2}', {}, 'The body has the member "client_id" twice.'],
      [
        '{}',
        { 'content-type': 'text/plain' },
        'The Content-Type header must be application/json or application/x-www-form-urlencoded.',
      ],
    ] as const) {
      const answer = await sendLegacy(service, '/login', body, { headers, address: elsewhere() });
      assertRefused(answer, 400, detail);
    }
  });

  test('is POST only; other methods get a 404', async () => {
    for (const url of ['/login', '/payment/checkout']) {
      for (const method of ['GET', 'PUT', 'DELETE', 'HEAD'] as const) {
        assert.equal((await service.app.inject({ method, url })).statusCode, 404);
      }
    }
  });
});

describe('a token', () => {
  test('expires after an hour, to the second', async () => {
    const { plugin } = await createPlugin(service);
    const token = await logIn(service, plugin);
    clock.advance({ seconds: 3599 });
    assert.equal((await pay(token)).status, 200);
    within();
    assertRefused(await pay(token), 401, tokenNeeded);
    assert.equal((await pay(await logIn(service, plugin))).status, 200);
  });

  test('that is forged, cut, changed or missing is refused', async () => {
    const { account, plugin } = await createPlugin(service);
    const token = await logIn(service, plugin);
    const last = token.endsWith('A') ? 'B' : 'A';
    for (const forged of [
      `v1t_sandbox_${randomBytes(32).toString('base64url')}`,
      token.slice(0, -1) + last,
      token.slice(0, -1),
      `${token}A`,
      token.toUpperCase(),
      token.replace('sandbox', 'production'),
      createHash('sha256').update(token).digest('hex'),
      plugin.client_secret,
      account.signing_key,
      'null',
    ]) {
      assertRefused(await pay(forged), 401, tokenNeeded);
    }
    const bare = await sendLegacy(service, '/payment/checkout', legacyBody());
    assertRefused(bare, 401, tokenNeeded);
    assert.equal(bare.headers['www-authenticate'], 'Bearer');
    const basic = await sendLegacy(service, '/payment/checkout', legacyBody(), {
      headers: { authorization: `Basic ${token}` },
    });
    assertRefused(basic, 401, tokenNeeded);
    assert.equal((await pay(token)).status, 200);
  });

  test('of v1 is refused by v2, and a v2 client secret by v1', async () => {
    const { account, plugin } = await createPlugin(service);
    const token = await logIn(service, plugin);
    const detail = `${invalidToken} This is one of v1: v2 takes the client secret of v2 itself.`;
    for (const client_secret of [token, plugin.client_secret]) {
      const intruder = { ...account, client_secret };
      for (const path of ['/api/config', '/api/checkouts', `/api/checkouts/${randomUUID()}`]) {
        assertRefused(await send(service, intruder, 'GET', path), 401, detail);
      }
      for (const path of ['/api/checkouts', '/api/refunds']) {
        const answer = await send(service, intruder, 'POST', path, { body: { checkout: {} } });
        assertRefused(answer, 401, detail);
      }
    }
    assertRefused(
      await pay(account.client_secret),
      401,
      `${invalidToken} This is a client secret of v2: v1 takes the token that POST /login answers.`,
    );
    assertRefused(
      await pay(randomSecret('production')),
      401,
      `${invalidToken} This is a client secret of v2: v1 takes the token that POST /login answers.`,
    );
  });

  test('stops working when v1 is withdrawn or the integration is revoked', async () => {
    for (const end of ['disable', 'revoke'] as const) {
      const { account, plugin } = await createPlugin(service);
      const token = await logIn(service, plugin);
      assert.equal((await pay(token)).status, 200);
      if (end === 'disable') await disableLegacy(service.deps, 'test', account.id);
      else await revokeIntegration(service.deps, 'test', account.id);
      assertRefused(await pay(token), 401, tokenNeeded);
      assertRefused(await login(credentialsOf(plugin)), 401, invalid);
      if (end === 'revoke') continue;
      // New credentials of the same integration do not make the old token valid again.
      const next = await enablePlugin(service, account.id, account.merchant.id);
      assert.notEqual(next.client_id, plugin.client_id);
      assertRefused(await pay(token), 401, tokenNeeded);
      assertRefused(await login(credentialsOf(plugin)), 401, invalid);
      assert.equal((await pay(await logIn(service, next))).status, 200);
    }
  });

  test('of an intermediary is valid for the named merchant, while it is managed', async () => {
    const mine = await createAccount(service);
    const also = await createAccount(service);
    const theirs = await createAccount(service);
    const { id } = await createIntermediary(service, [mine.merchant.id, also.merchant.id]);
    const plugin = await enablePlugin(service, id, mine.merchant.id);
    const token = await logIn(service, plugin);
    const created = await createLegacyCheckout(service, token);
    const read = (account: typeof mine) =>
      send(service, account, 'GET', `/api/checkouts/${created.id}`);
    assert.equal((await read(mine)).status, 200);
    assert.equal((await read(also)).status, 404);
    const stranger = { ...credentialsOf(plugin), merchant_id: theirs.merchant.id };
    assertRefused(await login(stranger), 401, invalidMerchant);

    const change = { id, add: [], remove: [mine.merchant.id] };
    await manageMerchants(service.deps, 'test', change);
    within();
    assertRefused(await pay(token), 401, tokenNeeded);
    const second = await logIn(service, { ...plugin, merchant_id: also.merchant.id });
    assert.equal((await pay(second)).status, 200);
  });

  test('is deleted by the worker once it has expired, and not before', async () => {
    const { plugin } = await createPlugin(service);
    await logIn(service, plugin);
    clock.advance({ minutes: 30 });
    const fresh = await logIn(service, plugin);
    clock.advance({ minutes: 30 });
    const { database } = service.deps;
    while ((await deleteExpiredTokens(database.db, timestamp(clock.now()), 2)) > 0);
    const { rows } = await database.pool.query('select * from legacy_tokens where client_id = $1', [
      plugin.client_id,
    ]);
    assert.equal(rows.length, 1);
    assert.equal((await pay(fresh)).status, 200);
  });
});

describe('logins are limited', () => {
  test('ten failures a minute from one address, which never block the right secret', async () => {
    const { plugin } = await createPlugin(service);
    const address = elsewhere();
    const guess = () => login({ ...credentialsOf(plugin), client_id: randomUUID() }, address);
    for (let count = 0; count < 10; count += 1) assert.equal((await guess()).status, 401);
    assertLimited(await guess(), 60);
    assertLimited(await login({}, address), 60);
    assert.equal((await login(credentialsOf(plugin), address)).status, 200);
    clock.advance({ minutes: 1 });
    assert.equal((await guess()).status, 401);
  });

  test('a malformed login counts as a failure', async () => {
    const address = elsewhere();
    const statuses: number[] = [];
    for (const body of ['', '{', '[]', '{}', {}, toForm({}), toForm({ a: 1 }), '', '', '', '']) {
      statuses.push((await login(body, address)).status);
    }
    assert.deepEqual(statuses, [400, 400, 400, 422, 422, 422, 422, 400, 400, 400, 429]);
  });

  test('ten failures a minute for one client_id from any address', async () => {
    const { plugin } = await createPlugin(service);
    const guess = () =>
      login({ ...credentialsOf(plugin), client_secret: randomBytes(32).toString('hex') });
    for (let count = 0; count < 10; count += 1) assert.equal((await guess()).status, 401);
    assertLimited(await guess(), 60);
    assert.equal((await login(credentialsOf(plugin))).status, 200);
  });

  test('an IPv6 network of one customer counts as one address', async () => {
    const guess = (host: number) => login({}, `2001:db8:1:2::${host.toString(16)}`);
    for (let count = 0; count < 10; count += 1) assert.equal((await guess(count)).status, 422);
    assertLimited(await guess(10), 60);
    assert.equal((await login({}, '2001:db8:1:3::1')).status, 422);
  });

  test('exactly sixty successes a minute per client_id and address; an operator may allow more', async () => {
    const { account, plugin } = await createPlugin(service, { limits: 'spec' });
    const address = elsewhere();
    const ask = () => login(credentialsOf(plugin), address);
    const answers = await inParallel(75, ask);
    assert.deepEqual(countStatuses(answers), { 200: 60, 429: 15 });
    assertLimited(await ask(), 60);
    assert.equal((await login(credentialsOf(plugin))).status, 200);
    await setLimit(service.deps, 'test', {
      id: account.id,
      endpoint: 'POST /login',
      max_requests: 100,
      window_seconds: 60,
    });
    assert.equal((await ask()).status, 200);
  });

  test('the logins of an intermediary for one merchant do not block those for another', async () => {
    const busy = await createAccount(service);
    const quiet = await createAccount(service);
    const { id } = await createIntermediary(service, [busy.merchant.id, quiet.merchant.id]);
    const plugin = await enablePlugin(service, id, busy.merchant.id);
    const address = elsewhere();
    await setLimit(service.deps, 'test', {
      id,
      endpoint: 'POST /login',
      max_requests: 1,
      window_seconds: 60,
    });
    assert.equal((await login(credentialsOf(plugin), address)).status, 200);
    assertLimited(await login(credentialsOf(plugin), address), 60);
    const other = { ...credentialsOf(plugin), merchant_id: quiet.merchant.id };
    assert.equal((await login(other, address)).status, 200);
  });

  test('forged tokens count as failed authentications', async () => {
    const address = elsewhere();
    for (let count = 0; count < 60; count += 1) {
      assert.equal((await pay('v1t_sandbox_none', address)).status, 401);
    }
    assertLimited(await pay('v1t_sandbox_none', address), 60);
    const { plugin } = await createPlugin(service);
    assert.equal((await pay(await logIn(service, plugin), address)).status, 200);
  });

  test('checkouts share the limit of POST /api/checkouts with v2', async () => {
    const { account, plugin } = await createPlugin(service, { limits: 'spec' });
    const token = await logIn(service, plugin);
    assert.equal((await pay(token)).status, 200);
    assertLimited(await pay(token), 1);
    assertLimited(await send(service, account, 'POST', '/api/checkouts', { body: {} }), 1);
    within();
    assert.equal(
      (await send(service, account, 'POST', '/api/checkouts', { body: {} })).status,
      422,
    );
    assertLimited(await pay(token), 1);
  });
});

describe('concurrent requests', () => {
  test('fifty logins get fifty valid tokens', async () => {
    const { plugin } = await createPlugin(service);
    const tokens = await inParallel(50, () => logIn(service, plugin));
    assert.equal(new Set(tokens).size, 50);
    const answers = await Promise.all(tokens.map((token) => pay(token)));
    assert.deepEqual(countStatuses(answers), { 200: 50 });
  });

  test('logins while v1 is withdrawn: their tokens do not work afterwards', async () => {
    const { account, plugin } = await createPlugin(service);
    const [answers] = await Promise.all([
      inParallel(40, () => login(credentialsOf(plugin))),
      disableLegacy(service.deps, 'test', account.id),
    ]);
    for (const { status, body } of answers) {
      assert.ok([200, 401, 429].includes(status), String(status));
      if (status === 200) assertRefused(await pay(body.token), 401, tokenNeeded);
    }
  });

  test('checkouts while v1 is withdrawn: each is created completely or is a 401', async () => {
    const { account, plugin } = await createPlugin(service);
    const token = await logIn(service, plugin);
    const [answers] = await Promise.all([
      inParallel(40, () => pay(token)),
      disableLegacy(service.deps, 'test', account.id),
    ]);
    const { 200: created = 0, 401: refused = 0 } = countStatuses(answers);
    assert.equal(created + refused, 40);
    const { rows } = await service.deps.database.pool.query(
      'select id from checkouts where merchant_id = $1',
      [account.merchant.id],
    );
    assert.equal(rows.length, created);
  });

  test('two operators who enable v1: one issues credentials, the other is refused', async () => {
    const account = await createAccount(service);
    const results = await Promise.allSettled(
      ['one', 'two', 'three'].map((name) => enableLegacy(service.deps, name, account.id)),
    );
    assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1);
    for (const result of results) {
      if (result.status === 'rejected') assert.match(result.reason.message, /^v1 is enabled/);
    }
  });
});
