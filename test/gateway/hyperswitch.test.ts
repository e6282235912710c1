import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, describe, test } from 'node:test';
import { testCards } from '../../test-gateway/cards.ts';
import { answerChallenge, publishableKey, secretKey, startGateway } from '../support/gateway.ts';

// The second API of the test gateway. It checks its own answers against the published schemas, so a
// 200 is an answer as Hyperswitch describes it. This file tests the refusals and the rules of the
// real server; `contract.test.ts` tests what the adapter makes of them.

let now = Date.now();
const local = await startGateway({ now: () => now });
after(() => local.close());

// biome-ignore lint/suspicious/noExplicitAny: the tests check what the answer holds
type Answer = { status: number; body: any };

async function call(
  method: string,
  path: string,
  body?: object | null,
  { key = secretKey, url = local.url } = {},
): Promise<Answer> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { 'api-key': key, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.json() };
}

const ownId = (prefix: string) => `${prefix}_${randomBytes(13).toString('hex')}`;

async function refuses(asked: Promise<Answer>, status: number, code: string): Promise<void> {
  const { status: answered, body } = await asked;
  assert.deepEqual([answered, body.error?.code], [status, code], JSON.stringify(body));
}

async function newCustomer(): Promise<string> {
  const customer_id = ownId('cus');
  const { status } = await call('POST', '/customers', { customer_id, email: 'a@example.com' });
  assert.equal(status, 200);
  return customer_id;
}

