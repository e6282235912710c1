import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { RateLimited } from '#platform/http/errors.ts';
import { createRateLimits, memoryRateLimitStore } from '#platform/http/rate-limits.ts';
import { testCards } from '../../test-gateway/cards.ts';
import { countStatuses, inParallel } from '../support/expectations.ts';
import { assertSound, type Paying, startPaying } from '../support/payments.ts';
import { type Account, createAccount } from '../support/service.ts';

let paying: Paying;
before(async () => {
  paying = await startPaying();
});
after(async () => {
  try {
    await paying.work();
    await assertSound(paying);
  } finally {
    await paying.close();
  }
});

const numberOf = (name: string) => testCards.find((card) => card.name === name)?.number as string;
const declined = () => numberOf('declined');

const alerts = async (merchant_id: string): Promise<string[]> => {
  const { rows } = await paying.service.deps.database.pool.query<{ detail: string }>(
    "select detail from alerts where kind = 'card_testing' and merchant_id = $1",
    [merchant_id],
  );
  return rows.map(({ detail }) => detail);
};

describe('the payment page is limited', () => {
  test('per link and network: 240 requests a minute, and its shopper elsewhere is not locked out', async () => {
    const shopper = await paying.shopper();
    const { rateLimits } = paying.service.deps;
    shopper.moveTo('198.51.100.8');
    for (let count = 0; count < 220; count += 1) {
      await rateLimits.paymentPage('198.51.100.8', shopper.id, false);
    }
    const answers = await inParallel(30, (index) => shopper.send('GET', `state?${index}`));
    assert.deepEqual(countStatuses(answers), { 200: 20, 429: 10 });
    shopper.moveTo('198.51.100.9');
    assert.equal((await shopper.send('GET', 'state')).status, 200);
    shopper.moveTo('127.0.0.1');
    const other = await paying.shopper();
    assert.equal((await other.send('GET', 'state')).status, 200);
    paying.clock.advance({ minutes: 1 });
    assert.equal((await shopper.send('GET', 'state')).status, 200);
  });

  test('per link and network: 20 returns a minute, which look the payment up once a second', async () => {
    const shopper = await paying.shopper();
    await shopper.pay(1, { card: numberOf('challenge') });
    const path = '/v1/payment_intents/:id';
    // The fault only counts the look-ups: it strikes each of them with a latency of 0 ms.
    await paying.gateway.fault({ fault: 'latency', ms: 0, method: 'GET', path, times: 1_000 });
    const begun = performance.now();
    const answers = await inParallel(100, () => shopper.send('GET', 'return'));
    const seconds = Math.ceil((performance.now() - begun) / 1000);
    assert.deepEqual(countStatuses(answers), { 303: 20, 429: 80 });
    const { body } = await paying.gateway.call('GET', '/_test/faults');
    await paying.clearFaults();
    const lookUps = body.data[0].struck;
    const isSpaced = lookUps >= 1 && lookUps <= 1 + seconds;
    assert.ok(isSpaced, `${lookUps} look-ups in ${seconds} seconds`);
  });

  test('per link and network: 10 documents a minute, while pages still open', async () => {
    const shopper = await paying.shopper();
    await shopper.pay(1);
    await paying.pass({ days: 1 });
    shopper.moveTo('198.51.100.8');
    for (let count = 0; count < 8; count += 1) {
      await paying.service.deps.rateLimits.document(shopper.id, '198.51.100.8');
    }
    const answers = await inParallel(4, () => shopper.send('GET', 'receipts/1/pdf'));
    assert.deepEqual(countStatuses(answers), { 200: 2, 429: 2 });
    assert.equal((await shopper.send('GET', 'receipts/1')).status, 200);
    shopper.moveTo('198.51.100.9');
    assert.equal((await shopper.send('GET', 'receipts/1/pdf')).status, 200);
  });

  test('per network for links that do not exist, which lock out no link that does', async () => {
    const get = (remoteAddress: string) =>
      paying.service.app.inject({ url: `/pay/${'x'.repeat(64)}/state`, remoteAddress });
    const answers = await inParallel(610, async () => {
      const { statusCode } = await get('192.0.2.200');
      return { status: statusCode, body: null, headers: {} };
    });
    assert.deepEqual(countStatuses(answers), { 404: 600, 429: 10 });
    assert.equal((await get('192.0.2.201')).statusCode, 404);
    const shopper = await paying.shopper();
    shopper.moveTo('192.0.2.200');
    assert.equal((await shopper.send('GET', 'state')).status, 200);
  });

  test('by no other link: ten thousand shoppers behind one address open their pages', async () => {
    const limits = createRateLimits(memoryRateLimitStore(paying.clock));
    for (let link = 0; link < 10_000; link += 1) {
      await limits.paymentPage('192.0.2.202', `checkout ${link}`, true);
    }
    const open = () => limits.paymentPage('192.0.2.202', 'checkout 1', true);
    for (let time = 1; time < 60; time += 1) await open();
    await assert.rejects(open(), RateLimited);
  });

  test('before the body is read', async () => {
    const shopper = await paying.shopper();
    shopper.moveTo('198.51.100.7');
    for (let count = 0; count < 240; count += 1) {
      await paying.service.deps.rateLimits.paymentPage('198.51.100.7', shopper.id, false);
    }
    const answer = await shopper.send('POST', 'pay', '{'.repeat(10_000));
    assert.equal(answer.status, 429);
  });
});

