import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { after, describe, test } from 'node:test';
import Stripe from 'stripe';
import { testCards } from '../../test-gateway/cards.ts';
import {
  answerChallenge,
  type Called,
  merchantAt,
  newPayment,
  publishableKey,
  secretKey,
  startGateway,
  useGateway,
} from '../support/gateway.ts';
import { departures } from '../support/stripe-declarations.ts';

const pageOrigins = ['http://127.0.0.1:3000'];
const local = await startGateway({ pageOrigins });
after(() => local.close());
const { call, tokenFor } = local;

function conforms(value: unknown, type: string): void {
  assert.deepEqual(departures(value, type), []);
}

async function customer(): Promise<string> {
  const { body } = await call('POST', '/v1/customers', { email: 'shopper@example.com' });
  return body.id;
}

async function pay(card: string, more: Record<string, string> = {}): Promise<Called> {
  return await call('POST', '/v1/payment_intents', {
    amount: '50000',
    currency: 'zar',
    customer: await customer(),
    confirm: 'true',
    confirmation_token: await tokenFor(card),
    capture_method: 'manual',
    setup_future_usage: 'off_session',
    return_url: 'https://pay.example.com/return',
    'allowed_payment_method_types[0]': 'card',
    'metadata[checkout_id]': 'one',
    'expand[0]': 'latest_charge',
    'expand[1]': 'payment_method',
    'expand[2]': 'customer',
    ...more,
  });
}

describe('the comparison of shapes', () => {
  test('finds a missing member, an extra one, and one of another type', async () => {
    const { body } = await call('POST', '/v1/customers', { email: 'shopper@example.com' });
    assert.deepEqual(departures(body, 'Customer'), []);
    const { balance, ...without } = body;
    assert.deepEqual(departures(without, 'Customer'), ['Customer.balance is missing']);
    assert.equal(departures({ ...body, balance: '0' }, 'Customer').length, 1);
    assert.equal(departures({ ...body, extra: 0 }, 'Customer').length, 1);
    const settings = { ...body.invoice_settings, footer: 5 };
    assert.match(
      departures({ ...body, invoice_settings: settings }, 'Customer')[0] ?? '',
      /^Customer\.invoice_settings\.footer/,
    );
  });
});

