import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { revokeIntegration } from '#merchants/integrations/revoke-integration.ts';
import { rotateCredential } from '#merchants/integrations/rotate-credential.ts';
import { newLease } from '#platform/database/due-work.sql.ts';
import type { Clock } from '#platform/shared/clock.ts';
import { freePorts } from '#platform/shared/free-ports.ts';
import { moveRetriggered } from '#purchases/callbacks/callback.sql.ts';
import type { CallbackAttempt } from '#purchases/callbacks/callback.ts';
import {
  claimCallbacks,
  deliverMerchantCallbacks,
} from '#purchases/callbacks/delivery/deliver-callback.ts';
import { deliverDueCallbacks } from '#purchases/callbacks/delivery/deliver-due-callbacks.ts';
import { countDeliveries } from '#purchases/callbacks/delivery/destination-statistics.ts';
import { deadlineSeconds, leaseSeconds } from '#purchases/callbacks/delivery/limits.ts';
import { createCallbackSender } from '#purchases/callbacks/delivery/send-callback.ts';
import { retriggerCallback } from '#purchases/callbacks/retrigger-callback.ts';
import { OperatorError } from '#record/actions/operate.ts';
import { startWorker } from '#worker.ts';
import { alertsOf, deliverFirstOf, queueCallbacks, readCallback } from '../support/callbacks.ts';
import type { Tranche } from '../support/cli.ts';
import { assertSound, commandsOf, type Paying, startPaying } from '../support/payments.ts';
import {
  type Answering,
  isSigned,
  isSignedStandardly,
  type Received,
  type Receiver,
  type Reply,
} from '../support/receiver.ts';
import {
  type Account,
  createAccount,
  createCheckout,
  runs,
  type Service,
  send,
} from '../support/service.ts';
import { until } from '../support/until.ts';

let paying: Paying;
let service: Service;
let receiver: Receiver;
let tranche: Tranche;
before(async () => {
  paying = await startPaying();
  ({ service, receiver } = paying);
  tranche = commandsOf(paying);
  receiver.answer = (received, count) =>
    answers.get(received.path)?.(received, count) ?? { status: 200 };
});
after(async () => {
  try {
    await deliverDueCallbacks(service.deps);
    await assertSound(paying);
  } finally {
    await paying.close();
  }
});

const answers = new Map<string, Answering>();

/** Gives a test its own path at the receiver, with these answers. */
function place(answer: Answering): { url: string; path: string; received(): Received[] } {
  const path = `/${randomUUID()}`;
  answers.set(path, answer);
  return { url: receiver.url + path, path, received: () => receiver.at(path) };
}

const refuse: Answering = () => ({ status: 500 });

/** Runs the work with a deadline that passes once the receiver has a request at this path. */
async function impatiently<T>(url: string, work: () => Promise<T>): Promise<T> {
  const { deps } = service;
  const { callbackAllow: allowed, sendCallback } = deps;
  const { pathname } = new URL(url);
  const clock: Clock = {
    ...deps.clock,
    sleep: async () => void (await until('the request', () => receiver.at(pathname).length > 0)),
  };
  const sender = createCallbackSender({ deadlineMilliseconds: 120_000, clock, allowed });
  deps.sendCallback = sender.send;
  try {
    return await work();
  } finally {
    deps.sendCallback = sendCallback;
    await sender.close();
  }
}
const at = (attempt: CallbackAttempt | undefined) =>
  Temporal.Instant.from(attempt?.started_at ?? '');
const minutesBetween = (one: CallbackAttempt | undefined, other: CallbackAttempt | undefined) =>
  at(one).until(at(other)).total('minutes');

/** Creates a checkout that its shopper cancels. Returns the page after that. */
async function cancelled(notify_url: string, account?: Account) {
  const shopper = await paying.shopper({ notify_url }, account);
  const page = await shopper.cancel();
  return { shopper, page, id: shopper.id, read: () => readCallback(service, shopper.id) };
}