describe('the body of a payment', () => {
  test('of more than 16 KiB is refused', async () => {
    const shopper = await paying.shopper();
    for (const action of ['pay', 'cancel']) {
      const answer = await shopper.send('POST', action, `{"x":"${'x'.repeat(16 * 1024)}"}`);
      assert.equal(answer.status, 400);
      assert.equal(answer.body.errors[0].detail, 'The body is larger than 16 KiB.');
    }
  });

  test('is not looked at when the link does not exist', async () => {
    for (const payload of ['{', '{}', 'x'.repeat(100_000)]) {
      const answer = await paying.service.app.inject({
        method: 'POST',
        url: `/pay/${'x'.repeat(64)}/pay`,
        headers: { 'content-type': 'application/json' },
        payload,
      });
      assert.equal(answer.statusCode, 404);
    }
  });

  for (const [name, body] of [
    ['a repeated member', '{"number_of_payments":1,"number_of_payments":3}'],
    ['no JSON', '{'],
    ['a list', '[]'],
  ] as const) {
    test(`with ${name} is a 400`, async () => {
      const shopper = await paying.shopper();
      assert.equal((await shopper.send('POST', 'pay', body)).status, 400);
    });
  }
});

/** How many declines were counted for a network and for a merchant. */
async function counted(network: string, { merchant }: Account): Promise<[number, number]> {
  const { rateLimits } = paying.service.deps;
  const { ofNetwork, ofMerchant } = await rateLimits.declines(network, merchant.id, 0);
  return [ofNetwork.count, ofMerchant.count];
}

/** Counts this many declined cards, without payments. */
async function countDeclines(network: string, { merchant }: Account, count: number) {
  for (let index = 0; index < count; index += 1) {
    await paying.service.deps.rateLimits.declines(network, merchant.id, 1);
  }
}