describe('what the gateway answers is what the SDK declares', () => {
  test('a customer', async () => {
    const created = await call('POST', '/v1/customers', {
      email: 'shopper@example.com',
      name: 'A Shopper',
      phone: '+27215550100',
      'metadata[checkout_id]': 'one',
    });
    assert.equal(created.status, 200);
    conforms(created.body, 'Customer');
    const { body } = await call('GET', `/v1/customers/${created.body.id}`);
    assert.deepEqual(body, created.body);
  });

  test('a confirmation token', async () => {
    const id = await tokenFor('pm_card_visa');
    const { body } = await call('GET', `/v1/confirmation_tokens/${id}`);
    conforms(body, 'ConfirmationToken');
  });

  for (const { number, name } of testCards) {
    test(`a payment with ${number} (${name}), in every state`, async () => {
      const created = await pay(number);
      const intent = created.status === 200 ? created.body : created.body.error.payment_intent;
      conforms(intent, 'PaymentIntent');
      if (created.status === 402) {
        const { payment_intent, ...error } = created.body.error;
        conforms(error, 'PaymentIntent.LastPaymentError');
        assert.equal(error.type, 'card_error');
        assert.deepEqual(payment_intent.last_payment_error, error);
      } else if (intent.status === 'requires_action') {
        for (const decision of ['close', 'approve'] as const) {
          await answerChallenge(intent.next_action.redirect_to_url.url, decision);
          const { body } = await call('GET', `/v1/payment_intents/${intent.id}`, {
            'expand[0]': 'latest_charge',
            'expand[1]': 'payment_method',
          });
          conforms(body, 'PaymentIntent');
        }
      } else {
        assert.equal(intent.status, 'requires_capture');
        assert.equal(intent.latest_charge.object, 'charge');
        assert.equal(intent.payment_method.object, 'payment_method');
        assert.equal(intent.customer.object, 'customer');
      }
    });
  }

  test('captures, cancellations, refunds, lists and the books', async () => {
    const held = await pay('pm_card_refundFail');
    const captured = await call('POST', `/v1/payment_intents/${held.body.id}/capture`, {
      amount_to_capture: '40000',
      'expand[0]': 'latest_charge',
    });
    conforms(captured.body, 'PaymentIntent');
    assert.equal(captured.body.status, 'succeeded');
    assert.equal(captured.body.amount_received, 40_000);
    const refunded = await call('POST', '/v1/refunds', {
      payment_intent: held.body.id,
      amount: '100',
      'metadata[refund_id]': 'one',
    });
    conforms(refunded.body, 'Refund');
    const { body: again } = await call('GET', `/v1/refunds/${refunded.body.id}`);
    assert.deepEqual(again, refunded.body);

    const other = await pay('pm_card_visa');
    const canceled = await call('POST', `/v1/payment_intents/${other.body.id}/cancel`, {
      cancellation_reason: 'abandoned',
    });
    conforms(canceled.body, 'PaymentIntent');
    assert.equal(canceled.body.status, 'canceled');

    const intents = await call('GET', '/v1/payment_intents', {
      customer: held.body.customer.id,
      limit: '1',
      'expand[0]': 'data.latest_charge',
    });
    conforms(intents.body, 'ApiList<PaymentIntent>');
    assert.equal(intents.body.data.length, 1);
    const refunds = await call('GET', '/v1/refunds', { payment_intent: held.body.id });
    conforms(refunds.body, 'ApiList<Refund>');
    assert.equal(refunds.body.data.length, 1);
    const { body } = await call('GET', '/_test/books', { customer: held.body.customer.id });
    conforms(body.payment_intents, 'Array<PaymentIntent>');
    conforms(body.charges, 'Array<Charge>');
    conforms(body.refunds, 'Array<Refund>');
    assert.equal(body.charges[0].amount_refunded, 100);
  });

  test('the pages of a list follow each other, newest first', async () => {
    const shopper = await customer();
    const made: string[] = [];
    for (let i = 0; i < 5; i += 1) {
      made.unshift((await pay('pm_card_visa', { customer: shopper })).body.id);
    }
    const stripe = new Stripe(secretKey, {
      host: '127.0.0.1',
      port: new URL(local.url).port,
      protocol: 'http',
      telemetry: false,
    });
    const listed: string[] = [];
    for await (const { id } of stripe.paymentIntents.list({ customer: shopper, limit: 2 })) {
      listed.push(id);
    }
    assert.deepEqual(listed, made);
  });
});

