import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { findViolations } from '#checks/invariants/invariants.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { deliverDueCallbacks } from '#purchases/callbacks/delivery/deliver-due-callbacks.ts';
import { claimsMax } from '#purchases/callbacks/delivery/limits.ts';
import {
  createCallbackSender,
  type SendCallback,
} from '#purchases/callbacks/delivery/send-callback.ts';
import { queueCallbacks } from '../support/callbacks.ts';
import { startReceiver } from '../support/receiver.ts';
import { createAccount, movableClock, type Service, startService } from '../support/service.ts';
import { until } from '../support/until.ts';

// Thousands of callbacks that fall due at the same time.

const clock = movableClock(new Date().toISOString());
let service: Service;
before(async () => {
  service = await startService({ clock });
});
after(async () => {
  try {
    const violations = await findViolations(service.deps.database, timestamp(clock.now()));
    assert.deepEqual(violations, []);
  } finally {
    await service.close();
  }
});

/** In `npm run test:long` the tests queue 5,000 and 10,000 callbacks. */
const isLong = process.env.TRANCHE_TEST_LONG !== undefined;
const fill = (url: string, count: number) => Array.from({ length: count }, (_, n) => `${url}/${n}`);

async function countByStatus(merchant_ids: string[]): Promise<Record<string, number>> {
  const { rows } = await service.deps.database.pool.query(
    `select status || ' after ' || attempts as what, count(*) from callbacks
     where merchant_id = any($1) group by 1 order by 1`,
    [merchant_ids],
  );
  return Object.fromEntries(rows.map(({ what, count }) => [what, count]));
}

test('three workers deliver each due callback exactly once', async (t) => {
  const count = isLong ? 5_000 : 600;
  const receiver = await startReceiver();
  const accounts = await Promise.all(Array.from({ length: 10 }, () => createAccount(service)));
  for (const [index, account] of accounts.entries()) {
    await queueCallbacks(
      service,
      account,
      fill(`${receiver.url}/${index}`, count / accounts.length),
    );
  }
  clock.advance({ seconds: 15 });
  const { databaseUrl } = service;
  const options = { clock, databaseUrl };
  const workers = await Promise.all([1, 2, 3].map(() => startService(options)));
  t.after(async () => {
    for (const worker of workers) await worker.close();
    await receiver.close();
  });
  const delivered = await Promise.all(workers.map(({ deps }) => deliverDueCallbacks(deps)));
  assert.ok(delivered.filter((some) => some > 0).length > 1, `delivered by each: ${delivered}`);
  const merchant_ids = accounts.map(({ merchant }) => merchant.id);
  assert.deepEqual(await countByStatus(merchant_ids), { 'delivered after 1': count });
  assert.equal(receiver.received.length, count);
  assert.equal(new Set(receiver.received.map(({ path }) => path)).size, count);
  const { rows } = await service.deps.database.pool.query(
    'select count(*) as attempts, count(distinct callback_id) as callbacks from callback_attempts',
  );
  assert.deepEqual(rows, [{ attempts: count, callbacks: count }]);
});

test('merchants take turns, and a dead or slow destination delays only itself', async (t) => {
  const total = isLong ? 10_000 : 1_000;
  const [dead, slow, alive] = [
    await startReceiver(() => 'hang'),
    await startReceiver(async () => {
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      return {};
    }),
    await startReceiver(),
  ];
  t.after(async () => {
    for (const receiver of [dead, slow, alive]) await receiver.close();
  });
  const [silent, tardy, busy] = [
    await createAccount(service),
    await createAccount(service),
    await createAccount(service),
  ];
  const small = await Promise.all(Array.from({ length: 10 }, () => createAccount(service)));
  await queueCallbacks(service, silent, fill(`${dead.url}/dead`, total / 10));
  await queueCallbacks(service, tardy, fill(`${slow.url}/slow`, total / 10));
  await queueCallbacks(service, busy, fill(`${alive.url}/busy`, total / 2));
  // One platform receives the callbacks of many merchants, so they share the delivery slots of its
  // host.
  for (const [index, account] of small.entries()) {
    await queueCallbacks(service, account, fill(`${alive.url}/small-${index}`, total / 50));
  }
  // A merchant with a dead destination has a good one as well. The good one must not wait.
  await queueCallbacks(service, silent, fill(`${alive.url}/silent`, total / 10));
  clock.advance({ seconds: 15 });

  const stopping = new AbortController();
  const begun = performance.now();
  const working = deliverDueCallbacks(service.deps, stopping.signal);
  const expected = total * 0.8;
  await until('the deliveries to good destinations', () => alive.received.length === expected);
  const seconds = (performance.now() - begun) / 1000;
  const [hanging, waiting] = [dead.received.length, slow.received.length];
  t.diagnostic(
    `${expected} in ${seconds.toFixed(1)} s; meanwhile ${hanging} to the dead, ${waiting} to the slow one`,
  );
  stopping.abort();
  // Close the hanging connections, so that the test need not wait for the deadline.
  await dead.close();
  await working;

  const places = new Map<string, number>();
  for (const [index, { path }] of alive.received.entries()) {
    places.set(path.split('/')[1] ?? '', index);
  }
  assert.equal(places.size, small.length + 2);
  // With fair turns, the small merchants are done when the busy one has had as many deliveries as
  // each of them. Some may be later, because the server may have answered their claim slowly.
  const lasts = [...small.keys()].map((index) => places.get(`small-${index}`) ?? 0);
  const early = lasts.filter((last) => last < expected * 0.6);
  assert.ok(
    early.length >= small.length - claimsMax,
    `the last of each small merchant: ${lasts.join()}`,
  );
  assert.ok(hanging <= 17 + seconds / 2, `${hanging} at the dead host at once`);
  assert.ok(waiting <= 17 + seconds, `${waiting} at the slow host`);
  assert.equal(new Set(alive.received.map(({ path }) => path)).size, expected, 'no callback twice');
});