describe('card testing', () => {
  test('on one link alerts the operator once, at the tenth declined card', async () => {
    const account = await createAccount(paying.service);
    const shopper = await paying.shopper({}, account);
    for (let index = 0; index < 12; index++) {
      shopper.moveTo(`192.0.2.${index}`);
      assert.equal((await alerts(account.merchant.id)).length, index < 10 ? 0 : 1);
      await shopper.pay(1, { card: declined() });
    }
    assert.deepEqual(await alerts(account.merchant.id), [
      'Someone may be trying out stolen cards at this merchant: 10 cards were declined on one payment link.',
    ]);
  });

  test('from one network is stopped at the twentieth declined card, over all links', async () => {
    const account = await createAccount(paying.service);
    await countDeclines('198.51.100.20', account, 17);
    for (let index = 17; index < 20; index++) {
      const shopper = await paying.shopper({}, account);
      shopper.moveTo('198.51.100.20');
      assert.equal((await shopper.pay(1, { card: declined() })).status, 'open');
    }
    assert.equal((await alerts(account.merchant.id)).length, 1);
    const shopper = await paying.shopper({}, account);
    shopper.moveTo('198.51.100.20');
    const body = await shopper.payBody(1);
    const refused = await shopper.send('POST', 'pay', body);
    assert.equal(refused.status, 429);
    assert.match(refused.body.error, /Try again in 3600 seconds/);
    assert.deepEqual(await shopper.attempts(), []);
    // Another network is not affected, and this one may pay again after the hour.
    shopper.moveTo('198.51.100.21');
    assert.equal((await shopper.send('POST', 'pay', body)).body.status, 'successful');
    paying.clock.advance({ hours: 1 });
    const later = await paying.shopper({}, account);
    later.moveTo('198.51.100.20');
    assert.equal((await later.pay(1)).status, 'successful');
  });

  test('successful payments are not counted, however many come from one network', async () => {
    const network = '198.51.100.30';
    await countDeclines(network, paying.account, 19);
    const before = await counted(network, paying.account);
    for (let index = 0; index < 3; index++) {
      const shopper = await paying.shopper();
      shopper.moveTo(network);
      assert.equal((await shopper.pay(1)).status, 'successful');
    }
    assert.deepEqual(await counted(network, paying.account), before);
  });

  test('at one merchant from many networks: the shop still sells, and repeated declines stop', async () => {
    const account = await createAccount(paying.service);
    const suspicious = await paying.shopper({}, account);
    for (let index = 0; index < 96; index++) {
      await countDeclines(`203.0.113.${index}`, account, 1);
    }
    for (let index = 96; index < 100; index++) {
      assert.deepEqual(await alerts(account.merchant.id), []);
      suspicious.moveTo(`203.0.113.${index}`);
      await suspicious.pay(1, { card: declined() });
    }
    assert.match((await alerts(account.merchant.id)).join(), /100 cards were declined within ten/);
    suspicious.moveTo('203.0.113.200');
    assert.equal((await suspicious.send('POST', 'pay', await suspicious.payBody(1))).status, 429);
    const buyer = await paying.shopper({}, account);
    assert.equal((await buyer.pay(1, { card: declined() })).status, 'open');
    assert.equal((await buyer.pay(1)).status, 'successful');
    paying.clock.advance({ minutes: 10 });
    assert.equal((await suspicious.pay(1)).status, 'successful');
  });

  test('a card that the bank declines after its challenge is counted too', async () => {
    const account = await createAccount(paying.service);
    const shopper = await paying.shopper({}, account);
    for (let index = 0; index < 10; index++) {
      await shopper.pay(1, { card: numberOf('challenge_always') });
      await shopper.decide('decline');
      assert.equal((await shopper.comeBack()).decline?.reason, 'authentication_failed');
    }
    assert.equal((await alerts(account.merchant.id)).length, 1);
  });

  test('a card is counted once, however often the browser comes back', async () => {
    const account = await createAccount(paying.service);
    const shopper = await paying.shopper({}, account);
    const network = '198.51.100.40';
    shopper.moveTo(network);
    await shopper.pay(1, { card: numberOf('challenge_always') });
    await shopper.decide('decline');
    const answers = await inParallel(15, () => shopper.send('GET', 'return'));
    assert.deepEqual(countStatuses(answers), { 303: 15 });
    assert.deepEqual(await counted(network, account), [1, 1]);
  });

  test('every card is counted once, however many tabs pay at the same time', async () => {
    const account = await createAccount(paying.service);
    const shopper = await paying.shopper({}, account);
    const network = '198.51.100.41';
    shopper.moveTo(network);
    const bodies = await inParallel(18, () => shopper.payBody(1, { card: declined() }));
    await inParallel(6, async (tab) => {
      for (const body of bodies.slice(tab * 3, tab * 3 + 3))
        await shopper.send('POST', 'pay', body);
    });
    const attempts = await shopper.attempts();
    assert.ok(attempts.every(({ status }) => status === 'declined'));
    assert.deepEqual(await counted(network, account), [attempts.length, attempts.length]);
  });

  test('a card is counted too if its outcome is found only later', async () => {
    const account = await createAccount(paying.service);
    const shopper = await paying.shopper({}, account);
    const network = '198.51.100.42';
    shopper.moveTo(network);
    await shopper.pay(1, { card: numberOf('challenge_always') });
    await shopper.decide('decline');
    assert.deepEqual(await counted(network, account), [0, 0]);
    await paying.pass({ seconds: 25 });
    assert.equal((await shopper.state()).decline?.reason, 'authentication_failed');
    assert.deepEqual(await counted(network, account), [1, 1]);
    // The network is known only for as long as it is needed.
    assert.deepEqual(
      (await shopper.attempts()).map((one) => one.sealed_network),
      [null],
    );
  });
});