describe('unknown and invalid parameters are refused', () => {
  const unknown: [method: string, path: string, form: Record<string, string>, param: string][] = [
    ['POST', '/v1/customers', { colour: 'blue' }, 'colour'],
    ['GET', '/v1/customers/cus_1', { colour: 'blue' }, 'colour'],
    ['POST', '/v1/test_helpers/confirmation_tokens', { colour: 'blue' }, 'colour'],
    [
      'POST',
      '/v1/confirmation_tokens',
      { 'payment_method_data[card][colour]': 'blue' },
      'payment_method_data[card][colour]',
    ],
    // Stripe dropped this parameter in the API version that the SDK uses.
    ['POST', '/v1/payment_intents', { 'payment_method_types[0]': 'card' }, 'payment_method_types'],
    [
      'POST',
      '/v1/payment_intents',
      { 'payment_method_options[card][colour]': 'blue' },
      'payment_method_options[card][colour]',
    ],
    ['POST', '/v1/payment_intents', { '__proto__[amount]': '1' }, '__proto__'],
    ['GET', '/v1/payment_intents', { colour: 'blue' }, 'colour'],
    ['GET', '/v1/payment_intents/pi_1', { colour: 'blue' }, 'colour'],
    ['POST', '/v1/payment_intents/pi_1/capture', { amount: '1' }, 'amount'],
    ['POST', '/v1/payment_intents/pi_1/cancel', { colour: 'blue' }, 'colour'],
    ['POST', '/v1/refunds', { colour: 'blue' }, 'colour'],
    ['GET', '/v1/refunds/re_1', { colour: 'blue' }, 'colour'],
  ];
  for (const [method, at, form, param] of unknown) {
    test(`${method} ${at} with ${param}`, async () => {
      const { status, body } = await call(method, at, form);
      assert.equal(status, 400);
      assert.equal(body.error.type, 'invalid_request_error');
      assert.equal(body.error.code, 'parameter_unknown');
      assert.equal(body.error.param, param);
    });
  }

  const wrong: [form: Record<string, string>, code: string | undefined, param: string][] = [
    [{ amount: 'ten' }, 'parameter_invalid_integer', 'amount'],
    [{ amount: '1.5' }, 'parameter_invalid_integer', 'amount'],
    [{ amount: '0' }, 'parameter_invalid_integer', 'amount'],
    [{ amount: '100000000' }, 'amount_too_large', 'amount'],
    [{ currency: 'zzz' }, undefined, 'currency'],
    [{ confirm: 'yes' }, undefined, 'confirm'],
    [{ customer: 'cus_unknown' }, 'resource_missing', 'customer'],
    [{ confirmation_token: 'ctoken_unknown' }, 'resource_missing', 'confirmation_token'],
    [{ capture_method: 'never' }, undefined, 'capture_method'],
    [{ 'expand[0]': 'everything' }, undefined, 'expand'],
  ];
  for (const [form, code, param] of wrong) {
    test(`a payment with ${JSON.stringify(form)}`, async () => {
      const { status, body } = await pay('pm_card_visa', form);
      assert.equal(status, 400);
      assert.equal(body.error.code, code);
      assert.equal(body.error.param, param);
    });
  }

  test('an unknown path and an unknown object', async () => {
    assert.equal((await call('GET', '/v1/nothing')).status, 404);
    for (const at of ['/v1/payment_intents/pi_1', '/v1/customers/cus_1', '/v1/refunds/re_1']) {
      const { status, body } = await call('GET', at);
      assert.equal(status, 404);
      assert.equal(body.error.code, 'resource_missing');
    }
  });

  test('a request without a key, with a wrong key, or with the public key', async () => {
    const as = (key: string) => ({ Authorization: `Bearer ${key}` });
    const none = await fetch(`${local.url}/v1/customers`, { method: 'POST' });
    assert.equal(none.status, 401);
    assert.equal((await call('POST', '/v1/customers', {}, as('sk_test_wrong'))).status, 401);
    const refused = await call('POST', '/v1/customers', {}, as(publishableKey));
    assert.equal(refused.status, 403);
    assert.equal(refused.body.error.code, 'secret_key_required');
    assert.equal((await call('GET', '/_test/books', {}, as(publishableKey))).status, 403);
    assert.equal((await call('GET', '/_test/faults', {}, as(publishableKey))).status, 401);
    // A caller with the public key cannot move a merchant's time.
    const time = merchantAt();
    const held = await local.gateway.authorise(
      await newPayment(local, '4242424242424242', { merchant: time }),
    );
    const moved = {
      ...as(publishableKey),
      'Tranche-Merchant': time.id,
      'Tranche-Merchant-Time': time.later({ days: 30 }).now,
    };
    await call('POST', '/v1/confirmation_tokens', {}, moved);
    const { payment_ref } = held as { payment_ref: string };
    assert.equal((await local.gateway.payment(time, payment_ref)).outcome, 'authorised');

    // The card frame has only the public key, and so does a page that looks up its payment.
    const token = await call(
      'POST',
      '/v1/confirmation_tokens',
      {
        'payment_method_data[type]': 'card',
        'payment_method_data[card][number]': '4242424242424242',
      },
      as(publishableKey),
    );
    assert.equal(token.status, 200);
    const { body } = await pay('pm_card_visa');
    const at = `/v1/payment_intents/${body.id}`;
    assert.equal((await call('GET', at, {}, as(publishableKey))).status, 400);
    const { client_secret } = body;
    assert.equal((await call('GET', at, { client_secret }, as(publishableKey))).status, 200);
    const guessed = { client_secret: `${body.id}_secret_guess` };
    assert.equal((await call('GET', at, guessed, as(publishableKey))).status, 400);
  });
});

