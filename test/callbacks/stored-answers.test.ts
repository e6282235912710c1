import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import { findViolations } from '#checks/invariants/invariants.ts';
import { readConfig } from '#config.ts';
import { findSteps } from '#operating/operations/home.sql.ts';
import { timestamp } from '#platform/shared/clock.ts';
import type { Callback } from '#purchases/callbacks/callback.ts';
import { callbackHeaders } from '#purchases/callbacks/delivery/callback-headers.ts';
import { deliverDueCallbacks } from '#purchases/callbacks/delivery/deliver-due-callbacks.ts';
import { writeDestinationStatistics } from '#purchases/callbacks/delivery/destination-statistics.ts';
import { expireAttempts } from '#purchases/callbacks/delivery/expire-attempts.ts';
import { expireStatistics } from '#purchases/callbacks/delivery/expire-statistics.ts';
import { formHeaders } from '#purchases/callbacks/delivery/legacy-form.ts';
import { retriggerCallback } from '#purchases/callbacks/retrigger-callback.ts';
import { startWorker } from '#worker.ts';
import { queueCallbacks, readCallback } from '../support/callbacks.ts';
import { commandLine } from '../support/cli.ts';
import { type Answering, startReceiver } from '../support/receiver.ts';
import { createAccount, movableClock, type Service, startService } from '../support/service.ts';
import { until } from '../support/until.ts';

// Receivers choose how long their answers are. The service stores a limited part of them, for a
// limited time.

const clock = movableClock();
let service: Service;
before(async () => {
  service = await startService({ clock, env: { CALLBACK_RETENTION_DAYS: '30' } });
});
after(async () => {
  try {
    const violations = await findViolations(service.deps.database, timestamp(clock.now()));
    assert.deepEqual(violations, []);
  } finally {
    await service.close();
  }
});

/** Delivers one callback of a new merchant to a receiver that answers like this. */
async function deliver(t: TestContext, answer: Answering, attempts = 1) {
  const receiver = await startReceiver(answer);
  t.after(receiver.close);
  const account = await createAccount(service);
  const [checkout_id = ''] = await queueCallbacks(service, account, [`${receiver.url}/shop`]);
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    clock.advance({ minutes: 10 });
    await deliverDueCallbacks(service.deps);
  }
  return { account, receiver, read: () => readCallback(service, checkout_id) };
}

describe('an attempt stores the beginning of an answer', () => {
  for (const [what, length, kept] of [
    ['an empty body', 0, 0],
    ['8 KiB', 8_192, 8_192],
    ['one byte more', 8_193, 8_192],
    ['64 KiB', 65_536, 8_192],
    ['1 MB', 1_000_000, 8_192],
  ] as const) {
    test(`${what}: ${kept} of ${length} bytes`, async (t) => {
      const body = Buffer.alloc(length, 'x');
      const headers = { 'content-length': String(length) };
      const { read } = await deliver(t, () => ({ status: 500, headers, body }));
      const [attempt] = (await read()).tried;
      assert.equal(attempt?.response_body?.length, kept);
      assert.equal(attempt?.response_body_bytes, length);
    });
  }

  test('without a declared length the number of bytes that were read', async (t) => {
    const { read } = await deliver(t, () => ({
      status: 500,
      headers: { 'transfer-encoding': 'chunked' },
      body: Buffer.alloc(300_000, 'x'),
    }));
    const [attempt] = (await read()).tried;
    assert.equal(attempt?.response_body?.length, 8_192);
    const bytes = attempt?.response_body_bytes ?? 0;
    assert.ok(bytes > 65_536 && bytes <= 300_000, `${bytes}`);
  });

  test('a declared length that is a lie does not matter', async (t) => {
    const { read } = await deliver(t, () => ({
      status: 500,
      headers: { 'content-length': '99999999999999999999999' },
      body: 'short',
    }));
    const [attempt] = (await read()).tried;
    assert.equal(attempt?.outcome, 'failed');
  });

  test('long headers as well: 4 KiB, the first ones first', async (t) => {
    const headers = Object.fromEntries(
      Array.from({ length: 14 }, (_, n) => [`x-long-${n}`, 'y'.repeat(1_000)]),
    );
    const { read } = await deliver(t, () => ({ status: 500, headers }));
    const [attempt] = (await read()).tried;
    const stored = attempt?.response_headers ?? {};
    assert.ok(JSON.stringify(stored).length <= 4_096 + 200, JSON.stringify(stored));
    assert.equal(stored['x-long-0'], 'y'.repeat(1_000));
    assert.equal(stored['x-long-13'], undefined);
    assert.ok((attempt?.response_header_bytes ?? 0) > 14_000);
  });

  test('Retry-After counts even if it is not among the stored headers', async (t) => {
    const headers = {
      ...Object.fromEntries(Array.from({ length: 8 }, (_, n) => [`a-${n}`, 'y'.repeat(1_000)])),
      'retry-after': '1800',
    };
    const { read } = await deliver(t, () => ({ status: 503, headers }));
    const { due_at, tried } = await read();
    const pause = Temporal.Instant.from(tried[0]?.started_at ?? '').until(due_at ?? '');
    assert.equal(pause.total('minutes'), 30);
  });

  test('19 answers of 64 KiB take less than 250 KiB', async (t) => {
    const answer = {
      status: 500,
      headers: { 'x-long': 'y'.repeat(15_000) },
      body: Buffer.alloc(65_536, 'x'),
    };
    const { read } = await deliver(t, () => answer, 19);
    const { id, status } = await read();
    assert.equal(status, 'exhausted');
    const { rows } = await service.deps.database.pool.query(
      `select sum(length(response_body) + length(response_headers::text)) as bytes
       from callback_attempts where callback_id = $1`,
      [id],
    );
    assert.ok(rows[0].bytes < 250_000, `${rows[0].bytes}`);
  });

  test('callbacks show says how long a shortened body was', async (t) => {
    const tranche = commandLine({ DATABASE_URL: service.databaseUrl }, { clock });
    const { receiver, read } = await deliver(t, () => ({
      status: 500,
      body: `\u001b[31mno such table${'.'.repeat(9_000)}`,
    }));
    const { id } = await read();
    const { stdout } = await tranche.run('callbacks', 'show', id);
    assert.match(stdout, /^Last answer +500 .*no such table\.+… of 9018 bytes$/m);
    assert.ok(!stdout.includes('\u001b[31m'), 'no control characters of a receiver');
    const { history } = await tranche.json('callbacks', 'show', id);
    assert.deepEqual(
      [history[0].response_body_bytes, history[0].response_body.length],
      [9_018, 8_192],
    );
    receiver.answer = () => ({ status: 400, body: 'wrong' });
    await retriggerCallback(service.deps, 'nomsa', id);
    const short = await tranche.run('callbacks', 'show', id);
    assert.match(short.stdout, /^Last answer +400 wrong$/m);
  });
});