describe('the first delivery is made while the shopper waits', () => {
  test('a payment sends a callback, and the shopper goes to its redirect_url', async () => {
    const redirect_url = 'https://shop.example/orders/1?a=b#c';
    const { url, received } = place(() => ({ body: JSON.stringify({ redirect_url }) }));
    const shopper = await paying.shopper({ notify_url: url });
    const page = await shopper.pay(3);
    assert.deepEqual([page.status, page.return_url], ['successful', redirect_url]);
    assert.equal(
      received()[0]?.raw.toString(),
      '{"status":"successful","amount":150000,"currency":"ZAR","client_reference_id":"order-1001","number_of_payments":3}',
    );
    const callback = await readCallback(service, shopper.id);
    assert.deepEqual([callback.status, callback.attempts, callback.due_at], ['delivered', 1, null]);
    assert.equal(callback.tried[0]?.trigger, 'first');
    // A reload or another tab goes to the same URL.
    assert.equal((await shopper.state()).return_url, redirect_url);
  });

  test('the shopper waits until the receiver has answered', async () => {
    const held = Promise.withResolvers<Reply>();
    const { url, received } = place(() => held.promise);
    const shopper = await paying.shopper({ notify_url: url });
    const cancelling = shopper.cancel();
    await until('the delivery', () => received().length === 1);
    const meanwhile = await shopper.state();
    assert.deepEqual([meanwhile.status, meanwhile.return_url], ['paying', null]);
    // Two tabs, one delivery.
    assert.equal((await shopper.cancel()).status, 'paying');
    held.resolve({ body: '{"redirect_url":"https://shop.example/held"}' });
    const page = await cancelling;
    assert.deepEqual([page.status, page.return_url], ['cancelled', 'https://shop.example/held']);
    assert.equal(received().length, 1);
  });

  test('the shopper does not wait longer than the deadline, whatever hangs', async () => {
    const [id = ''] = await queueCallbacks(service, paying.account, [place(() => ({})).url]);
    const waits: number[] = [];
    const clock: Clock = {
      ...paying.clock,
      sleep: async (milliseconds) => void waits.push(milliseconds),
    };
    const recordAttempt = Object.assign(() => new Promise<never>(() => {}), {
      settled: async () => {},
    });
    const hanging = { ...service.deps, clock, recordAttempt };
    await deliverFirstOf(hanging, id);
    await until('its attempt', async () => (await readCallback(service, id)).tried.length === 1);
    assert.deepEqual(waits, [10_000]);
    // The page stops waiting too, and goes to the static URL.
    const shopper = paying.open(id);
    assert.deepEqual((await shopper.state()).status, 'paying');
    paying.clock.advance({ seconds: 10 });
    const { status, return_url } = await shopper.state();
    assert.deepEqual([status, return_url], ['cancelled', 'https://shop.example/cart']);
    paying.clock.advance({ minutes: 10 });
    await deliverDueCallbacks(service.deps);
  });

  const longest = `https://shop.example/${'x'.repeat(2048 - 'https://shop.example/'.length)}`;
  for (const [kind, redirect_url] of [
    ['https', 'https://shop.example/thanks'],
    ['http', 'http://shop.example/thanks'],
    ['with a port, a query and a fragment', 'https://shop.example:8443/a?b=c#d'],
    ['2,048 characters', longest],
    ['an upper-case scheme', 'HTTPS://shop.example/'],
    ['another script', 'https://shop.example/dankie/日本'],
    ['an emoji', 'https://shop.example/dankie/\u{1f600}'],
    ['percent-encoded', 'https://shop.example/caf%C3%A9?a=%2F#%e9'],
  ] as const) {
    test(`redirect_url is honoured: ${kind}`, async () => {
      const { url } = place(() => ({ status: 201, body: JSON.stringify({ redirect_url }) }));
      assert.equal((await cancelled(url)).page.return_url, redirect_url);
    });
  }

  const body = (redirect_url: unknown) => JSON.stringify({ redirect_url });
  const good = body('https://shop.example/no');
  const badly = (bytes: Buffer) =>
    Buffer.concat([
      Buffer.from('{"redirect_url":"https://shop.example/'),
      bytes,
      Buffer.from('"}'),
    ]);
  for (const [kind, reply] of [
    ['empty', { body: body('') }],
    ['missing', { body: '{}' }],
    ['no body', {}],
    ['relative', { body: body('/thanks') }],
    ['without a scheme', { body: body('shop.example/thanks') }],
    ['without a host', { body: body('https:///thanks') }],
    ['scheme-relative', { body: body('//shop.example/') }],
    ['javascript:', { body: body('javascript:alert(1)') }],
    ['data:', { body: body('data:text/html,hi') }],
    ['ftp:', { body: body('ftp://shop.example/') }],
    ['a space before', { body: body(' https://shop.example/') }],
    ['a line break in it', { body: body('https://shop.example/\r\nset-cookie: a=b') }],
    ['not a URL', { body: body('https://[::1') }],
    ['2,049 characters', { body: body(`${longest}x`) }],
    ['a number', { body: body(5) }],
    ['null', { body: body(null) }],
    ['a list', { body: body(['https://shop.example/']) }],
    ['an object', { body: body({ url: 'https://shop.example/' }) }],
    ['another name', { body: '{"redirect":"https://shop.example/"}' }],
    ['one level down', { body: `{"data":${good}}` }],
    ['a list around it', { body: `[${good}]` }],
    ['invalid JSON', { body: `${good}}` }],
    ['a form', { body: 'redirect_url=https://shop.example/no' }],
    ['JSON null', { body: 'null' }],
    ['invalid UTF-8', { body: Buffer.from([0xff, 0xfe, 0x7b]) }],
    ['compressed', { headers: { 'content-encoding': 'gzip' }, body: Buffer.alloc(100, 0x1f) }],
    ['a truncated body', { body: good + ' '.repeat(65_536) }],
    [
      'invalid UTF-8 in it',
      { body: Buffer.from(body('https://shop.example/caf\u00e9'), 'latin1') },
    ],
    ['overlong UTF-8 in it', { body: badly(Buffer.from([0xc0, 0xaf])) }],
    ['a surrogate in UTF-8 in it', { body: badly(Buffer.from([0xed, 0xa0, 0x80])) }],
    ['half of a surrogate pair', { body: '{"redirect_url":"https://shop.example/\\ud83d"}' }],
    ['a broken percent-encoding', { body: body('https://shop.example/%zz') }],
    ['a percent-encoding that is cut off', { body: body('https://shop.example/?a=%e') }],
    ['a percent sign at the end', { body: body('https://shop.example/#100%') }],
  ] as [string, Reply][]) {
    test(`redirect_url is ignored: ${kind}`, async () => {
      const { url } = place(() => reply);
      const { page, read } = await cancelled(url);
      assert.deepEqual([page.status, page.return_url], ['cancelled', 'https://shop.example/cart']);
      assert.equal((await read()).status, 'delivered');
    });
  }

  for (const status of [301, 302, 400, 404, 500]) {
    test(`redirect_url of a ${status} is ignored`, async () => {
      const { url } = place(() => ({ status, headers: { location: url }, body: good }));
      const { page, read } = await cancelled(url);
      assert.equal(page.return_url, 'https://shop.example/cart');
      const callback = await read();
      assert.deepEqual([callback.status, callback.redirect_url], ['pending', null]);
      assert.equal(callback.tried[0]?.reason, `http_${status}`);
    });
  }

  test('neither a retry nor a re-trigger can redirect the shopper', async () => {
    const { url } = place((_, count) => (count === 1 ? { status: 503 } : { body: good }));
    const { shopper, page, read } = await cancelled(url);
    assert.equal(page.return_url, 'https://shop.example/cart');
    paying.clock.advance({ minutes: 10 });
    await deliverDueCallbacks(service.deps);
    assert.equal((await read()).status, 'delivered');
    assert.equal((await shopper.state()).return_url, 'https://shop.example/cart');
    await retriggerCallback(service.deps, 'nomsa', (await read()).id);
    assert.equal((await shopper.state()).return_url, 'https://shop.example/cart');
    assert.equal((await read()).redirect_url, null);
  });

  let answerLate = () => {};
  const late: Answering = (_, count) => {
    const { promise, resolve } = Promise.withResolvers<Reply>();
    answerLate = () => resolve({});
    return count === 1 ? promise : {};
  };
  for (const [how, url, reason] of [
    ['is down', async () => `http://127.0.0.1:${(await freePorts(1))[0]}/`, 'connect'],
    ['has no address', async () => 'https://nowhere.example/', 'dns'],
    ['says nothing', async () => place((_, count) => (count === 1 ? 'hang' : {})).url, 'timeout'],
    ['answers too late', async () => place(late).url, 'timeout'],
    ['closes the connection', async () => place(() => 'close').url, 'connection_closed'],
    ['refuses', async () => place(refuse).url, 'http_500'],
  ] as const) {
    test(`a receiver that ${how}: the shopper goes to the static URL`, async () => {
      const notify_url = await url();
      const shopper = await paying.shopper({ notify_url });
      const pay = () => shopper.pay(1);
      const page = await (reason === 'timeout' ? impatiently(notify_url, pay) : pay());
      answerLate();
      assert.deepEqual([page.status, page.return_url], ['successful', 'https://shop.example/paid']);
      const { status, tried, attempts } = await readCallback(service, shopper.id);
      assert.deepEqual([status, attempts, tried[0]?.reason], ['pending', 1, reason]);
    });
  }
});

