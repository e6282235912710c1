import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { findViolations } from '#checks/invariants/invariants.ts';
import { revokeIntegration } from '#merchants/integrations/revoke-integration.ts';
import { rotateCredential } from '#merchants/integrations/rotate-credential.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { createSealing } from '#platform/shared/sealing.ts';
import { retriggerCallback } from '#purchases/callbacks/retrigger-callback.ts';
import { disableLegacy } from '#purchases/legacy/disable-legacy.ts';
import { readCallback } from '../support/callbacks.ts';
import { createLegacyCheckout, createPlugin, logIn } from '../support/legacy.ts';
import { assertSound, type Paying, startPaying } from '../support/payments.ts';
import { isSigned, type Received, type Reply } from '../support/receiver.ts';
import { type Account, send } from '../support/service.ts';

let paying: Paying;
before(async () => {
  paying = await startPaying();
});
after(() => paying.close());

let places = 0;

/** Creates an unpaid v1 checkout. Returns it with what its notify_url receives. */
async function begin(
  options: {
    order_id?: string;
    reply?: () => Reply | 'close';
    owner?: Awaited<ReturnType<typeof createPlugin>>;
  } = {},
) {
  const { service, receiver } = paying;
  const { account, plugin } = options.owner ?? (await createPlugin(service));
  places += 1;
  const path = `/v1/${places}`;
  const before = receiver.answer;
  receiver.answer = (received, count) =>
    received.path === path && options.reply ? options.reply() : before(received, count);
  const created = await createLegacyCheckout(service, await logIn(service, plugin), {
    merchant: { notify_url: `${receiver.url}${path}`, return_url: 'https://shop.example/order/1' },
    purchase: { order_id: options.order_id ?? 'order-1001' },
  });
  return {
    ...created,
    account,
    shopper: paying.open(created.id, account),
    received: () => receiver.at(path),
    refundBy: (owner: Account, amount: number) =>
      send(service, owner, 'POST', '/api/refunds', { body: { checkout_id: created.id, amount } }),
  };
}

const fieldsOf = ({ raw }: Received) => [...new URLSearchParams(raw.toString('utf8'))];

