import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { leaseSeconds } from '#gateway/retry-times.ts';
import { findMerchant } from '#merchants/merchant.sql.ts';
import { newLease } from '#platform/database/due-work.sql.ts';
import { claimAttempt, listAttempts } from '#purchases/payments/payment-attempt.sql.ts';
import { settleAttempt } from '#purchases/payments/settle-attempt.ts';
import { gatewayOf } from '../support/gateway.ts';
import {
  assertSound,
  challengeCard,
  type Paying,
  type Shopper,
  startPaying,
} from '../support/payments.ts';
import { createAccount } from '../support/service.ts';

// The gateway does not answer. Then the shopper cancels or the time runs out, and the gateway
// answers again.

let paying: Paying;
before(async () => {
  paying = await startPaying({ givesUp: true });
});
after(() => paying.close());
afterEach(async () => {
  await paying.clearFaults();
  await paying.pass({ minutes: 50 });
  await paying.work();
  await assertSound(paying);
});

/** The gateway is down for these calls until the faults are cleared. */
const down = (path: string) =>
  paying.gateway.fault({ fault: 'drop_before', method: 'POST', path, times: 1_000 });

async function assertNothingSent(shopper: Shopper): Promise<void> {
  assert.deepEqual((await shopper.books()).payment_intents, []);
}

const calls = { customer: '/v1/customers', authorise: '/v1/payment_intents' };

for (const [name, path] of Object.entries(calls)) {
  describe(`a payment that did not get past ${name} is not sent to the gateway any more`, () => {
    test('after the shopper cancelled', async () => {
      const shopper = await paying.shopper();
      await down(path);
      assert.equal((await shopper.pay(3)).status, 'paying');
      assert.equal((await shopper.cancel(3)).status, 'cancelled');
      await paying.clearFaults();
      await paying.pass({ minutes: 15 });
      assert.equal((await shopper.attempts())[0]?.status, 'voided');
      await assertNothingSent(shopper);
    });

    test('after the checkout expired', async () => {
      const shopper = await paying.shopper();
      await down(path);
      assert.equal((await shopper.pay(3)).status, 'paying');
      await paying.pass({ minutes: 91 });
      await paying.clearFaults();
      await paying.pass({ minutes: 15 });
      assert.equal((await shopper.state()).status, 'expired');
      assert.notEqual((await shopper.attempts())[0]?.settled_at, null);
      await assertNothingSent(shopper);
    });

    test('after the checkout expired while no worker ran', async () => {
      const shopper = await paying.shopper();
      await down(path);
      assert.equal((await shopper.pay(3)).status, 'paying');
      await paying.clearFaults();
      paying.clock.advance({ minutes: 91 });
      await paying.work();
      await paying.pass({ minutes: 15 });
      assert.notEqual((await shopper.attempts())[0]?.settled_at, null);
      await assertNothingSent(shopper);
    });
  });
}

test('a shopper who cancels before the request is sent keeps it from being sent', async () => {
  const shopper = await paying.shopper();
  const gateway = gatewayOf(paying.service.deps);
  const { createCustomer } = gateway;
  // The shopper cancels while the gateway makes the customer.
  gateway.createCustomer = async (customer) => {
    const created = await createCustomer(customer);
    assert.equal((await shopper.cancel(3)).status, 'cancelled');
    return created;
  };
  try {
    await shopper.pay(3);
  } finally {
    gateway.createCustomer = createCustomer;
  }
  await paying.work();
  assert.equal((await shopper.attempts())[0]?.status, 'voided');
  await assertNothingSent(shopper);
});

test('a process that slept since it claimed an attempt does not void the hold of the purchase', async () => {
  const { deps } = paying.service;
  const { db } = deps.database;
  const { merchant } = paying.account;
  const shopper = await paying.shopper();
  assert.equal((await shopper.pay(3, { card: challengeCard })).status, 'challenge');
  const [attempt] = await listAttempts(db, { merchant_id: merchant.id, checkout_id: shopper.id });
  assert.ok(attempt);
  const claimed = await claimAttempt(db, attempt, newLease(deps, leaseSeconds));
  const known = await findMerchant(db, deps.clock, merchant.id);
  assert.ok(claimed && known);
  // Its lease runs out, and another process records the purchase.
  await shopper.decide('approve');
  paying.clock.advance({ minutes: 2 });
  assert.equal((await shopper.comeBack()).status, 'successful');
  const holds = await shopper.live();
  assert.equal(holds.length, 1);
  paying.clock.advance({ hours: 2 });
  assert.equal(await settleAttempt(deps, known, claimed, false), false);
  assert.deepEqual(await shopper.live(), holds);
});

test('a request that was sent a moment ago is not taken for lost, and its hold is voided', async () => {
  for (const leave of ['cancels', 'stays'] as const) {
    const account = await createAccount(paying.service);
    const shopper = await paying.shopper({}, account);
    // The request travels slowly: it has its effect long after we stopped waiting for it.
    const held = { fault: 'hold_key', method: 'POST', path: calls.authorise, ms: 600_000 } as const;
    await paying.gateway.fault(held);
    assert.equal((await shopper.pay(3)).status, 'paying');
    if (leave === 'cancels') await shopper.cancel(3);
    // On the merchant's clock the gateway has forgotten the idempotency key. The real clock has not
    // moved.
    await paying.service.deps.database.pool.query(
      'update merchants set clock_ahead_ms = $2 where id = $1',
      [account.merchant.id, 25 * 3_600_000],
    );
    await paying.work();
    assert.equal((await shopper.attempts())[0]?.settled_at, null);
    await paying.clearFaults();
    while ((await shopper.live()).length === 0);
    paying.clock.advance({ minutes: 20 });
    await paying.work();
    assert.equal((await shopper.attempts())[0]?.status, 'voided');
    assert.deepEqual(await shopper.live(), []);
  }
});