describe('a failed delivery is retried on the schedule', () => {
  test('19 attempts, 10 minutes apart on the merchant’s clock, then one alert', async () => {
    const account = await createAccount(service);
    const other = await createAccount(service);
    const { url, received } = place(refuse);
    const { read } = await cancelled(url, account);
    const elsewhere = await cancelled(url, other);
    const begun = (await read()).tried[0]?.started_at;
    const how = ['--merchant', account.merchant.id, '--by'];
    for (const [by, attempts] of [
      ['9m', 1],
      ['59s', 1],
      ['1s', 2],
      ['599s', 2],
      ['1s', 3],
      ['150m', 18],
      ['599s', 18],
      ['1s', 19],
      ['24h', 19],
    ] as const) {
      const { now } = await tranche.json('clock', 'advance', ...how, by);
      const { tried, status } = await read();
      assert.equal(tried.length, attempts, now);
      assert.equal(status, attempts === 19 ? 'exhausted' : 'pending');
    }
    const { tried, due_at, run_attempts } = await read();
    assert.deepEqual([due_at, run_attempts, received().length], [null, 19, 19 + 1]);
    for (const [index, attempt] of tried.entries()) {
      const due = Temporal.Instant.from(begun ?? '').add({ minutes: 10 * index });
      assert.equal(attempt.started_at, due.toString({ fractionalSecondDigits: 3 }));
      assert.equal(attempt.trigger, index === 0 ? 'first' : 'retry');
      assert.equal(attempt.number, index + 1);
      assert.deepEqual([attempt.outcome, attempt.reason], ['failed', 'http_500']);
    }
    const alerts = await alertsOf(service, account.merchant.id);
    assert.equal(alerts.length, 1);
    const callback = await read();
    assert.match(alerts[0]?.detail ?? '', /http_500/);
    assert.equal(alerts[0]?.subject_id, callback.id);
    assert.equal((await elsewhere.read()).attempts, 1, "another merchant's clock stood still");
    assert.equal((await alertsOf(service, other.merchant.id)).length, 0);
  });

  test('a worker keeps to the same schedule', async () => {
    const { url, received } = place((_, count) => ({ status: count < 4 ? 500 : 204 }));
    const { read } = await cancelled(url);
    // The worker delivers callbacks of other tests as well. Their leases must not expire when the
    // clock leaps.
    const isIdle = async () => {
      const { rowCount } = await service.deps.database.pool.query(
        `select from callbacks where status = 'pending' and (lease is not null or due_at <= $1)`,
        [paying.clock.now().toString()],
      );
      return rowCount === 0;
    };
    const worker = startWorker(service.deps);
    try {
      for (const count of [2, 3, 4]) {
        await until('all deliveries', isIdle);
        paying.clock.advance({ minutes: 9, seconds: 59, milliseconds: 999 });
        // Another delivery shows that the worker has looked for due callbacks.
        const idle = await cancelled(place(() => ({})).url);
        await until('the other one', async () => (await idle.read()).status === 'delivered');
        assert.equal(received().length, count - 1);
        paying.clock.advance({ milliseconds: 1 });
        await until(`attempt ${count}`, async () => received().length === count);
        await until('its record', async () => (await read()).tried.at(-1)?.finished_at);
      }
    } finally {
      await worker.stop();
    }
    const callback = await read();
    assert.deepEqual([callback.status, callback.attempts], ['delivered', 4]);
    for (const index of [1, 2, 3]) {
      assert.equal(minutesBetween(callback.tried[index - 1], callback.tried[index]), 10);
    }
  });

  test('attempts do not bunch up after an outage of the service', async () => {
    const { url, received } = place(refuse);
    const { read } = await cancelled(url);
    paying.clock.advance({ hours: 2, minutes: 5 });
    await deliverDueCallbacks(service.deps);
    assert.equal(received().length, 2);
    const { tried, due_at } = await read();
    assert.equal(minutesBetween(tried[0], tried[1]), 125);
    assert.equal(
      at(tried[1])
        .until(Temporal.Instant.from(due_at ?? ''))
        .total('minutes'),
      10,
    );
  });

  const inMinutes = (minutes: number) => () => {
    const then = paying.clock.now().add({ seconds: minutes * 60 });
    return new Date(then.epochMilliseconds).toUTCString();
  };
  for (const [status, said, header, minutes] of [
    [429, 'nothing', () => '', 10],
    [429, '5 seconds: never earlier', () => '5', 10],
    [429, '0', () => '0', 10],
    [429, '600 seconds', () => '600', 10],
    [429, '660 seconds', () => '660', 11],
    [503, '1800 seconds', () => '1800', 30],
    [429, 'an hour', () => '3600', 60],
    [429, 'a day: at most an hour', () => '86400', 60],
    [429, 'for ever: at most an hour', () => '99999999999999999999', 60],
    [429, 'a date in half an hour', inMinutes(30), 30],
    [503, 'a date in 5 minutes', inMinutes(5), 10],
    [503, 'a date in the past', inMinutes(-5), 10],
    [503, 'a date in a week', inMinutes(7 * 24 * 60), 60],
    [429, 'a negative number', () => '-60', 10],
    [429, 'a fraction', () => '1800.5', 10],
    [429, 'another spelling of a date', () => '2099-01-01T00:00:00Z', 10],
    [429, 'words', () => 'in 2099', 10],
    [500, '1800 seconds, which only a 429 or 503 may', () => '1800', 10],
    [404, '1800 seconds, which only a 429 or 503 may', () => '1800', 10],
  ] as const) {
    test(`${status} with Retry-After, ${said}: next in ${minutes} minutes`, async () => {
      const { url } = place((_, count) =>
        count === 1 ? { status, headers: { 'retry-after': header() } } : {},
      );
      const { read } = await cancelled(url);
      const { tried, due_at } = await read();
      assert.equal(
        at(tried[0])
          .until(Temporal.Instant.from(due_at ?? ''))
          .total('minutes'),
        minutes,
      );
    });
  }

  test('a date in Retry-After is on the real clock, not on the merchant’s', async () => {
    const account = await createAccount(service);
    await tranche.json('clock', 'advance', '--merchant', account.merchant.id, '--by', '90d');
    const { url } = place(() => ({ status: 503, headers: { 'retry-after': inMinutes(30)() } }));
    const { tried, due_at } = await (await cancelled(url, account)).read();
    assert.equal(
      at(tried[0])
        .until(Temporal.Instant.from(due_at ?? ''))
        .total('minutes'),
      30,
    );
  });

  test('Retry-After does not reduce the number of attempts: 19, an hour apart', async () => {
    const account = await createAccount(service);
    const { url, received } = place(() => ({ status: 429, headers: { 'retry-after': '7200' } }));
    const { read } = await cancelled(url, account);
    const { id } = account.merchant;
    await tranche.json('clock', 'advance', '--merchant', id, '--by', '48h');
    const { tried, status } = await read();
    assert.deepEqual([status, tried.length, received().length], ['exhausted', 19, 19]);
    for (let index = 1; index < 19; index += 1) {
      assert.equal(minutesBetween(tried[index - 1], tried[index]), 60);
    }
  });

  test('a 2xx at the last attempt counts, and no alert is raised', async () => {
    const account = await createAccount(service);
    const { url, received } = place((_, count) => ({ status: count < 19 ? 500 : 204 }));
    const { read } = await cancelled(url, account);
    await tranche.json('clock', 'advance', '--merchant', account.merchant.id, '--by', '2d');
    const { status, attempts, tried, delivered_at } = await read();
    assert.deepEqual([status, attempts, received().length], ['delivered', 19, 19]);
    assert.equal(delivered_at, tried.at(-1)?.finished_at);
    assert.deepEqual(await alertsOf(service, account.merchant.id), []);
    assert.equal((await alertsOf(service, account.merchant.id, 'destination_failing')).length, 1);
  });

  test('a 2xx after the deadline is a failure, and the callback is sent again', async () => {
    const late = Promise.withResolvers<Reply>();
    const { url, received } = place((_, count) => (count > 1 ? {} : late.promise));
    const { read } = await impatiently(url, () => cancelled(url));
    late.resolve({});
    assert.deepEqual((await read()).tried[0]?.reason, 'timeout');
    paying.clock.advance({ minutes: 10 });
    await deliverDueCallbacks(service.deps);
    assert.deepEqual([(await read()).status, received().length], ['delivered', 2]);
    const [one, two] = received();
    assert.ok(
      one && two && one.raw.equals(two.raw),
      'the same bytes, so that the receiver can deduplicate',
    );
  });

  test('a delivered callback is not sent again', async () => {
    const { url, received } = place(() => ({ status: 202 }));
    const { read } = await cancelled(url);
    paying.clock.advance({ hours: 5 });
    await deliverDueCallbacks(service.deps);
    assert.deepEqual([(await read()).attempts, received().length], [1, 1]);
  });
});

