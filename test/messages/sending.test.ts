import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import net from 'node:net';
import { after, afterEach, beforeEach, test } from 'node:test';
import tls from 'node:tls';
import { sql } from 'kysely';
import { pino } from 'pino';
import { closeEndedAlerts } from '#operating/operations/close-ended-alerts.ts';
import { dueRows } from '#platform/database/due-work.sql.ts';
import { transaction } from '#platform/database/transaction.ts';
import { type Clock, timestamp } from '#platform/shared/clock.ts';
import { freePorts } from '#platform/shared/free-ports.ts';
import type { Logger } from '#platform/shared/logger.ts';
import { dueMessages } from '#purchases/messages/message.sql.ts';
import { type Message, messageTokenContext } from '#purchases/messages/message.ts';
import { type QueuedMessage, queueMessages } from '#purchases/messages/queue-messages.ts';
import type { Mail, MailTransport } from '#purchases/messages/sending/mail.ts';
import { messagesFullRun, sendDueMessages } from '#purchases/messages/sending/send-messages.ts';
import { type MailSettings, smtpTransport } from '#purchases/messages/sending/smtp-transport.ts';
import { startWorker } from '#worker.ts';
import { createAuthority, selfSigned } from '../support/certificates.ts';
import { headerOf, type MailServer, type ReceivedMail, startMailServer } from '../support/mail.ts';
import {
  type Account,
  createAccount,
  createSuccessfulCheckout,
  createTestDatabase,
  movableClock,
  type Service,
  startService,
} from '../support/service.ts';

const database = await createTestDatabase();
const clock = movableClock();
const open: { stop(): Promise<void> }[] = [];

afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.stop();
});
after(() => database.drop());

let account: Account;
let checkout_id: string;

/**
 * Starts the service with this mail server, and creates a paid checkout whose messages are not
 * queued yet.
 */
async function start(
  mailUrl: string | null,
  env: NodeJS.ProcessEnv = {},
  log?: Logger,
): Promise<Service> {
  const service = await startService({
    clock,
    ...(log && { log }),
    databaseUrl: database.url,
    env: {
      ...(mailUrl !== null && { MAIL_URL: mailUrl }),
      MAIL_FROM: 'Karoo <pay@karoo.example>',
      ...env,
    },
  });
  open.push({ stop: () => service.close() });
  account = await createAccount(service);
  checkout_id = await createSuccessfulCheckout(service, account);
  await service.deps.database.pool.query(
    "update messages set status = 'skipped', due_at = null, settled_at = $1, lease = null, leased_until = null where due_at is not null",
    [timestamp(clock.now())],
  );
  return service;
}

async function startServer(
  options: Parameters<typeof startMailServer>[0] = {},
): Promise<MailServer> {
  const server = await startMailServer(options);
  open.push(server);
  return server;
}

async function queue(service: Service, ...messages: Partial<QueuedMessage>[]): Promise<void> {
  const at = timestamp(clock.now());
  await transaction(service.deps, ({ db }) =>
    queueMessages(
      service.deps,
      db,
      messages.map((message) => ({
        merchant_id: account.merchant.id,
        checkout_id,
        kind: 'charged' as const,
        at,
        ...message,
      })),
    ),
  );
}

function linkTo({ deps }: Service, token: string) {
  const id = deps.random.uuid();
  return { id, sealed_token: deps.sealing.seal(token, messageTokenContext({ id })) };
}

async function readAll({ deps }: Service): Promise<Message[]> {
  const { rows } = await deps.database.pool.query(
    'select * from messages where merchant_id = $1 and checkout_id = $2 order by created_at, id',
    [account.merchant.id, checkout_id],
  );
  return rows;
}

async function read(service: Service): Promise<Message[]> {
  const messages = await readAll(service);
  return messages.filter(({ status, attempts }) => status !== 'skipped' || attempts > 0);
}

async function readAttempts(service: Service): Promise<{ outcome: string; response: string }[]> {
  const { rows } = await service.deps.database.pool.query(
    'select outcome, response from message_attempts where merchant_id = $1 order by at, number',
    [account.merchant.id],
  );
  return rows;
}

