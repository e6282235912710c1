import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { deliverDueCallbacks } from '#purchases/callbacks/delivery/deliver-due-callbacks.ts';
import { recoverAttempts } from '#purchases/payments/settle-attempt.ts';
import { closeAlert } from '#record/alerts/handle-alert.ts';
import { faultKinds } from '../../test-gateway/faults.ts';
import { readCallback } from '../support/callbacks.ts';
import {
  assertSound,
  challengeCard,
  gatewayEnv,
  type Paying,
  startPaying,
  visa,
} from '../support/payments.ts';
import { startReceiver } from '../support/receiver.ts';
import { type Account, createAccount, isLong, startService } from '../support/service.ts';
import { until } from '../support/until.ts';

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

const calls = {
  customer: { method: 'POST', path: '/v1/customers' },
  authorise: { method: 'POST', path: '/v1/payment_intents' },
  retrieve: { method: 'GET', path: '/v1/payment_intents/:id' },
  void: { method: 'POST', path: '/v1/payment_intents/:id/cancel' },
};

// The SDK repeats a dropped request, so drop it twice. A slow answer comes after we gave up.
const kinds = faultKinds.filter(
  (kind) => kind !== 'decline' && kind !== 'processing' && kind !== 'no_acquirer',
);
const strike = (call: keyof typeof calls, fault: (typeof kinds)[number], more = {}) =>
  paying.gateway.fault({
    fault,
    ...calls[call],
    times: fault.startsWith('drop') ? 2 : 1,
    ms: 600_000,
    ...more,
  });

/**
 * Each fault strikes here, though not at each call: `npm run test:long` has all pairs. `half` says
 * which of the two halves of the faults a call gets.
 */
const someKinds = (half: number) => kinds.filter((_, index) => isLong || index % 2 === half);

describe('a payment with an unknown outcome stays in flight until it is known, and is held once', () => {
  for (const [half, call] of (['customer', 'authorise'] as const).entries()) {
    for (const fault of someKinds(half)) {
      test(`${fault} at ${call}`, async () => {
        const shopper = await paying.shopper();
        await strike(call, fault);
        assert.equal((await shopper.pay(3)).status, 'paying');
        // Another payment meanwhile, in this tab or another, waits for the same attempt.
        assert.equal((await shopper.pay(3)).status, 'paying');
        assert.equal((await shopper.attempts()).length, 1);
        assert.equal(await shopper.callback(), null);
        await paying.clearFaults();
        await paying.pass({ minutes: 1 });
        const page = await shopper.state();
        assert.deepEqual(
          [page.status, page.return_url],
          ['successful', 'https://shop.example/paid'],
        );
        assert.deepEqual(await shopper.live(), [50_000]);
        assert.equal((await shopper.books()).payment_intents.length, 1);
        assert.match((await shopper.callback()) ?? '', /"successful"/);
      });
    }
    for (const fault of someKinds(1 - half)) {
      test(`${fault} at ${call}, and cancelled meanwhile`, async () => {
        const shopper = await paying.shopper();
        await strike(call, fault);
        assert.equal((await shopper.pay(3)).status, 'paying');
        assert.equal((await shopper.cancel(3)).status, 'cancelled');
        await paying.clearFaults();
        // A request that had its effect is found and voided at once.
        await paying.pass({ minutes: 1 });
        assert.deepEqual(await shopper.live(), []);
        // A request that was not found may be in flight for ten minutes.
        await paying.pass({ minutes: 11 });
        assert.equal((await shopper.attempts())[0]?.status, 'voided');
        assert.deepEqual(await shopper.live(), []);
        assert.match((await shopper.callback()) ?? '', /"cancelled"/);
      });
    }
  }
});

describe('a shopper who returns from the bank while the gateway is down', () => {
  for (const fault of someKinds(0)) {
    test(`${fault}: stays at the challenge until the outcome is known`, async () => {
      const shopper = await paying.shopper();
      await shopper.pay(3, { card: challengeCard });
      await shopper.decide('approve');
      await strike('retrieve', fault);
      assert.equal((await shopper.comeBack()).status, 'challenge');
      await paying.clearFaults();
      await paying.pass({ minutes: 1 });
      assert.equal((await shopper.state()).status, 'successful');
      assert.deepEqual(await shopper.live(), [50_000]);
    });
  }
});

describe('a hold that must be voided is voided in the end', () => {
  for (const fault of someKinds(1)) {
    test(`${fault} at the void`, async () => {
      const shopper = await paying.shopper();
      await shopper.pay(3, { card: challengeCard });
      await shopper.decide('approve');
      assert.equal((await shopper.cancel(3)).status, 'cancelled');
      await strike('void', fault);
      await paying.work();
      assert.equal((await shopper.attempts())[0]?.status, 'voiding');
      await paying.clearFaults();
      await paying.pass({ minutes: 1 });
      assert.equal((await shopper.attempts())[0]?.status, 'voided');
      assert.deepEqual(await shopper.live(), []);
    });
  }
});