describe('an operator re-triggers a callback', () => {
  async function exhausted(answer: Answering) {
    const account = await createAccount(service);
    const at = place(answer);
    const { read } = await cancelled(at.url, account);
    const { id } = account.merchant;
    await tranche.json('clock', 'advance', '--merchant', id, '--by', '4h');
    assert.equal((await read()).status, 'exhausted');
    return { ...at, account, read, id: (await read()).id };
  }

  test('one delivery at once, which ends the run if it succeeds', async () => {
    const { id, read, received } = await exhausted((_, count) => ({
      status: count < 20 ? 500 : 200,
    }));
    const callback = await retriggerCallback(service.deps, 'nomsa', id);
    assert.equal(callback.status, 'delivered');
    const { tried, attempts } = await read();
    assert.deepEqual([attempts, received().length], [20, 20]);
    const { trigger, operator, outcome, number, run } = tried.at(-1) as CallbackAttempt;
    assert.deepEqual(
      { trigger, operator, outcome, number, run },
      { trigger: 'operator', operator: 'nomsa', outcome: 'delivered', number: 20, run: 2 },
    );
    const { rows } = await service.deps.database.pool.query(
      'select operator, action from operator_actions where subject_id = $1',
      [id],
    );
    assert.deepEqual(rows, [{ operator: 'nomsa', action: 'callbacks retry' }]);
  });

  test('then 18 retries, and one more alert after the last', async () => {
    const { id, read, received, account } = await exhausted(refuse);
    assert.equal((await retriggerCallback(service.deps, 'nomsa', id)).status, 'pending');
    const how = ['--merchant', account.merchant.id, '--by'];
    await tranche.json('clock', 'advance', ...how, '599s');
    assert.equal(received().length, 20);
    await tranche.json('clock', 'advance', ...how, '1s');
    assert.equal(received().length, 21);
    await tranche.json('clock', 'advance', ...how, '4h');
    const { status, tried } = await read();
    assert.deepEqual([status, received().length], ['exhausted', 38]);
    assert.deepEqual(
      tried.slice(19).map(({ trigger }) => trigger),
      ['operator', ...Array(18).fill('retry')],
    );
    for (let index = 20; index < 38; index += 1) {
      assert.equal(minutesBetween(tried[index - 1], tried[index]), 10);
    }
    assert.equal((await alertsOf(service, account.merchant.id)).length, 2);
  });

  test('a re-trigger before a retry postpones the retry', async () => {
    const { url, received } = place(refuse);
    const { read } = await cancelled(url);
    paying.clock.advance({ minutes: 7 });
    await retriggerCallback(service.deps, 'nomsa', (await read()).id);
    assert.equal(received().length, 2);
    paying.clock.advance({ minutes: 9 });
    await deliverDueCallbacks(service.deps);
    assert.equal(received().length, 2);
    paying.clock.advance({ minutes: 1 });
    await deliverDueCallbacks(service.deps);
    assert.equal(received().length, 3);
  });

  test('a delivered callback can be sent again', async () => {
    const { url, received } = place(() => ({}));
    const { read } = await cancelled(url);
    const callback = await retriggerCallback(service.deps, 'nomsa', (await read()).id);
    assert.deepEqual([callback.status, received().length], ['delivered', 2]);
  });

  test('a callback in flight cannot be re-triggered', async () => {
    const held = Promise.withResolvers<Reply>();
    const { url, received } = place(() => held.promise);
    const shopper = await paying.shopper({ notify_url: url });
    const cancelling = shopper.cancel();
    await until('the delivery', () => received().length === 1);
    const { id } = await readCallback(service, shopper.id);
    await assert.rejects(retriggerCallback(service.deps, 'nomsa', id), OperatorError);
    held.resolve({});
    await cancelling;
    assert.equal(received().length, 1);
  });

  test('a re-trigger and a retry at the same moment never overlap', async () => {
    let inFlight = 0;
    let inFlightMax = 0;
    const { url, received } = place(async (_, count) => {
      inFlight += 1;
      inFlightMax = Math.max(inFlightMax, inFlight);
      await new Promise((resolve) => setTimeout(resolve, 5));
      inFlight -= 1;
      return { status: count === 1 ? 500 : 200 };
    });
    const { deps } = service;
    for (let round = 0; round < runs(100); round += 1) {
      const before = received().length;
      const [checkout_id = ''] = await queueCallbacks(service, paying.account, [url]);
      await deliverFirstOf(deps, checkout_id);
      const read = () => readCallback(service, checkout_id);
      const { id, status } = await read();
      if (status === 'pending') paying.clock.advance({ minutes: 10 });
      const outcomes = await Promise.allSettled([
        deliverDueCallbacks(deps),
        retriggerCallback(deps, 'one', id),
        retriggerCallback(deps, 'two', id),
      ]);
      assert.equal(inFlightMax, 1);
      const deliveries = received().length - before - 1;
      const ours = outcomes.slice(1).filter((one) => one.status === 'fulfilled').length;
      assert.ok(deliveries >= Math.max(1, ours) && deliveries <= 3, `${deliveries} deliveries`);
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') assert.ok(outcome.reason instanceof OperatorError);
      }
      assert.equal((await read()).status, 'delivered');
    }
  });

  test('if the process dies right after the re-trigger, a worker delivers', async () => {
    const { url, received } = place((_, count) => ({ status: count === 1 ? 500 : 200 }));
    const { read } = await cancelled(url);
    const { id, merchant_id } = await read();
    const claim = {
      ...newLease(service.deps, leaseSeconds),
      due_at: paying.clock.now().toString(),
    };
    assert.ok(await moveRetriggered(service.deps.database.db, { merchant_id, id }, claim));
    await deliverDueCallbacks(service.deps);
    assert.equal(received().length, 1, 'not while the lease lasts');
    paying.clock.advance({ seconds: 15 });
    await deliverDueCallbacks(service.deps);
    assert.deepEqual([(await read()).status, received().length], ['delivered', 2]);
  });
});

