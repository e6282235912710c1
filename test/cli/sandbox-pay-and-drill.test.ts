import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHmac, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { drillChecks } from '#hosting/sandbox/drill.ts';
import type { Clock } from '#platform/shared/clock.ts';
import { commandLine, type Tranche, unknownId } from '../support/cli.ts';
import { onDatabase } from '../support/database-server.ts';
import { post } from '../support/http.ts';
import {
  type Answering,
  type Received,
  type Receiver,
  startReceiver,
} from '../support/receiver.ts';
import { kill, liftLimits, type Sandbox, startSandbox } from '../support/sandbox-process.ts';
import { checkoutBody, isLong, patientClock } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let sandbox: Sandbox;
let tranche: Tranche;
before(async () => {
  folder = await temporaryFolder();
  sandbox = await startSandbox(path.join(folder.path, 'data'));
  await liftLimits(sandbox.file.database_url, sandbox.file.integration.id);
  // The sandbox has its own master key.
  tranche = commandLine({ DATA_DIR: sandbox.dataDir, MASTER_KEY: '' });
});
after(async () => {
  await kill(sandbox);
  await folder.remove();
});

async function create(changes: object = {}): Promise<string> {
  const { base_url, integration, mailbox_url } = sandbox.file;
  // The mailbox takes every callback, so none is due again when the clock is moved.
  const body = checkoutBody({ notify_url: `${mailbox_url}/callback`, ...changes });
  const answer = await post(`${base_url}/api/checkouts`, integration, body);
  assert.equal(answer.status, 200);
  return answer.body.data.id;
}

const paid = { status: 'successful', redirect_url: 'https://shop.example/paid', decline: null };
const open = { status: 'received', redirect_url: null, decline: null };

describe('tranche sandbox pay prints the status, the redirect and the decline', () => {
  for (const [about, args, answer] of [
    ['a card that succeeds, in the first term', [], paid],
    ['a number with spaces', ['--card', '5555 5555 5555 4444'], paid],
    ['a decline', ['--card', '4000000000009995'], { ...open, decline: 'insufficient_funds' }],
    ['a mistyped number', ['--card', '4242424242424241'], { ...open, decline: 'incorrect_number' }],
    ['a challenge, approved unless told otherwise', ['--card', '4000002500003155'], paid],
    [
      'a challenge, declined',
      ['--card', '4000002500003155', '--challenge', 'decline'],
      { ...open, decline: 'authentication_failed' },
    ],
    [
      'declined after the challenge',
      ['--card', '4000008400001629'],
      { ...open, decline: 'generic' },
    ],
  ] as const) {
    test(about, async () => {
      const id = await create();
      const { code, stdout, stderr } = await tranche.run('sandbox', 'pay', id, ...args, '--json');
      assert.deepEqual([code, stderr], [0, '']);
      assert.equal(stdout, `${JSON.stringify(answer)}\n`);
    });
  }

  test('--term chooses the term', async () => {
    const id = await create();
    await tranche.json('sandbox', 'pay', id, '--term', '12');
    const { rows } = await onDatabase(sandbox.file.database_url, (client) =>
      client.query('select count(*)::int as payments from instalments where checkout_id = $1', [
        id,
      ]),
    );
    assert.deepEqual(rows, [{ payments: 12 }]);
  });

  test('a checkout whose data the gateway refuses', async () => {
    const id = await create({ customer: { email: 'refused@example.com' } });
    assert.deepEqual(await tranche.json('sandbox', 'pay', id), {
      ...open,
      status: 'invalid_payload',
    });
  });
});

test('a declined checkout can be paid, and a paid one stays paid', async () => {
  const id = await create();
  await tranche.json('sandbox', 'pay', id, '--card', '4000000000000002');
  assert.deepEqual(await tranche.json('sandbox', 'pay', id), paid);
  assert.deepEqual(await tranche.json('sandbox', 'pay', id, '--card', '4000000000000002'), paid);
  assert.deepEqual(await tranche.json('sandbox', 'cancel', id), paid);
});

test('an abandoned challenge can still be answered', async () => {
  const id = await create();
  const abandon = ['--card', '4000002500003155', '--challenge', 'abandon'];
  assert.deepEqual(await tranche.json('sandbox', 'pay', id, ...abandon), open);
  assert.deepEqual(await tranche.json('sandbox', 'pay', id, '--challenge', 'approve'), paid);
});

