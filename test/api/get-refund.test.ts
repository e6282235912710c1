import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { refundStatuses } from '#purchases/refunds/refund.ts';
import { assertRefused, noRefund } from '../support/expectations.ts';
import {
  type Account,
  createAccount,
  createSuccessfulCheckout,
  movableClock,
  type Service,
  send,
  startService,
} from '../support/service.ts';

const clock = movableClock('2026-11-15T08:00:00.007Z');
let service: Service;
let account: Account;
before(async () => {
  service = await startService({ clock });
  account = await createAccount(service);
});
after(() => service.close());

const get = (id: string, caller: Account = account) =>
  send(service, caller, 'GET', `/api/refunds/${id}`);

async function createRefund(amount = 500): Promise<{ id: string; checkout_id: string }> {
  const checkout_id = await createSuccessfulCheckout(service, account);
  const { body } = await send(service, account, 'POST', '/api/refunds', {
    body: { checkout_id, amount },
  });
  return { id: body.data.id, checkout_id };
}

test('a refund request is answered in the contract’s envelope, as its creation answered it', async () => {
  const checkout_id = await createSuccessfulCheckout(service, account);
  const created = await send(service, account, 'POST', '/api/refunds', {
    body: { checkout_id, amount: 500 },
  });
  const answer = await get(created.body.data.id);
  assert.equal(answer.status, 200);
  assert.deepEqual(answer.body, created.body);
  assert.deepEqual(answer.body, {
    data: {
      id: created.body.data.id,
      type: 'refund_requests',
      attributes: {
        amount: 500,
        currency: 'ZAR',
        status: 'requested',
        created_at: '2026-11-15T08:00:00.007Z',
        checkout_id,
      },
    },
  });
  assert.deepEqual(Object.keys(answer.body.data.attributes), [
    'amount',
    'currency',
    'status',
    'created_at',
    'checkout_id',
  ]);
});

test('each status of a refund request is shown as the contract names it', async () => {
  const { id } = await createRefund();
  assert.equal((await get(id)).body.data.attributes.status, 'requested');
  for (const status of refundStatuses.filter((one) => one !== 'requested')) {
    const due_at = status === 'pending' ? '2026-11-15T08:00:00Z' : null;
    // Other tests show the moves; this one shows only what a reader sees.
    await service.deps.database.db
      .updateTable('refund_requests')
      .set({ status, approved_at: '2026-11-15T08:00:00Z', due_at })
      .where('id', '=', id)
      .execute();
    assert.equal((await get(id)).body.data.attributes.status, status);
  }
});

test("a merchant cannot read another merchant's refund request, nor tell it from a missing one", async () => {
  const other = await createAccount(service);
  const { id } = await createRefund();
  const [theirs, missing] = [await get(id, other), await get(randomUUID(), other)];
  assertRefused(theirs, 404, noRefund);
  assert.deepEqual(theirs.body, missing.body);
  assert.equal((await get(id.toUpperCase())).body.data.id, id);
});

test('a malformed ID, or the ID of the checkout, is a 404', async () => {
  const { checkout_id } = await createRefund();
  for (const id of ['x', '%00', "'", checkout_id, `${checkout_id}0`]) {
    assertRefused(await get(id), 404, noRefund);
  }
});