describe('the signature of a callback', () => {
  test('the signatures match the raw bytes, whatever the reference contains, and the other headers are right', async () => {
    const { url, received } = place((_, count) => ({ status: count < 3 ? 500 : 200 }));
    const reference = 'é/日本 "\\\u2028 <script>&\u00a0\ud83d\ude00';
    const shopper = await paying.shopper({ notify_url: url, client_reference_id: reference });
    await shopper.pay(3);
    for (let retry = 0; retry < 2; retry += 1) {
      paying.clock.advance({ minutes: 10 });
      await deliverDueCallbacks(service.deps);
    }
    const { id, payload, tried } = await readCallback(service, shopper.id);
    const { signing_key } = paying.account;
    assert.equal(received().length, 3);
    for (const [index, one] of received().entries()) {
      assert.ok(isSigned(one, signing_key), 'X-Signature');
      assert.ok(isSignedStandardly(one, signing_key), 'Standard Webhooks');
      assert.ok(!isSigned(one, `${signing_key}x`) && !isSignedStandardly(one, `${signing_key}x`));
      assert.ok(
        !isSigned({ ...one, raw: Buffer.concat([one.raw, Buffer.from(' ')]) }, signing_key),
      );
      assert.match(String(one.headers['x-signature']), /^[A-Za-z0-9+/]{86}==$/);
      assert.ok(one.raw.equals(payload));
      const { headers } = one;
      assert.deepEqual(
        {
          type: headers['content-type'],
          length: headers['content-length'],
          agent: headers['user-agent'],
          id: headers['x-callback-id'],
          attempt: headers['x-callback-attempt'],
          webhook: headers['webhook-id'],
          time: headers['webhook-timestamp'],
        },
        {
          type: 'application/json',
          length: String(payload.length),
          agent: 'Tranche-Callback/1',
          id,
          attempt: String(index + 1),
          webhook: id,
          time: String(Math.floor(at(tried[index]).epochMilliseconds / 1000)),
        },
      );
      assert.equal(headers.authorization, undefined);
    }
    assert.deepEqual(JSON.parse(payload.toString()), {
      status: 'successful',
      amount: 150_000,
      currency: 'ZAR',
      client_reference_id: reference,
      number_of_payments: 3,
    });
    assert.equal(payload.toString(), JSON.stringify(JSON.parse(payload.toString())));
    assert.deepEqual(Object.keys(JSON.parse(payload.toString())), [
      'status',
      'amount',
      'currency',
      'client_reference_id',
      'number_of_payments',
    ]);
  });

  /** Delivers a new callback and returns the name of the key that signed it. */
  async function signer(account: Account, keys: Record<string, string>): Promise<string> {
    const { url, received } = place(() => ({}));
    const { shopper } = await cancelledUnsigned(account, url);
    assert.equal((await readCallback(service, shopper)).status, 'delivered');
    const [one] = received();
    assert.ok(one);
    const names = Object.entries(keys).filter(([, key]) => isSigned(one, key));
    assert.equal(names.length, 1);
    return names[0]?.[0] as string;
  }

  /**
   * Checkouts that were created before the keys change, so that no request is signed after that.
   */
  const prepared = new Map<string, string[]>();
  async function prepare(account: Account, signed: boolean): Promise<void> {
    const ids: string[] = [];
    for (let count = 0; count < 6; count += 1) {
      const body = {
        checkout: {
          amount: 150_000,
          currency: 'ZAR',
          client_reference_id: `order-${count}`,
          notify_url: place(() => ({})).url,
          success_url: 'https://shop.example/paid',
          cancel_url: 'https://shop.example/cart',
          customer: { email: 'thandi@example.com' },
        },
      };
      const answer = await send(service, account, 'POST', '/api/checkouts', { body, signed });
      assert.equal(answer.status, 200);
      ids.push(answer.body.data.id);
    }
    prepared.set(account.id, ids);
  }
  async function cancelledUnsigned(account: Account, url: string): Promise<{ shopper: string }> {
    const id = prepared.get(account.id)?.pop();
    assert.ok(id);
    await service.deps.database.pool.query('update checkouts set notify_url = $1 where id = $2', [
      url,
      id,
    ]);
    const page = await paying.open(id, account).cancel();
    assert.equal(page.status, 'cancelled');
    return { shopper: id };
  }

  const rotate = (account: Account, overlapSeconds = 86_400) =>
    rotateCredential(service.deps, 'nomsa', {
      id: account.id,
      credential: 'signing_key',
      overlapSeconds,
    });

  test('during a rotation with the old key until the integration signs with the new one', async () => {
    const account = await createAccount(service);
    await prepare(account, true);
    const { value } = await rotate(account);
    const keys = { old: account.signing_key, new: value };
    assert.equal(await signer(account, keys), 'old');
    await createCheckout(service, account);
    assert.equal(
      await signer(account, keys),
      'old',
      'an integration that signs with the old key may not have the new one',
    );
    // The service caches the keys for requests, but for less than this.
    paying.clock.advance({ seconds: 5 });
    const refused = await send(
      service,
      { ...account, signing_key: value },
      'POST',
      '/api/checkouts',
      {
        body: { checkout: {} },
      },
    );
    assert.equal(refused.status, 422);
    assert.equal(await signer(account, keys), 'old', 'a refused request proves nothing');
    await createCheckout(service, { ...account, signing_key: value });
    assert.equal(await signer(account, keys), 'new');
  });

  test('during a rotation with the old key also when the integration never signed a request', async () => {
    const account = await createAccount(service);
    await prepare(account, false);
    const { value } = await rotate(account);
    const keys = { old: account.signing_key, new: value };
    assert.equal(await signer(account, keys), 'old');
  });

  test('after the overlap with the new key', async () => {
    const account = await createAccount(service);
    await prepare(account, true);
    const { value } = await rotate(account, 60);
    const keys = { old: account.signing_key, new: value };
    assert.equal(await signer(account, keys), 'old');
    paying.clock.advance({ seconds: 61 });
    assert.equal(await signer(account, keys), 'new');
  });

  test('a key that was rotated without overlap signs nothing more, not even a retry', async () => {
    const account = await createAccount(service);
    const { url, received } = place((_, count) => ({ status: count === 1 ? 500 : 200 }));
    const { read } = await cancelled(url, account);
    const { value } = await rotate(account, 0);
    paying.clock.advance({ minutes: 10 });
    await deliverDueCallbacks(service.deps);
    const [first, second] = received();
    assert.ok(first && second);
    assert.ok(isSigned(first, account.signing_key) && !isSigned(first, value));
    assert.ok(isSigned(second, value) && !isSigned(second, account.signing_key));
    assert.ok(first.raw.equals(second.raw));
    assert.equal((await read()).status, 'delivered');
  });

  test('callbacks of a revoked integration are still signed', async () => {
    const account = await createAccount(service);
    const { url, received } = place(() => ({}));
    const shopper = await paying.shopper({ notify_url: url }, account);
    await revokeIntegration(service.deps, 'nomsa', account.id);
    assert.equal((await shopper.cancel()).status, 'cancelled');
    const [one] = received();
    assert.ok(one && isSigned(one, account.signing_key));
  });
});