test('an abandoned challenge can be cancelled', async () => {
  const id = await create();
  await tranche.json('sandbox', 'pay', id, '--card', '4000002500003155', '--challenge', 'abandon');
  const cancelled = {
    status: 'cancelled',
    redirect_url: 'https://shop.example/cart',
    decline: null,
  };
  assert.deepEqual(await tranche.json('sandbox', 'cancel', id), cancelled);
  assert.deepEqual(await tranche.json('sandbox', 'pay', id), cancelled);
});

test('advancing the clock of a running sandbox does the due work', async () => {
  const id = await create();
  const merchant = ['--merchant', sandbox.file.merchant.id];
  await tranche.json('sandbox', 'pay', id, '--card', '4000002500003155', '--challenge', 'abandon');
  const { next_event_at } = await tranche.json('clock', 'show', ...merchant);
  assert.ok(next_event_at);
  const moved = await tranche.json('clock', 'advance', ...merchant, '--by', '6h');
  // Only captures and collections are left, on later nights and mornings.
  assert.ok(moved.next_event_at > moved.now, moved.next_event_at);
  for (const action of ['pay', 'cancel']) {
    await tranche.refused(1, /has expired: create a new checkout/, 'sandbox', action, id);
  }
});

test('the gateway of a sandbox announces a dispute to the service, which reads it', async () => {
  const id = await create();
  await tranche.json('sandbox', 'pay', id);
  await tranche.json('clock', 'advance', '--merchant', sandbox.file.merchant.id, '--by', '2d');
  const dispute = await tranche.json('sandbox', 'gateway', 'dispute', `${id}:1`);
  assert.deepEqual([dispute.checkout_id, dispute.status], [id, 'needs_response']);
  await until('the announcement', async () => {
    const log = await readFile(path.join(sandbox.dataDir, 'tranche.log'), 'utf8');
    // Its last line may be half written.
    const lines = log.split('\n').slice(0, -1);
    const line = lines.find((one) => one.includes('"/gateway/events/stripe"'));
    return line !== undefined && JSON.parse(line).status === 200;
  });
});

test('a refusal is one sentence', async () => {
  const id = await create();
  await tranche.refused(1, /no term of 2\. It has 1, 3/, 'sandbox', 'pay', id, '--term', '2');
  await tranche.refused(1, /no term of 0\./, 'sandbox', 'pay', id, '--term', '0');
  await tranche.refused(2, /--term is "x"/, 'sandbox', 'pay', id, '--term', 'x');
  await tranche.refused(2, /--challenge/, 'sandbox', 'pay', id, '--challenge', 'perhaps');
  await tranche.refused(1, /refuses this card/, 'sandbox', 'pay', id, '--card', '4111111111111111');
  for (const action of ['pay', 'cancel']) {
    await tranche.refused(1, /There is no checkout/, 'sandbox', action, unknownId);
    await tranche.refused(1, /There is no checkout nonsense/, 'sandbox', action, 'nonsense');
    await tranche.refused(2, /CHECKOUT_ID is missing/, 'sandbox', action);
  }
  assert.deepEqual(await tranche.json('sandbox', 'pay', id), paid);
});

test('without --json it prints a page', async () => {
  const { stdout, code } = await tranche.run(
    'sandbox',
    'pay',
    await create(),
    '--card',
    '4000000000009995',
  );
  assert.equal(code, 0);
  assert.match(stdout, /^Status +received$/m);
  assert.match(stdout, /^Browser goes to +nowhere; it stays on the page$/m);
  assert.match(stdout, /^Declined +insufficient_funds$/m);
});

test('without a running sandbox it says so', async () => {
  const elsewhere = commandLine({ DATA_DIR: path.join(folder.path, 'nothing'), MASTER_KEY: '' });
  await elsewhere.refused(1, /No sandbox is running in/, 'sandbox', 'pay', unknownId);
});

