import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import zlib from 'node:zlib';
import decodeQR from 'qr/decode.js';
import { createIntegration } from '#merchants/integrations/create-integration.ts';
import { setEvents } from '#merchants/integrations/set-events.ts';
import { findMerchant } from '#merchants/merchant.sql.ts';
import { listOrdersOf } from '#operating/operations/payment-links.sql.ts';
import { transaction } from '#platform/database/transaction.ts';
import { createRateLimits, memoryRateLimitStore } from '#platform/http/rate-limits.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { sendDueMessages } from '#purchases/messages/sending/send-messages.ts';
import { cancelPaymentLink } from '#purchases/payment-links/cancel-payment-link.ts';
import { mailPaymentLink } from '#purchases/payment-links/mail-payment-link.ts';
import { offerPaymentLink } from '#purchases/payment-links/offer-payment-link.ts';
import { openPaymentLink } from '#purchases/payment-links/open-payment-link.ts';
import { qrPng } from '#purchases/payment-links/qr-code.ts';
import { eraseExpiredLinks, eraseShopper } from '#purchases/shoppers/erase-shopper.ts';
import { exportShopper } from '#purchases/shoppers/export-shopper.ts';
import { assertRefusedLike, frozenClock } from '../support/expectations.ts';
import { askRefund } from '../support/money.ts';
import { assertSound, type Paying, startPaying } from '../support/payments.ts';
import {
  type Account,
  createAccount,
  createCheckout,
  liftLimits,
  send,
} from '../support/service.ts';
import { findTraces } from '../support/traces.ts';

let paying: Paying;
before(async () => {
  paying = await startPaying();
});
after(async () => {
  await assertSound(paying);
  await paying.close();
});

const content = (changes: object = {}) => ({
  amount: 150_000,
  currency: 'ZAR',
  client_reference_id: 'order-7001',
  customer: { email: 'thandi@example.com', first_name: 'Thandi' },
  notify_url: paying.receiver.url,
  success_url: 'https://shop.example/paid',
  cancel_url: 'https://shop.example/cart',
  ...changes,
});

const post = (changes: object = {}, headers = {}, account: Account = paying.account) =>
  send(paying.service, account, 'POST', '/api/payment-links', { body: content(changes), headers });

async function create(changes: object = {}) {
  const { status, body } = await post(changes);
  assert.equal(status, 200, JSON.stringify(body));
  return body.data as { id: string; attributes: Record<string, string> };
}

async function read(id: string) {
  const answer = await send(paying.service, paying.account, 'GET', `/api/payment-links/${id}`);
  assert.equal(answer.status, 200);
  return answer.body.data.attributes;
}

const get = (url: string, headers = {}) => paying.service.app.inject({ url: pathOf(url), headers });
const pathOf = (url: string) =>
  new URL(url, 'http://localhost').pathname + new URL(url, 'http://localhost').search;

/** Presses the button of a link's page. */
const proceed = (
  link: { attributes: Record<string, string> },
  form: Record<string, string> = {},
  remoteAddress = '127.0.0.1',
) =>
  paying.service.app.inject({
    method: 'POST',
    remoteAddress,
    url: pathOf(link.attributes.url as string),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    payload: new URLSearchParams(form).toString(),
  });

/** The shopper on the payment page that the button led to. */
async function shopperOf(link: { id: string }) {
  return paying.open((await read(link.id)).checkout_id);
}

const countCheckouts = async (id: string) => {
  const { pool } = paying.service.deps.database;
  const { rows } = await pool.query(
    'select count(*)::integer as count from checkouts where payment_link_id = $1',
    [id],
  );
  return rows[0].count;
};