async function begin(given: object = {}): Promise<Answer['body']> {
  const customer_id = await newCustomer();
  const { status, body } = await call('POST', '/payments', {
    payment_id: ownId('pay'),
    amount: 50_000,
    currency: 'ZAR',
    confirm: false,
    capture_method: 'manual',
    authentication_type: 'three_ds',
    customer_id,
    setup_future_usage: 'off_session',
    return_url: 'https://pay.example.com/return',
    metadata: { checkout_id: 'one' },
    ...given,
  });
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

const entered = (number: string) => ({
  payment_method: 'card',
  payment_method_data: {
    card: {
      card_number: number,
      card_exp_month: '12',
      card_exp_year: '2030',
      card_holder_name: '',
      card_cvc: number.startsWith('37') ? '1234' : '123',
    },
  },
  customer_acceptance: { acceptance_type: 'offline' },
});

async function confirm(payment: Answer['body'], number: string): Promise<Answer> {
  const { payment_id, client_secret } = payment;
  const body = { client_secret, ...entered(number) };
  return await call('POST', `/payments/${payment_id}/confirm`, body, { key: publishableKey });
}

/** Makes a payment that is captured at once. */
async function taken(): Promise<Answer['body']> {
  const payment = await begin({ capture_method: 'automatic' });
  const { body } = await confirm(payment, '4242424242424242');
  assert.equal(body.status, 'succeeded');
  return body;
}

describe('a payment', () => {
  for (const { number, name } of testCards) {
    test(`with ${number} (${name}) has a published state at every step`, async () => {
      const payment = await begin();
      assert.equal(payment.status, 'requires_payment_method');
      let { body } = await confirm(payment, number);
      if (body.status === 'requires_customer_action') {
        const back = await answerChallenge(body.next_action.redirect_to_url, 'approve');
        assert.equal(back.searchParams.get('payment_id'), payment.payment_id);
        ({ body } = await call('GET', `/payments/${payment.payment_id}`));
        assert.equal(back.searchParams.get('status'), body.status);
      }
      if (body.status === 'failed') {
        assert.ok(body.error_details.unified_details.standardised_code);
        await refuses(call('POST', `/payments/${payment.payment_id}/cancel`, {}), 400, 'IR_16');
        return;
      }
      assert.equal(body.status, 'requires_capture');
      assert.ok(body.payment_method_id);
      const part = { amount_to_capture: 40_000 };
      const captured = await call('POST', `/payments/${payment.payment_id}/capture`, part);
      assert.equal(captured.body.status, 'partially_captured');
      assert.equal(captured.body.amount_received, 40_000);
    });
  }

  test('changes its amount until a card is entered', async () => {
    const { payment_id, ...payment } = await begin();
    const changed = await call('POST', `/payments/${payment_id}`, { amount: 30_000 });
    assert.equal(changed.body.amount, 30_000);
    await confirm({ payment_id, ...payment }, '4242424242424242');
    await refuses(call('POST', `/payments/${payment_id}`, { amount: 20_000 }), 400, 'IR_16');
  });

  test('is confirmed once, with its secret, while its session lasts', async () => {
    const payment = await begin();
    const path = `/payments/${payment.payment_id}/confirm`;
    const card = entered('4242424242424242');
    const asShopper = { key: publishableKey };
    await refuses(call('POST', path, card, asShopper), 400, 'IR_08');
    await refuses(call('POST', path, { ...card, client_secret: 'x' }, asShopper), 400, 'IR_09');
    assert.equal((await confirm(payment, '4000000000000002')).body.status, 'failed');
    await refuses(confirm(payment, '4242424242424242'), 400, 'IR_16');
    const short = await begin({ session_expiry: 0 });
    now += 1_000;
    await refuses(confirm(short, '4242424242424242'), 400, 'IR_08');
    const { body } = await call('GET', `/payments/${short.payment_id}`);
    assert.equal(body.status, 'requires_payment_method');
  });

  test('of nothing stores a card, which is charged later and removed', async () => {
    const payment = await begin({ amount: 0, payment_type: 'setup_mandate' });
    const { body: verified } = await confirm(payment, '4242424242424242');
    assert.deepEqual([verified.status, verified.amount], ['succeeded', 0]);
    const { payment_method_id: data, customer_id } = verified;
    const charge = (payment_id = ownId('pay')) =>
      call('POST', '/payments', {
        payment_id,
        amount: 20_000,
        currency: 'ZAR',
        confirm: true,
        off_session: true,
        customer_id,
        recurring_details: { type: 'payment_method_id', data },
        mit_category: 'installment',
      });
    const { payment_id: charged, status } = (await charge()).body;
    assert.equal(status, 'succeeded');
    // Without an acquirer the payment is saved all the same.
    const payment_id = ownId('pay');
    await local.fault({ fault: 'no_acquirer', key_contains: payment_id });
    await refuses(charge(payment_id), 400, 'IR_39');
    await refuses(charge(payment_id), 400, 'HE_01');
    const { body: saved } = await call('GET', `/payments/${payment_id}`);
    assert.equal(saved.status, 'requires_payment_method');
    assert.equal((await call('DELETE', `/payment_methods/${data}`)).body.deleted, true);
    await refuses(call('DELETE', `/payment_methods/${data}`), 404, 'HE_02');
    // The card is looked up before the ids are compared.
    await refuses(charge(payment_id), 404, 'HE_02');
    // A cursor includes its payment, and `starting_after` gives the newer ones.
    const listed = async (query: string) => {
      const { body } = await call('GET', `/payments/list?customer_id=${customer_id}&${query}`);
      assert.equal(body.size, body.data.length);
      return body.data.map((one: Answer['body']) => [one.payment_id, one.amount_received]);
    };
    const [[newest]] = await listed('limit=1');
    const all = [
      [newest, null],
      [charged, null],
      [payment.payment_id, null],
    ];
    assert.deepEqual(await listed(`ending_before=${newest}`), all);
    assert.deepEqual(await listed(`starting_after=${newest}`), [[newest, null]]);
    assert.deepEqual(await listed(`starting_after=${payment.payment_id}`), all);
  });
});

test('a card that a customer enters again keeps its id until it is removed', async () => {
  const store = async (number: string, given: object) => {
    const { body } = await confirm(await begin(given), number);
    return body;
  };
  const visa = '4242424242424242';
  const { payment_method_id: first, customer_id } = await store(visa, {});
  const ids = async (...given: [number: string, given?: object][]) => {
    const answers: Answer['body'][] = [];
    for (const [number, more] of given) answers.push(await store(number, { customer_id, ...more }));
    return answers.map(({ payment_method_id }) => payment_method_id);
  };
  const verifies = { amount: 0, payment_type: 'setup_mandate' };
  assert.deepEqual(await ids([visa], [visa, verifies]), [first, first]);
  const [other, declined] = await ids(['5555555555554444'], ['4000000000000002']);
  assert.ok(other !== first && declined === null);
  assert.notEqual((await store(visa, {})).payment_method_id, first, 'of another customer');
  await call('DELETE', `/payment_methods/${first}`);
  const [again] = await ids([visa]);
  assert.ok(again && again !== first);
});

describe('refused as the real one refuses it', () => {
  const wrong: [what: string, given: object][] = [
    ['an id of another length', { payment_id: 'pay_short' }],
    ['an unknown capture method', { capture_method: 'later' }],
    ['an unknown kind of authentication', { authentication_type: 'four_ds' }],
    ['an unknown use of the card', { setup_future_usage: 'sometimes' }],
    ['an unknown kind of payment method', { allowed_payment_method_types: ['bitcoin'] }],
    ['an unknown category', { mit_category: 'whim' }],
    ['an unknown member', { colour: 'blue' }],
    ['a currency in lower case', { currency: 'zar' }],
    ['an amount as text', { amount: '50000' }],
  ];
  for (const [what, given] of wrong) {
    test(`a payment with ${what}`, async () => {
      const good = { payment_id: ownId('pay'), amount: 50_000, currency: 'ZAR' };
      await refuses(call('POST', '/payments', { ...good, ...given }), 400, 'IR_06');
    });
  }

  test('an amount that is too large; one that is too small is declined by the acquirer', async () => {
    const made = (amount: number) => call('POST', '/payments', { amount, currency: 'ZAR' });
    await refuses(made(1_000_000_000), 400, 'IR_16');
    const { body } = await confirm(await begin({ amount: 999 }), '4242424242424242');
    assert.deepEqual([body.status, body.error_code], ['failed', 'amount_too_small']);
  });

  test('a second payment under one id, and an unknown one', async () => {
    const { payment_id } = await begin();
    const again = { payment_id, amount: 50_000, currency: 'ZAR' };
    await refuses(call('POST', '/payments', again), 400, 'HE_01');
    await refuses(call('GET', `/payments/${ownId('pay')}`), 404, 'HE_02');
  });

  test('a refund below 100, of too much, under a used id, and the eleventh', async () => {
    const { payment_id } = await taken();
    const refund = (given: object) =>
      call('POST', '/refunds', { payment_id, refund_id: ownId('ref'), ...given });
    await refuses(refund({ amount: 99 }), 400, 'IR_06');
    await refuses(refund({ amount: 50_001 }), 400, 'IR_13');
    const refund_id = ownId('ref');
    for (let number = 1; number <= 10; number += 1) {
      const { body } = await refund({ amount: 100, ...(number === 1 && { refund_id }) });
      assert.equal(body.status, 'succeeded');
      if (number === 1) await refuses(refund({ amount: 100, refund_id }), 400, 'HE_01');
    }
    // The amount and the number are compared before the id.
    await refuses(refund({ amount: 100, refund_id }), 400, 'IR_12');
    await refuses(refund({ amount: 50_000, refund_id }), 400, 'IR_13');
    await refuses(call('GET', `/refunds/${ownId('ref')}`), 404, 'HE_02');
    const { body } = await call('POST', '/refunds/list', { payment_id, limit: 4, offset: 8 });
    assert.equal(body.count, 2);
    const held = await begin();
    await confirm(held, '4242424242424242');
    await refuses(refund({ payment_id: held.payment_id, amount: 100 }), 400, 'IR_14');
  });

  test('a customer that exists, is deleted, or has an active mandate', async () => {
    const customer_id = await newCustomer();
    await refuses(call('POST', '/customers', { customer_id }), 400, 'IR_12');
    assert.equal((await call('DELETE', `/customers/${customer_id}`)).body.customer_deleted, true);
    await refuses(call('GET', `/customers/${customer_id}`), 400, 'IR_11');
    const { customer_id: other, ...payment } = await begin({
      mandate_data: { mandate_type: { multi_use: { amount: 50_000, currency: 'ZAR' } } },
    });
    await confirm(payment, '4242424242424242');
    await call('POST', `/payments/${payment.payment_id}/capture`, {});
    await refuses(call('DELETE', `/customers/${other}`), 400, 'IR_10');
  });

  test('a capture, a cancellation and a confirmation in the wrong state', async () => {
    const { payment_id } = await taken();
    await refuses(call('POST', `/payments/${payment_id}/capture`, {}), 400, 'IR_14');
    await refuses(call('POST', `/payments/${payment_id}/cancel`, {}), 400, 'IR_16');
    const held = await begin();
    await confirm(held, '4242424242424242');
    const capture = `/payments/${held.payment_id}/capture`;
    await refuses(call('POST', capture, { amount_to_capture: 50_001 }), 422, 'IR_06');
    await refuses(confirm(held, '4242424242424242'), 400, 'IR_16');
  });

  test('a request without a key, and with the public key where the secret one is needed', async () => {
    await refuses(call('POST', '/customers', {}, { key: 'sk_test_wrong' }), 401, 'IR_01');
    await refuses(call('POST', '/customers', {}, { key: publishableKey }), 401, 'IR_01');
    await refuses(call('GET', '/nothing'), 404, 'IR_02');
  });

  test('an address that cannot be read, by both APIs', async () => {
    for (const path of ['//', '///', '//payments/list', '/%']) {
      await refuses(call('GET', path), 404, 'IR_02');
      await refuses(call('POST', path, {}), 404, 'IR_02');
    }
    await refuses(call('GET', '/payments/%E0%A4%A'), 400, 'IR_06');
    const headers = { authorization: `Bearer ${secretKey}` };
    for (const [path, status] of [
      ['/v1//', 404],
      ['/v1/charges/%E0%A4%A', 400],
    ] as const) {
      assert.equal((await fetch(`${local.url}${path}`, { headers })).status, status, path);
    }
  });

  test('a card that is not a test card, before anything about it is stored', async () => {
    const payment = await begin();
    await refuses(confirm(payment, '4111111111111111'), 400, 'IR_06');
    await refuses(confirm(payment, '4242424242424241'), 400, 'IR_06');
    const { body } = await call('GET', `/payments/${payment.payment_id}`);
    assert.equal(body.status, 'requires_payment_method');
  });
});

describe('disputes', () => {
  test('take evidence once, can be accepted, and are announced with a signature', async () => {
    const received: { body: string; signature: string }[] = [];
    const server = http.createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk) => chunks.push(chunk));
      request.on('end', () => {
        const signature = String(request.headers['x-webhook-signature-512']);
        received.push({ body: Buffer.concat(chunks).toString(), signature });
        response.end();
        server.emit('received');
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const to = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const announcing = await startGateway({
      webhook: { url: to, secret: 'a secret of the profile', protocol: 'hyperswitch' },
    });
    const { url } = announcing;
    try {
      const payment_id = ownId('pay');
      const made = { payment_id, amount: 50_000, currency: 'ZAR', return_url: 'https://a.example' };
      await call('POST', '/payments', made, { url });
      const arrived = once(server, 'received');
      const card = entered('4000000000000259');
      await call('POST', `/payments/${payment_id}/confirm`, card, { url });
      await arrived;
      const [{ body = '', signature = '' } = {}] = received;
      const wanted = createHmac('sha512', 'a secret of the profile').update(body).digest('hex');
      assert.equal(signature, wanted);
      const event = JSON.parse(body);
      assert.equal(event.event_type, 'dispute_opened');
      const { dispute_id } = event.content.object;
      const listed = await call('GET', '/disputes/list?limit=10', null, { url });
      assert.equal(listed.body[0].dispute_id, dispute_id);
      assert.equal(listed.body[0].amount, '50000');
      const evidence = { dispute_id, product_description: 'Coffee' };
      const sent = await call('POST', '/disputes/evidence', evidence, { url });
      assert.equal(sent.body.dispute_status, 'dispute_challenged');
      await refuses(call('POST', '/disputes/evidence', evidence, { url }), 400, 'HE_03');
      await refuses(call('GET', '/disputes/unknown', null, { url }), 404, 'HE_04');
    } finally {
      await announcing.close();
      server.closeAllConnections();
      server.close();
    }
    const { payment_id } = await taken();
    const opened = await local.call('POST', '/_test/disputes', { payment_intent: payment_id });
    const accepted = await call('POST', `/disputes/accept/${opened.body.id}`);
    assert.equal(accepted.body.dispute_status, 'dispute_accepted');
    const refund = { payment_id, refund_id: ownId('ref'), amount: 100 };
    const { body } = await call('POST', '/refunds', refund);
    assert.equal(body.status, 'failed');
  });
});