describe('idempotency', () => {
  const withKey = (key: string) => ({ 'Idempotency-Key': key });

  test('a retry gets the first status and body, also after a decline or a 500', async () => {
    for (const [card, status, fault] of [
      ['pm_card_visa', 200, null],
      ['pm_card_visa_chargeDeclined', 402, null],
      ['pm_card_visa', 500, 'error_before'],
      ['pm_card_visa', 500, 'error_after'],
    ] as const) {
      const key = randomUUID();
      if (fault !== null) await local.fault({ fault, key_contains: key });
      const form = {
        amount: '50000',
        currency: 'zar',
        confirm: 'true',
        confirmation_token: await tokenFor(card),
        return_url: 'https://pay.example.com/return',
      };
      const first = await call('POST', '/v1/payment_intents', form, withKey(key));
      assert.equal(first.status, status);
      assert.equal(first.headers.get('idempotent-replayed'), null);
      const second = await call('POST', '/v1/payment_intents', form, withKey(key));
      assert.equal(second.status, status);
      assert.equal(second.headers.get('idempotent-replayed'), 'true');
      assert.equal(second.headers.get('original-request'), first.headers.get('request-id'));
      assert.deepEqual(second.body, first.body);
      const other = { ...form, amount: '60000' };
      const refused = await call('POST', '/v1/payment_intents', other, withKey(key));
      assert.equal(refused.status, 400);
      assert.equal(refused.body.error.type, 'idempotency_error');
    }
  });

  test('a request that was refused for its parameters leaves the key free', async () => {
    const key = randomUUID();
    const bad = await call('POST', '/v1/customers', { colour: 'blue' }, withKey(key));
    assert.equal(bad.status, 400);
    const good = await call('POST', '/v1/customers', { name: 'A Shopper' }, withKey(key));
    assert.equal(good.status, 200);
  });

  test('while a request is in flight, others under its key are refused, and later get its answer', async () => {
    const key = randomUUID();
    await local.fault({ fault: 'hold_key', key_contains: key });
    const first = call('POST', '/v1/customers', {}, withKey(key));
    await local.struck('hold_key');
    const others = await Promise.all(
      Array.from({ length: 9 }, () => call('POST', '/v1/customers', {}, withKey(key))),
    );
    for (const { status, body } of others) {
      assert.equal(status, 409);
      assert.equal(body.error.code, 'idempotency_key_in_use');
    }
    await call('DELETE', '/_test/faults');
    const { status, body } = await first;
    assert.equal(status, 200);
    const retried = await call('POST', '/v1/customers', {}, withKey(key));
    assert.equal(retried.headers.get('idempotent-replayed'), 'true');
    assert.deepEqual(retried.body, body);
  });
});

describe('the pages', () => {
  test('the card frame can be shown by the configured pages only, and talks to its own origin only', async () => {
    const response = await fetch(`${local.url}/v1/card-frame?parent=http://127.0.0.1:3000`);
    const policy = response.headers.get('content-security-policy') ?? '';
    assert.match(policy, /frame-ancestors http:\/\/127\.0\.0\.1:3000(;|$)/);
    assert.match(policy, /connect-src 'self'/);
    assert.match(policy, /default-src 'none'/);
    const page = await response.text();
    for (const name of ['Card number', 'Expiry', 'Security code']) {
      assert.match(page, new RegExp(`<label[^>]*>${name}</label>`));
    }
    const closed = await startGateway();
    try {
      const response = await fetch(`${closed.url}/v1/card-frame`);
      assert.match(response.headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/);
    } finally {
      await closed.close();
    }
  });

  test('the script is served to other origins, and only as a script', async () => {
    const response = await fetch(`${local.url}/v1/tranche.js`);
    assert.match(response.headers.get('content-type') ?? '', /^text\/javascript/);
    assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
    assert.equal(response.headers.get('cross-origin-resource-policy'), 'cross-origin');
  });
});