describe('creating', () => {
  test('answers with the address, the code and the status, in the contract’s envelope', async () => {
    const { id, attributes } = await create();
    const { url, qr_svg_url, created_at, ...rest } = attributes;
    assert.match(String(url), /^http:\/\/localhost:3000\/link\/[\w-]{70}$/);
    assert.equal(qr_svg_url, `${url}/qr.svg`);
    assert.deepEqual(rest, {
      status: 'active',
      amount: 150_000,
      currency: 'ZAR',
      client_reference_id: 'order-7001',
      reusable: false,
      expires_at: Temporal.Instant.from(created_at as string)
        .add({ hours: 720 })
        .toString({ fractionalSecondDigits: 3 }),
      checkout_id: null,
    });
    assert.deepEqual(await read(id), attributes);
    const list = await send(
      paying.service,
      paying.account,
      'GET',
      '/api/payment-links?page[items]=1',
    );
    assert.deepEqual(list.body.data, [{ id, type: 'payment_links', attributes }]);
    assert.match(list.body.links.last, /\/api\/payment-links\?page/);
  });

  const actionsOn = async (id: string) => {
    const { rows } = await paying.service.deps.database.pool.query(
      `select operator, action, merchant_id, person_id, os_user, details->>'integration_id' as integration_id
       from operator_actions where subject_id = $1`,
      [id],
    );
    return rows;
  };

  test('is in the merchant’s audit as an action of its key, if the link is mailed', async () => {
    assert.deepEqual(await actionsOn((await create()).id), []);
    const { id } = await create({ mail: true });
    assert.deepEqual(await actionsOn(id), [
      {
        ...{ operator: 'API key', action: 'payment-links create', person_id: null, os_user: null },
        ...{ merchant_id: paying.account.merchant.id, integration_id: paying.account.id },
      },
    ]);
  });

  const inDays = (days: number) =>
    paying.clock
      .now()
      .add({ hours: 24 * days })
      .toString();
  const refusals: [string, () => object, string | RegExp][] = [
    ['an amount outside the bands', () => ({ amount: 1 }), /Validation failed: Amount has to be /],
    ['no amount', () => ({ amount: undefined }), 'Validation failed: amount is required.'],
    ['another currency', () => ({ currency: 'USD' }), /must match merchant territory currency/],
    [
      'an expiry in the past',
      () => ({ expires_at: inDays(0) }),
      /expires_at must be in the future/,
    ],
    ['an expiry beyond 30 days', () => ({ expires_at: inDays(31) }), /at most 30 days from now/],
    [
      'an expiry that is not a time',
      () => ({ expires_at: '2026-13-01' }),
      /expires_at must be a time/,
    ],
    ['a shopper of a reusable link', () => ({ reusable: true }), /customer must be left out/],
    ['an unsafe notify_url', () => ({ notify_url: 'http://shop.example/' }), /notify_url/],
    [
      'a merchant of another integration',
      () => ({ merchant_id: crypto.randomUUID() }),
      /merchant_id/,
    ],
    ['a text where a flag belongs', () => ({ reusable: 'yes' }), /reusable must be boolean/],
  ];
  for (const [what, changes, detail] of refusals) {
    test(`refuses ${what}`, async () => {
      const { status, body } = await post(changes());
      assert.equal(status, 422, JSON.stringify(body));
      const details = body.errors.map((one: { detail: string }) => one.detail).join('\n');
      if (typeof detail === 'string') assert.equal(details, detail);
      else assert.match(details, detail);
    });
  }

  test('needs its signature, and answers a repeated key with the first link', async () => {
    const unsigned = await send(paying.service, paying.account, 'POST', '/api/payment-links', {
      body: content(),
      signed: false,
    });
    assertRefusedLike(unsigned, 400, /Signing has become mandatory/);
    const key = { 'idempotency-key': 'link-key-1' };
    const [first, again] = [await post({}, key), await post({}, key)];
    assert.deepEqual(again.body, first.body);
    assert.equal(again.headers['idempotent-replayed'], 'true');
    assertRefusedLike(await post({ amount: 160_000 }, key), 422, /was already used/);
  });

  test('an intermediary creates and reads links of merchants that it manages, and of no others', async () => {
    const { deps } = paying.service;
    const managed = await createAccount(paying.service);
    const platform = await createIntegration(deps, 'test', {
      managed_merchant_ids: [managed.merchant.id],
      refund_mode: 'manual',
    });
    await liftLimits(deps, platform.id);
    const ask = (merchant_id?: string) =>
      send(paying.service, platform, 'POST', '/api/payment-links', {
        body: content({ merchant_id, mail: true }),
      });
    const made = await ask(managed.merchant.id);
    assert.equal(made.status, 200);
    const [{ operator, integration_id }] = await actionsOn(made.body.data.id);
    assert.deepEqual([operator, integration_id], ['API key of an intermediary', null]);
    assertRefusedLike(await ask(paying.account.merchant.id), 404, /There is no merchant/);
    assertRefusedLike(await ask(), 422, /merchant_id is required/);
    const path = `/api/payment-links/${made.body.data.id}`;
    assert.equal((await send(paying.service, platform, 'GET', path)).status, 200);
    assertRefusedLike(
      await send(paying.service, paying.account, 'GET', path),
      404,
      /no payment link/,
    );
  });
});

