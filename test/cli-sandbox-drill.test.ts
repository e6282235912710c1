import assert from 'node:assert/strict';
import { createHmac, timingSafeEqual } from 'node:crypto';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { drillChecks } from '../src/callbacks/drill.ts';
import { commandLine, nobody, type Tranche } from './cli.ts';
import { type Answering, type Receiver, startReceiver } from './receiver.ts';
import {
  kill,
  liftLimits,
  post,
  type Sandbox,
  startSandbox,
  temporaryFolder,
} from './sandbox-process.ts';
import { checkoutBody } from './service.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let sandbox: Sandbox;
let tranche: Tranche;
let receiver: Receiver;
/** A rotation is under way, and the shop has both keys. */
let keys: string[];
before(async () => {
  folder = await temporaryFolder();
  sandbox = await startSandbox(path.join(folder.path, 'data'));
  await liftLimits(sandbox.file.database_url, sandbox.file.integration.id);
  tranche = commandLine({ DATA_DIR: sandbox.dataDir, MASTER_KEY: '' });
  receiver = await startReceiver();
  const { id, signing_key } = sandbox.file.integration;
  const rotated = await tranche.json('integrations', 'rotate', id, '--credential', 'signing_key');
  keys = [signing_key, rotated.signing_key];
});
after(async () => {
  await receiver?.close();
  await kill(sandbox);
  await folder.remove();
});

type Order = { amount: number; status: string; fulfilled: number };

let orders = 0;

/** An order of the shop's, whose shopper is about to pay; the shop answers at a path of its own. */
async function placeOrder(answerTo: (order: Order) => Answering) {
  orders += 1;
  const reference = `order-${orders}`;
  const order: Order = { amount: 150_000, status: 'pending', fulfilled: 0 };
  const answering = answerTo(order);
  receiver.answer = (received, count) =>
    received.path === `/orders/${reference}`
      ? { body: JSON.stringify(order) }
      : answering(received, count);
  const notify_url = `${receiver.url}/callback`;
  const { base_url, integration } = sandbox.file;
  const body = checkoutBody({ client_reference_id: reference, notify_url, amount: order.amount });
  const answer = await post(`${base_url}/api/checkouts`, integration, body);
  assert.equal(answer.status, 200);
  return { order, reference, notify_url, checkout_id: answer.body.data.id as string };
}

async function drill(notify_url: string, ...more: string[]) {
  const { merchant } = sandbox.file;
  const args = ['--merchant', merchant.id, '--notify-url', notify_url, ...more];
  const { code, stdout, stderr } = await tranche.run('sandbox', 'drill', ...args, '--json');
  assert.equal(stderr, '');
  const report = JSON.parse(stdout);
  const results = Object.fromEntries(
    report.checks.map((one: { name: string; result: string }) => [one.name, one.result]),
  );
  return { code, report, results };
}

const all = (result: string) => Object.fromEntries(drillChecks.map(({ name }) => [name, result]));
const orderUrl = () => `${receiver.url}/orders/{reference}`;

/** What a shop has to write, with nothing but what comes with Node. */
const careful =
  (order: Order, accepted = keys): Answering =>
  ({ raw, headers }) => {
    const given = Buffer.from(String(headers['x-signature'] ?? ''));
    const isOurs = accepted.some((key) => {
      const expected = Buffer.from(createHmac('sha512', key).update(raw).digest('base64'));
      return given.length === expected.length && timingSafeEqual(given, expected);
    });
    if (!isOurs) return { status: 401 };
    const { status, amount, client_reference_id } = JSON.parse(raw.toString());
    if (client_reference_id !== `order-${orders}`) return { status: 404 };
    if (amount !== order.amount) return { status: 422 };
    if (order.status === 'pending') {
      order.status = status;
      if (status === 'successful') order.fulfilled += 1;
    }
    return { status: 204 };
  };

/** What many write first: it believes whatever it is told. */
const naive =
  (order: Order): Answering =>
  ({ raw }) => {
    const { status } = JSON.parse(raw.toString());
    order.status = status;
    if (status === 'successful') order.fulfilled += 1;
    return {};
  };

test('a careful receiver passes every check, with both keys of a rotation, and fulfils once', async () => {
  const { order, reference, notify_url } = await placeOrder(careful);
  const { code, report, results } = await drill(notify_url, '--order-url', orderUrl());
  assert.deepEqual(results, all('pass'));
  assert.deepEqual([code, report.passed, report.is_known_order], [0, true, true]);
  assert.equal(report.client_reference_id, reference);
  assert.deepEqual(order, { amount: 150_000, status: 'successful', fulfilled: 1 });
  const { answers } = report.checks.find(({ name }: { name: string }) => name === 'slow_network');
  assert.ok(answers[0].milliseconds > 1_000, 'the body came in pieces');
});

