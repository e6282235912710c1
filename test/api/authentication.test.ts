import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { pino } from 'pino';
import { buildApp } from '#app.ts';
import { insertClientSecret, moveExpiry } from '#merchants/integrations/credential.sql.ts';
import { moveRevoked } from '#merchants/integrations/integration.sql.ts';
import { hashClientSecret } from '#merchants/integrations/integration.ts';
import { timestamp } from '#platform/shared/clock.ts';
import {
  assertRefused,
  everyEndpoint,
  frozenClock,
  invalidToken,
  nothingHere,
  randomSecret,
} from '../support/expectations.ts';
import {
  type Account,
  type Answer,
  checkoutBody,
  createAccount,
  type Service,
  send,
  startService,
} from '../support/service.ts';

const clock = frozenClock();
let service: Service;
let account: Account;
before(async () => {
  service = await startService({ clock });
  account = await createAccount(service);
});
after(() => service.close());

let address = 0;
/** Sends each request from a new address, so that the limit on failures is never reached. */
async function request(
  authorization: string | undefined,
  [method, url, body]: (typeof everyEndpoint)[number] = ['GET', '/api/config'],
): Promise<Answer> {
  address += 1;
  const response = await service.app.inject({
    method,
    url,
    remoteAddress: `198.51.${address >> 8}.${address & 255}`,
    headers: {
      ...(authorization !== undefined && { authorization }),
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { payload: body }),
  });
  return { status: response.statusCode, body: response.json(), headers: response.headers };
}

describe('without a valid Bearer token every endpoint answers 401', () => {
  for (const endpoint of everyEndpoint) {
    test(`${endpoint[0]} ${endpoint[1].replace(/[0-9a-f-]{36}/, '{id}')}`, async () => {
      for (const authorization of [undefined, `Bearer ${randomSecret('sandbox')}`]) {
        assertRefused(await request(authorization, endpoint), 401, invalidToken);
      }
    });
  }
});

test('an unauthenticated caller learns nothing about the body, the path or the resource', async () => {
  const response = await service.app.inject({
    method: 'POST',
    url: '/api/checkouts',
    headers: { 'content-type': 'text/plain' },
    payload: '{{{',
  });
  assert.equal(response.statusCode, 401);
});

describe('a header that is not a Bearer token is refused', () => {
  for (const header of [
    '',
    'Bearer',
    'Bearer ',
    'Basic <secret>',
    '<secret>',
    'Bearer<secret>',
    'Bearer <secret>x',
    'Bearer x<secret>',
    'Bearer <secret> <secret>',
    'Bearer "<secret>"',
    'Bearer <SECRET>',
    'Bearer <prefix>',
    'Bearer <id>',
    'Bearer null',
    `Bearer ${'a'.repeat(4_000)}`,
    'Bearer \u00ff\u00fe',
    "Bearer ' or true --",
  ]) {
    test(header.slice(0, 40) || 'nothing', async () => {
      const authorization = header
        .replaceAll('<secret>', account.client_secret)
        .replaceAll('<SECRET>', account.client_secret.toUpperCase())
        .replaceAll('<prefix>', account.client_secret.slice(0, -1))
        .replaceAll('<id>', account.id)
        .replaceAll('<signing_key>', account.signing_key);
      assertRefused(await request(authorization), 401, invalidToken);
    });
  }
});

test('the scheme is recognised in any case', async () => {
  for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
    assert.equal((await request(`${scheme} ${account.client_secret}`)).status, 200);
  }
});

test('the refusal recognises a signing key', async () => {
  assertRefused(
    await request(`Bearer ${account.signing_key}`),
    401,
    `${invalidToken} This is the signing key, which only signs. The Bearer token is the client secret, which begins with cs_.`,
  );
});

test('the refusal names the other environment of a client secret', async () => {
  assertRefused(
    await request(`Bearer ${randomSecret('production')}`),
    401,
    `${invalidToken} This client secret belongs to the production environment and this is sandbox.`,
  );
  const production = await startService({
    env: { TRANCHE_ENV: 'production', BASE_URL: 'https://pay.example' },
  });
  try {
    const answer = await send(production, account, 'GET', '/api/config');
    assertRefused(
      answer,
      401,
      `${invalidToken} This client secret belongs to the sandbox environment and this is production.`,
    );
    const native = await createAccount(production);
    assert.match(native.client_secret, /^cs_production_[\w-]{43}$/);
    assert.match(native.signing_key, /^sig_production_[\w-]{43}$/);
    assert.equal((await send(production, native, 'GET', '/api/config')).status, 200);
  } finally {
    await production.close();
  }
});

test('credentials carry their environment and are never the same twice', async () => {
  const other = await createAccount(service);
  assert.match(account.client_secret, /^cs_sandbox_[\w-]{43}$/);
  assert.match(account.signing_key, /^sig_sandbox_[\w-]{43}$/);
  assert.notEqual(account.client_secret, other.client_secret);
  assert.notEqual(account.signing_key, other.signing_key);
});