describe('opening', () => {
  test('the page and the printed sheet show the shop’s logo, from our own host', async () => {
    const link = await create();
    const { pool } = paying.service.deps.database;
    const logo = 'ab'.repeat(32);
    const set = 'update merchants set logo = $2, logo_png = $3 where id = $1';
    const { id } = paying.account.merchant;
    await pool.query(set, [id, logo, qrPng('logo')]);
    for (const path of ['', '/print']) {
      const { body, headers } = await get(`${link.attributes.url}${path}`);
      assert.match(body, new RegExp(`src="/pay/logos/${logo}.png"`));
      assert.match(String(headers['content-security-policy']), /img-src 'self'/);
    }
    await pool.query(set, [id, null, null]);
  });

  test('a program that follows the link makes nothing; the button makes a checkout that is paid with one callback', async () => {
    const link = await create({ client_reference_id: 'order-7002' });
    for (const suffix of ['', '/qr.svg', '/qr.png', '/print', '?lang=zu']) {
      assert.equal((await get(`${link.attributes.url}${suffix}`)).statusCode, 200, suffix);
    }
    assert.equal(
      (
        await paying.service.app.inject({
          method: 'HEAD',
          url: pathOf(link.attributes.url as string),
        })
      ).statusCode,
      200,
    );
    assert.equal(await countCheckouts(link.id), 0);

    const answer = await proceed(link);
    assert.equal(answer.statusCode, 303);
    assert.match(String(answer.headers.location), /^\/pay\/[\w-]+$/);
    assert.equal((await get(String(answer.headers.location))).statusCode, 200);
    const shopper = await shopperOf(link);
    const page = await shopper.pay(3);
    assert.equal(page.status, 'successful');
    assert.equal(page.return_url, 'https://shop.example/paid');
    const [callback] = paying.receiver.received.slice(-1);
    assert.deepEqual(JSON.parse(String(callback?.raw)), {
      status: 'successful',
      amount: 150_000,
      currency: 'ZAR',
      client_reference_id: 'order-7002',
      number_of_payments: 3,
    });
    assert.equal((await read(link.id)).status, 'paid');
    assert.match((await get(link.attributes.url as string)).body, /This has been paid/);
    assert.match((await proceed(link)).body, /This has been paid/);
    assert.equal(await countCheckouts(link.id), 1);
  });

  test('shoppers who come at once share one checkout, and a second payment finds it paid', async () => {
    const link = await create();
    const answers = await Promise.all(Array.from({ length: 8 }, () => proceed(link)));
    assert.equal(new Set(answers.map(({ headers }) => headers.location)).size, 1);
    assert.equal(await countCheckouts(link.id), 1);
    const [one, other] = [await shopperOf(link), await shopperOf(link)];
    const pages = await Promise.all([one.pay(1), other.pay(1)]);
    assert.ok(pages.some(({ status }) => status === 'successful'));
    assert.equal((await other.state()).status, 'successful');
    const authorised = (await one.rows('payment_attempts')).filter(
      ({ status }: { status: string }) => status === 'authorised',
    );
    assert.equal(authorised.length, 1);
  });

  test('a shopper who cancelled or came too late gets a new checkout, but not while a payment is in flight', async () => {
    const link = await create();
    await proceed(link);
    await (await shopperOf(link)).cancel();
    await proceed(link);
    assert.equal(await countCheckouts(link.id), 2);
    const shopper = await shopperOf(link);
    const challenged = await shopper.pay(1, { card: '4000002500003155' });
    assert.equal(challenged.status, 'challenge');
    paying.clock.advance({ minutes: 32 });
    await proceed(link);
    assert.equal(await countCheckouts(link.id), 2);
    await paying.pass({ minutes: 30 });
    await proceed(link);
    assert.equal(await countCheckouts(link.id), 3);
  });

  const checkoutsOf = async (id: string) => {
    const { rows } = await paying.service.deps.database.pool.query(
      `select id, status, customer->>'email' as email, expires_at > $2 as is_open
       from checkouts where payment_link_id = $1 order by number`,
      [id, timestamp(paying.clock.now())],
    );
    return rows as { id: string; status: string; email: string; is_open: boolean }[];
  };

  test('a checkout is shared only by shoppers who type its address; another address ends it and makes a new one', async () => {
    const link = await create({ customer: undefined, client_reference_id: 'order-7003' });
    const [wrong, same, corrected, again] = [
      await proceed(link, { email: 'tandi@mail.example' }),
      await proceed(link, { email: ' Tandi@Mail.example' }),
      await proceed(link, { email: 'thandi@mail.example' }),
      await proceed(link, { email: 'thandi@mail.example' }),
    ].map(({ headers }) => String(headers.location));
    assert.deepEqual([same, again], [wrong, corrected]);
    assert.notEqual(corrected, wrong);
    const [old, current, ...more] = await checkoutsOf(link.id);
    assert.deepEqual(
      [old, current].map((one) => [one?.email, one?.is_open]),
      [
        ['tandi@mail.example', false],
        ['thandi@mail.example', true],
      ],
    );
    assert.deepEqual(more, []);

    const received = paying.receiver.received.length;
    const left = paying.open(old?.id as string);
    for (const page of [await left.state(), await left.pay(1), await left.cancel()]) {
      assert.deepEqual([page.status, page.return_url], ['expired', link.attributes.url]);
    }
    assert.deepEqual(await left.rows('payment_attempts'), []);
    const shopper = await shopperOf(link);
    assert.equal(shopper.id, current?.id);
    assert.equal((await shopper.pay(1)).status, 'successful');
    const told = paying.receiver.received.slice(received).map(({ raw }) => JSON.parse(String(raw)));
    assert.deepEqual(
      told.map(({ client_reference_id, status }) => [client_reference_id, status]),
      [['order-7003', 'successful']],
    );
    assert.match((await proceed(link, { email: 'late@mail.example' })).body, /This has been paid/);
  });

  test('shoppers who type different addresses at once leave one checkout that can be paid', async () => {
    const link = await create({ customer: undefined });
    const emails = ['one', 'two', 'three', 'four'].map((name) => `${name}@mail.example`);
    const answers = await Promise.all(emails.map((email) => proceed(link, { email })));
    assert.deepEqual(new Set(answers.map(({ statusCode }) => statusCode)), new Set([303]));
    const checkouts = await checkoutsOf(link.id);
    assert.deepEqual(checkouts.map(({ email }) => email).sort(), emails.sort());
    const open = checkouts.filter(({ is_open }) => is_open).map(({ id }) => id);
    assert.deepEqual(open, [(await read(link.id)).checkout_id]);
  });

  test('an erased shopper’s address that was replaced does not end the link of the next shopper', async () => {
    const link = await create({ customer: undefined });
    await proceed(link, { email: 'eleventh@mail.example' });
    await proceed(link, { email: 'twelfth@mail.example' });
    await paying.pass({ hours: 2 });
    await eraseShopper(paying.service.deps, 'nomsa', 'eleventh@mail.example');
    assert.equal((await read(link.id)).status, 'active');
    assert.equal((await proceed(link, { email: 'twelfth@mail.example' })).statusCode, 303);
    assert.equal((await (await shopperOf(link)).pay(1)).status, 'successful');
  });

  test('another address waits while someone is paying, and stays in the form', async () => {
    const link = await create({ customer: undefined });
    await proceed(link, { email: 'first@mail.example' });
    const shopper = await shopperOf(link);
    assert.equal((await shopper.pay(1, { card: '4000002500003155' })).status, 'challenge');
    const url = link.attributes.url as string;
    for (const [lang, text] of [
      ['en', /A payment was begun here with another e-mail address\./],
      ['af', /’n Betaling is hier met ’n ander e-posadres begin\./],
      ['zu', /Inkokhelo iqaliwe lapha ngelinye ikheli le-imeyili\./],
    ] as const) {
      const other = { attributes: { url: `${url}?lang=${lang}` } };
      const answer = await proceed(other, { email: 'other@mail.example' });
      assert.equal(answer.statusCode, 409);
      assert.match(answer.body, text);
      assert.match(answer.body, /value="other@mail\.example"/);
    }
    assert.equal((await proceed(link, { email: 'first@mail.example' })).statusCode, 303);
    assert.equal(await countCheckouts(link.id), 1);
    assert.equal((await shopper.state()).status, 'challenge');
    await paying.pass({ minutes: 62 });
    assert.equal((await proceed(link, { email: 'other@mail.example' })).statusCode, 303);
    assert.equal((await (await shopperOf(link)).pay(1)).status, 'successful');
  });

  test('a stranger cannot replace checkouts without end', async () => {
    const link = await create({ customer: undefined });
    const statuses = [];
    for (let count = 0; count < 21; count += 1) {
      statuses.push((await proceed(link, { email: `a${count}@b.example` })).statusCode);
    }
    assert.deepEqual([new Set(statuses.slice(0, 20)), statuses.at(-1)], [new Set([303]), 429]);
    assert.equal((await proceed(link, { email: 'a19@b.example' })).statusCode, 303);
    assert.equal(await countCheckouts(link.id), 20);
  });

  test('a link that is cancelled, expired or unknown says so in the shopper’s language, and makes nothing', async () => {
    const cancelled = await create();
    const key = { merchant_id: paying.account.merchant.id, id: cancelled.id };
    await cancelPaymentLink(paying.service.deps, 'nomsa', key);
    await cancelPaymentLink(paying.service.deps, 'nomsa', key);
    const url = cancelled.attributes.url as string;
    assert.match((await get(url)).body, /This link was cancelled/);
    assert.match(
      (await get(url, { 'accept-language': 'af' })).body,
      /Hierdie skakel is gekanselleer/,
    );
    assert.match((await get(`${url}?lang=zu`)).body, /Lesi sixhumanisi sikhanseliwe/);
    assert.match((await proceed(cancelled)).body, /This link was cancelled/);

    const expires_at = paying.clock.now().add({ minutes: 5 }).toString();
    const expired = await create({ expires_at });
    paying.clock.advance({ minutes: 5 });
    assert.match((await proceed(expired)).body, /This link has expired/);
    assert.equal((await read(expired.id)).status, 'expired');
    assert.deepEqual(
      [await countCheckouts(cancelled.id), await countCheckouts(expired.id)],
      [0, 0],
    );

    for (const token of ['x', url.split('/').at(-1)?.slice(1), 'A'.repeat(70), '%00']) {
      const answer = await get(`/link/${token}`);
      assert.equal(answer.statusCode, 404);
    }
    const { url: payUrl } = await paying.shopper();
    assert.equal((await get(payUrl.replace('/pay/', '/link/'))).statusCode, 404);
    assert.equal((await get(url.replace('/link/', '/pay/'))).statusCode, 404);
  });

  test('a link without addresses sells without callbacks and events, and ends on our own page', async () => {
    const { deps } = paying.service;
    const { pool } = deps.database;
    const addresses = { notify_url: undefined, success_url: undefined, cancel_url: undefined };
    const received = paying.receiver.received.length;
    await setEvents(deps, 'test', { id: paying.account.id, enable: ['refunds'], disable: [] });
    const link = await create(addresses);
    await proceed(link);
    const cancelled = await (await shopperOf(link)).cancel();
    assert.deepEqual([cancelled.status, cancelled.return_url], ['cancelled', link.attributes.url]);
    await proceed(link);
    const shopper = await shopperOf(link);
    const paid = await shopper.pay(1);
    assert.deepEqual([paid.status, paid.return_url], ['successful', null]);
    assert.equal((await read(link.id)).status, 'paid');
    await askRefund(paying, shopper, 100);
    await paying.pass({ minutes: 30 });
    const { rows } = await pool.query(
      `select k.id from callbacks k join checkouts c on c.id = k.checkout_id
       where c.payment_link_id = $1`,
      [link.id],
    );
    assert.deepEqual([rows, paying.receiver.received.length], [[], received]);
    await setEvents(deps, 'test', { id: paying.account.id, enable: [], disable: ['refunds'] });
  });

  test('a person of a shop without a server makes links; the address of an order is used unless they want none', async () => {
    const { deps } = paying.service;
    const { pool } = deps.database;
    const shop = await createAccount(paying.service);
    const addressOf = async (offer: object) => {
      const content = { amount: 150_000, client_reference_id: 'order-1', ...offer };
      const id = await offerPaymentLink(deps, 'nomsa', shop.merchant.id, content);
      const { rows } = await pool.query('select notify_url from payment_links where id = $1', [id]);
      return rows[0].notify_url;
    };
    assert.equal(await addressOf({}), null);
    const { url } = paying.receiver;
    assert.equal(await addressOf({ notify_url: url }), url);
    await createCheckout(paying.service, shop, { notify_url: url });
    assert.deepEqual([await addressOf({}), await addressOf({ notify_url: null })], [url, null]);
  });

  test('a payment that began before the link was cancelled counts', async () => {
    const link = await create();
    await proceed(link);
    const key = { merchant_id: paying.account.merchant.id, id: link.id };
    await cancelPaymentLink(paying.service.deps, 'nomsa', key);
    assert.equal((await read(link.id)).status, 'cancelled');
    await (await shopperOf(link)).pay(1);
    assert.equal((await read(link.id)).status, 'paid');
    await assert.rejects(cancelPaymentLink(paying.service.deps, 'nomsa', key), /is paid/);
  });

  test('a reusable link asks for amount and address, and each shopper gets an order of their own', async () => {
    const till = await create({
      client_reference_id: 'till-1',
      reusable: true,
      amount: undefined,
      customer: undefined,
    });
    assert.deepEqual([till.attributes.amount, till.attributes.expires_at], [null, null]);
    for (const form of [
      {},
      { amount: '1', email: 'a@b.example' },
      { amount: '500', email: '<b>' },
      { amount: '1 50', email: 'a@b.example' },
    ]) {
      const { statusCode, body } = await proceed(till, form as Record<string, string>);
      assert.equal(statusCode, 422);
      assert.doesNotMatch(body, /<b>/);
    }
    assert.equal(await countCheckouts(till.id), 0);
    for (const amount of ['500', 'R 1 234,50', '150,5']) {
      assert.equal((await proceed(till, { amount, email: 'a@b.example' })).statusCode, 303);
      await (await shopperOf(till)).pay(1);
    }
    const { pool } = paying.service.deps.database;
    const { rows } = await pool.query(
      `select client_reference_id, amount::integer, status, customer from checkouts
       where payment_link_id = $1 order by number`,
      [till.id],
    );
    const [status, customer] = ['successful', { email: 'a@b.example' }];
    assert.deepEqual(rows, [
      { client_reference_id: 'till-1-1', amount: 50_000, status, customer },
      { client_reference_id: 'till-1-2', amount: 123_450, status, customer },
      { client_reference_id: 'till-1-3', amount: 15_050, status, customer },
    ]);
    assert.equal((await read(till.id)).status, 'active');

    // A shopper who only opens the link does not push those who paid off its page.
    await proceed(till, { amount: '500', email: 'later@b.example' });
    const key = { merchant_id: paying.account.merchant.id, id: till.id };
    const orders = await listOrdersOf(paying.service.deps.database.db, key, 4);
    const numbers = orders.map(({ client_reference_id }) => client_reference_id);
    assert.deepEqual(numbers, ['till-1-3', 'till-1-2', 'till-1-1', 'till-1-4']);
  });

  test('a stranger cannot make checkouts without end', async () => {
    const till = await create({ reusable: true, customer: undefined });
    const statuses = [];
    for (let count = 0; count < 21; count += 1) {
      statuses.push((await proceed(till, { email: 'a@b.example' })).statusCode);
    }
    assert.deepEqual(new Set(statuses.slice(0, 20)), new Set([303]));
    assert.equal(statuses.at(-1), 429);
    assert.equal(await countCheckouts(till.id), 20);
  });

  test('strangers who know the link of one order cannot lock its shopper out of it', async () => {
    const link = await create();
    const statuses = new Set<number>();
    for (const stranger of ['198.51.100.1', '198.51.100.2', '198.51.100.3']) {
      for (let count = 0; count < 20; count += 1) {
        statuses.add((await proceed(link, {}, stranger)).statusCode);
      }
    }
    assert.deepEqual([...statuses], [303]);
    assert.equal((await proceed(link, {}, '203.0.113.7')).statusCode, 303);
    assert.equal(await countCheckouts(link.id), 1);
  });

  test('strangers who use up a till’s code leave every other network its first orders', async () => {
    const limits = createRateLimits(memoryRateLimitStore(frozenClock()));
    const order = (network: string) =>
      limits.linkCheckout('till', network).then(
        () => true,
        () => false,
      );
    const ordersOf = async (network: string, count: number) =>
      (await Promise.all(Array.from({ length: count }, () => order(network)))).filter(Boolean)
        .length;
    const ofStrangers = [];
    for (const stranger of ['a', 'b', 'c', 'd']) ofStrangers.push(await ordersOf(stranger, 25));
    assert.deepEqual(ofStrangers, [20, 20, 20, 12]);
    assert.equal(await ordersOf('shopper', 25), 3);
    for (let at = 0; at < 200; at += 1) await ordersOf(`net ${at}`, 3);
    assert.equal(await ordersOf('late', 1), 0, 'all networks together have a limit');
  });

  test('a hostile form is refused and never causes a fault', async () => {
    const link = await create({ customer: undefined });
    const url = pathOf(link.attributes.url as string);
    for (const [type, payload] of [
      ['application/x-www-form-urlencoded', 'email=%zz'],
      ['application/x-www-form-urlencoded', `email=${'a'.repeat(5_000)}`],
      ['application/x-www-form-urlencoded', 'email=a&email=b'],
      ['application/json', '{}'],
      ['text/plain', 'email=a@b.example'],
    ] as const) {
      const answer = await paying.service.app.inject({
        ...{ method: 'POST', url, payload, headers: { 'content-type': type } },
      });
      assert.equal(answer.statusCode, 400, payload.slice(0, 20));
    }
    assert.equal((await proceed(link, { email: 'a@b.example\u0000' })).statusCode, 422);
    assert.equal((await proceed(link, { 'email[x]': 'a@b.example' })).statusCode, 422);
  });

  test('an opening whose commit was in doubt makes no second checkout', async () => {
    const link = await create();
    const { deps } = paying.service;
    const { merchant_id, id } = { merchant_id: paying.account.merchant.id, id: link.id };
    const merchant = await findMerchant(deps.database.db, deps.clock, merchant_id);
    assert(merchant);
    const fixed = deps.random.uuid();
    const random = { ...deps.random, uuid: () => fixed };
    const open = () =>
      openPaymentLink(
        { ...deps, random },
        merchant,
        { merchant_id, id },
        { email: null, amount: null },
      );
    assert.deepEqual(
      [await open(), await open()],
      [
        { id: fixed, merchant_id },
        { id: fixed, merchant_id },
      ],
    );
    assert.equal(await countCheckouts(link.id), 1);
    await transaction(deps, async ({ db }) => {
      const row = await db
        .selectFrom('payment_links')
        .select('checkouts')
        .where('id', '=', id)
        .executeTakeFirst();
      assert.equal(row?.checkouts, 1);
    });
  });
});

