import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, test } from 'node:test';
import { startMailbox } from '#hosting/sandbox/mailbox.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { insertMailboxEntry, type MailboxEntry } from '#purchases/messages/sending/mailbox.sql.ts';
import {
  type Account,
  createAccount,
  createSuccessfulCheckout,
  log,
  movableClock,
  type Service,
  startService,
} from '../support/service.ts';

const clock = movableClock();
let service: Service;
let account: Account;
let checkout_id: string;
let mailbox: Awaited<ReturnType<typeof startMailbox>>;
before(async () => {
  service = await startService({ clock });
  account = await createAccount(service);
  checkout_id = await createSuccessfulCheckout(service, account);
  mailbox = await startMailbox({ ...service.deps, log }, 0);
});
after(async () => {
  await mailbox.stop();
  await service.close();
});

async function keep(subject: string, given: Partial<MailboxEntry> = {}) {
  const { deps } = service;
  const id = deps.random.uuid();
  clock.advance({ seconds: 1 });
  await insertMailboxEntry(deps.database.db, {
    merchant_id: account.merchant.id,
    id,
    checkout_id,
    sent_at: timestamp(clock.now()),
    sender: 'Karoo <pay@karoo.example>',
    recipient: 'thandi@example.com',
    subject,
    text: 'Hello',
    html: '<html><head></head><body>Hello</body></html>',
    ...given,
  });
  return id;
}

/** Sends a request that may name another host, which `fetch` does not allow. */
function get(path: string, headers: Record<string, string> = {}, method = 'GET') {
  return new Promise<{ status: number; headers: http.IncomingHttpHeaders; body: string }>(
    (resolve, reject) => {
      const request = http.request(new URL(path, mailbox.url), { headers, method }, (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (chunk) => {
          body += chunk;
        });
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
        );
      });
      request.on('error', reject).end();
    },
  );
}

test('a script reads the messages as JSON, the newest first, however far a clock is ahead', async () => {
  const first = await keep('First');
  const ahead = 'update mailbox set sent_at = $2 where id = $1';
  await service.deps.database.pool.query(ahead, [first, '2037-01-01T00:00:00Z']);
  const second = await keep('Second');
  const { data } = JSON.parse((await get('/messages')).body);
  assert.deepEqual(
    data.slice(0, 2).map(({ id }: { id: string }) => id),
    [second, first],
  );
  assert.deepEqual(Object.keys(data[0]), [
    'id',
    'to',
    'from',
    'subject',
    'text',
    'html',
    'sent_at',
  ]);
});

test('mails to one address are found however many have come since', async () => {
  const first = await keep('To Sipho', { recipient: 'Sipho+1@example.com' });
  for (let i = 0; i < 200; i += 1) await keep('Later');
  const found = async (to: string) =>
    JSON.parse((await get(`/messages?to=${encodeURIComponent(to)}`)).body).data.map(
      ({ id }: { id: string }) => id,
    );
  assert.deepEqual(await found('sipho+1@'), [first]);
  for (const to of ['%', '_', "'", '\0']) assert.deepEqual(await found(to), [], to);
});

test('a message is shown without scripts, whatever is in it, and its links open beside it', async () => {
  const html = '<html><head></head><body><script>alert(1)</script></body></html>';
  const id = await keep('Evil', { html });
  const answer = await get(`/messages/${id}/html`);
  assert.equal(answer.status, 200);
  const policy = String(answer.headers['content-security-policy']);
  assert.match(policy, /default-src 'none'/);
  assert.match(policy, /sandbox allow-popups/);
  assert.doesNotMatch(policy, /script-src/);
  assert.match(answer.body, /<base target="_blank">/);
});

test('a name that leads to this machine from elsewhere reads nothing', async () => {
  const answer = await get('/messages', { host: 'mailbox.evil.example' });
  assert.equal(answer.status, 421);
});

test('the mailbox can only be read', async () => {
  assert.equal((await get('/messages', {}, 'POST')).status, 405);
  assert.equal((await get('/messages', {}, 'HEAD')).body, '');
  assert.equal((await get('/messages/not-an-id/html')).status, 404);
  assert.equal((await get(`/messages/${service.deps.random.uuid()}/html`)).status, 404);
  assert.equal((await get('/../package.json')).status, 404);
});

test('the page and its parts are served', async () => {
  for (const path of ['/', '/mailbox.css', '/mailbox.js']) {
    assert.equal((await get(path)).status, 200, path);
  }
});