describe('every attempt is recorded', () => {
  test('the request, the address, the response and the timings', async () => {
    const { url } = place(() => ({
      status: 418,
      headers: { 'content-type': 'text/plain', 'x-shop': 'yes' },
      body: 'short and stout',
    }));
    const { read } = await cancelled(url);
    const { tried } = await read();
    const attempt = tried[0] as CallbackAttempt;
    assert.deepEqual(
      [attempt.outcome, attempt.reason, attempt.response_status, attempt.address],
      ['failed', 'http_418', 418, '127.0.0.1'],
    );
    assert.deepEqual(
      [attempt.tls_version, attempt.trigger, attempt.operator],
      [null, 'first', null],
    );
    assert.ok(attempt.finished_at && attempt.finished_at >= attempt.started_at);
    assert.equal(attempt.response_body?.toString(), 'short and stout');
    assert.equal(attempt.response_headers?.['x-shop'], 'yes');
    for (const phase of ['first_byte', 'total']) {
      assert.ok((attempt.timings?.[phase] ?? -1) >= 0, phase);
    }
    assert.deepEqual(Object.keys(attempt.request_headers).sort(), [
      'content-type',
      'user-agent',
      'webhook-id',
      'webhook-signature',
      'webhook-timestamp',
      'x-callback-attempt',
      'x-callback-id',
      'x-signature',
    ]);
    const kept = JSON.stringify(tried);
    const { signing_key, client_secret } = paying.account;
    for (const secret of [signing_key, client_secret]) assert.ok(!kept.includes(secret));
  });

  test('an attempt is written before it is sent, and finished after the answer', async () => {
    let id = '';
    const { promise, resolve } = Promise.withResolvers<CallbackAttempt[]>();
    const { url } = place(async () => {
      resolve((await readCallback(service, id)).tried);
      return {};
    });
    const shopper = await paying.shopper({ notify_url: url });
    id = shopper.id;
    await shopper.cancel();
    const during = await promise;
    assert.deepEqual(
      during.map(({ outcome, finished_at }) => [outcome, finished_at]),
      [['unknown', null]],
    );
    const [after] = (await readCallback(service, id)).tried;
    assert.deepEqual([after?.id, after?.outcome], [during[0]?.id, 'delivered']);
    assert.deepEqual(after?.request_headers, during[0]?.request_headers);
  });

  test('every byte of an unusual body', async () => {
    const bytes = Buffer.from([0, 1, 2, 0xff, 0xfe, 0xed, 0xa0, 0x80]);
    const headers = { 'x-odd': 'caf\u00e9 \u00ff', __proto__x: 'p' };
    const strange = await cancelled(place(() => ({ body: bytes, headers })).url);
    const [attempt] = (await strange.read()).tried;
    assert.ok(attempt?.response_body?.equals(bytes));
    assert.equal(attempt?.outcome, 'delivered');
  });
});