test('a gateway that is down for an hour is asked less and less often, and never holds twice', async () => {
  const shopper = await paying.shopper();
  await strike('authorise', 'drop_after', { times: 1_000 });
  assert.equal((await shopper.pay(3)).status, 'paying');
  const before = paying.clock.now();
  const attempts: number[] = [];
  for (let looks = 0; looks < 7; looks += 1) {
    const [attempt] = await shopper.attempts();
    attempts.push(
      Temporal.Instant.from(attempt?.due_at ?? '')
        .since(before)
        .total('seconds'),
    );
    paying.clock.set(attempt?.due_at ?? '');
    await paying.work();
  }
  assert.deepEqual(attempts, [5, 15, 35, 75, 155, 315, 635]);
  await paying.clearFaults();
  await paying.pass({ minutes: 10 });
  assert.equal((await shopper.state()).status, 'successful');
  assert.equal((await shopper.books()).payment_intents.length, 1);
});

describe('an attempt whose key the gateway may have forgotten is looked up, never sent again', () => {
  for (const [fault, status, intents] of [
    ['drop_before', 'declined', 0],
    ['drop_after', 'voided', 1],
  ] as const) {
    test(`${fault}: ${status}`, async () => {
      const shopper = await paying.shopper();
      await strike('authorise', fault, { times: 2 });
      assert.equal((await shopper.pay(3)).status, 'paying');
      paying.clock.advance({ hours: 25 });
      await paying.work();
      assert.equal((await shopper.attempts())[0]?.status, status);
      assert.equal((await shopper.state()).status, 'expired');
      assert.equal((await shopper.books()).payment_intents.length, intents);
      assert.deepEqual(await shopper.live(), []);
      assert.equal(await shopper.callback(), null);
    });
  }
});

test('a payment that the gateway approves after the deadline is voided', async () => {
  const shopper = await paying.shopper();
  await strike('authorise', 'drop_after', { times: 2 });
  const { expires_at } = await shopper.pay(3);
  assert.deepEqual(await shopper.live(), [50_000]);
  paying.clock.set(Temporal.Instant.from(expires_at).add({ minutes: 16 }).toString());
  await paying.work();
  assert.equal((await shopper.state()).status, 'expired');
  assert.deepEqual(await shopper.live(), []);
});

/** Starts a process whose secret key the gateway does not accept. */
const startRefused = () =>
  startService({
    databaseUrl: paying.service.databaseUrl,
    clock: paying.clock,
    env: { ...gatewayEnv(paying.gateway), GATEWAY_MAIN_STRIPE_SECRET_KEY: 'sk_test_mistyped' },
  });

describe('a gateway that refuses our own key', () => {
  test('lets the shopper pay again at once, and the operator gets an alert', async () => {
    const other = await startRefused();
    const account = await createAccount(paying.service);
    const shopper = await paying.shopper({}, account);
    const page = await paying.open(shopper.id, account, other.app).pay(3);
    assert.deepEqual([page.status, page.decline?.reason], ['open', 'processing_error']);
    await other.close();
    const [alert, ...more] = await alertsOf(account);
    assert.deepEqual([alert?.subject_id, more], [shopper.id, []]);
    assert.match(alert?.detail ?? '', /Payment attempt 1 was refused .*status 401/);
    assert.equal((await shopper.pay(3)).status, 'successful');
    await paying.pass({ minutes: 1 });
    const statuses = (await shopper.attempts()).map(({ status }) => status);
    assert.deepEqual(statuses, ['voided', 'authorised']);
    assert.deepEqual(await shopper.live(), [50_000]);
  });

  test('raises another alert after an operator closed the first, but not before', async () => {
    const other = await startRefused();
    const account = await createAccount(paying.service);
    const pay = async () => {
      const shopper = await paying.shopper({}, account);
      await paying.open(shopper.id, account, other.app).pay(3);
    };
    await pay();
    await pay();
    const [alert, ...more] = await alertsOf(account);
    assert.deepEqual(more, []);
    await closeAlert(paying.service.deps, 'nomsa', alert?.id ?? '', 'The key was corrected.');
    await pay();
    assert.equal((await alertsOf(account)).length, 2);
    await other.close();
  });

  test('after an unknown outcome: the shopper pays again, and a hold of the first attempt is voided', async () => {
    const shopper = await paying.shopper();
    await strike('authorise', 'drop_after');
    assert.equal((await shopper.pay(3)).status, 'paying');
    const other = await startRefused();
    paying.clock.advance({ seconds: 6 });
    await recoverAttempts(other.deps);
    await other.close();
    assert.equal((await shopper.state()).status, 'open');
    assert.equal((await shopper.pay(3)).status, 'successful');
    await paying.pass({ minutes: 1 });
    assert.deepEqual(await shopper.live(), [50_000]);
    assert.equal((await shopper.books()).payment_intents.length, 2);
  });

  test('for the void of a hold raises an alert, and the hold is voided in the end', async () => {
    const account = await createAccount(paying.service);
    const shopper = await paying.shopper({}, account);
    await shopper.pay(3, { card: challengeCard });
    await shopper.decide('approve');
    await shopper.cancel(3);
    const other = await startRefused();
    for (let retry = 0; retry < 3; retry += 1) {
      await recoverAttempts(other.deps);
      paying.clock.advance({ minutes: 1 });
    }
    await other.close();
    const alerts = await alertsOf(account);
    assert.match(
      alerts.map(({ detail }) => detail).join(),
      /attempt 1 has not been settled in 3 attempts .*401/,
    );
    await paying.work();
    assert.deepEqual(await shopper.live(), []);
  });
});