async function readAlerts(service: Service): Promise<{ kind: string; detail: string }[]> {
  const { rows } = await service.deps.database.pool.query(
    'select kind, detail from alerts where merchant_id = $1 order by at',
    [account.merchant.id],
  );
  return rows;
}

beforeEach(() => clock.advance({ hours: 1 }));

test('a message reaches the shopper as text and HTML, under an ID that is its own', async () => {
  const server = await startServer();
  const service = await start(server.url);
  await queue(service, { facts: { instalment: 1, amount: 150_000 } });
  assert.equal(await sendDueMessages(service.deps), 1);

  const [mail] = server.mails;
  assert(mail);
  assert.deepEqual(mail.to, ['thandi@example.com']);
  assert.equal(mail.from, 'pay@karoo.example');
  const [message] = await read(service);
  assert.equal(headerOf(mail, 'Message-ID'), `<${message?.id}@karoo.example>`);
  assert.match(headerOf(mail, 'Content-Type') ?? '', /^multipart\/alternative/);
  assert.equal(headerOf(mail, 'Auto-Submitted'), 'auto-generated');
  assert.equal(message?.status, 'sent');
  assert.deepEqual(
    (await readAttempts(service)).map(({ outcome }) => outcome),
    ['sent'],
  );
  assert.match(
    await service.deps.metrics.registry.metrics(),
    /^tranche_messages_total\{outcome="sent"\} 1$/m,
  );
});

test('one cause makes one message, however often it is recorded', async () => {
  const server = await startServer();
  const service = await start(server.url);
  await queue(service, { about: 'payment 2' }, { about: 'payment 2' }, { about: 'payment 3' });
  await queue(service, { about: 'payment 2' });
  while ((await sendDueMessages(service.deps)) > 0);
  assert.equal(server.mails.length, 2);
});

test('a message whose transaction is rolled back is never sent', async () => {
  const server = await startServer();
  const service = await start(server.url);
  const failure = new Error('the cause did not happen');
  await assert.rejects(
    transaction(service.deps, async ({ db }) => {
      const at = timestamp(clock.now());
      const merchant_id = account.merchant.id;
      await queueMessages(service.deps, db, [{ merchant_id, checkout_id, kind: 'charged', at }]);
      throw failure;
    }),
    failure,
  );
  assert.equal(await sendDueMessages(service.deps), 0);
  assert.equal(server.mails.length, 0);
});

test('a message is sent when it falls due on the merchant’s clock, not before', async () => {
  const server = await startServer();
  const service = await start(server.url);
  await queue(service, { due_at: timestamp(clock.now().add({ hours: 24 })) });
  assert.equal(await sendDueMessages(service.deps), 0);
  clock.advance({ hours: 24 });
  assert.equal(await sendDueMessages(service.deps), 1);
  assert.equal(server.mails.length, 1);
});

test('a server that is away is retried, less and less often, and the message keeps its ID', async () => {
  const [port = 0] = await freePorts(1);
  const service = await start(`smtp://127.0.0.1:${port}`);
  await queue(service, {});
  assert.equal(await sendDueMessages(service.deps), 1);
  const [first] = await read(service);
  assert.equal(first?.status, 'pending');
  assert.equal(first?.due_at, timestamp(clock.now().add({ seconds: 60 })));
  clock.advance({ minutes: 1 });
  await sendDueMessages(service.deps);
  const [second] = await read(service);
  assert.equal(second?.due_at, timestamp(clock.now().add({ seconds: 120 })));

  const server = await startServer();
  const again = await startService({
    clock,
    databaseUrl: database.url,
    env: { MAIL_URL: server.url, MAIL_FROM: 'pay@karoo.example' },
  });
  open.push({ stop: () => again.close() });
  clock.advance({ minutes: 2 });
  await sendDueMessages(again.deps);
  assert.equal(headerOf(server.mails[0] as never, 'Message-ID'), `<${first?.id}@karoo.example>`);
  assert.deepEqual(
    (await readAttempts(service)).map(({ outcome }) => outcome),
    ['failed', 'failed', 'sent'],
  );
});