describe('the v1 callback', () => {
  test("of a payment is a form in the spec's order, with the transaction_verify of its creation", async () => {
    const { shopper, received, transaction_verify, account } = await begin();
    const page = await shopper.pay(3);
    assert.deepEqual(
      [page.status, page.return_url],
      ['successful', 'https://shop.example/order/1'],
    );
    assert.equal(received().length, 1);
    const [first] = received() as [Received];
    assert.equal(first.headers['content-type'], 'application/x-www-form-urlencoded');
    assert.equal(
      first.raw.toString('utf8'),
      `status=success&order_id=order-1001&transaction_verify=${transaction_verify}&number_of_payments=3`,
    );
    assert.equal(Number(first.headers['content-length']), first.raw.length);
    // v1 has no signatures, so a v1 callback carries none that could pass for v2's.
    assert.equal(isSigned(first, account.signing_key), false);
    for (const name of ['x-signature', 'webhook-signature', 'webhook-id', 'webhook-timestamp']) {
      assert.equal(first.headers[name], undefined);
    }
    assert.match(String(first.headers['x-callback-id']), /^[0-9a-f-]{36}$/);
    await assertSound(paying);
  });

  test('of a cancellation says so, and the shopper returns to return_url', async () => {
    const { shopper, received, transaction_verify } = await begin();
    const page = await shopper.cancel(6);
    assert.deepEqual([page.status, page.return_url], ['cancelled', 'https://shop.example/order/1']);
    assert.deepEqual(fieldsOf(received()[0] as Received), [
      ['status', 'cancelled'],
      ['order_id', 'order-1001'],
      ['transaction_verify', transaction_verify],
      ['number_of_payments', '6'],
    ]);
  });

  test('is not sent for a declined card', async () => {
    const { shopper, received } = await begin();
    assert.equal((await shopper.pay(1, { card: '4000000000000002' })).status, 'open');
    assert.equal(received().length, 0);
  });

  test('echoes any order_id verbatim, and none can inject another field', async () => {
    const hostile = [
      'a b+c%20d',
      'x&status=success&transaction_verify=1',
      '&transaction_verify=&',
      'line\r\nbreak\ttab',
      'Zoë 日本 😀 "\'\\/<>',
      '100%',
      '=',
      '\u007f\u0001',
    ];
    for (const order_id of hostile) {
      const { shopper, received, transaction_verify } = await begin({ order_id });
      await shopper.cancel();
      assert.deepEqual(fieldsOf(received()[0] as Received), [
        ['status', 'cancelled'],
        ['order_id', order_id],
        ['transaction_verify', transaction_verify],
        ['number_of_payments', '1'],
      ]);
    }
    await assertSound(paying);
  });

  test('redirects the browser by `redirect`, as v2 does by `redirect_url`', async () => {
    const usual = 'https://shop.example/order/1';
    const goes = 'https://shop.example/thanks?a=b#c';
    const cases: [reply: Reply, url: string][] = [
      [{ body: JSON.stringify({ redirect: goes }) }, goes],
      [{ status: 201, body: JSON.stringify({ redirect: goes, redirect_url: usual }) }, goes],
      [{ body: JSON.stringify({ redirect_url: goes }) }, usual],
      [{ body: JSON.stringify({ redirect: '' }) }, usual],
      [{ body: JSON.stringify({ redirect: '/thanks' }) }, usual],
      [{ body: JSON.stringify({ redirect: 'javascript:alert(1)' }) }, usual],
      [{ body: JSON.stringify({ redirect: 5 }) }, usual],
      [{ body: `redirect=${goes}` }, usual],
      [{ body: '' }, usual],
      [{ status: 500, body: JSON.stringify({ redirect: goes }) }, usual],
    ];
    for (const [reply, url] of cases) {
      const { shopper } = await begin({ reply: () => reply });
      assert.equal((await shopper.cancel()).return_url, url, JSON.stringify(reply));
    }
    await paying.pass({ hours: 4 });
    await assertSound(paying);
  });

  test("is retried with the same bytes, on v2's schedule, until the plugin accepts it", async () => {
    let isDown = true;
    const { shopper, received, id } = await begin({ reply: () => (isDown ? { status: 503 } : {}) });
    await shopper.pay(1);
    await paying.pass({ minutes: 25 });
    assert.equal(received().length, 3);
    isDown = false;
    await paying.pass({ minutes: 10 });
    assert.equal(received().length, 4);
    const [first, ...others] = received();
    for (const { raw } of others) assert.deepEqual(raw, first?.raw);
    const { status, tried } = await readCallback(paying.service, id);
    assert.equal(status, 'delivered');
    assert.deepEqual(
      tried.map(({ outcome }) => outcome),
      ['failed', 'failed', 'failed', 'delivered'],
    );
    await assertSound(paying);
  });

  test('keeps transaction_verify out of the database, including the attempts', async () => {
    const { shopper, id, transaction_verify } = await begin();
    await shopper.pay(1);
    const callback = await readCallback(paying.service, id);
    assert.equal(
      callback.payload.toString('utf8'),
      'status=success&order_id=order-1001&transaction_verify=&number_of_payments=1',
    );
    for (const row of [callback, ...callback.tried, ...(await shopper.rows('checkouts'))]) {
      assert.ok(!JSON.stringify(row).includes(transaction_verify));
      for (const value of Object.values(row)) {
        if (Buffer.isBuffer(value)) assert.ok(!value.includes(transaction_verify));
      }
    }
    const { pool } = paying.service.deps.database;
    const { rows } = await pool.query(
      'select sealed_verify from callbacks where checkout_id = $1',
      [id],
    );
    assert.ok(rows[0].sealed_verify.length > 40);
  });

  test('fails while its master key is missing, which counts against no receiver, and is delivered once the key is back', async () => {
    const { shopper, received, id } = await begin({ reply: () => ({ status: 500 }) });
    await shopper.pay(1);
    const { id: callback_id } = await readCallback(paying.service, id);
    const { deps } = paying.service;
    const failures = async () =>
      (await deps.database.pool.query('select host, failures from destinations order by host'))
        .rows;
    const before = await failures();
    const sealing = createSealing([Buffer.alloc(32, 9)], deps.random);
    await retriggerCallback({ ...deps, sealing }, 'nomsa', callback_id);
    assert.equal(received().length, 1);
    const { tried } = await readCallback(paying.service, id);
    assert.equal(tried.at(-1)?.reason, 'no_transaction_verify');
    assert.deepEqual(await failures(), before);
    const both = createSealing([Buffer.alloc(32, 9), Buffer.alloc(32, 7)], deps.random);
    await retriggerCallback({ ...deps, sealing: both }, 'nomsa', callback_id);
    assert.deepEqual(received()[1]?.raw, received()[0]?.raw);
    await paying.pass({ hours: 4 });
    await assertSound(paying);
  });
});