describe('attempts expire', () => {
  const days = (count: number) => clock.advance({ hours: 24 * count });
  const expire = async () => {
    while ((await expireAttempts(service.deps)) > 0);
  };

  test('after the retention time, and their callback still says how many there were', async (t) => {
    const { read } = await deliver(t, () => ({ status: 500 }), 19);
    days(29);
    await expire();
    assert.equal((await read()).tried.length, 19);
    days(1);
    await expire();
    const { tried, attempts, attempts_expired, status } = await read();
    assert.deepEqual([tried.length, attempts, attempts_expired, status], [0, 19, 19, 'exhausted']);
  });

  test('the oldest first, and a re-trigger continues with the next number', async (t) => {
    const { receiver, read } = await deliver(t, () => ({ status: 500 }), 19);
    days(20);
    receiver.answer = () => ({});
    const { id } = await read();
    await retriggerCallback(service.deps, 'nomsa', id);
    days(15);
    await expire();
    assert.deepEqual(
      (await read()).tried.map(({ number, outcome }) => [number, outcome]),
      [[20, 'delivered']],
    );
    await retriggerCallback(service.deps, 'nomsa', id);
    const { attempts, tried } = await read();
    assert.deepEqual([attempts, tried.at(-1)?.number], [21, 21]);
    days(30);
    await expire();
    assert.deepEqual((await read()).attempts_expired, 21);
    await retriggerCallback(service.deps, 'nomsa', id);
    assert.equal((await read()).tried.at(-1)?.number, 22);
  });

  test('not while their callback is pending', async (t) => {
    const { receiver, read } = await deliver(t, () => ({ status: 500 }));
    days(31);
    await expire();
    assert.equal((await read()).tried.length, 1);
    receiver.answer = () => ({});
    await deliverDueCallbacks(service.deps);
    await expire();
    assert.deepEqual(
      (await read()).tried.map(({ number }) => number),
      [2],
    );
  });

  test('on the clock of their merchant', async (t) => {
    const one = await deliver(t, () => ({}));
    const other = await deliver(t, () => ({}));
    await service.deps.database.pool.query(
      'update merchants set clock_ahead_ms = $2 where id = $1',
      [one.account.merchant.id, 31 * 24 * 3_600_000],
    );
    await expire();
    assert.deepEqual([(await one.read()).tried.length, (await other.read()).tried.length], [0, 1]);
  });

  test('in batches, by several workers at once, each attempt once', async (t) => {
    const receiver = await startReceiver();
    t.after(receiver.close);
    const account = await createAccount(service);
    const urls = Array.from({ length: 300 }, (_, n) => `${receiver.url}/${n}`);
    const ids = await queueCallbacks(service, account, urls);
    clock.advance({ minutes: 10 });
    await deliverDueCallbacks(service.deps);
    days(31);
    await Promise.all(
      Array.from({ length: 3 }, async () => {
        while ((await expireAttempts(service.deps, 50)) > 0);
      }),
    );
    await expire();
    const { attempts_expired, tried } = await readCallback(service, ids[7] ?? '');
    assert.deepEqual([attempts_expired, tried.length], [1, 0]);
  });

  test('and with them what is known about a receiver that got nothing since', async (t) => {
    const { account, receiver, read } = await deliver(t, () => ({ status: 500 }));
    const known = async () => {
      await writeDestinationStatistics(service.deps);
      while ((await expireStatistics(service.deps, 1)) > 0);
      const tables = ['destination_days', 'destination_states', 'destinations'];
      const { rows } = await service.deps.database.pool.query(
        tables
          .map((name) => `select count(*)::int from ${name} where merchant_id = $1`)
          .join(' union all '),
        [account.merchant.id],
      );
      return rows.map(({ count }) => count);
    };
    days(29);
    assert.deepEqual(await known(), [1, 1, 1]);
    await deliverDueCallbacks(service.deps);
    days(29);
    assert.deepEqual(await known(), [2, 1, 1], 'it was tried again');
    days(3);
    assert.deepEqual(await known(), [1, 0, 0]);
    days(29);
    assert.deepEqual(await known(), [0, 0, 0]);
    receiver.answer = () => ({});
    await retriggerCallback(service.deps, 'nomsa', (await read()).id);
    assert.deepEqual(await known(), [1, 1, 0]);
    days(62);
    assert.deepEqual(await known(), [0, 0, 0]);
    const steps = await findSteps(service.deps.database.db, account.merchant.id);
    assert.ok(steps.callback_delivered, 'the merchant has still got a callback');
  });

  test('by the worker', async (t) => {
    const { read } = await deliver(t, () => ({}));
    days(31);
    const worker = startWorker(service.deps);
    await until('the expiry', async () => (await read()).tried.length === 0);
    await worker.stop();
  });

  for (const [value, expected] of [
    [undefined, 400],
    ['1', 1],
    ['36500', 36_500],
    ['0', null],
    ['36501', null],
    ['a year', null],
    ['1.5', null],
  ] as const) {
    test(`CALLBACK_RETENTION_DAYS ${value ?? 'not set'}: ${expected ?? 'refused'}`, () => {
      const read = () => readConfig(value === undefined ? {} : { CALLBACK_RETENTION_DAYS: value });
      if (expected === null) assert.throws(read, /CALLBACK_RETENTION_DAYS/);
      else assert.equal(read().callbackRetentionDays, expected);
    });
  }
});