test('after three days without a server the message is given up and the operator is alerted', async () => {
  const service = await start(`smtp://127.0.0.1:${(await freePorts(1))[0]}`);
  await queue(service, {});
  for (let hours = 0; hours < 80; hours += 1) {
    await sendDueMessages(service.deps);
    clock.advance({ hours: 1 });
  }
  const [message] = await read(service);
  assert.equal(message?.status, 'refused');
  const kinds = (await readAlerts(service)).map(({ kind }) => kind);
  assert.equal(kinds.filter((kind) => kind === 'message_refused').length, 1);
  // There is one alert per day of the outage, not one per retry. The alerts can be closed now,
  // because no failed message is waiting to be retried.
  assert.equal(kinds.filter((kind) => kind === 'messages_failing').length, 3);
  assert.equal(await closeEndedAlerts(service.deps), 3);
});

test('a recipient that the server refuses permanently is not retried, and the audit does not name them', async () => {
  const server = await startServer({
    onRcptTo: ({ address }, _session, done) =>
      done(Object.assign(new Error(`<${address}> does not live here`), { responseCode: 550 })),
  });
  const service = await start(server.url);
  await queue(service, {});
  await sendDueMessages(service.deps);
  const [message] = await read(service);
  assert.equal(message?.status, 'refused');
  const [attempt] = await readAttempts(service);
  assert.match(attempt?.response ?? '', /550 <the recipient> does not live here/);
  const [alert] = await readAlerts(service);
  assert.equal(alert?.kind, 'message_refused');
  assert.doesNotMatch(alert?.detail ?? '', /thandi/);
});

test('an answer that is cut within a character is recorded, and its mail is not sent again', async () => {
  // Whatever comes before it, one of the two answers is cut within a character.
  let from = '';
  const server = await startServer({
    onRcptTo: (_address, _session, done) => {
      from = from === '' ? 'x' : '';
      const text = `${from}${'\u{1f97e}'.repeat(300)}`;
      done(Object.assign(new Error(text), { responseCode: 550 }));
    },
  });
  const service = await start(server.url);
  await queue(service, { about: 'one' });
  await sendDueMessages(service.deps);
  await queue(service, { about: 'two' });
  await sendDueMessages(service.deps);
  const messages = await read(service);
  assert.deepEqual(
    messages.map(({ status }) => status),
    ['refused', 'refused'],
  );
  for (const { response } of await readAttempts(service)) assert.ok(response.length >= 499);
});

test('a mail that cannot be written fails alone, is logged, and the others of its batch are sent once', async () => {
  const server = await startServer();
  const lines: string[] = [];
  const log = pino({ level: 'error' }, { write: (line: string) => void lines.push(line) });
  const service = await start(server.url, {}, log);
  const { id } = linkTo(service, 'token');
  // The key that sealed this token was retired.
  const lost = { id, sealed_token: Buffer.from('no such key') };
  const facts = { expires_at: timestamp(clock.now().add({ hours: 1 })) };
  await queue(service, { about: 'one' }, { kind: 'sign_in_link', link: lost, facts });
  for (const minutes of [0, 10, 10]) {
    clock.advance({ minutes });
    await sendDueMessages(service.deps);
  }
  assert.equal(server.mails.length, 1);
  const messages = await read(service);
  assert.deepEqual(
    messages.map(({ kind, status, attempts }) => `${kind} ${status} ${attempts}`).sort(),
    ['charged sent 1', 'sign_in_link pending 3'],
  );
  const responses = (await readAttempts(service)).filter(({ outcome }) => outcome === 'failed');
  assert.match(responses[0]?.response ?? '', /could not be written/);
  assert.equal(lines.filter((line) => line.includes(`"message_id":"${id}"`)).length, 3);
  clock.advance({ hours: 1 });
  await sendDueMessages(service.deps);
  const link = (await read(service)).find((one) => one.id === id);
  assert.equal(link?.status, 'skipped');
});

test('a server that refuses us, not the message, is retried', async () => {
  const server = await startServer({ user: 'tranche', password: 'right' });
  const service = await start(server.url.replace('right', 'wrong'));
  await queue(service, {});
  await sendDueMessages(service.deps);
  const [message] = await read(service);
  assert.equal(message?.status, 'pending');
  assert.equal((await readAttempts(service))[0]?.outcome, 'failed');
});