describe('mailing', () => {
  const mailbox = async (recipient: string) => {
    const { pool } = paying.service.deps.database;
    const { rows } = await pool.query(
      'select subject, text, html from mailbox where recipient = $1 order by sent_at, id',
      [recipient],
    );
    return rows as { subject: string; text: string; html: string }[];
  };
  const mailsOf = async (payment_link_id: string) => {
    const { pool } = paying.service.deps.database;
    const { rows } = await pool.query(
      'select status from messages where payment_link_id = $1 order by about',
      [payment_link_id],
    );
    return rows.map(({ status }: { status: string }) => status);
  };
  const mail = (id: string) =>
    mailPaymentLink(paying.service.deps, 'nomsa', {
      merchant_id: paying.account.merchant.id,
      id,
    });

  test('a link goes to its shopper in the merchant’s language, without a text or logo that the shop made', async () => {
    const { deps } = paying.service;
    const { pool } = deps.database;
    const { id } = paying.account.merchant;
    await pool.query("update merchants set language = 'af' where id = $1", [id]);
    const email = 'first@mail.example';
    const link = await create({ mail: true, customer: { email } });
    await sendDueMessages(deps);
    const [sent] = await mailbox(email);
    assert.match(String(sent?.subject), /^R\s1\s500,00 om aan .+ te betaal$/);
    assert.match(String(sent?.text), /bestelling order-7001/);
    assert.ok(sent?.text.includes(link.attributes.url as string));
    assert.ok(sent?.html.includes(link.attributes.url as string));
    assert.deepEqual(await mailsOf(link.id), ['sent']);
    await pool.query(
      "update merchants set language = 'en', contact = 'evil@x.example', address = 'evil 1' where id = $1",
      [id],
    );
    const other = { email: 'second@mail.example' };
    for (const hostile of ['Claim 1 at www.evil.example', 'You are evil 1', 'evil']) {
      await create({ mail: true, customer: other, client_reference_id: hostile });
    }
    await sendDueMessages(deps);
    const mails = await mailbox(other.email);
    assert.equal(mails.length, 3);
    for (const { subject, text, html } of mails) {
      assert.match(text, /asks you to pay R\s1\s500,00\./);
      assert.match(text, /works until .+, \d\d:\d\d\./);
      assert.doesNotMatch(`${subject}${text}${html}`, /evil|logos/);
    }
  });

  test('needs an address, and is sent again three times at most, ten minutes apart, while the link lives', async () => {
    const refused = await post({ mail: true, customer: undefined });
    assertRefusedLike(refused, 422, /mail needs the address of the shopper/);
    const link = await create({ mail: true, customer: { email: 'third@mail.example' } });
    await assert.rejects(mail(link.id), /Wait ten minutes/);
    for (const _ of [2, 3]) {
      paying.clock.advance({ minutes: 11 });
      await mail(link.id);
    }
    paying.clock.advance({ minutes: 11 });
    await assert.rejects(mail(link.id), /The mail was already sent 3 times/);
    const key = { merchant_id: paying.account.merchant.id, id: link.id };
    await cancelPaymentLink(paying.service.deps, 'nomsa', key);
    await sendDueMessages(paying.service.deps);
    assert.deepEqual(await mailsOf(link.id), ['skipped', 'skipped', 'skipped']);
    assert.deepEqual(await mailbox('third@mail.example'), []);
    await assert.rejects(mail(link.id), /is cancelled/);
    const till = await create({ reusable: true, customer: undefined });
    await assert.rejects(mail(till.id), /address of the shopper/);
  });

  test('a shop can mail 100 links in 24 hours, even at once, and a refused one is not created', async () => {
    const { deps } = paying.service;
    const shop = await createAccount(paying.service);
    const offer = (index: number) =>
      offerPaymentLink(deps, 'nomsa', shop.merchant.id, {
        amount: 150_000,
        client_reference_id: `order-${index}`,
        customer: { email: `stranger-${index}@mail.example` },
        mail: true,
      });
    for (let at = 0; at < 96; at += 1) await offer(at);
    const settled = await Promise.allSettled(Array.from({ length: 8 }, (_, at) => offer(96 + at)));
    const failures = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
    assert.equal(failures.length, 4);
    for (const { message } of failures) assert.match(message, /mailed 100 links in 24 hours/);
    const body = content({ mail: true });
    const answer = await send(paying.service, shop, 'POST', '/api/payment-links', { body });
    assertRefusedLike(
      answer,
      422,
      /mail cannot be sent: this shop has mailed 100 links in 24 hours/,
    );
    const { rows } = await deps.database.pool.query(
      'select count(*)::integer as count from payment_links where merchant_id = $1',
      [shop.merchant.id],
    );
    assert.equal(rows[0].count, 100);
    await paying.pass({ hours: 25 });
    await offer(105);
  });

  test('an erased shopper’s mails are deleted, a waiting one is not sent, and no link names the shopper', async () => {
    const { deps } = paying.service;
    const email = 'fourth@mail.example';
    const sent = await create({ mail: true, customer: { email } });
    await sendDueMessages(deps);
    const waiting = await create({
      ...{ mail: true, customer: { email }, client_reference_id: `77 ${email}` },
      success_url: `https://shop.example/paid?for=${email}`,
    });
    await eraseShopper(deps, 'nomsa', email);
    await sendDueMessages(deps);
    assert.deepEqual(await findTraces(deps.database, [email]), []);
    const statuses = [(await read(sent.id)).status, (await read(waiting.id)).status];
    assert.deepEqual(statuses, ['active', 'cancelled']);
    assert.deepEqual([await mailsOf(sent.id), await mailsOf(waiting.id)], [['sent'], ['skipped']]);
  });

  test('a link whose reference contains a shopper’s name from another record is erased too', async () => {
    const { deps } = paying.service;
    const email = 'zodwa@mail.example';
    const customer = { email, first_name: 'Zodwa', last_name: 'Khumalo' };
    await create({ customer });
    const named = await create({ customer: { email }, client_reference_id: 'for Zodwa Khumalo' });
    await eraseShopper(deps, 'nomsa', email);
    assert.deepEqual(await findTraces(deps.database, ['Khumalo']), []);
    assert.equal((await read(named.id)).status, 'cancelled');
  });

  const answersOf = async (payment_link_id: string) => {
    const { rows } = await paying.service.deps.database.pool.query(
      `select a.response from message_attempts a join messages m on m.id = a.message_id
       where m.payment_link_id = $1`,
      [payment_link_id],
    );
    return rows.map(({ response }: { response: string }) => response);
  };

  for (const [shopper, newer] of [
    ['whose checkout is the newest', false],
    ['after whom another opened it', true],
  ] as const) {
    test(`a link of an erased shopper ${shopper} ${newer ? 'can still be paid' : 'is cancelled'}`, async () => {
      const { deps } = paying.service;
      const email = newer ? 'ninth@mail.example' : 'tenth@mail.example';
      const notify_url = `${paying.receiver.url}/callback?order=77`;
      const { id } = await create({ customer: undefined, notify_url });
      const key = { merchant_id: paying.account.merchant.id, id };
      const open = async (email: string) => {
        const merchant = await findMerchant(deps.database.db, deps.clock, key.merchant_id);
        assert.ok(merchant);
        return await openPaymentLink(deps, merchant, key, { email, amount: null });
      };
      const first = await open(email);
      assert.ok(first !== null && typeof first !== 'string');
      await paying.open(first.id, paying.account).cancel();
      if (newer) await open('another@mail.example');
      await paying.pass({ hours: 1 });
      await eraseShopper(deps, 'nomsa', email);
      const { rows } = await deps.database.pool.query(
        'select notify_url, customer, cancelled_at is not null as is_cancelled from payment_links where id = $1',
        [id],
      );
      assert.deepEqual(rows, [
        newer
          ? { notify_url, customer: null, is_cancelled: false }
          : { notify_url: `${paying.receiver.url}/callback`, customer: null, is_cancelled: true },
      ]);
    });
  }

  test('an answer of the mail server that comes after the shopper was erased is not kept', async () => {
    const { deps } = paying.service;
    const email = 'fifth@mail.example';
    const { id } = await create({ mail: true, customer: { email } });
    const transport = {
      send: async () => {
        await eraseShopper(deps, 'nomsa', email);
        return { outcome: 'refused' as const, response: `550 ${email} is unknown` };
      },
      concurrencyMax: 1,
      async close() {},
    };
    await sendDueMessages({ ...deps, mail: transport });
    assert.deepEqual([await mailsOf(id), await answersOf(id)], [['skipped'], []]);
  });

  test('an address gets five links from a shop in 24 hours, however it is written', async () => {
    const email = 'sixth@mail.example';
    for (let at = 0; at < 5; at += 1) await create({ mail: true, customer: { email } });
    const customer = { email: 'Sixth@Mail.example' };
    assertRefusedLike(await post({ mail: true, customer }), 422, /5 links to this address/);
    await create({ mail: true, customer: { email: 'seventh@mail.example' } });
  });

  test('the mails of a link are in its shopper’s export, and lose the shopper together with it', async () => {
    const { deps } = paying.service;
    const email = 'eighth@mail.example';
    const { id } = await create({ mail: true, customer: { email } });
    await sendDueMessages(deps);
    assert.equal((await mailbox(email)).length, 1);
    const pieces: string[] = [];
    await exportShopper(deps, 'nomsa', email, async (piece) => void pieces.push(piece));
    const own = JSON.parse(pieces.join(''));
    assert.equal(own.payment_link_messages[0].payment_link_id, id);
    assert.equal(own.payment_link_message_attempts[0].outcome, 'sent');
    const now = timestamp(deps.clock.now());
    const before = timestamp(deps.clock.now().add({ hours: 24 * 31 }));
    await transaction(deps, ({ db }) => eraseExpiredLinks(db, { before, now }, 1_000));
    assert.deepEqual([await mailbox(email), await answersOf(id)], [[], ['erased']]);
  });

  test('a link that no one opened does not name its shopper a month after it expired', async () => {
    const { deps } = paying.service;
    const email = 'eleventh@mail.example';
    const { id } = await create({
      ...{ customer: { email }, client_reference_id: `78 ${email}` },
      notify_url: `${paying.receiver.url}/callback?for=${email}`,
      success_url: `https://shop.example/${email}/paid`,
      cancel_url: `https://shop.example/cart#${email}`,
    });
    const now = timestamp(deps.clock.now());
    const before = timestamp(deps.clock.now().add({ hours: 24 * 31 }));
    await transaction(deps, ({ db }) => eraseExpiredLinks(db, { before, now }, 1_000));
    assert.deepEqual(await findTraces(deps.database, [email]), []);
    const { status, client_reference_id } = await read(id);
    assert.deepEqual([status, client_reference_id], ['active', `erased-${id}`]);
  });
});

test('the code leads to the address of its link', async () => {
  const url = `https://pay.example/link/${'aB3_-'.repeat(14)}`;
  const png = qrPng(url);
  assert.equal(png.subarray(1, 4).toString(), 'PNG');
  assert.equal(readCode(png), url);
});

/** Reads a QR code from a PNG of one bit per pixel, as a phone does. */
function readCode(png: Buffer): string {
  const width = png.readUInt32BE(16);
  const begin = png.indexOf('IDAT');
  const lines = zlib.inflateSync(png.subarray(begin + 4, begin + 4 + png.readUInt32BE(begin - 4)));
  const bytesOfLine = 1 + Math.ceil(width / 8);
  const data = new Uint8Array(width * width * 4);
  for (let y = 0; y < width; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const byte = lines[y * bytesOfLine + 1 + (x >> 3)] as number;
      data.fill(
        (byte >> (7 - (x & 7))) & 1 ? 255 : 0,
        (y * width + x) * 4,
        (y * width + x) * 4 + 4,
      );
    }
  }
  return decodeQR({ width, height: width, data });
}