test('a hold that cannot be voided for an hour raises one alert', async () => {
  const account = await createAccount(paying.service);
  const shopper = await paying.shopper({}, account);
  await shopper.pay(3, { card: challengeCard });
  await shopper.cancel(3);
  await strike('void', 'error_before', { times: 1_000 });
  await paying.pass({ minutes: 50 });
  assert.deepEqual(await alertsOf(account), []);
  await paying.pass({ minutes: 50 });
  const alerts = await alertsOf(account);
  assert.deepEqual(
    alerts.map(({ subject_id }) => subject_id),
    [shopper.id],
  );
});

async function alertsOf({ merchant }: Account) {
  const { rows } = await paying.service.deps.database.pool.query<{
    id: string;
    subject_id: string;
    detail: string;
  }>(`select id, subject_id, detail from alerts where merchant_id = $1 order by at`, [merchant.id]);
  return rows;
}

test('a payment that can no longer be the outcome does not keep the shopper waiting', async () => {
  const shopper = await paying.shopper();
  await strike('authorise', 'drop_after', { times: 1_000 });
  await paying.gateway.fault({ fault: 'error_before', method: 'GET', times: 1_000 });
  const { expires_at } = await shopper.pay(3);
  await paying.pass(Temporal.Instant.from(expires_at).add({ minutes: 26 }).toString());
  assert.equal((await shopper.state()).status, 'expired');
  await paying.clearFaults();
  await paying.pass({ minutes: 10 });
  assert.deepEqual(await shopper.live(), []);
});

test('a process with another address or master key settles what an earlier process sent', async () => {
  const other = await startService({
    databaseUrl: paying.service.databaseUrl,
    clock: paying.clock,
    env: {
      ...gatewayEnv(paying.gateway),
      BASE_URL: 'http://127.0.0.1:4000',
      MASTER_KEY: Buffer.alloc(32, 9).toString('base64'),
      MASTER_KEY_PREVIOUS: Buffer.alloc(32, 7).toString('base64'),
    },
  });
  for (const [card, fault, status] of [
    [visa, 'drop_after', 'successful'],
    [visa, 'drop_before', 'successful'],
    [visa, 'error_after', 'successful'],
    [challengeCard, 'drop_after', 'challenge'],
    ['4000000000009995', 'drop_after', 'open'],
  ] as const) {
    const shopper = await paying.shopper();
    await strike('authorise', fault);
    assert.equal((await shopper.pay(3, { card })).status, 'paying');
    await paying.clearFaults();
    paying.clock.advance({ seconds: 6 });
    while ((await recoverAttempts(other.deps)) > 0);
    await deliverDueCallbacks(other.deps);
    assert.equal((await shopper.state()).status, status, `${card} ${fault}`);
    assert.equal((await shopper.books()).payment_intents.length, 1);
  }
  await other.close();
});

test('the worker delivers an outcome that no shopper waits for: a receiver that hangs delays no other outcome', async () => {
  const told = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<{ body: string }>();
  const hanging = await startReceiver(() => {
    told.resolve();
    return answer.promise;
  });
  const { deps } = paying.service;
  const [first, second] = [
    await paying.shopper({ notify_url: `${hanging.url}/` }),
    await paying.shopper(),
  ];
  for (const shopper of [first, second]) {
    await strike('authorise', 'drop_after');
    assert.equal((await shopper.pay(1)).status, 'paying');
    await paying.clearFaults();
  }
  paying.clock.advance({ seconds: 6 });
  // Settling delivers nothing, so a receiver cannot delay it.
  while ((await recoverAttempts(deps)) > 0);
  for (const shopper of [first, second]) {
    assert.equal((await shopper.attempts())[0]?.status, 'authorised');
    assert.equal((await shopper.state()).status, 'paying', 'the callback is about to be delivered');
  }
  const delivering = deliverDueCallbacks(deps);
  await told.promise;
  await until('the other', async () => (await second.state()).status === 'successful');
  // The first shopper still waits and follows the callback's redirect.
  answer.resolve({ body: '{"redirect_url":"https://shop.example/found"}' });
  await delivering;
  const page = await first.state();
  assert.deepEqual([page.status, page.return_url], ['successful', 'https://shop.example/found']);
  const { tried } = await readCallback(paying.service, first.id);
  assert.deepEqual(
    tried.map(({ trigger, number }) => [trigger, number]),
    [['first', 1]],
  );
  await hanging.close();
});