test('a recipient who is refused for now is retried', async () => {
  let isBusy = true;
  const server = await startServer({
    onRcptTo: (_address, _session, done) =>
      isBusy ? done(Object.assign(new Error('greylisted'), { responseCode: 451 })) : done(),
  });
  const service = await start(server.url);
  await queue(service, {});
  await sendDueMessages(service.deps);
  assert.equal((await read(service))[0]?.status, 'pending');
  isBusy = false;
  clock.advance({ minutes: 1 });
  await sendDueMessages(service.deps);
  assert.equal((await read(service))[0]?.status, 'sent');
});

test('STARTTLS is used where the server offers it, and an untrusted certificate is not accepted', async () => {
  const { cert, key } = selfSigned('127.0.0.1');
  const server = await startServer({ cert, key, disabledCommands: ['AUTH'] });
  const service = await start(server.url);
  await queue(service, {});
  await sendDueMessages(service.deps);
  assert.equal((await read(service))[0]?.status, 'pending');
  assert.equal(server.mails.length, 0, 'nothing was sent to a server that cannot prove itself');
  assert.match((await readAttempts(service))[0]?.response ?? '', /self-signed|certificate/i);
});

const letter: Mail = {
  merchant_id: randomUUID(),
  checkout_id: null,
  message_id: randomUUID(),
  sent_at: '2026-11-15T08:00:00.000Z',
  to: 'thandi@example.com',
  subject: 'Paid',
  text: 'Paid',
  html: '<p>Paid</p>',
};

function openTransport(settings: Partial<MailSettings> & { url: string }): MailTransport {
  const transport = smtpTransport({ from: 'pay@karoo.example', ...settings });
  open.push({ stop: () => transport.close() });
  return transport;
}

test('a refusal is final if it is about the recipient or the text, and retried if it may be about us', async () => {
  let [answer, where] = ['', ''];
  const reply = (at: string, done: (error?: Error) => void) => {
    const responseCode = Number(answer.slice(0, 3));
    done(at === where ? Object.assign(new Error(answer.slice(4)), { responseCode }) : undefined);
  };
  const server = await startServer({
    onRcptTo: (_address, _session, done) => reply('recipient', done),
    onData(stream, _session, done) {
      stream.resume();
      stream.on('end', () => reply('text', done));
    },
  });
  const transport = openTransport({ url: server.url });
  for (const [given, at, outcome] of [
    ['550 5.1.1 unknown', 'recipient', 'refused'],
    ['556 5.1.10 the domain takes no mail', 'recipient', 'refused'],
    ['550 5.2.1 disabled', 'recipient', 'refused'],
    ['552 5.2.3 too long', 'text', 'refused'],
    ['554 5.6.0 cannot be read', 'text', 'refused'],
    ['550 unknown', 'recipient', 'refused'],
    ['551 not here', 'recipient', 'refused'],
    ['553 not a mailbox', 'recipient', 'refused'],
    ['550 5.1.0 sender rejected', 'recipient', 'failed'],
    ['552 5.2.2 full', 'recipient', 'failed'],
    ['550 5.4.5 daily sending quota exceeded', 'recipient', 'failed'],
    ['554 5.7.1 relay access denied', 'recipient', 'failed'],
    ['554 5.7.1 rejected', 'text', 'failed'],
    ['552 full', 'recipient', 'failed'],
    ['554 no access', 'recipient', 'failed'],
    ['550 blocked', 'text', 'failed'],
  ] as const) {
    [answer, where] = [given, at];
    const sent = await transport.send(letter);
    assert.equal(sent.outcome, outcome, `${answer}, at the ${at}: ${sent.response}`);
    assert.ok(sent.response.endsWith(answer), sent.response);
  }
});

test('a transport that requires TLS tells a server without STARTTLS neither login nor mail', async () => {
  let logins = 0;
  const server = await startServer({
    user: 'tranche',
    password: 'right',
    disabledCommands: ['STARTTLS'],
    onAuth(_auth, _session, done) {
      logins += 1;
      done(null, { user: 'tranche' });
    },
  });
  const { outcome, response } = await openTransport({ url: server.url, requiresTls: true }).send(
    letter,
  );
  assert.equal(outcome, 'failed');
  assert.match(response, /STARTTLS/);
  assert.deepEqual([logins, server.mails.length], [0, 0]);
});

