import assert from 'node:assert/strict';
import path from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { findViolations } from '#checks/invariants/invariants.ts';
import { deadlineSeconds } from '#purchases/callbacks/delivery/limits.ts';
import { onDatabase } from '../support/database-server.ts';
import { post, request } from '../support/http.ts';
import { isSigned, type Reply, startReceiver } from '../support/receiver.ts';
import { kill, liftLimits, startSandbox, tranche } from '../support/sandbox-process.ts';
import { checkoutBody, isLong, runs } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

/**
 * Starts a sandbox and a receiver. Each test has its own, because each changes the receiver's
 * answers.
 */
async function startScene(t: TestContext) {
  const folder = await temporaryFolder();
  const receiver = await startReceiver();
  // A receiver that stays open would keep the process of a failed test alive.
  t.after(() => receiver.close());
  let sandbox = await startSandbox(path.join(folder.path, 'data'));
  t.after(async () => {
    await kill(sandbox);
    await folder.remove();
  });
  await liftLimits(sandbox.file.database_url, sandbox.file.integration.id);
  let orders = 0;
  return {
    receiver,
    signing_key: sandbox.file.integration.signing_key,
    /** Creates a checkout whose callback goes to a path of its own. */
    async create(): Promise<{ id: string; payment_url: string; at: string }> {
      orders += 1;
      const at = `/order-${orders}`;
      const body = checkoutBody({ notify_url: receiver.url + at, client_reference_id: at });
      const { base_url, integration } = sandbox.file;
      const answer = await post(`${base_url}/api/checkouts`, integration, body);
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      return { ...answer.body.data, at };
    },
    read: (ids: string[]) =>
      onDatabase(sandbox.file.database_url, async (client) => {
        const { rows } = await client.query<Row>(
          `select c.id, c.status, k.status as callback, k.sent_attempt,
             array(select outcome from callback_attempts a
                   where a.callback_id = k.id order by number) as outcomes
           from checkouts c left join callbacks k on k.checkout_id = c.id
           where c.id = any($1) order by c.number`,
          [ids],
        );
        return rows;
      }),
    /** Kills the service and starts it again. Returns the time of the kill. */
    async restart(): Promise<number> {
      await kill(sandbox);
      const killedAt = performance.now();
      sandbox = await startSandbox(sandbox.dataDir);
      return killedAt;
    },
    /**
     * Advances the merchant's clock. The command waits, in real time, until the leases of a killed
     * process have ended.
     */
    pass: (by: string) =>
      tranche(
        ['clock', 'advance', '--merchant', sandbox.file.merchant.id, '--by', by],
        sandbox.env,
      ),
    async assertSound(): Promise<void> {
      await onDatabase(sandbox.file.database_url, async (client) => {
        const now = new Date().toISOString();
        assert.deepEqual(await findViolations({ pool: client }, now), []);
      });
    },
  };
}

type Row = {
  id: string;
  status: string;
  callback: string | null;
  sent_attempt: number | null;
  outcomes: string[];
};

/** Whether nothing shows that the first attempt to deliver the callback was sent. */
const isUnsent = ({ sent_attempt, outcomes }: Row) =>
  sent_attempt !== 1 && outcomes[0] === 'unknown';

const cancel = ({ payment_url }: { payment_url: string }) =>
  request(`${payment_url}/cancel`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ number_of_payments: 1 }),
  });

