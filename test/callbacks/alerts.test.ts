import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, afterEach, before, test } from 'node:test';
import { timestamp } from '#platform/shared/clock.ts';
import { freePorts } from '#platform/shared/free-ports.ts';
import { deliverDueCallbacks } from '#purchases/callbacks/delivery/deliver-due-callbacks.ts';
import type { Origin } from '#record/actions/operate.ts';
import { claimDueAlerts } from '#record/alerts/alert.sql.ts';
import { closeAlert } from '#record/alerts/handle-alert.ts';
import { operateOnAccess } from '#record/alerts/operate-on-access.ts';
import { postAlerts } from '#record/alerts/post-alerts.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { startWorker } from '#worker.ts';
import { queueCallbacks } from '../support/callbacks.ts';
import { addPerson } from '../support/console.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import {
  checkoutBody,
  createAccount,
  movableClock,
  type Service,
  send,
  startService,
} from '../support/service.ts';
import { until } from '../support/until.ts';

// Alerts are posted to ALERT_WEBHOOK_URL.

const clock = movableClock();
const secret = 'a secret of an operator, long enough';
let receiver: Receiver;
let service: Service;
before(async () => {
  receiver = await startReceiver();
  service = await startService({
    clock,
    env: { ALERT_WEBHOOK_URL: `${receiver.url}/alerts`, ALERT_WEBHOOK_SECRET: secret },
  });
});
after(async () => {
  await service.close();
  await receiver.close();
});
afterEach(async () => {
  await service.deps.database.pool.query('delete from alerts');
  receiver.received.length = 0;
  receiver.answer = () => ({});
});

const raise = () =>
  raiseAlert(service.deps, service.deps.database.db, {
    kind: 'card_testing',
    detail: 'Look: "ümlaut".',
  });

const read = async () =>
  (await service.deps.database.pool.query('select * from alerts order by at, id')).rows;

const posted = () => receiver.received.map(({ raw }) => JSON.parse(raw.toString()));

test('the post is signed, and leaves out what a shopper wrote', async () => {
  await raiseAlert(service.deps, service.deps.database.db, {
    kind: 'message_refused',
    isPrivate: true,
    detail: 'The mail server says: the recipient is in hospital.',
  });
  assert.equal(await postAlerts(service.deps), 1);
  const [{ raw, headers }] = receiver.received as [(typeof receiver.received)[0]];
  assert.doesNotMatch(raw.toString(), /hospital/);
  assert.match(posted()[0].detail, /^The detail is private/);
  const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signature } = headers;
  const expected = createHmac('sha256', secret).update(`${id}.${at}.`).update(raw);
  assert.equal(signature, `v1,${expected.digest('base64')}`);
  assert.equal(Number(at), Math.floor(clock.now().epochMilliseconds / 1_000));
});

test('an alert is posted once, as JSON, with all of its members', async () => {
  await raise();
  const [{ id, at }] = await read();
  assert.equal(await postAlerts(service.deps), 1);
  assert.equal(await postAlerts(service.deps), 0);
  assert.equal(receiver.received.length, 1);
  const [{ path, headers }] = receiver.received as [(typeof receiver.received)[0]];
  assert.deepEqual(
    [path, headers['content-type'], headers['user-agent']],
    ['/alerts', 'application/json', 'Tranche-Alert/1'],
  );
  assert.deepEqual(posted(), [
    {
      id,
      at,
      kind: 'card_testing',
      integration_id: null,
      merchant_id: null,
      subject_id: null,
      detail: 'Look: "ümlaut".',
    },
  ]);
  const [row] = await read();
  assert.deepEqual([row.posted_at, row.due_at, row.attempts], [timestamp(clock.now()), null, 0]);
});