test('a mail leaves over STARTTLS to a server with a trusted certificate', async () => {
  const authority = createAuthority();
  tls.setDefaultCACertificates([...tls.getCACertificates(), authority.cert]);
  const { cert, key } = authority.certify(['127.0.0.1']);
  const server = await startServer({ cert, key, disabledCommands: ['AUTH'] });
  const { outcome } = await openTransport({ url: server.url, requiresTls: true }).send(letter);
  assert.equal(outcome, 'sent');
  assert.deepEqual(
    server.mails.map(({ secure }) => secure),
    [true],
  );
});

test('a server that trickles its reply is left at the deadline, and the next mail gets a new connection', async () => {
  const server = await startServer();
  const trickling = await startForwarder(server.url);
  open.push(trickling);
  trickling.trickles = true;
  const transport = openTransport({ url: trickling.url, deadlineMilliseconds: 300 });
  // On a loaded machine so short a deadline may pass before there is a connection.
  do {
    const { outcome, response } = await transport.send(letter);
    assert.equal(outcome, 'failed');
    assert.match(response, /took longer than/);
  } while (!trickling.hasTrickled);
  await trickling.abandoned;

  trickling.trickles = false;
  // A loaded machine may need several attempts within so short a deadline.
  while ((await transport.send(letter)).outcome !== 'sent');
  assert.ok(server.mails.length > 0);
});

test('a server so slow that a lease ends before its batch gets no message twice', async () => {
  const begin = clock.now();
  const others: Promise<number>[] = [];
  const ids: (string | undefined)[] = [];
  const server = await startServer({
    onData(stream, _session, done) {
      stream.on('end', () => {
        // The server needs five seconds for each message. Another process looks for due ones.
        clock.advance({ seconds: 5 });
        if (clock.now().since(begin).total('seconds') > 421 && others.length === 0) {
          others.push(sendDueMessages(service.deps));
        }
        done();
      });
      let source = '';
      stream.on('data', (chunk: Buffer) => {
        source += chunk;
      });
      stream.on('end', () => {
        ids.push(headerOf({ source } as ReceivedMail, 'Message-ID'));
      });
    },
  });
  const service = await start(server.url);
  await queue(service, ...Array.from({ length: 120 }, (_, index) => ({ about: `n ${index}` })));
  while ((await sendDueMessages(service.deps)) > 0);
  await Promise.all(others);
  while ((await sendDueMessages(service.deps)) > 0);
  assert.equal(others.length, 1, 'a second process took part');
  assert.equal(ids.length, 120);
  assert.equal(new Set(ids).size, 120);
  const messages = await read(service);
  assert.ok(messages.every(({ status, attempts }) => status === 'sent' && attempts === 1));
});

test('a connection that dies in the middle of a message leaves it to be retried', async () => {
  let deaths = 1;
  const server = await startServer({
    onData(stream, _session, done) {
      stream.resume();
      if (deaths-- > 0) {
        stream.once('data', () => dying.destroyAll());
        return;
      }
      stream.on('end', () => done());
    },
  });
  const dying = await startForwarder(server.url);
  open.push(dying);
  const service = await start(dying.url);
  await queue(service, {});
  await sendDueMessages(service.deps);
  assert.equal((await read(service))[0]?.status, 'pending');
  clock.advance({ minutes: 1 });
  await sendDueMessages(service.deps);
  assert.equal((await read(service))[0]?.status, 'sent');
});