describe('tranche sandbox story', () => {
  test('plays orders through the real endpoints, and the books are sound at the end', async () => {
    const weeks = isLong ? '12' : '1';
    const story = await tranche.json('sandbox', 'story', '--seed', '2', '--weeks', weeks);
    assert.equal(story.books, 'sound');
    const { rows } = await onDatabase(sandbox.file.database_url, (client) =>
      client.query(
        `select count(*)::int as orders, count(*) filter (where status = 'successful')::int as paid
         from checkouts where client_reference_id like 'KO-2%'`,
      ),
    );
    assert.equal(rows[0].orders, story.checkouts);
    assert(rows[0].paid > story.checkouts / 2);
    // The story fills the table of the charts too, so the overview of the console shows them at
    // once.
    const counted = await onDatabase(sandbox.file.database_url, (client) =>
      client.query('select sum(created)::int as created from merchant_days'),
    );
    assert(counted.rows[0].created > story.checkouts / 2);
  });

  test('afterwards a payment link has an address that takes its callbacks', async () => {
    const { id: merchant } = sandbox.file.merchant;
    const order = ['--reference', 'TILL-1', '--amount', '60000'];
    const { id } = await tranche.json('payment-links', 'create', '--merchant', merchant, ...order);
    const { notify_url } = await tranche.json('payment-links', 'show', id);
    const answer = await fetch(notify_url, { method: 'POST', body: '{}' });
    assert.equal(answer.status, 200);
  });

  test('refuses a seed or a length that it does not have', async () => {
    for (const [option, value] of [
      ['--seed', '0'],
      ['--weeks', '13'],
    ] as const) {
      const { code, stderr } = await tranche.run('sandbox', 'story', option, value);
      assert.equal(code, 2);
      assert.match(stderr, new RegExp(`${option} is ${value} and must be from 1 to`));
    }
  });
});

const shopServer = path.join(import.meta.dirname, '../../examples/shop/server.js');

/** There is one for each drill, because the drills run concurrently. */
const receivers: Receiver[] = [];
after(() => Promise.all(receivers.map((one) => one.close())));
/** The signing key is being rotated, and the shop has both keys. */
let keys: string[];

type Order = { reference: string; amount: number; status: string; fulfilled: number };

let orders = 0;

async function listen(answer: Answering): Promise<Receiver> {
  const receiver = await startReceiver(answer);
  receivers.push(receiver);
  return receiver;
}

/** Places an unpaid order in the shop, and gives it a path of its own at the receiver. */
async function placeOrder(answerTo: (order: Order) => Answering) {
  orders += 1;
  const reference = `order-${orders}`;
  const order: Order = { reference, amount: 150_000, status: 'pending', fulfilled: 0 };
  const answering = answerTo(order);
  const receiver = await listen((received, count) =>
    received.path === `/orders/${reference}`
      ? { body: JSON.stringify(order) }
      : answering(received, count),
  );
  const notify_url = `${receiver.url}/callback`;
  const { base_url, integration } = sandbox.file;
  const body = checkoutBody({ client_reference_id: reference, notify_url, amount: order.amount });
  const answer = await post(`${base_url}/api/checkouts`, integration, body);
  assert.equal(answer.status, 200);
  const orderUrl = `${receiver.url}/orders/{reference}`;
  return { order, reference, notify_url, orderUrl, checkout_id: answer.body.data.id as string };
}

/**
 * A clock that counts the pauses of a drill, and not those of the machine. A sleep with a signal is
 * a time limit, not a pause.
 */
function pausesAlone(): Clock {
  let paused = 0;
  return {
    ...patientClock,
    monotonic: () => paused,
    async sleep(milliseconds, signal) {
      await patientClock.sleep(milliseconds, signal);
      if (!signal) paused += milliseconds;
    },
  };
}

const runDrill = (...args: string[]) =>
  commandLine({ DATA_DIR: sandbox.dataDir, MASTER_KEY: '' }, { clock: pausesAlone() }).run(
    'sandbox',
    'drill',
    ...args,
  );

async function drill(notify_url: string, ...more: string[]) {
  const { merchant } = sandbox.file;
  const args = ['--merchant', merchant.id, '--notify-url', notify_url, ...more];
  const { code, stdout, stderr } = await runDrill(...args, '--json');
  assert.equal(stderr, '');
  const report = JSON.parse(stdout);
  const results = Object.fromEntries(
    report.checks.map((one: { name: string; result: string }) => [one.name, one.result]),
  );
  return { code, report, results };
}

const all = (result: string) => Object.fromEntries(drillChecks.map(({ name }) => [name, result]));

/** A correct receiver, written with Node alone. */
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
    if (client_reference_id !== order.reference) return { status: 404 };
    if (amount !== order.amount) return { status: 422 };
    if (status === 'successful' && order.status !== 'successful') order.fulfilled += 1;
    if (status === 'successful' || order.status === 'pending') order.status = status;
    return { status: 204 };
  };

/** A naive receiver: it believes every callback. */
const naive =
  (order: Order): Answering =>
  ({ raw }) => {
    const { status } = JSON.parse(raw.toString());
    order.status = status;
    if (status === 'successful') order.fulfilled += 1;
    return {};
  };