for (const [how, answer] of [
  ['answers 500', () => ({ status: 500 })],
  ['redirects', () => ({ status: 302, headers: { location: '/other' } })],
  ['closes the connection', () => 'close'],
] as [string, Receiver['answer']][]) {
  test(`while the address ${how} an alert is posted again, with growing backoff`, async () => {
    receiver.answer = answer;
    await raise();
    for (const [index, seconds] of [10, 20, 40, 80].entries()) {
      assert.equal(await postAlerts(service.deps), 1);
      assert.equal(receiver.received.length, index + 1);
      clock.advance({ milliseconds: seconds * 1000 - 1 });
      assert.equal(await postAlerts(service.deps), 0, `not before ${seconds} seconds`);
      clock.advance({ milliseconds: 1 });
    }
    receiver.answer = () => ({});
    assert.equal(await postAlerts(service.deps), 1);
    clock.advance({ hours: 24 });
    assert.equal(await postAlerts(service.deps), 0);
    assert.equal(new Set(posted().map(({ id }) => id)).size, 1);
    assert.deepEqual((await read())[0].attempts, 4);
  });
}

test('an alert that an operator caused is posted even if another operator closed it first', async () => {
  const { db } = service.deps.database;
  const kind = 'person_invited';
  const caused = await raiseAlert(service.deps, db, { kind, caused_by: 'sipho', detail: 'x' });
  for (const id of [caused, await raise()]) await closeAlert(service.deps, 'nomsa', id, 'Agreed.');
  assert.equal(await postAlerts(service.deps), 1);
  assert.deepEqual(
    posted().map(({ id }) => id),
    [caused],
  );
  assert.equal(await postAlerts(service.deps), 0);
});

test('an address that refuses connections gets thirty attempts, at most an hour apart, and the row stays', async () => {
  const [port] = await freePorts(1);
  const deps = { ...service.deps, alertWebhookUrl: `http://127.0.0.1:${port}/` };
  await raise();
  let count = 0;
  for (let hours = 0; hours < 40; hours += 1) {
    while ((await postAlerts(deps)) > 0) count += 1;
    clock.advance({ hours: 1 });
  }
  assert.equal(count, 30);
  const [row] = await read();
  assert.deepEqual([row.posted_at, row.due_at, row.attempts], [null, null, 30]);
});

test('an alert whose post hangs does not delay the others', async () => {
  const hung = Promise.withResolvers<void>();
  receiver.answer = (_received, count) => {
    if (count > 1) return {};
    hung.resolve();
    return 'hang';
  };
  for (let count = 0; count < 3; count += 1) await raise();
  const posting = postAlerts(service.deps);
  await until('the others', async () => (await read()).filter((row) => row.posted_at).length === 2);
  await hung.promise;
  const { received } = receiver;
  await receiver.close();
  await posting;
  assert.equal(received.length, 3);
  assert.deepEqual((await read()).map(({ attempts }) => attempts).sort(), [0, 0, 1]);
  receiver = await startReceiver();
  service.deps.alertWebhookUrl = `${receiver.url}/alerts`;
});

test('if a process dies while it posts an alert, another posts it a minute later', async () => {
  await raise();
  const now = clock.now();
  const claimed = await claimDueAlerts(
    service.deps.database.db,
    timestamp(now),
    timestamp(now.add({ seconds: 60 })),
    20,
  );
  assert.equal(claimed.length, 1);
  const next = await startService({
    clock,
    databaseUrl: service.databaseUrl,
    env: { ALERT_WEBHOOK_URL: `${receiver.url}/next` },
  });
  try {
    assert.equal(await postAlerts(next.deps), 0);
    clock.advance({ seconds: 60 });
    const worker = startWorker(next.deps);
    let failures = 0;
    await until('the post', async () => {
      const [{ posted_at, attempts }] = await read();
      // A post that fails is due again later. No time passes while one is in flight.
      if (attempts > failures) clock.advance({ hours: 1 });
      failures = attempts;
      return posted_at;
    });
    await worker.stop();
    assert.notEqual(receiver.at('/next').length, 0);
  } finally {
    await next.close();
  }
});

test('two processes post each alert once', async () => {
  const other = await startService({
    clock,
    databaseUrl: service.databaseUrl,
    env: { ALERT_WEBHOOK_URL: `${receiver.url}/alerts` },
  });
  try {
    for (let count = 0; count < 50; count += 1) await raise();
    const post = async ({ deps }: Service) => {
      while ((await postAlerts(deps)) > 0);
    };
    await Promise.all([post(service), post(other)]);
    assert.equal(receiver.received.length, 50);
    assert.equal(new Set(posted().map(({ id }) => id)).size, 50);
  } finally {
    await other.close();
  }
});