test('two rounds of mail are 0.4 seconds apart, but after one of 50 mails or more the next begins at once', async () => {
  const service = await start(null);
  const { deps } = service;
  const queueSome = (count: number) =>
    queue(service, ...Array.from({ length: count }, () => ({ about: randomUUID() })));
  const rounds = [0];
  const { promise: done, resolve: finish } = Promise.withResolvers<void>();
  const mail: MailTransport = {
    concurrencyMax: 4,
    async send() {
      rounds[0] = (rounds[0] ?? 0) + 1;
      // These fall due while the first round is sent.
      if (rounds.length === 1 && rounds[0] === messagesFullRun + 3) await queueSome(5);
      return { outcome: 'sent', response: '' };
    },
    close: async () => {},
  };
  // Only the loop of messages pauses for 0.4 seconds. The search for due rows, every half second,
  // happens at once; every other pause lasts until the end.
  const sleep: Clock['sleep'] = async (milliseconds, signal) => {
    if (milliseconds === 400) {
      if (rounds.length === 2) finish();
      else await queueSome(4);
      rounds.unshift(0);
      return;
    }
    await new Promise<void>((resolve) => {
      if (milliseconds === 500 || signal?.aborted) setImmediate(resolve);
      signal?.addEventListener('abort', () => resolve());
    });
  };
  await queueSome(messagesFullRun + 3);
  // A round ends after ten seconds, too; here no time passes.
  const timeless = { ...deps.clock, sleep, monotonic: () => 0 };
  const worker = startWorker({ ...deps, mail, clock: timeless });
  await done;
  await worker.stop();
  assert.deepEqual(rounds, [0, 4, messagesFullRun + 3 + 5]);
});

test('two workers send each message once', async () => {
  const server = await startServer();
  const service = await start(server.url);
  await queue(service, ...Array.from({ length: 120 }, (_, index) => ({ about: `n ${index}` })));
  const drain = async () => {
    while ((await sendDueMessages(service.deps)) > 0);
  };
  await Promise.all([drain(), drain()]);
  const ids = server.mails.map((mail) => headerOf(mail, 'Message-ID'));
  assert.equal(ids.length, 120);
  assert.equal(new Set(ids).size, 120);
});

test('a message that a dead worker had claimed is sent after its lease', async () => {
  const server = await startServer();
  const service = await start(server.url);
  await queue(service, {});
  await service.deps.database.pool.query(
    "update messages set lease = $3, leased_until = $2 where merchant_id = $1 and status = 'pending'",
    [account.merchant.id, timestamp(clock.now().add({ seconds: 300 })), randomUUID()],
  );
  assert.equal(await sendDueMessages(service.deps), 0);
  clock.advance({ minutes: 6 });
  assert.equal(await sendDueMessages(service.deps), 1);
  assert.equal(server.mails.length, 1);
});

test('a reminder of a payment that is no longer due is skipped', async () => {
  const server = await startServer();
  const service = await start(server.url);
  // The only payment of this plan is held already, so there is nothing to announce.
  await queue(service, { kind: 'charge_soon', facts: { instalment: 1 } });
  assert.equal(await sendDueMessages(service.deps), 1);
  assert.equal(server.mails.length, 0);
  const messages = await readAll(service);
  assert.equal(messages.find(({ kind }) => kind === 'charge_soon')?.status, 'skipped');
});