test('the metrics show how large each table is', async () => {
  const text = await until('the sizes', async () => {
    const metrics = await service.deps.metrics.registry.metrics();
    return /^tranche_table_bytes\{/m.test(metrics) && metrics;
  });
  const sizes = new Map(
    [...text.matchAll(/^tranche_table_bytes\{table="(\w+)"\} (\d+)$/gm)].map(([, table, bytes]) => [
      table,
      Number(bytes),
    ]),
  );
  assert.ok((sizes.get('callback_attempts') ?? 0) > 8_192, text);
  assert.ok(sizes.has('callbacks') && sizes.has('postings'));
});

describe('the description of a callback names every header that is sent', () => {
  const id = '0199a8f4-0d3b-7b90-a1c2-6e5d4c3b2a10';
  const signed = { id, payload: Buffer.from('{}'), number: 1, key: 'key', now: clock.now() };
  for (const [version, webhook, headers] of [
    ['v2', 'paymentResult', callbackHeaders(signed)],
    ['v1', 'legacyPaymentResult', formHeaders({ id } as Callback, 1)],
  ] as const) {
    test(version, async () => {
      const document = (await service.app.inject(`/docs/api/${version}`)).json();
      const described = document.webhooks[webhook].post.parameters;
      const names = described.map(({ name }: { name: string }) => name.toLowerCase());
      // OpenAPI describes Content-Type with the request body.
      const sent = Object.keys(headers).filter((name) => name !== 'content-type');
      assert.deepEqual(names.sort(), sent.sort());
      for (const { name, description, example, schema } of described) {
        assert.ok(description && example !== undefined && schema, name);
      }
    });
  }
});
