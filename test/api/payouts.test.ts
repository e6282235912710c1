import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { setTerms } from '#purchases/payouts/set-terms.ts';
import { assertRefused, assertRefusedLike } from '../support/expectations.ts';
import { type Paying, startPaying } from '../support/payments.ts';
import { type Account, createAccount, send } from '../support/service.ts';

let paying: Paying;
before(async () => {
  paying = await startPaying({ start: '2026-01-05T08:00:00Z' });
  await setTerms(paying.service.deps, 'nomsa', paying.account.merchant.id, {
    from_on: null,
    funding: 'whole',
    basis_points: 500,
    fixed: 200,
    vat_basis_points: 1500,
    refund_fee: 'kept',
    reserve_basis_points: 0,
    reserve_days: 0,
  });
  for (let day = 1; day <= 2; day += 1) {
    for (let order = 1; order <= 3; order += 1) {
      const client_reference_id = `order-${day}${order}`;
      const shopper = await paying.shopper({ amount: 100_000, client_reference_id });
      await shopper.pay(1);
      paying.clock.advance({ seconds: 1 });
    }
    await paying.pass({ days: 1 });
  }
  await paying.pass({ days: 1 });
});
after(() => paying.close());

const get = (path: string, caller: Account = paying.account) =>
  send(paying.service, caller, 'GET', path);

test('payouts are listed newest first, in pages, in the contract’s envelope', async () => {
  const { status, body } = await get('/api/payouts?page[items]=1');
  assert.equal(status, 200);
  const [{ id, type, attributes }] = body.data;
  assert.match(id, /^[0-9a-f-]{36}$/);
  assert.equal(type, 'payouts');
  const { created_at, ...rest } = attributes;
  assert.match(created_at, /^2026-01-08T02:00:/);
  assert.deepEqual(rest, {
    reference: 'TR20260108-2',
    business_date: '2026-01-08',
    amount: 3 * 94_020,
    currency: 'ZAR',
    status: 'draft',
    number_of_lines: 3,
  });
  const next = await get(new URL(body.links.next).pathname + new URL(body.links.next).search);
  assert.deepEqual(
    next.body.data.map((one: typeof body) => one.attributes.reference),
    ['TR20260107-1'],
  );
  assert.equal(next.body.links.next, null);
});

test('one payout has its lines, in pages, which sum to its amount', async () => {
  const { body } = await get('/api/payouts');
  const path = `/api/payouts/${body.data[0].id}`;
  const whole = await get(path);
  assert.equal(whole.status, 200);
  const { lines, amount } = whole.body.data.attributes;
  assert.equal(
    lines.reduce((sum: number, line: { net: number }) => sum + line.net, 0),
    amount,
  );
  assert.deepEqual(
    lines.map((line: { client_reference_id: string }) => line.client_reference_id).sort(),
    ['order-21', 'order-22', 'order-23'],
  );
  const { checkout_id, at, client_reference_id, ...figures } = lines[0];
  assert.deepEqual(figures, { kind: 'sale', gross: 100_000, fee: 5_200, vat: 780, net: 94_020 });
  assert.equal(whole.body.links.next, null);
  const part = await get(`${path}?page[items]=2&page[number]=2`);
  assert.deepEqual(part.body.data.attributes.lines, [lines[2]]);
  assert.match(part.body.links.prev, /page%5Bnumber%5D=1/);
  assert.deepEqual((await get(`${path}?page[number]=9`)).body.data.attributes.lines, []);
});

test('a merchant cannot read another merchant’s payouts', async () => {
  const other = await createAccount(paying.service);
  const { body } = await get('/api/payouts');
  const { id } = body.data[0];
  for (const path of [id, id.toUpperCase(), randomUUID(), 'x']) {
    const caller = path === id.toUpperCase() ? paying.account : other;
    const answer = await get(`/api/payouts/${path}`, caller);
    if (caller === paying.account) assert.equal(answer.status, 200);
    else assertRefused(answer, 404, 'There is no payout with that ID.');
  }
  assert.deepEqual((await get('/api/payouts', other)).body.data, []);
});

test('a filter by order is refused, because a payout has many', async () => {
  const answer = await get('/api/payouts?filter[client_reference_id]=order-21');
  assertRefusedLike(answer, 400, /filter\[client_reference_id\] is not for payouts/);
});