test('without an address alerts stay due', async () => {
  await raise();
  assert.equal(await postAlerts({ ...service.deps, alertWebhookUrl: null }), 0);
  assert.equal(await postAlerts(service.deps), 1);
});

test('without an address the service logs once the access that the command line revoked', async () => {
  const { deps } = service;
  const atCommandLine = { os_user: 'root', host: 'pay-1' };
  const sipho = await addPerson(service, { roles: ['admin'] });
  const ids = { person_id: sipho.id, access_id: sipho.id, session_id: sipho.session_id };
  const atConsole = { ...ids, roles: ['admin'] };
  const revoke = (origin: Origin) =>
    operateOnAccess({ ...deps, origin }, 'nomsa', 'operators revoke', async () => ({
      subject_id: sipho.id,
      details: {},
      result: null,
    }));
  await revoke(atCommandLine);
  await revoke({ ...atConsole, address: '192.0.2.7', counts_from: null });
  const lines: { alert: { kind: string; detail: string } }[] = [];
  const silent = { ...deps.log, warn: (line: (typeof lines)[number]) => lines.push(line) };
  const log = silent as unknown as typeof deps.log;
  const tell = () => postAlerts({ ...deps, log, alertWebhookUrl: null });
  assert.deepEqual([await tell(), await tell()], [1, 0]);
  const [{ alert }] = lines as [(typeof lines)[number]];
  assert.equal(alert.kind, 'access_ended');
  assert.match(alert.detail, /^nomsa \[root@pay-1\] ran `operators revoke`/);
  assert.equal(await postAlerts(deps), 2, 'they stay due');
});

test('repeated wrong signatures raise an alert that is posted (decision 0005)', async () => {
  const account = await createAccount(service);
  for (let count = 1; count <= 30; count += 1) {
    const wrong = { 'x-signature': Buffer.alloc(64).toString('base64') };
    const answer = await send(service, account, 'POST', '/api/checkouts', {
      body: checkoutBody(),
      headers: wrong,
    });
    assert.equal(answer.status, 400);
  }
  await postAlerts(service.deps);
  assert.deepEqual(
    posted().map(({ kind, integration_id }) => [kind, integration_id]),
    [['signature_mismatches', account.id]],
  );
  assert.match(posted()[0].detail, /wrong signatures/);
});

test('a failing destination and an exhausted callback raise alerts that are posted', async () => {
  const account = await createAccount(service);
  receiver.answer = ({ path }) => (path === '/alerts' ? {} : { status: 500 });
  await queueCallbacks(service, account, [`${receiver.url}/shop`]);
  for (let attempt = 1; attempt <= 19; attempt += 1) {
    clock.advance({ minutes: 10 });
    await deliverDueCallbacks(service.deps);
    await postAlerts(service.deps);
    const kinds = receiver.at('/alerts').map(({ raw }) => JSON.parse(raw.toString()).kind);
    const warned = attempt >= 5 ? ['destination_failing'] : [];
    assert.deepEqual(kinds, attempt === 19 ? [...warned, 'callback_exhausted'] : warned);
  }
  const [failing, exhausted] = await read();
  assert.equal(failing.closed_at, null);
  assert.notEqual(exhausted.closed_at, null, 'one open alert about a receiver is enough');
});

test('an exhausted callback has an open alert while another receiver of the merchant fails', async () => {
  const account = await createAccount(service);
  const { id: merchant_id } = account.merchant;
  await raiseAlert(service.deps, service.deps.database.db, {
    kind: 'destination_failing',
    merchant_id,
    integration_id: account.id,
    detail: 'Callbacks to other.example have failed 5 times in a row (last: timeout).',
  });
  receiver.answer = () => ({ status: 500 });
  const [id] = await queueCallbacks(service, account, [`${receiver.url}/shop`]);
  const { pool } = service.deps.database;
  await pool.query('update callbacks set run_attempts = 18 where checkout_id = $1', [id]);
  clock.advance({ minutes: 10 });
  await deliverDueCallbacks(service.deps);
  const raised = (await read()).map(({ kind, closed_at }) => [kind, closed_at]);
  assert.deepEqual(raised, [
    ['destination_failing', null],
    ['callback_exhausted', null],
  ]);
});