test('a host that hangs gets one delivery at a time', async (t) => {
  const counts: number[] = [];
  const dead = await startReceiver(() => {
    counts.push(dead.inFlight());
    return 'hang';
  });
  // The deadline comes as soon as the host has received all that was sent there. Other tests leave
  // due callbacks to other hosts.
  let sent = 0;
  const arrived = async () => void (await until('what was sent', () => counts.length === sent));
  const { callbackAllow: allowed } = service.deps;
  const sender = createCallbackSender({
    clock: { ...clock, sleep: arrived },
    allowed,
    deadlineMilliseconds: 600_000,
  });
  const sendCallback: SendCallback = (message) => {
    if (message.url.startsWith(dead.url)) sent += 1;
    return sender.send(message);
  };
  t.after(async () => {
    await sender.close();
    await dead.close();
  });
  const account = await createAccount(service);
  await queueCallbacks(service, account, fill(dead.url, 22));
  clock.advance({ seconds: 15 });
  await deliverDueCallbacks({ ...service.deps, sendCallback });
  assert.deepEqual(await countByStatus([account.merchant.id]), { 'pending after 1': 22 });
  assert.equal(counts.length, 22);
  assert.ok(Math.max(...counts) <= 16);
  assert.ok(Math.max(...counts.slice(-4)) <= 2, counts.join());
});

test('at most 1,024 deliveries are in flight, however many destinations there are', async (t) => {
  let inFlight = 0;
  let inFlightMax = 0;
  const receivers = await Promise.all(
    Array.from({ length: 70 }, () =>
      startReceiver(async () => {
        inFlight += 1;
        inFlightMax = Math.max(inFlightMax, inFlight);
        await new Promise((resolve) => setTimeout(resolve, 700));
        inFlight -= 1;
        return {};
      }),
    ),
  );
  t.after(async () => {
    for (const receiver of receivers) await receiver.close();
  });
  const accounts = await Promise.all(receivers.map(() => createAccount(service)));
  for (const [index, account] of accounts.entries()) {
    await queueCallbacks(service, account, fill(receivers[index]?.url ?? '', 16));
  }
  clock.advance({ seconds: 15 });
  await deliverDueCallbacks(service.deps);
  const merchant_ids = accounts.map(({ merchant }) => merchant.id);
  assert.deepEqual(await countByStatus(merchant_ids), { 'delivered after 1': 70 * 16 });
  t.diagnostic(`${inFlightMax} at once`);
  assert.ok(inFlightMax <= 1_024, `${inFlightMax} at once`);
});

test('a locked callback is skipped, and the dispatcher ends instead of looking again and again', async (t) => {
  const receiver = await startReceiver();
  const client = await service.deps.database.pool.connect();
  t.after(async () => {
    client.release();
    await receiver.close();
  });
  const account = await createAccount(service);
  await queueCallbacks(service, account, fill(receiver.url, 1));
  clock.advance({ seconds: 15 });
  await client.query('begin');
  const lock = 'select from callbacks where merchant_id = $1 for update';
  await client.query(lock, [account.merchant.id]);
  assert.equal(await deliverDueCallbacks(service.deps), 0);
  await client.query('rollback');
  assert.equal(await deliverDueCallbacks(service.deps), 1);
});