test('a one-time link is sealed until it is sent, and gone from the database afterwards', async () => {
  const server = await startServer();
  const service = await start(server.url);
  const token = 'a-token-that-must-not-stay';
  const expires_at = timestamp(clock.now().add({ minutes: 15 }));
  await queue(service, {
    kind: 'sign_in_link',
    link: linkTo(service, token),
    facts: { expires_at },
  });
  const [before] = await read(service);
  assert(before?.sealed_token);
  assert(!before.sealed_token.includes(token));
  await sendDueMessages(service.deps);
  const [sent] = await read(service);
  assert.equal(sent?.sealed_token, null);
  const decoded = (server.mails[0]?.source ?? '').replace(/=\r\n/g, '');
  assert.match(decoded, /manage#a-token-that-must-not-stay/);
});

test('a one-time link that ended before it could be sent is skipped', async () => {
  const server = await startServer();
  const service = await start(server.url);
  const expires_at = timestamp(clock.now().add({ minutes: 15 }));
  await queue(service, {
    kind: 'sign_in_link',
    link: linkTo(service, 'late'),
    facts: { expires_at },
  });
  clock.advance({ minutes: 15 });
  await sendDueMessages(service.deps);
  assert.equal(server.mails.length, 0);
});

test('what merchants and shoppers typed cannot add a header, a recipient or markup', async () => {
  const server = await startServer();
  const service = await start(server.url);
  const merchant_id = account.merchant.id;
  const name = 'Evil\r\nBcc: everyone@example.com\r\n\u202e<script>alert(1)</script>';
  await service.deps.database.pool.query('update merchants set name = $2 where id = $1', [
    merchant_id,
    name,
  ]);
  await queue(service, { facts: { instalment: 1 } });
  await sendDueMessages(service.deps);
  const [mail] = server.mails;
  assert(mail);
  assert.deepEqual(mail.to, ['thandi@example.com']);
  assert.equal(headerOf(mail, 'Bcc'), undefined);
  const [, html = ''] = mail.source.replace(/=\r\n/g, '').split('Content-Type: text/html');
  assert.match(html, /Evil Bcc: everyone@example.com &lt;script&gt;alert\(1\)/);
  assert.doesNotMatch(html, /<script/);
  assert.doesNotMatch(mail.source, /E2=80=AE/, 'no mark that turns the text around');
});

test('a sandbox without a mail server keeps messages in its mailbox and opens no connection', async () => {
  const service = await start(null);
  await queue(service, { facts: { instalment: 1 } });
  await sendDueMessages(service.deps);
  const { rows } = await service.deps.database.pool.query(
    'select recipient, subject from mailbox where merchant_id = $1',
    [account.merchant.id],
  );
  assert.deepEqual(rows, [
    { recipient: 'thandi@example.com', subject: 'R 1 500,00 paid to Bean There' },
  ]);
});

test('production without a mail server starts with a warning and writes no messages', async () => {
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line) => lines.push(line) });
  const production = { TRANCHE_ENV: 'production', BASE_URL: 'https://pay.example' };
  const service = await start(null, production, log);
  assert.match(
    lines.join(),
    /"level":40.*no mail server is set \(MAIL_URL\): shoppers get no messages/,
  );
  await queue(service, {});
  assert.deepEqual(await read(service), []);
  assert.equal(await sendDueMessages(service.deps), 0);
});

type Forwarder = {
  url: string;
  /**
   * Whether the forwarder replies to new connections without ever finishing, instead of passing
   * them on.
   */
  trickles: boolean;
  hasTrickled: boolean;
  /** Resolves when the client has left such a connection. */
  abandoned: Promise<void>;
  destroyAll(): void;
  stop(): Promise<void>;
};

/** Passes connections on to a server until they are cut. */
async function startForwarder(url: string): Promise<Forwarder> {
  const sockets = new Set<net.Socket>();
  const target = Number(new URL(url).port);
  const abandoned = Promise.withResolvers<void>();
  const server = net.createServer((client) => {
    if (forwarder.trickles) {
      forwarder.hasTrickled = true;
      client.write('220 mail.example\r\n');
      const timer = setInterval(() => client.write('250-please wait\r\n'), 20);
      client.on('error', () => {});
      client.resume();
      client.on('close', () => {
        clearInterval(timer);
        abandoned.resolve();
      });
      return;
    }
    const upstream = net.connect(target, '127.0.0.1');
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => sockets.delete(socket));
    }
    client.pipe(upstream).pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as net.AddressInfo;
  const destroyAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  const forwarder: Forwarder = {
    url: `smtp://127.0.0.1:${port}`,
    trickles: false,
    hasTrickled: false,
    abandoned: abandoned.promise,
    destroyAll,
    async stop() {
      destroyAll();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return forwarder;
}

test('due messages are found through their index, however many were settled', async () => {
  const service = await start(null);
  const { pool, db } = service.deps.database;
  await queue(service, {});
  await pool.query(
    `insert into messages
     select (jsonb_populate_record(m, jsonb_build_object('id', gen_random_uuid(), 'about', n,
       'status', 'skipped', 'settled_at', m.created_at, 'due_at', null))).*
     from messages m, generate_series(1, 5000) n
     where m.merchant_id = $1 and m.due_at is not null`,
    [account.merchant.id],
  );
  await pool.query('analyze messages');
  const due = dueRows(dueMessages, timestamp(clock.now()));
  for (const ask of [sql`select exists (select from ${due} d)`, sql`select * from ${due} d`]) {
    const { rows } = await sql<{ 'QUERY PLAN': string }>`explain ${ask}`.execute(db);
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    assert.doesNotMatch(plan, /Seq Scan on messages/, plan);
    // A join might probe the index once for each merchant.
    assert.doesNotMatch(plan, /Join|Nested Loop/, plan);
  }
});
