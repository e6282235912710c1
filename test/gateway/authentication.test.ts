import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { answerChallenge, startGateway } from '../support/gateway.ts';
import { departures } from '../support/stripe-declarations.ts';

// A plan page needs two things of the gateway: 3-D Secure on request, and storing a card without a
// payment.

const local = await startGateway();
after(() => local.close());
const { call, tokenFor } = local;

const customer = async (): Promise<string> =>
  (await call('POST', '/v1/customers', { email: 'shopper@example.com' })).body.id;

const option = (name: string) => `payment_method_options[card][${name}]`;

async function pay(card: string, more: Record<string, string> = {}) {
  return await call('POST', '/v1/payment_intents', {
    amount: '50000',
    currency: 'zar',
    customer: await customer(),
    confirm: 'true',
    confirmation_token: await tokenFor(card),
    capture_method: 'manual',
    setup_future_usage: 'off_session',
    return_url: 'https://pay.example.com/return',
    'expand[0]': 'latest_charge',
    ...more,
  });
}

const conforms = (value: unknown, type: string) => assert.deepEqual(departures(value, type), []);

async function setUp(card: string, more: Record<string, string> = {}) {
  return await call('POST', '/v1/setup_intents', {
    customer: await customer(),
    confirm: 'true',
    confirmation_token: await tokenFor(card),
    usage: 'off_session',
    return_url: 'https://pay.example.com/return',
    [option('request_three_d_secure')]: 'any',
    [option('setup_credential_usage')]: 'installment',
    ...more,
  });
}

describe('3-D Secure that the caller requests', () => {
  const any = { [option('request_three_d_secure')]: 'any' };
  const secureOf = ({ body }: Awaited<ReturnType<typeof pay>>) =>
    body.latest_charge.payment_method_details.card.three_d_secure;

  for (const [card, indicator] of [
    ['4242424242424242', '06'],
    ['5555555555554444', '01'],
  ] as const) {
    test(`${card} is frictionless: the bank acknowledges without asking`, async () => {
      const paid = await pay(card, any);
      conforms(paid.body, 'PaymentIntent');
      assert.equal(paid.body.status, 'requires_capture');
      const { authentication_flow, result, electronic_commerce_indicator } = secureOf(paid);
      assert.deepEqual(
        [authentication_flow, result, electronic_commerce_indicator],
        ['frictionless', 'attempt_acknowledged', indicator],
      );
      assert.equal(paid.body.payment_method_options.card.request_three_d_secure, 'any');
    });
  }

  test('4000000000003055 is challenged only on request', async () => {
    const plain = await pay('4000000000003055');
    assert.equal(plain.body.status, 'requires_capture');
    assert.equal(secureOf(plain), null);
    const asked = await pay('4000000000003055', any);
    assert.equal(asked.body.status, 'requires_action');
    await answerChallenge(asked.body.next_action.redirect_to_url.url, 'approve');
    const held = await call('GET', `/v1/payment_intents/${asked.body.id}`, {
      'expand[0]': 'latest_charge',
    });
    const { authentication_flow, result } = secureOf(held);
    assert.deepEqual([authentication_flow, result], ['challenge', 'authenticated']);
    conforms(held.body, 'PaymentIntent');
  });

  test('378282246310005 does not support it, and the payment continues without it', async () => {
    const paid = await pay('378282246310005', any);
    assert.equal(paid.body.status, 'requires_capture');
    assert.equal(secureOf(paid).result, 'not_supported');
    conforms(paid.body, 'PaymentIntent');
  });

  test('a later charge without the shopper carries no authentication', async () => {
    const asked = await pay('4000000000003220', any);
    await answerChallenge(asked.body.next_action.redirect_to_url.url, 'approve');
    const held = await call('GET', `/v1/payment_intents/${asked.body.id}`);
    const charged = await call('POST', '/v1/payment_intents', {
      amount: '50000',
      currency: 'zar',
      confirm: 'true',
      off_session: 'true',
      customer: held.body.customer,
      payment_method: held.body.payment_method,
      [option('stored_credential_usage')]: 'installment',
      'expand[0]': 'latest_charge',
    });
    assert.equal(charged.body.status, 'succeeded');
    assert.equal(secureOf(charged), null);
  });

  test('the purpose of a stored card is kept, and unknown purposes are refused', async () => {
    const paid = await pay('4242424242424242', {
      [option('setup_credential_usage')]: 'installment',
    });
    assert.equal(paid.body.payment_method_options.card.setup_credential_usage, 'installment');
    for (const name of ['setup_credential_usage', 'request_three_d_secure']) {
      const { status, body } = await pay('4242424242424242', { [option(name)]: 'whatever' });
      assert.deepEqual([status, body.error.param], [400, option(name)]);
    }
  });
});

