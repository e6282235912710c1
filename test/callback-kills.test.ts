import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { findViolations } from '../src/invariants.ts';
import { isSigned, type Receiver, type Reply, startReceiver } from './receiver.ts';
import {
  kill,
  liftLimits,
  onDatabase,
  post,
  request,
  type Sandbox,
  startSandbox,
  temporaryFolder,
  tranche,
  until,
} from './sandbox-process.ts';
import { checkoutBody, runs } from './service.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let sandbox: Sandbox;
let receiver: Receiver;
before(async () => {
  folder = await temporaryFolder();
  receiver = await startReceiver();
  sandbox = await startSandbox(path.join(folder.path, 'data'));
  await liftLimits(sandbox.file.database_url, sandbox.file.integration.id);
});
after(async () => {
  await kill(sandbox);
  await folder.remove();
  await receiver.close();
});

let orders = 0;

/** A checkout with its payment link, told of at a path of its own. */
async function create(): Promise<{ id: string; payment_url: string; at: string }> {
  orders += 1;
  const at = `/order-${orders}`;
  const body = checkoutBody({ notify_url: receiver.url + at, client_reference_id: at });
  const { base_url, integration } = sandbox.file;
  const answer = await post(`${base_url}/api/checkouts`, integration, body);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return { ...answer.body.data, at };
}

const cancel = ({ payment_url }: { payment_url: string }) =>
  request(`${payment_url}/cancel`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ number_of_payments: 1 }),
  });

type Row = { id: string; status: string; callback: string | null; outcomes: string[] };
const read = (ids: string[]) =>
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
  });

/** Kills the service, starts it again, and lets an hour pass for the merchant. */
async function restart(): Promise<void> {
  await kill(sandbox);
  sandbox = await startSandbox(sandbox.dataDir);
}
const pass = (by: string) =>
  tranche(['clock', 'advance', '--merchant', sandbox.file.merchant.id, '--by', by], sandbox.env);

async function assertSound(): Promise<void> {
  await onDatabase(sandbox.file.database_url, async (client) => {
    const now = new Date().toISOString();
    assert.deepEqual(await findViolations({ pool: client }, now), []);
  });
}

test('a service that is killed between sending and recording tells it again, and keeps that it does not know', async () => {
  for (let round = 0; round < runs(20); round += 1) {
    const held = Promise.withResolvers<Reply>();
    receiver.answer = (_, count) => (count === 1 ? held.promise : {});
    const checkouts = await Promise.all(Array.from({ length: 5 }, create));
    const shoppers = Promise.allSettled(checkouts.map(cancel));
    await until('everybody to be told', () =>
      checkouts.every(({ at }) => receiver.at(at).length === 1),
    );
    await restart();
    held.resolve({});
    await shoppers;
    const ids = checkouts.map(({ id }) => id);
    for (const row of await read(ids)) {
      assert.deepEqual([row.status, row.callback], ['cancelled', 'pending']);
      assert.deepEqual(row.outcomes, ['unknown']);
    }
    await pass('9m');
    assert.ok(
      checkouts.every(({ at }) => receiver.at(at).length === 1),
      'not before its time',
    );
    await pass('1m');
    for (const row of await read(ids)) {
      assert.deepEqual([row.callback, row.outcomes], ['delivered', ['unknown', 'delivered']]);
    }
    for (const { at } of checkouts) {
      const [one, two, ...more] = receiver.at(at);
      assert.ok(one && two && more.length === 0);
      assert.ok(one.raw.equals(two.raw));
      assert.ok(isSigned(two, sandbox.file.integration.signing_key));
    }
    await assertSound();
  }
});

test('a service that is killed at any moment loses no callback of what it ended', async (t) => {
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
    receiver.answer = () => ({});
    await pass('15m');
  }
  await pass('1h');
  const rows = await read(all.map(({ id }) => id));
  const places = new Map(all.map(({ id, at }) => [id, at]));
  for (const { id, status, callback, outcomes } of rows) {
    const told = receiver.at(places.get(id) ?? '');
    if (status === 'received') {
      assert.deepEqual([callback, told.length], [null, 0]);
      continue;
    }
    assert.deepEqual([status, callback, outcomes.at(-1)], ['cancelled', 'delivered', 'delivered']);
    assert.ok(told.length >= 1 && told.length <= outcomes.length);
    if (told.length > 1) again += 1;
    for (const one of told) {
      assert.ok(isSigned(one, sandbox.file.integration.signing_key));
      assert.equal(JSON.parse(one.raw.toString()).client_reference_id, one.path);
    }
  }
  const ended = rows.filter(({ status }) => status === 'cancelled').length;
  const unknown = rows.filter(({ outcomes }) => outcomes.includes('unknown')).length;
  t.diagnostic(`${ended} ended, ${again} told more than once, ${unknown} cut off in the middle`);
  assert.ok(ended > 0);
  await assertSound();
});
