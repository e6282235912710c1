import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createMerchant } from '#merchants/create-merchant.ts';
import { createIntegration } from '#merchants/integrations/create-integration.ts';
import { moveRules } from '#merchants/merchant.sql.ts';
import { assertRefused, frozenClock, uuidPattern } from '../support/expectations.ts';
import {
  type Account,
  createAccount,
  rules,
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

const config = (caller: Account = account) => send(service, caller, 'GET', '/api/config');

test('a merchant reads its own configuration, and nothing beyond what the contract names', async () => {
  const answer = await config();
  assert.equal(answer.status, 200);
  assert.deepEqual(answer.body, {
    data: {
      id: account.merchant.id,
      type: 'merchants',
      attributes: { name: 'Bean There', rules },
    },
  });
  assert.deepEqual(Object.keys(answer.body.data), ['id', 'type', 'attributes']);
});

test('an answer is JSON, forbids caching, and has its own request ID', async () => {
  const [first, second] = [await config(), await config()];
  assert.equal(first.headers['content-type'], 'application/json; charset=utf-8');
  assert.equal(first.headers['cache-control'], 'no-store');
  assert.match(String(first.headers['x-request-id']), uuidPattern);
  assert.notEqual(first.headers['x-request-id'], second.headers['x-request-id']);
});

test('every answer over https asks for https, and no browser sniffs, frames or runs it', async (t) => {
  const secure = await startService({ clock, env: { BASE_URL: 'https://pay.example' } });
  t.after(secure.close);
  for (const url of ['/api/config', '/nothing/here', '/healthz', '/docs', '/pay/unknown', '/%zz']) {
    const { headers } = await secure.app.inject(url);
    assert.equal(headers['strict-transport-security'], 'max-age=31536000; includeSubDomains', url);
    assert.equal(headers['x-content-type-options'], 'nosniff', url);
    assert.equal(headers['referrer-policy'], 'no-referrer', url);
    const policy = String(headers['content-security-policy']);
    for (const part of ["default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"]) {
      assert.ok(policy.includes(part), `${url}: ${policy}`);
    }
    assert.equal(headers['access-control-allow-origin'], undefined, url);
  }
});

test('a caller cannot choose the request ID', async () => {
  const answer = await send(service, account, 'GET', '/api/config', {
    headers: { 'x-request-id': 'chosen' },
  });
  assert.match(String(answer.headers['x-request-id']), uuidPattern);
});

test('a merchant name in any script is answered unchanged', async () => {
  const name = 'Café "Zoë" \\ 日本 😀';
  const merchant = await createMerchant(service.deps, 'test', { name, territory: 'ZA', rules });
  const credentials = await createIntegration(service.deps, 'test', {
    merchant_id: merchant.id,
    refund_mode: 'manual',
  });
  assert.equal((await config({ ...credentials, merchant })).body.data.attributes.name, name);
});

test('new rules are in force within a second', async () => {
  const changed = [{ from_amount: 5_000, to_amount: 7_000, terms: [1, 2] }];
  const other = await createAccount(service);
  assert.deepEqual((await config(other)).body.data.attributes.rules, rules);
  await moveRules(service.deps.database.db, other.merchant.id, changed);
  clock.advance({ seconds: 1 });
  assert.deepEqual((await config(other)).body.data.attributes.rules, changed);
});

test("the path for intermediaries is closed to a merchant's own integration", async () => {
  const other = await createAccount(service);
  for (const id of [account.merchant.id, other.merchant.id, 'nonsense']) {
    assertRefused(
      await send(service, account, 'GET', `/api/merchants/${id}/config`),
      404,
      'This path is for intermediaries. Read your own configuration at /api/config.',
    );
  }
});
