import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { assertRefused, noCheckout, nothingHere, timePattern } from '../support/expectations.ts';
import {
  type Account,
  createAccount,
  createCheckout,
  createSuccessfulCheckout,
  movableClock,
  type Service,
  send,
  startService,
} from '../support/service.ts';

const clock = movableClock('2026-11-15T08:00:00Z');
let service: Service;
let account: Account;
before(async () => {
  service = await startService({ clock });
  account = await createAccount(service);
});
after(() => service.close());

const get = (id: string, caller: Account = account) =>
  send(service, caller, 'GET', `/api/checkouts/${id}`);

test('a checkout is answered in the contract’s envelope, with our additions last', async () => {
  const id = await createCheckout(service, account, {
    amount: 123_456,
    client_reference_id: 'órder "1" 😀',
  });
  const answer = await get(id);
  assert.equal(answer.status, 200);
  const { created_at, expires_at } = answer.body.data.attributes;
  assert.deepEqual(answer.body, {
    data: {
      id,
      type: 'checkouts',
      attributes: {
        amount: 123_456,
        currency: 'ZAR',
        status: 'received',
        created_at,
        client_reference_id: 'órder "1" 😀',
        number_of_payments: null,
        expires_at,
      },
    },
  });
  assert.match(created_at, timePattern);
  assert.match(expires_at, timePattern);
  assert.deepEqual(Object.keys(answer.body.data.attributes), [
    'amount',
    'currency',
    'status',
    'created_at',
    'client_reference_id',
    'number_of_payments',
    'expires_at',
  ]);
});

test('times are those of the clock, in UTC with milliseconds', async () => {
  const caller = await createAccount(service);
  clock.set('2027-02-28T23:59:59.050Z');
  const { attributes } = (await get(await createCheckout(service, caller), caller)).body.data;
  assert.equal(attributes.created_at, '2027-02-28T23:59:59.050Z');
  assert.equal(attributes.expires_at, '2027-03-01T00:29:59.050Z');
});

test('a paid checkout is successful and names the chosen term', async () => {
  const id = await createSuccessfulCheckout(service, account);
  const { attributes } = (await get(id)).body.data;
  assert.equal(attributes.status, 'successful');
  assert.equal(attributes.number_of_payments, 1);
});

test('an abandoned checkout remains received after its page has closed', async () => {
  const id = await createCheckout(service, account);
  clock.advance({ days: 2 });
  assert.equal((await get(id)).body.data.attributes.status, 'received');
});

test('an ID is recognised in either case and answered in lower case', async () => {
  const id = await createCheckout(service, account);
  const answer = await get(id.toUpperCase());
  assert.equal(answer.status, 200);
  assert.equal(answer.body.data.id, id);
});

test('a second integration of the same merchant reads the merchant’s checkouts', async () => {
  const { createIntegration } = await import('#merchants/integrations/create-integration.ts');
  const second = await createIntegration(service.deps, 'test', {
    merchant_id: account.merchant.id,
    refund_mode: 'auto',
  });
  const id = await createCheckout(service, account);
  assert.equal((await get(id, { ...second, merchant: account.merchant })).status, 200);
});

test("a merchant cannot read another merchant's checkout, nor tell it from a missing one", async () => {
  const other = await createAccount(service);
  const id = await createCheckout(service, account);
  const [theirs, missing] = [await get(id, other), await get(randomUUID(), other)];
  assertRefused(theirs, 404, noCheckout);
  assert.deepEqual(theirs.body, missing.body);
});

for (const id of [
  'x',
  '1',
  '00000000-0000-0000-0000-000000000000',
  '0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d1',
  '0199a8f07c1e7d629a1f4a2b8f0c6d11',
  '{0199a8f0-7c1e-7d62-9a1f-4a2b8f0c6d11}',
  "'%20or%201=1--",
  '%00',
  '%F0%9F%98%80',
  'a'.repeat(400),
]) {
  test(`a malformed ID is a 404: ${id.slice(0, 50)}`, async () => {
    assertRefused(await get(id), 404, noCheckout);
  });
}

test('a path that cannot be decoded, or is far too long, is a 404 in the same envelope', async () => {
  for (const id of ['%zz', '%', '%c3%28', 'a'.repeat(5_000)]) {
    const answer = await get(id);
    assertRefused(answer, 404, nothingHere);
    assert.ok(answer.headers['x-request-id']);
  }
});

test('a checkout cannot be read as a refund request', async () => {
  const id = await createSuccessfulCheckout(service, account);
  const answer = await send(service, account, 'GET', `/api/refunds/${id}`);
  assert.equal(answer.status, 404);
});