// The leases of a killed service run out in real time, so the tests run side by side.
describe('a service that is killed', { concurrency: true }, () => {
  test('sends a callback again after ten minutes if it was certainly sent, otherwise soon, and keeps the unknown attempt', async (t) => {
    const { receiver, signing_key, create, read, restart, pass, assertSound } = await startScene(t);
    for (let round = 0; round < runs(10); round += 1) {
      const all: Awaited<ReturnType<typeof create>>[] = [];
      const held = Promise.withResolvers<Reply>();
      receiver.answer = (_, count) => (count === 1 ? held.promise : {});
      const shoppers: Promise<unknown>[] = [];
      const deliver = async () => {
        const checkouts = await Promise.all(Array.from({ length: 3 }, create));
        all.push(...checkouts);
        shoppers.push(Promise.allSettled(checkouts.map(cancel)));
        await until('every first delivery', () =>
          checkouts.every(({ at }) => receiver.at(at).length === 1),
        );
        return checkouts.map(({ id }) => id);
      };
      const begun = performance.now();
      const slow = await deliver();
      await until('slow exchanges to be marked', async () =>
        (await read(slow)).every(({ sent_attempt }) => sent_attempt === 1),
      );
      await deliver();
      const seconds = ((await restart()) - begun) / 1000;
      held.resolve({});
      await Promise.all(shoppers);
      // On a busy machine the deadline of an exchange may have come before the kill.
      const possible = seconds < deadlineSeconds ? ['unknown'] : ['unknown', 'failed'];
      for (const row of await read(all.map(({ id }) => id))) {
        const [first = ''] = row.outcomes;
        assert.equal(row.status, 'cancelled');
        assert.ok(possible.includes(first), `${first} after ${seconds} seconds`);
        // A callback that was not certainly sent may have been sent again: its lease runs out in
        // real time.
        if (isUnsent(row)) continue;
        assert.deepEqual([row.callback, row.outcomes], ['pending', [first]]);
      }
      // The service may have marked more callbacks as sent before it was killed.
      const rows = await read(all.map(({ id }) => id));
      const marked = new Set(rows.filter((row) => !isUnsent(row)).map(({ id }) => id));
      const deliveries = (isMarked: boolean) =>
        all.filter(({ id }) => marked.has(id) === isMarked).map(({ at }) => receiver.at(at).length);
      await pass('1m');
      const unmarked = deliveries(false);
      const twice = unmarked.map(() => 2);
      assert.deepEqual(unmarked, twice, 'one retry as soon as the lease has run out');
      // The restart above took some of the ten minutes, and may have taken several.
      await pass('1m');
      assert.ok(
        deliveries(true).every((count) => count === 1),
        'what was sent is not retried within ten minutes',
      );
      await pass('8m');
      for (const row of await read(all.map(({ id }) => id))) {
        const [first] = row.outcomes;
        assert.deepEqual([row.callback, row.outcomes], ['delivered', [first, 'delivered']]);
      }
      for (const { at } of all) {
        const [one, two, ...more] = receiver.at(at);
        assert.ok(one && two && more.length === 0);
        assert.ok(one.raw.equals(two.raw));
        assert.ok(isSigned(two, signing_key));
      }
      await assertSound();
    }
  });

  // Stories kill the service at any of its statements, and delivery.test.ts at each of its steps,
  // so this test runs only in `npm run test:long`.
  const onlyLong = { skip: !isLong && 'only in npm run test:long' };
  test('at any moment loses no callback of a checkout that it ended', onlyLong, async (t) => {
    const { receiver, signing_key, create, read, restart, pass, assertSound } = await startScene(t);
    let again = 0;
    const all: { id: string; at: string }[] = [];
    for (let round = 0; round < 20; round += 1) {
      receiver.answer = async () => {
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 30));
        return { status: Math.random() < 0.2 ? 500 : 200 };
      };
      const checkouts = await Promise.all(Array.from({ length: 30 }, create));
      all.push(...checkouts);
      const before = receiver.received.length;
      const target = before + 1 + Math.floor(Math.random() * 28);
      // Several shoppers cancel one after another, so that the kill hits every stage.
      const queue = [...checkouts];
      const shoppers = Promise.all(
        Array.from({ length: 6 }, async () => {
          for (let one = queue.shift(); one; one = queue.shift()) await cancel(one).catch(() => {});
        }),
      );
      await until('some deliveries', () => receiver.received.length >= target);
      await restart();
      await shoppers;
    }
    receiver.answer = () => ({});
    await pass('15m');
    await pass('1h');
    const rows = await read(all.map(({ id }) => id));
    const places = new Map(all.map(({ id, at }) => [id, at]));
    for (const { id, status, callback, outcomes } of rows) {
      const deliveries = receiver.at(places.get(id) ?? '');
      if (status === 'received') {
        assert.deepEqual([callback, deliveries.length], [null, 0]);
        continue;
      }
      assert.deepEqual(
        [status, callback, outcomes.at(-1)],
        ['cancelled', 'delivered', 'delivered'],
      );
      assert.ok(deliveries.length >= 1 && deliveries.length <= outcomes.length);
      if (deliveries.length > 1) again += 1;
      for (const one of deliveries) {
        assert.ok(isSigned(one, signing_key));
        assert.equal(JSON.parse(one.raw.toString()).client_reference_id, one.path);
      }
    }
    const ended = rows.filter(({ status }) => status === 'cancelled').length;
    const unknown = rows.filter(({ outcomes }) => outcomes.includes('unknown')).length;
    t.diagnostic(
      `${ended} ended, ${again} delivered more than once, ${unknown} with an unknown attempt`,
    );
    assert.ok(ended > 0);
    await assertSound();
  });
});
