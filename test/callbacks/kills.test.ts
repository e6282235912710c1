import assert from 'node:assert/strict';
import path from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { findViolations } from '../../src/audit/invariants.ts';
import { isSigned, type Reply, startReceiver } from '../support/receiver.ts';
import {
  kill,
  liftLimits,
  onDatabase,
  post,
  request,
  startSandbox,
  temporaryFolder,
  tranche,
  until,
} from '../support/sandbox-process.ts';
import { checkoutBody, runs } from '../support/service.ts';

/** A sandbox, and a receiver that it tells. Each test has its own, for each changes the answers. */
async function startScene(t: TestContext) {
  const folder = await temporaryFolder();
  const receiver = await startReceiver();
  let sandbox = await startSandbox(path.join(folder.path, 'data'));
  t.after(async () => {
    await kill(sandbox);
    await folder.remove();
    await receiver.close();
  });
  await liftLimits(sandbox.file.database_url, sandbox.file.integration.id);
  let orders = 0;
  return {
    receiver,
    signing_key: sandbox.file.integration.signing_key,
    /** A checkout with its payment link, told of at a path of its own. */
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
          `select c.id, c.status, k.status as callback,
             array(select outcome from callback_attempts a
                   where a.callback_id = k.id order by number) as outcomes
           from checkouts c left join callbacks k on k.checkout_id = c.id
           where c.id = any($1) order by c.number`,
          [ids],
        );
        return rows;
      }),
    /** Kills the service and starts it again. */
    async restart(): Promise<void> {
      await kill(sandbox);
      sandbox = await startSandbox(sandbox.dataDir);
    },
    /** Lets time pass for the merchant. What the dead had in hand is waited for, in real time. */
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

type Row = { id: string; status: string; callback: string | null; outcomes: string[] };

const cancel = ({ payment_url }: { payment_url: string }) =>
  request(`${payment_url}/cancel`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ number_of_payments: 1 }),
  });

// What a killed service had in hand is left alone until its lease has run out, in real time: the
// service is killed several times before that is waited for, and the tests wait side by side.
describe('a service that is killed', { concurrency: true }, () => {
  test('between sending and recording tells it again, and keeps that it does not know', async (t) => {
    const { receiver, signing_key, create, read, restart, pass, assertSound } = await startScene(t);
    /** Within the minute that is left before the next attempt is due. */
    const killsAtOnce = 5;
    for (let killed = 0; killed < runs(20); killed += killsAtOnce) {
      const told: Awaited<ReturnType<typeof create>>[] = [];
      for (let round = killed; round < Math.min(runs(20), killed + killsAtOnce); round += 1) {
        const held = Promise.withResolvers<Reply>();
        receiver.answer = (_, count) => (count === 1 ? held.promise : {});
        const checkouts = await Promise.all(Array.from({ length: 5 }, create));
        told.push(...checkouts);
        const shoppers = Promise.allSettled(checkouts.map(cancel));
        await until('everybody to be told', () =>
          checkouts.every(({ at }) => receiver.at(at).length === 1),
        );
        await restart();
        held.resolve({});
        await shoppers;
        for (const row of await read(told.map(({ id }) => id))) {
          assert.deepEqual([row.status, row.callback], ['cancelled', 'pending']);
          assert.deepEqual(row.outcomes, ['unknown']);
        }
      }
      await pass('9m');
      assert.ok(
        told.every(({ at }) => receiver.at(at).length === 1),
        'not before its time',
      );
      await pass('1m');
      for (const row of await read(told.map(({ id }) => id))) {
        assert.deepEqual([row.callback, row.outcomes], ['delivered', ['unknown', 'delivered']]);
      }
      for (const { at } of told) {
        const [one, two, ...more] = receiver.at(at);
        assert.ok(one && two && more.length === 0);
        assert.ok(one.raw.equals(two.raw));
        assert.ok(isSigned(two, signing_key));
      }
      await assertSound();
    }
  });

  test('at any moment loses no callback of what it ended', async (t) => {
    const { receiver, signing_key, create, read, restart, pass, assertSound } = await startScene(t);
    let again = 0;
    const all: { id: string; at: string }[] = [];
    for (let round = 0; round < runs(30); round += 1) {
      receiver.answer = async () => {
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 30));
        return { status: Math.random() < 0.2 ? 500 : 200 };
      };
      const checkouts = await Promise.all(Array.from({ length: 30 }, create));
      all.push(...checkouts);
      const before = receiver.received.length;
      const target = before + 1 + Math.floor(Math.random() * 28);
      // One after another from several shoppers, so that the kill finds them everywhere.
      const queue = [...checkouts];
      const shoppers = Promise.all(
        Array.from({ length: 6 }, async () => {
          for (let one = queue.shift(); one; one = queue.shift()) await cancel(one).catch(() => {});
        }),
      );
      await until('some to be told', () => receiver.received.length >= target);
      await restart();
      await shoppers;
    }
    receiver.answer = () => ({});
    await pass('15m');
    await pass('1h');
    const rows = await read(all.map(({ id }) => id));
    const places = new Map(all.map(({ id, at }) => [id, at]));
    for (const { id, status, callback, outcomes } of rows) {
      const told = receiver.at(places.get(id) ?? '');
      if (status === 'received') {
        assert.deepEqual([callback, told.length], [null, 0]);
        continue;
      }
      assert.deepEqual(
        [status, callback, outcomes.at(-1)],
        ['cancelled', 'delivered', 'delivered'],
      );
      assert.ok(told.length >= 1 && told.length <= outcomes.length);
      if (told.length > 1) again += 1;
      for (const one of told) {
        assert.ok(isSigned(one, signing_key));
        assert.equal(JSON.parse(one.raw.toString()).client_reference_id, one.path);
      }
    }
    const ended = rows.filter(({ status }) => status === 'cancelled').length;
    const unknown = rows.filter(({ outcomes }) => outcomes.includes('unknown')).length;
    t.diagnostic(`${ended} ended, ${again} told more than once, ${unknown} cut off in the middle`);
    assert.ok(ended > 0);
    await assertSound();
  });
});