describe('statement descriptors', () => {
  test('the charge shows the prefix and the suffix', async () => {
    const { body } = await pay('4242424242424242', { statement_descriptor_suffix: 'BEAN 2 OF 3' });
    assert.equal(body.statement_descriptor_suffix, 'BEAN 2 OF 3');
    assert.equal(body.latest_charge.statement_descriptor_suffix, 'BEAN 2 OF 3');
    assert.equal(body.latest_charge.calculated_statement_descriptor, 'TRANCHE* BEAN 2 OF 3');
  });

  for (const suffix of ['X'.repeat(14), '2 * 3 BEANS', "BEAN'S", '123456', 'KAFFEEKÄNNCHEN']) {
    test(`${suffix} is refused`, async () => {
      const { status, body } = await pay('4242424242424242', {
        statement_descriptor_suffix: suffix,
      });
      assert.deepEqual([status, body.error.param], [400, 'statement_descriptor_suffix']);
    });
  }
});

test('an amount below the minimum of the account is refused', async () => {
  const strict = await startGateway({ account: { amountMin: 1_000 } });
  try {
    const form = async (amount: string) => ({
      amount,
      currency: 'zar',
      confirm: 'true',
      confirmation_token: await strict.tokenFor('4242424242424242'),
      return_url: 'https://pay.example.com/return',
    });
    const { status, body } = await strict.call('POST', '/v1/payment_intents', await form('999'));
    assert.deepEqual(
      [status, body.error.type, body.error.code, body.error.param],
      [400, 'invalid_request_error', 'amount_too_small', 'amount'],
    );
    const least = await strict.call('POST', '/v1/payment_intents', await form('1000'));
    assert.equal(least.status, 200);
  } finally {
    await strict.close();
  }
});

describe('storing another card', () => {
  test('a card without a challenge is attached at once', async () => {
    const stored = await setUp('4242424242424242', { 'expand[0]': 'payment_method' });
    conforms(stored.body, 'SetupIntent');
    assert.equal(stored.body.status, 'succeeded');
    assert.equal(stored.body.payment_method.customer, stored.body.customer);
    const { body } = await call('GET', `/v1/setup_intents/${stored.body.id}`);
    assert.equal(body.payment_method, stored.body.payment_method.id);
  });

  for (const [card, answer, result] of [
    ['4242424242424242', null, ['frictionless', 'attempt_acknowledged', '06']],
    ['5555555555554444', null, ['frictionless', 'attempt_acknowledged', '01']],
    ['4000000000003220', 'approve', ['challenge', 'authenticated', '05']],
    ['4000000000003220', 'decline', ['challenge', 'failed', '07']],
    ['378282246310005', null, [null, 'not_supported', null]],
  ] as const) {
    test(`the latest attempt says that ${card} was ${result[1]}`, async () => {
      const expand = { 'expand[0]': 'latest_attempt' };
      const { body } = await setUp(card, expand);
      conforms(body, 'SetupIntent');
      if (answer) await answerChallenge(body.next_action.redirect_to_url.url, answer);
      const found = await call('GET', `/v1/setup_intents/${body.id}`, expand);
      const { latest_attempt } = found.body;
      conforms(latest_attempt, 'SetupAttempt');
      assert.equal(latest_attempt.status, answer === 'decline' ? 'failed' : 'succeeded');
      const secure = latest_attempt.payment_method_details.card.three_d_secure;
      const { authentication_flow, electronic_commerce_indicator } = secure;
      assert.deepEqual([authentication_flow, secure.result, electronic_commerce_indicator], result);
    });
  }

  test('a challenge is answered on the issuer’s page, and the card can be charged later', async () => {
    const asked = await setUp('4000000000003220');
    conforms(asked.body, 'SetupIntent');
    assert.equal(asked.body.status, 'requires_action');
    const { url } = asked.body.next_action.redirect_to_url;
    const page = await (await fetch(url)).text();
    assert.match(page, /asks to store your card ending 3220 for later payments/);
    const waiting = await answerChallenge(url, 'close');
    assert.equal(waiting.searchParams.get('redirect_status'), 'pending');
    const back = await answerChallenge(url, 'approve');
    assert.equal(back.searchParams.get('setup_intent'), asked.body.id);
    assert.equal(back.searchParams.get('redirect_status'), 'succeeded');
    const { body } = await call('GET', `/v1/setup_intents/${asked.body.id}`);
    conforms(body, 'SetupIntent');
    assert.equal(body.status, 'succeeded');
    const charged = await call('POST', '/v1/payment_intents', {
      amount: '50000',
      currency: 'zar',
      confirm: 'true',
      off_session: 'true',
      customer: body.customer,
      payment_method: body.payment_method,
    });
    assert.equal(charged.body.status, 'succeeded');
  });

  test('a declined challenge and a declined card attach nothing', async () => {
    const asked = await setUp('4000000000003220');
    const back = await answerChallenge(asked.body.next_action.redirect_to_url.url, 'decline');
    assert.equal(back.searchParams.get('redirect_status'), 'failed');
    const { body } = await call('GET', `/v1/setup_intents/${asked.body.id}`);
    conforms(body, 'SetupIntent');
    assert.deepEqual(
      [body.status, body.payment_method, body.last_setup_error.code],
      ['requires_payment_method', null, 'setup_intent_authentication_failure'],
    );
    const declined = await setUp('4000000000000002');
    assert.equal(declined.status, 402);
    conforms(declined.body.error.setup_intent, 'SetupIntent');
    assert.equal(declined.body.error.decline_code, 'generic_decline');
    // Stripe stores this card, and declines its charges.
    assert.equal((await setUp('4000000000000341')).body.status, 'succeeded');
  });

  test('a setup that was cancelled cannot be approved', async () => {
    const asked = await setUp('4000000000003220');
    const cancelled = await call('POST', `/v1/setup_intents/${asked.body.id}/cancel`);
    conforms(cancelled.body, 'SetupIntent');
    await answerChallenge(asked.body.next_action.redirect_to_url.url, 'approve');
    const { body } = await call('GET', `/v1/setup_intents/${asked.body.id}`);
    assert.equal(body.status, 'canceled');
    const again = await call('POST', `/v1/setup_intents/${asked.body.id}/cancel`);
    assert.equal(again.body.error.code, 'setup_intent_unexpected_state');
  });

  test('a detached card can be neither charged nor detached again', async () => {
    const { body } = await setUp('4242424242424242');
    const detached = await call('POST', `/v1/payment_methods/${body.payment_method}/detach`);
    conforms(detached.body, 'PaymentMethod');
    assert.equal(detached.body.customer, null);
    const charged = await call('POST', '/v1/payment_intents', {
      amount: '50000',
      currency: 'zar',
      confirm: 'true',
      off_session: 'true',
      customer: body.customer,
      payment_method: body.payment_method,
    });
    assert.deepEqual([charged.status, charged.body.error.param], [400, 'payment_method']);
    const again = await call('POST', `/v1/payment_methods/${body.payment_method}/detach`);
    assert.equal(again.status, 400);
    const listed = await call('GET', '/v1/payment_methods', { customer: body.customer });
    conforms(listed.body, 'ApiList<PaymentMethod>');
    assert.deepEqual(listed.body.data, []);
  });
});