describe('a crash loses no callback', () => {
  /** A process that sends a callback and dies. */
  const dying = (sent: (url: string) => void) => ({
    ...service.deps,
    // A dead process has no deadline. Without this, the test would wait for it.
    clock: { ...service.deps.clock, sleep: () => new Promise<never>(() => {}) },
    sendCallback: ({ url }: { url: string }) => {
      sent(url);
      return new Promise<never>(() => {});
    },
  });

  /** Lets time pass in steps. After each, compares how many times the receiver was called. */
  async function expectDeliveries(
    id: string,
    received: () => unknown[],
    steps: (readonly [seconds: number, count: number])[],
  ): Promise<void> {
    for (const [seconds, count] of steps) {
      paying.clock.advance({ seconds });
      await deliverDueCallbacks(service.deps);
      assert.equal(received().length, count);
    }
    const { tried, status } = await readCallback(service, id);
    assert.equal(status, 'delivered');
    assert.deepEqual(
      tried.map(({ outcome, finished_at, trigger }) => [outcome, finished_at === null, trigger]),
      [
        ['unknown', true, 'first'],
        ['delivered', false, 'retry'],
      ],
    );
  }

  test('while a slow receiver answers: the attempt stays unknown, and the next is due 10 minutes later', async () => {
    const { url, received } = place(() => ({}));
    const [id = ''] = await queueCallbacks(service, paying.account, [url]);
    const deps = {
      ...dying(() => {}),
      sendCallback: ({ whenSent }: { whenSent?: () => void }) => {
        whenSent?.();
        return new Promise<never>(() => {});
      },
      // Mark the attempt as sent at once, without the usual pause.
      sentExchanges: { add: (run: () => void) => run(), remove() {}, close() {} },
    };
    void deliverFirstOf(deps, id);
    await until('the mark', async () => (await readCallback(service, id)).sent_attempt === 1);
    await expectDeliveries(id, received, [
      [0, 0],
      [16, 0],
      [583, 0],
      [1, 1],
    ]);
  });

  test('when nothing shows that it was sent: the next attempt is due when the lease has ended', async () => {
    const { url, received } = place(() => ({}));
    const [id = ''] = await queueCallbacks(service, paying.account, [url]);
    const sent = Promise.withResolvers<void>();
    void deliverFirstOf(
      dying(() => sent.resolve()),
      id,
    );
    await sent.promise;
    await expectDeliveries(id, received, [
      [0, 0],
      [14, 0],
      [2, 1],
    ]);
  });

  test('twice in a row: the next attempt is due 10 minutes after the second', async () => {
    const { url, received } = place(() => ({}));
    // Use a new merchant, so that the dying process claims nothing else.
    const account = await createAccount(service);
    const [id = ''] = await queueCallbacks(service, account, [url]);
    for (const trigger of ['first', 'retry']) {
      const sent = Promise.withResolvers<void>();
      const deps = dying(() => sent.resolve());
      if (trigger === 'first') void deliverFirstOf(deps, id);
      else void deliverMerchantCallbacks(deps, account.merchant);
      await sent.promise;
      paying.clock.advance({ seconds: 16 });
      // This counts the dead process's attempt, whose outcome is unknown, and claims nothing more.
      if (trigger === 'first') await deliverMerchantCallbacks(service.deps, account.merchant);
    }
    for (const [seconds, count] of [
      [0, 0],
      [580, 0],
      [5, 1],
    ] as const) {
      paying.clock.advance({ seconds });
      await deliverDueCallbacks(service.deps);
      assert.equal(received().length, count);
    }
    const { tried } = await readCallback(service, id);
    assert.deepEqual(
      tried.map(({ outcome }) => outcome),
      ['unknown', 'unknown', 'delivered'],
    );
  });

  test('between sending and recording, then a re-trigger: delivered at once, as the second attempt', async () => {
    const { url, received } = place(() => ({}));
    const [id = ''] = await queueCallbacks(service, paying.account, [url]);
    const sent = Promise.withResolvers<void>();
    void deliverFirstOf(
      dying(() => sent.resolve()),
      id,
    );
    await sent.promise;
    const callback = await readCallback(service, id);
    await assert.rejects(retriggerCallback(service.deps, 'nomsa', callback.id), OperatorError);
    paying.clock.advance({ seconds: 15 });
    await retriggerCallback(service.deps, 'nomsa', callback.id);
    const { tried, status, attempts } = await readCallback(service, id);
    assert.deepEqual([status, attempts, received().length], ['delivered', 2, 1]);
    assert.deepEqual(
      tried.map(({ outcome, trigger, run }) => [outcome, trigger, run]),
      [
        ['unknown', 'first', 1],
        ['delivered', 'operator', 2],
      ],
    );
  });

  test('between claiming and sending: another process delivers when the lease has ended', async () => {
    const { url, received } = place(() => ({}));
    const [id = ''] = await queueCallbacks(service, paying.account, [url]);
    paying.clock.advance({ seconds: 15 });
    const { merchant } = paying.account;
    assert.equal((await claimCallbacks(service.deps, merchant, 8)).length, 1);
    paying.clock.advance({ milliseconds: 14_999 });
    await deliverDueCallbacks(service.deps);
    assert.equal(received().length, 0);
    paying.clock.advance({ milliseconds: 1 });
    await deliverDueCallbacks(service.deps);
    const { tried } = await readCallback(service, id);
    assert.deepEqual([received().length, tried.length], [1, 1]);
  });

  test('before claiming: a worker makes the first delivery, which redirects no one', async () => {
    const { url, received } = place(() => ({ body: '{"redirect_url":"https://shop.example/x"}' }));
    const [id = ''] = await queueCallbacks(service, paying.account, [url]);
    await deliverDueCallbacks(service.deps);
    assert.equal(
      received().length,
      0,
      'the process that ended the checkout has 15 seconds to deliver',
    );
    paying.clock.advance({ seconds: 15 });
    await deliverDueCallbacks(service.deps);
    const { tried, redirect_url } = await readCallback(service, id);
    assert.deepEqual([received().length, tried[0]?.trigger], [1, 'first']);
    assert.equal(redirect_url, null, 'the page no longer waits');
  });

  test('at the last attempt: no twentieth attempt, and one alert', async () => {
    const account = await createAccount(service);
    const { url, received } = place(refuse);
    const { id, read } = await cancelled(url, account);
    const { merchant } = account;
    for (let attempt = 2; attempt <= 18; attempt += 1) {
      paying.clock.advance({ minutes: 10 });
      await deliverDueCallbacks(service.deps);
    }
    assert.equal((await read()).attempts, 18);
    paying.clock.advance({ minutes: 10 });
    const sent = Promise.withResolvers<void>();
    const dead = new AbortController();
    // Other tests' callbacks may be due as well, so wait until this one has been sent.
    const died = dying((to) => {
      if (to === url) sent.resolve();
    });
    void deliverDueCallbacks(died, dead.signal);
    await sent.promise;
    dead.abort();
    assert.equal((await read()).status, 'pending');
    paying.clock.advance({ minutes: 10 });
    await deliverDueCallbacks(service.deps);
    const { status, tried } = await read();
    assert.deepEqual([status, tried.length, received().length], ['exhausted', 19, 18]);
    assert.equal(tried.at(-1)?.outcome, 'unknown');
    assert.equal((await alertsOf(service, merchant.id)).length, 1);
    assert.ok(id);
  });

  test('a process that lost its lease finishes its own attempt and changes nothing else', async () => {
    const { url, received } = place(() => ({}));
    const [id = ''] = await queueCallbacks(service, paying.account, [url]);
    const sent = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<Awaited<ReturnType<typeof service.deps.sendCallback>>>();
    const sendCallback = () => {
      sent.resolve();
      return answer.promise;
    };
    const late = deliverFirstOf({ ...service.deps, sendCallback }, id);
    await sent.promise;
    paying.clock.advance({ minutes: 10 });
    await deliverDueCallbacks(service.deps);
    answer.resolve({
      delivered: false,
      reason: 'timeout',
      address: null,
      tls_version: null,
      status: null,
      headers: null,
      body: null,
      body_bytes: null,
      truncated: false,
      timings: {},
    });
    await late;
    const { status, tried } = await readCallback(service, id);
    assert.deepEqual([status, received().length], ['delivered', 1]);
    assert.deepEqual(
      tried.map(({ outcome }) => outcome),
      ['failed', 'delivered'],
    );
  });
});

