import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { commandLine, type Tranche, unknownId } from '../support/cli.ts';
import { onDatabase } from '../support/database-server.ts';
import { post } from '../support/http.ts';
import { kill, liftLimits, type Sandbox, startSandbox } from '../support/sandbox-process.ts';
import { checkoutBody, isLong } from '../support/service.ts';
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
  const { base_url, integration } = sandbox.file;
  const answer = await post(`${base_url}/api/checkouts`, integration, checkoutBody(changes));
  assert.equal(answer.status, 200);
  return answer.body.data.id;
}

const paid = { status: 'successful', redirect_url: 'https://shop.example/paid', decline: null };
const open = { status: 'received', redirect_url: null, decline: null };

describe('tranche sandbox pay prints the status, the redirect and the decline', () => {
  for (const [about, args, answer] of [
    ['a card that succeeds, in the first term', [], paid],
    ['another term', ['--term', '6'], paid],
    ['a number with spaces', ['--card', '5555 5555 5555 4444'], paid],
    ['a decline', ['--card', '4000000000009995'], { ...open, decline: 'insufficient_funds' }],
    ['a lost card', ['--card', '4000000000009987'], { ...open, decline: 'lost_card' }],
    ['a mistyped number', ['--card', '4242424242424241'], { ...open, decline: 'incorrect_number' }],
    ['a challenge, approved unless told otherwise', ['--card', '4000002500003155'], paid],
    [
      'a challenge, approved',
      ['--card', '4000002500003155', '--challenge', 'approve', '--term', '3'],
      paid,
    ],
    [
      'a challenge, declined',
      ['--card', '4000002500003155', '--challenge', 'decline'],
      { ...open, decline: 'authentication_failed' },
    ],
    ['a challenge, abandoned', ['--card', '4000002500003155', '--challenge', 'abandon'], open],
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
  await tranche.json('sandbox', 'pay', id, '--card', '4000002500003155', '--challenge', 'abandon');
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
  // Long enough to exhaust the callbacks of the earlier checkouts, which have no receiver.
  const moved = await tranche.json('clock', 'advance', ...merchant, '--by', '6h');
  // Only captures and collections are left, on later nights and mornings.
  assert.ok(moved.next_event_at > moved.now, moved.next_event_at);
  assert.deepEqual(await tranche.json('sandbox', 'pay', id), open);
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
    // The overview of the console has its charts at once.
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

  test('refuses a seed or a length outside the limits', async () => {
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