describe('lists', () => {
  test('a cursor leads forwards and backwards through each list, without gaps', async () => {
    const shopper = await customer();
    for (let count = 0; count < 5; count += 1) {
      const paid = await pay('4242424242424242', {
        customer: shopper,
        capture_method: 'automatic',
      });
      await call('POST', '/v1/refunds', { payment_intent: paid.body.id, amount: '100' });
    }
    for (const [path, type, filter] of [
      ['/v1/payment_intents', 'PaymentIntent', { customer: shopper }],
      ['/v1/charges', 'Charge', { customer: shopper }],
      ['/v1/refunds', 'Refund', {}],
    ] as const) {
      const all = await call('GET', path, { ...filter, limit: '100' });
      conforms(all.body, `ApiList<${type}>`);
      const ids: string[] = all.body.data.map(({ id }: { id: string }) => id);
      assert.ok(ids.length >= 5);
      const listed: string[] = [];
      for (let more = true; more; ) {
        const after = listed.at(-1);
        const page = await call('GET', path, {
          ...filter,
          limit: '2',
          ...(after && { starting_after: after }),
        });
        listed.push(...page.body.data.map(({ id }: { id: string }) => id));
        more = page.body.has_more;
      }
      assert.deepEqual(listed, ids);
      const back = await call('GET', path, {
        ...filter,
        limit: '2',
        ending_before: ids[3] ?? '',
      });
      const shown = back.body.data.map(({ id }: { id: string }) => id);
      assert.deepEqual([shown, back.body.has_more], [ids.slice(1, 3), true]);
    }
  });

  test('a list is restricted to a time and to one payment', async () => {
    const paid = await pay('4242424242424242', { capture_method: 'automatic' });
    await call('POST', '/v1/refunds', { payment_intent: paid.body.id, amount: '100' });
    const refunds = await call('GET', '/v1/refunds', { payment_intent: paid.body.id });
    assert.equal(refunds.body.data.length, 1);
    const charges = await call('GET', '/v1/charges', { payment_intent: paid.body.id });
    assert.deepEqual(
      charges.body.data.map(({ id }: { id: string }) => id),
      [paid.body.latest_charge.id],
    );
    const { created } = paid.body;
    const count = async (bound: Record<string, string>) =>
      (await call('GET', '/v1/payment_intents', { customer: paid.body.customer, ...bound })).body
        .data.length;
    assert.equal(await count({ 'created[gte]': String(created) }), 1);
    assert.equal(await count({ 'created[gt]': String(created) }), 0);
    assert.equal(await count({ 'created[lt]': String(created) }), 0);
  });

  test('unknown filters, cursors and limits are refused', async () => {
    for (const form of [
      { colour: 'blue' },
      { starting_after: 'ch_unknown' },
      { limit: '101' },
      { limit: '0' },
      { 'created[near]': '1' },
    ]) {
      assert.equal((await call('GET', '/v1/charges', form)).status, 400, JSON.stringify(form));
    }
  });
});