describe('the drill', { concurrency: true }, () => {
  before(async () => {
    const { id, signing_key } = sandbox.file.integration;
    const rotated = await tranche.json('integrations', 'rotate', id, '--credential', 'signing_key');
    keys = [signing_key, rotated.signing_key];
  });

  test('a careful receiver passes every check, with both keys of a rotation, and fulfils once', async () => {
    const { order, reference, notify_url, orderUrl } = await placeOrder(careful);
    const { code, report, results } = await drill(notify_url, '--order-url', orderUrl, '--strict');
    assert.deepEqual(results, all('pass'));
    assert.deepEqual([code, report.passed, report.is_known_order], [0, true, true]);
    assert.equal(report.client_reference_id, reference);
    assert.deepEqual(order, { reference, amount: 150_000, status: 'successful', fulfilled: 1 });
    const { answers } = report.checks.find(({ name }: { name: string }) => name === 'slow_network');
    assert.ok(answers[0].sent_in >= 4_000, 'the body came in pieces, over seconds');
    const { milliseconds, sent_in } = answers[0];
    assert.ok(milliseconds < sent_in, 'which is not held against the receiver');
  });

  test('the demo shop passes every check, with both keys of a rotation', async (t) => {
    const { base_url, integration } = sandbox.file;
    const shop = spawn(process.execPath, [shopServer], {
      env: {
        TRANCHE_URL: base_url,
        CLIENT_SECRET: integration.client_secret,
        SIGNING_KEY: keys.join(),
        SHOP_PORT: '0',
        SHOP_FILE: path.join(folder.path, 'shop.json'),
      },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    t.after(() => shop.kill());
    const [first] = await once(shop.stdout, 'data');
    const { url } = JSON.parse(String(first));

    // A shopper fills the cart and goes to the payment page.
    let cookie = '';
    const submit = async (action: string, fields: Record<string, string>) => {
      const answer = await fetch(`${url}${action}`, {
        method: 'POST',
        headers: { origin: url, cookie },
        body: new URLSearchParams(fields),
        redirect: 'manual',
      });
      cookie = answer.headers.getSetCookie()[0]?.split(';')[0] ?? cookie;
      return answer.headers.get('location') ?? '';
    };
    const home = await (await fetch(url)).text();
    const [, product = ''] = /\/products\/([\w-]+)/.exec(home) ?? [];
    await submit('/cart', { product });
    assert.match(await submit('/orders', { email: 'thandi@example.com' }), /\/pay\//);

    const orderUrl = `${url}/orders/{reference}`;
    const { report, results } = await drill(`${url}/callback`, '--order-url', orderUrl);
    assert.deepEqual(results, all('pass'));
    assert.equal(report.is_known_order, true);
  });

  test('a naive receiver fails the checks with forged callbacks and with a changing order', async () => {
    const { notify_url, orderUrl } = await placeOrder(naive);
    const { code, report } = await drill(notify_url, '--order-url', orderUrl);
    assert.equal(code, 1);
    const problems = Object.fromEntries(
      report.checks.map((one: { name: string; problem: string | null }) => [
        one.name,
        one.problem?.slice(0, 17) ?? null,
      ]),
    );
    assert.deepEqual(problems, {
      wrong_signature: 'Answered 200, exp',
      reserialised_body: 'Answered 200, exp',
      changed_amount: 'Answered 200, exp',
      unknown_reference: 'The order changed',
      cancelled: null,
      successful_after_cancelled: null,
      duplicate: 'The order changed',
      slow_network: 'The order changed',
      both_keys: 'The order changed',
      cancelled_after_successful: 'The order changed',
    });
  });

  describe('a receiver with one fault fails where the fault is', { concurrency: true }, () => {
    const faults: [fault: string, answer: typeof careful, failed: string[], watched?: 'watched'][] =
      [
        [
          'it verifies what it has parsed and serialised again',
          (order) => (received, count) => {
            const raw = Buffer.from(JSON.stringify(JSON.parse(received.raw.toString())));
            return careful(order)({ ...received, raw }, count);
          },
          ['reserialised_body'],
        ],
        [
          'it knows only one key, and crashes on an order that it does not know',
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
        [
          'it records a payment only for a pending order, so a tab that cancelled before loses the order',
          (order) => (received, count) =>
            order.status === 'cancelled' ? { status: 204 } : careful(order)(received, count),
          ['successful_after_cancelled'],
          'watched',
        ],
        [
          'it fulfils a repeated callback once more, a moment after it has answered',
          (order) => async (received, count) => {
            const isRepeated =
              order.fulfilled > 0 && received.headers['x-callback-attempt'] === '2';
            if (isRepeated) setTimeout(() => (order.fulfilled += 1), 600);
            return await careful(order)(received, count);
          },
          ['duplicate'],
          'watched',
        ],
      ];
    for (const [fault, answer, failed, watched] of faults) {
      test(fault, async () => {
        const { notify_url, orderUrl } = await placeOrder(answer);
        const { code, results } = await drill(
          notify_url,
          ...(watched ? ['--order-url', orderUrl] : []),
        );
        assert.deepEqual(results, {
          ...all('pass'),
          ...Object.fromEntries(failed.map((name) => [name, 'fail'])),
        });
        assert.equal(code, 1);
      });
    }
  });

  describe('without an order of the shop the drill creates its own, and passes only if it is accepted', {
    concurrency: true,
  }, () => {
    let merchant: { id: string };
    let created: { id: string; signing_key: string };
    const isSigned = ({ raw, headers }: Received) =>
      headers['x-signature'] ===
      createHmac('sha512', created.signing_key).update(raw).digest('base64');
    const run = async (answer: Answering, ...more: string[]) => {
      const receiver = await listen(answer);
      const args = ['--merchant', merchant.id, '--notify-url', `${receiver.url}/callback`, ...more];
      return await runDrill(...args);
    };
    before(async () => {
      merchant = await tranche.json(
        ...['merchants', 'create', '--name', 'Bean There', '--rules'],
        '[{"from_amount":10000,"to_amount":90000,"terms":[1,3]}]',
      );
      created = await tranche.json('integrations', 'create', '--merchant', merchant.id);
    });

    const unknowing: [about: string, answer: Answering][] = [
      ['an address with no receiver', () => ({ status: 404 })],
      [
        'a receiver that does not know the order',
        (received) => ({ status: isSigned(received) ? 404 : 401 }),
      ],
    ];
    for (const [about, answer] of unknowing) {
      test(`${about} does not pass, and the report says what to do`, async () => {
        const { code, stdout } = await run(answer);
        assert.equal(code, 1);
        assert.match(stdout, /with drill-[0-9a-f]{8}, R\s900,00/);
        assert.match(stdout, /^not tried {2}Paid order, cancelled earlier +404$/m);
        assert.match(stdout, /^not tried {2}Both keys of a rotation$/m);
        assert.match(stdout, /\n3 passed, 0 failed, 7 not tried\.\n/);
        const words = stdout.replaceAll(/\s+/g, ' ');
        assert.match(words, /No callback was accepted.* --notify-url\..* with --reference/);
        for (const line of stdout.split('\n')) assert.ok(line.length <= 80, line);
      });
    }

    test('a receiver that accepts unknown orders passes, but not with --strict', async () => {
      const acknowledging: Answering = (received) => ({ status: isSigned(received) ? 200 : 401 });
      const lenient = await run(acknowledging);
      assert.match(lenient.stdout, /\n8 passed, 0 failed, 2 not tried\.\n/);
      assert.match(
        lenient.stdout,
        /^pass {7}The same callback in small pieces +200, sent in \d+\.\d s$/m,
      );
      assert.equal(lenient.code, 0);
      const strict = await run(acknowledging, '--strict', '--json');
      const { passed, problem } = JSON.parse(strict.stdout);
      assert.deepEqual([strict.code, passed], [1, false]);
      assert.match(problem, /^With --strict the checks that were not tried \(2\) count as failed/);
      const shown = await tranche.json('integrations', 'show', created.id);
      assert.equal(shown.signing_required_at, null);
    });
  });

  test('a drill that cannot begin says what to do', async () => {
    const { id } = sandbox.file.merchant;
    const { reference, notify_url: to, checkout_id } = await placeOrder(careful);
    const nowhere = 'http://127.0.0.1:9/callback';
    const table: [code: 1 | 2, message: RegExp, ...args: string[]][] = [
      [2, /--merchant is missing/, '--notify-url', to],
      [2, /--notify-url is "shop" and must be a URL/, '--merchant', id, '--notify-url', 'shop'],
      [1, /There is no merchant/, '--merchant', unknownId, '--notify-url', to],
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
    await tranche.json('sandbox', 'cancel', checkout_id);
    const again = ['--merchant', id, '--notify-url', to, '--reference', reference];
    await tranche.refused(1, /has already ended \(cancelled\)/, 'sandbox', 'drill', ...again);
  });
});