test('a revoked integration is refused everywhere within a second', async () => {
  const second = await startService({ clock, databaseUrl: service.databaseUrl });
  try {
    const caller = await createAccount(service);
    for (const one of [service, second]) {
      assert.equal((await send(one, caller, 'GET', '/api/config')).status, 200);
    }
    await moveRevoked(service.deps.database.db, caller.id, timestamp(clock.now()));
    clock.advance({ seconds: 1 });
    for (const one of [service, second]) {
      assertRefused(await send(one, caller, 'GET', '/api/config'), 401, invalidToken);
      const post = await send(one, caller, 'POST', '/api/checkouts', { body: checkoutBody() });
      assertRefused(post, 401, invalidToken);
    }
  } finally {
    await second.close();
  }
});

test('during a rotation both client secrets are valid, and afterwards only the new one', async () => {
  const { db } = service.deps.database;
  const caller = await createAccount(service);
  const client_secret = randomSecret('sandbox');
  const ends = clock.now().add({ hours: 24 });
  await moveExpiry(db, 'client_secrets', caller.id, timestamp(ends));
  await insertClientSecret(db, {
    secret_hash: hashClientSecret(client_secret),
    integration_id: caller.id,
    created_at: timestamp(clock.now()),
    expires_at: null,
    seen_without_lift: false,
  });
  const status = async (secret: string) => (await request(`Bearer ${secret}`)).status;
  for (const [moment, old] of [
    [ends.subtract({ seconds: 1 }), 200],
    [ends, 401],
  ] as const) {
    clock.set(moment.toString());
    assert.equal(await status(caller.client_secret), old);
    assert.equal(await status(client_secret), 200);
  }
});

test('a refused authentication is a security event, and a flood of them does not fill the log', async () => {
  const lines: Record<string, unknown>[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const { deps } = service;
  const app = buildApp({ ...deps, log } as Parameters<typeof buildApp>[0]);
  const metric = deps.metrics.registry.getSingleMetric('tranche_security_events_total');
  const counted = async () =>
    ((await metric?.get())?.values ?? []).find(
      ({ labels }) => labels.event === 'authentication_refused',
    )?.value ?? 0;
  const before = await counted();
  clock.set(clock.now().add({ minutes: 2 }).toString());
  const refuse = (index: number) =>
    app.inject({ url: '/api/config', remoteAddress: `198.51.100.${index}` });
  for (let index = 0; index < 40; index += 1) assert.equal((await refuse(index)).statusCode, 401);
  const client_id = deps.random.uuid();
  clock.set(clock.now().add({ minutes: 1 }).toString());
  const login = await app.inject({
    method: 'POST',
    url: '/login',
    remoteAddress: '198.51.100.77',
    payload: { client_id, client_secret: 'wrong', merchant_id: account.merchant.id },
  });
  assert.equal(login.statusCode, 401);
  await app.close();
  const events = lines.filter(({ security_event }) => security_event === 'authentication_refused');
  assert.equal(events.length, 31);
  assert.partialDeepStrictEqual(events[0], { route: '/api/config', address: '198.51.100.0' });
  const last = { route: '/login', address: '198.51.100.77', client_id, left_out: 10 };
  assert.partialDeepStrictEqual(events[30], last);
  assert.ok(!JSON.stringify(lines).includes('wrong'));
  assert.equal((await counted()) - before, 41);
});

test('an unknown path is a 404, with or without credentials', async () => {
  for (const [method, url] of [
    ['GET', '/api'],
    ['GET', '/api/'],
    ['GET', '/api/nothing'],
    ['GET', '/api/checkouts/a/b'],
    ['GET', '/api/Config'],
    ['GET', '/api/config/'],
    ['GET', '//api/config'],
    ['GET', '/v2/api/config'],
    ['DELETE', '/api/checkouts'],
    ['PUT', '/api/checkouts/x'],
    ['PATCH', '/api/refunds/x'],
    ['POST', '/api/config'],
    ['POST', '/api/checkouts/x'],
    ['OPTIONS', '/api/checkouts'],
  ] as const) {
    for (const headers of [{}, { authorization: `Bearer ${account.client_secret}` }]) {
      const response = await service.app.inject({ method, url, headers });
      const answer = { status: response.statusCode, body: response.json(), headers: {} };
      assertRefused(answer, 404, nothingHere);
      assert.ok(response.headers['x-request-id']);
    }
  }
});

test('neither a client secret nor a signing key is anywhere in the database', async () => {
  const caller = await createAccount(service);
  const headers = { 'idempotency-key': 'k' };
  await send(service, caller, 'POST', '/api/checkouts', { body: checkoutBody(), headers });
  await send(service, caller, 'POST', '/api/checkouts', {
    body: checkoutBody(),
    headers: { 'x-signature': 'wrong' },
  });
  const { pool } = service.deps.database;
  const tables = await pool.query(
    "select table_name from information_schema.tables where table_schema = 'public'",
  );
  for (const { table_name } of tables.rows) {
    const { rows } = await pool.query(`select t::text as row from ${table_name} t`);
    const dump = rows.map(({ row }) => row).join('\n');
    for (const secret of [caller.client_secret, caller.signing_key]) {
      const bare = secret.split('_').slice(2).join('_');
      for (const spelling of [
        bare,
        Buffer.from(bare).toString('hex'),
        Buffer.from(secret).toString('base64'),
      ]) {
        assert.ok(!dump.includes(spelling), `${table_name} holds a secret`);
      }
    }
  }
});