describe('an attempt whose COMMIT is answered late, because a standby was slow', () => {
  const slow = (meanwhile: () => unknown) => {
    const { openAttempt } = service.deps;
    const openLate: typeof openAttempt = Object.assign(
      async (attempt: Parameters<typeof openAttempt>[0]) => {
        const opened = await openAttempt(attempt);
        await meanwhile();
        return opened;
      },
      { settled: openAttempt.settled },
    );
    return { ...service.deps, openAttempt: openLate };
  };
  /** Lets time pass until less of the lease is left than an exchange may take. */
  const slightlyLate = () => paying.clock.advance({ seconds: leaseSeconds - deadlineSeconds + 1 });
  const results = async (id: string) =>
    (await readCallback(service, id)).tried.map(({ outcome, reason }) => [outcome, reason]);

  test('is not sent if another process has claimed the callback: the receiver gets one', async () => {
    const { url, received } = place(() => ({}));
    const account = await createAccount(service);
    const [id = ''] = await queueCallbacks(service, account, [url]);
    const overtaken = slow(async () => {
      paying.clock.advance({ seconds: leaseSeconds });
      await deliverDueCallbacks(service.deps);
    });
    await deliverFirstOf(overtaken, id);
    assert.equal(received().length, 1);
    assert.deepEqual(await results(id), [
      ['failed', 'not_sent'],
      ['delivered', null],
    ]);
    assert.equal((await readCallback(service, id)).status, 'delivered');
  });

  test('is not sent if the lease could end during the exchange: the next one is due at once, later ones after 10 minutes', async () => {
    const { url, received } = place(() => ({}));
    const account = await createAccount(service);
    const [id = ''] = await queueCallbacks(service, account, [url]);
    await deliverFirstOf(slow(slightlyLate), id);
    await deliverMerchantCallbacks(slow(slightlyLate), account.merchant);
    const unsent = await readCallback(service, id);
    assert.deepEqual([unsent.status, unsent.attempts, unsent.lease], ['pending', 2, null]);
    const due = Temporal.Instant.from(unsent.due_at ?? '');
    assert.equal(at(unsent.tried[1]).until(due).total('minutes'), 10);
    assert.equal(received().length, 0);
    paying.clock.advance({ minutes: 10 });
    await deliverDueCallbacks(service.deps);
    assert.equal(received().length, 1);
    assert.deepEqual(await results(id), [
      ['failed', 'not_sent'],
      ['failed', 'not_sent'],
      ['delivered', null],
    ]);
  });
});

test('a process that only serves requests writes the statistics of its deliveries', async () => {
  const { deps } = service;
  const host = 'statistics.example';
  const callback = { merchant_id: paying.account.merchant.id, host };
  countDeliveries(deps, [{ callback, reason: null, milliseconds: 30 }]);
  const worker = startWorker(deps, { isOwnOnly: true });
  try {
    await until('the statistics', async () => {
      const text = 'select from destination_days where host = $1 and delivered = 1';
      return (await deps.database.pool.query(text, [host])).rowCount === 1;
    });
  } finally {
    await worker.stop();
  }
});