describe('a plugin that moves to v2 while a v1 payment is in flight', () => {
  test("gets that outcome in the v1 form at the old address, and the next one in v2's", async () => {
    const owner = await createPlugin(paying.service);
    const old = await begin({ owner });
    await disableLegacy(paying.service.deps, 'nomsa', owner.account.id);
    const next = await paying.shopper({ client_reference_id: 'v2-1' }, owner.account);
    await next.pay(1);
    await old.shopper.pay(3);
    const [form] = old.received() as [Received];
    assert.deepEqual(fieldsOf(form)[0], ['status', 'success']);
    assert.deepEqual(fieldsOf(form)[2], ['transaction_verify', old.transaction_verify]);
    const json = paying.receiver.at('/callback').at(-1) as Received;
    assert.ok(isSigned(json, owner.account.signing_key));
    assert.equal(JSON.parse(json.raw.toString()).client_reference_id, 'v2-1');

    // A v1 checkout is read and refunded through v2.
    const { body } = await send(paying.service, owner.account, 'GET', `/api/checkouts/${old.id}`);
    assert.equal(body.data.attributes.status, 'successful');
    assert.equal((await old.refundBy(owner.account, 150_000)).status, 200);
    await assertSound(paying);
  });

  test('gets it even if the integration is revoked, its signing key deleted, and the receiver was down', async () => {
    const owner = await createPlugin(paying.service);
    let isDown = true;
    const old = await begin({ owner, reply: () => (isDown ? 'close' : {}) });
    await old.shopper.pay(1);
    const { deps } = paying.service;
    await rotateCredential(deps, 'nomsa', {
      id: owner.account.id,
      credential: 'signing_key',
      overlapSeconds: 0,
    });
    await deps.database.pool.query('delete from signing_keys where integration_id = $1', [
      owner.account.id,
    ]);
    await revokeIntegration(deps, 'nomsa', owner.account.id);
    isDown = false;
    await paying.pass({ minutes: 11 });
    assert.equal(old.received().length, 2);
    assert.equal((await readCallback(paying.service, old.id)).status, 'delivered');
  });
});

describe('the invariants know the v1 form', () => {
  const names = ['S2', 'S3'];
  for (const [what, statement] of [
    [
      'another status',
      `payload = 'status=cancelled&order_id=a+%26%C3%AB&transaction_verify=&number_of_payments=1'`,
    ],
    [
      'another order',
      `payload = 'status=success&order_id=a+%26%C3%AA&transaction_verify=&number_of_payments=1'`,
    ],
    [
      'another term',
      `payload = 'status=success&order_id=a+%26%C3%AB&transaction_verify=&number_of_payments=3'`,
    ],
    ['a value that belongs nowhere', `payload = payload || '&amount=5'`],
    ['no form at all', `payload = '{"status":"successful"}'`],
    ['another proof', `sealed_verify = sealed_verify || '\\x00'`],
    ['no proof', "sealed_verify = null, payload = '{}'"],
  ] as const) {
    test(`${what} is found`, async () => {
      const { shopper, id } = await begin({ order_id: 'a &ë' });
      await shopper.pay(1);
      const { database } = paying.service.deps;
      const client = await database.pool.connect();
      const now = timestamp(paying.clock.now());
      try {
        assert.deepEqual(await findViolations({ pool: client }, now, names), []);
        await client.query('begin');
        await client.query(`update callbacks set ${statement} where checkout_id = $1`, [id]);
        const found = await findViolations({ pool: client }, now, names);
        assert.deepEqual(
          found.map(({ name, row }) => [name, (row as { id: string }).id]),
          [['S3', id]],
        );
      } finally {
        await client.query('rollback');
        client.release();
      }
    });
  }
});