test('a naive receiver fails where it believes what nobody signed, and where its order changes', async () => {
  const { notify_url } = await placeOrder(naive);
  const { code, report } = await drill(notify_url, '--order-url', orderUrl());
  assert.equal(code, 1);
  const findings = Object.fromEntries(
    report.checks.map((one: { name: string; finding: string | null }) => [
      one.name,
      one.finding?.slice(0, 17) ?? null,
    ]),
  );
  assert.deepEqual(findings, {
    wrong_signature: 'Answered 200, exp',
    reserialised_body: 'Answered 200, exp',
    changed_amount: 'Answered 200, exp',
    unknown_reference: 'The order changed',
    valid: null,
    duplicate: 'The order changed',
    slow_network: 'The order changed',
    both_keys: 'The order changed',
    cancelled_after_successful: 'The order changed',
  });
});

describe('a receiver with one fault fails where the fault is', () => {
  const faults: [fault: string, answer: typeof careful, failed: string[]][] = [
    [
      'it verifies what it has parsed and written anew',
      (order) => (received, count) => {
        const raw = Buffer.from(JSON.stringify(JSON.parse(received.raw.toString())));
        return careful(order)({ ...received, raw }, count);
      },
      ['reserialised_body'],
    ],
    [
      'it knows one key only, and crashes over an order that it does not know',
      (order) => async (received, count) => {
        const reply = await careful(order, keys.slice(0, 1))(received, count);
        return typeof reply === 'object' && reply.status === 404 ? { status: 500 } : reply;
      },
      ['unknown_reference', 'both_keys'],
    ],
    [
      'it refuses what it has seen before',
      (order) => (received, count) =>
        order.fulfilled > 0 ? { status: 409 } : careful(order)(received, count),
      ['duplicate', 'slow_network', 'both_keys', 'cancelled_after_successful'],
    ],
  ];
  for (const [fault, answer, failed] of faults) {
    test(fault, async () => {
      const { notify_url } = await placeOrder(answer);
      const { code, results } = await drill(notify_url);
      assert.deepEqual(results, {
        ...all('pass'),
        ...Object.fromEntries(failed.map((name) => [name, 'fail'])),
      });
      assert.equal(code, 1);
    });
  }
});

test('without an order of the shop’s the drill makes its own, which a receiver need not know', async () => {
  const merchant = await tranche.json(
    ...['merchants', 'create', '--name', 'Bean There', '--rules'],
    '[{"from_amount":10000,"to_amount":90000,"terms":[1,3]}]',
  );
  const created = await tranche.json('integrations', 'create', '--merchant', merchant.id);
  const order = { amount: 0, status: 'pending', fulfilled: 0 };
  receiver.answer = careful(order, [created.signing_key]);
  const args = ['--merchant', merchant.id, '--notify-url', `${receiver.url}/callback`];
  const { code, stdout } = await tranche.run('sandbox', 'drill', ...args);
  assert.equal(code, 0);
  assert.match(stdout, /with drill-[0-9a-f]{8}, R\s900,00/);
  assert.match(stdout, /^pass {7}Paid order +404$/m);
  assert.match(stdout, /^not tried {2}Both keys of a rotation$/m);
  assert.match(stdout, /\n8 passed, 0 failed, 1 not tried\.\n/);
  for (const line of stdout.split('\n')) assert.ok(line.length <= 80, line);
  const shown = await tranche.json('integrations', 'show', created.id);
  assert.equal(shown.signing_required_at, null);
});

test('a drill that cannot be begun says what to do', async () => {
  const { id } = sandbox.file.merchant;
  const to = `${receiver.url}/callback`;
  const nowhere = 'http://127.0.0.1:9/callback';
  const table: [code: 1 | 2, message: RegExp, ...args: string[]][] = [
    [2, /--merchant is missing/, '--notify-url', to],
    [2, /--notify-url is "shop" and must be a URL/, '--merchant', id, '--notify-url', 'shop'],
    [1, /There is no merchant/, '--merchant', nobody, '--notify-url', to],
    [1, /must be an https URL/, '--merchant', id, '--notify-url', 'http://10.0.0.1/callback'],
    [
      1,
      /No checkout of this .* order-0/,
      '--merchant',
      id,
      '--notify-url',
      to,
      '--reference=order-0',
    ],
    [1, /\(connect\)\. Start your receiver/, '--merchant', id, '--notify-url', nowhere],
  ];
  for (const [code, message, ...args] of table) {
    await tranche.refused(code, message, 'sandbox', 'drill', ...args);
  }
  const { reference, checkout_id } = await placeOrder(careful);
  await tranche.json('sandbox', 'cancel', checkout_id);
  const again = ['--merchant', id, '--notify-url', to, '--reference', reference];
  await tranche.refused(1, /has ended already \(cancelled\)/, 'sandbox', 'drill', ...again);
});