describe('the program', () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'tranche-gateway-'));
  const running = new Set<ChildProcess>();
  after(() => {
    for (const child of running) child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });

  async function start(
    stateFile: string,
  ): Promise<{ url: string; child: ChildProcess; kill(): Promise<void> }> {
    const program = path.join(import.meta.dirname, '../../test-gateway/main.ts');
    const child = spawn(process.execPath, [program], {
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
      env: {
        PATH: process.env.PATH,
        NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
        GATEWAY_PORT: '0',
        GATEWAY_STATE_FILE: stateFile,
        GATEWAY_SECRET_KEY: secretKey,
        GATEWAY_PUBLISHABLE_KEY: publishableKey,
      },
    });
    running.add(child);
    const [line] = (await once(child.stdout as Readable, 'data')) as [Buffer];
    return {
      url: JSON.parse(line.toString()).url,
      child,
      async kill() {
        child.kill('SIGKILL');
        await once(child, 'exit');
        running.delete(child);
      },
    };
  }

  test('after SIGKILL it still has every effect that it answered, its keys and its times', async () => {
    const stateFile = path.join(folder, 'state.sqlite');
    const time = merchantAt();
    let program = await start(stateFile);
    let subject = useGateway(program.url);
    const held = await newPayment(subject, '4242424242424242', { merchant: time });
    const first = await subject.gateway.authorise(held);
    const challenged = await newPayment(subject, '4000002500003155', { merchant: time });
    const challenge = await subject.gateway.authorise(challenged);
    assert.equal(challenge.outcome, 'challenge');
    const { payment_ref, url } = challenge as { payment_ref: string; url: string };
    await program.kill();

    program = await start(stateFile);
    subject = useGateway(program.url);
    assert.deepEqual(await subject.gateway.authorise(held), first);
    // The restarted gateway has this page on another port.
    await answerChallenge(new URL(new URL(url).pathname, program.url).href, 'approve');
    const { amount, merchant } = held;
    const ref = (first as { payment_ref: string }).payment_ref;
    const capture = { key: 'capture', merchant, payment_ref: ref, amount };
    assert.deepEqual(await subject.gateway.capture(capture), { outcome: 'captured' });
    await program.kill();

    program = await start(stateFile);
    subject = useGateway(program.url);
    // No call has named a time to this process yet, but it has stored the merchant's time.
    const books = await subject.books({ checkout: held.checkout_id });
    assert.equal(books.payment_intents[0]?.status, 'succeeded');
    const state = await subject.gateway.payment(time.later({ days: 1 }), payment_ref);
    assert.equal(state.outcome, 'authorised');
    const refund = { key: 'refund', merchant, payment_ref: ref, amount, refund_id: 'one' };
    assert.equal((await subject.gateway.refund(refund)).status, 'succeeded');
    await program.kill();
  });

  test('it stops when the program that started it dies, and has stored no card number', async () => {
    const stateFile = path.join(folder, 'cards.sqlite');
    const program = await start(stateFile);
    const subject = useGateway(program.url);
    for (const number of ['4000002500003155', '5555555555554444']) {
      await subject.gateway.authorise(await newPayment(subject, number));
    }
    const ended = once(program.child, 'exit');
    program.child.disconnect();
    assert.deepEqual(await ended, [0, null]);
    running.delete(program.child);
    const files = readdirSync(folder).filter((file) => file.startsWith('cards.sqlite'));
    assert.ok(files.length > 0);
    for (const file of files) {
      const content = readFileSync(path.join(folder, file), 'latin1');
      assert.ok(!content.includes('4000002500003155'));
      assert.ok(!content.includes('5555555555554444'));
    }
  });
});
