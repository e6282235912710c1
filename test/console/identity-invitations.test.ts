import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { invitePerson } from '#operating/people/invite-person.ts';
import { revokePerson } from '#operating/people/manage-people.ts';
import { sendPersonMails } from '#operating/people/send-person-mails.ts';
import type { MailTransport } from '#purchases/messages/sending/mail.ts';
import { createAuthenticator } from '../support/authenticator.ts';
import { addPerson, ask, type ConsolePerson, openConsole } from '../support/console.ts';
import { type Answer, movableClock, type Service, startService } from '../support/service.ts';

// How a person gets a way in, and who learns of it.

const clock = movableClock();
let service: Service;
let withMail: FastifyInstance;
let withoutMail: FastifyInstance;
before(async () => {
  service = await startService({ clock });
  withMail = await openConsole(service);
  withoutMail = await openConsole({ deps: { ...service.deps, sendsMessages: false } });
});
after(async () => {
  await withMail.close();
  await withoutMail.close();
  await service.close();
});

const here = () => ({ origin: service.deps.console.url });
const post = async (
  app: FastifyInstance,
  person: ConsolePerson | { cookie: string } | null,
  url: string,
  body?: object,
): Promise<Answer> => {
  clock.advance({ seconds: 2 });
  return await ask({ app, deps: service.deps }, person, 'POST', url, body && { body });
};
const admin = () => addPerson(service, { roles: ['admin'] });
const invite = (app: FastifyInstance, by: ConsolePerson, email: string, roles = ['finance']) =>
  post(app, by, '/api/people', { email, roles, merchant_ids: null });

/** The mails to an address, the newest last: subjects, and the token of the link in the text. */
async function mailsTo(email: string): Promise<{ subject: string; token: string | undefined }[]> {
  while ((await sendPersonMails(service.deps)) > 0);
  const { rows } = await service.deps.database.pool.query(
    'select subject, text from mailbox where recipient = $1 order by sent_at, id',
    [email],
  );
  return rows.map(({ subject, text }) => ({
    subject,
    token: /\/register#([\w-]{43})/.exec(text)?.[1],
  }));
}

async function register(token: string) {
  const authenticator = createAuthenticator();
  const { options } = (await post(withMail, null, '/api/invitation/options', { token })).body;
  const response = authenticator.create(options, here());
  const answer = await post(withMail, null, '/api/invitation/register', { token, response });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return { authenticator, cookie: String(answer.headers['set-cookie']).split(';')[0] ?? '' };
}

async function alertAbout(person_id: string): Promise<Record<string, string>> {
  const { rows } = await service.deps.database.pool.query(
    'select * from alerts where subject_id = $1 order by at desc, id desc limit 1',
    [person_id],
  );
  return rows[0];
}

/** A person who registered a passkey with an invitation of the command line. */
async function colleague(email: string) {
  const wanted = { email, roles: ['finance'], merchant_ids: null };
  const { url, person } = await invitePerson(service.deps, 'test', wanted);
  return { person, ...(await register(new URL(url).hash.slice(1))) };
}

describe('an invitation at the console', () => {
  test('of a new person goes to their address alone, and the inviter cannot close its alert', async () => {
    const by = await admin();
    const answer = await invite(withMail, by, 'new@example.com', ['admin']);
    assert.equal(answer.body.delivery, 'mailed');
    assert.doesNotMatch(JSON.stringify(answer.body), /register#/);
    const [mail] = await mailsTo('new@example.com');
    assert.equal(mail?.subject, 'You are invited to the console');
    const alert = await alertAbout(answer.body.person.id);
    assert.deepEqual([alert.kind, alert.caused_by], ['person_invited', by.email]);
    const invited = await register(mail?.token ?? '');
    for (const closer of [by, invited]) {
      const url = `/api/alerts/${alert.id}/close`;
      assert.equal((await post(withMail, closer, url, { reason: 'Agreed.' })).status, 409);
    }
    const { rows } = await service.deps.database.pool.query(
      'select from person_mails where sealed_token is not null',
    );
    assert.equal(rows.length, 0, 'no token is kept once it is sent');
  });

  test('of a colleague who had a passkey works only once a second administrator released it', async () => {
    const known = await colleague('sipho@example.com');
    const [by, second] = [await admin(), await admin()];
    const answer = await invite(withMail, by, 'sipho@example.com');
    assert.equal(answer.body.delivery, 'held');
    const alert = await alertAbout(known.person.id);
    assert.equal(alert.kind, 'ways_in_replaced');
    assert.match(alert.detail ?? '', /1 passkeys and 1 sessions ended/);
    // Neither another invitation, nor a revocation before it, avoids the second administrator.
    assert.equal((await invite(withMail, by, 'sipho@example.com')).body.delivery, 'held');
    await post(withMail, by, `/api/people/${known.person.id}/revoke`);
    assert.equal((await invite(withMail, by, 'sipho@example.com')).body.delivery, 'held');
    const before = await mailsTo('sipho@example.com');
    assert.ok(before.every(({ token }) => token === undefined));
    assert.ok(
      before.some(
        ({ subject }) => subject === 'Your passkeys and sessions of the console have ended',
      ),
    );
    assert.ok(before.some(({ subject }) => subject === 'You can no longer use the console'));

    const release = `/api/people/${known.person.id}/release`;
    const refused = await post(withMail, by, release);
    assert.match(refused.body.error.message, /^You made this invitation/);
    const shown = async (one: ConsolePerson) => {
      const url = `/api/people/${known.person.id}`;
      return (await ask({ app: withMail, deps: service.deps }, one, 'GET', url)).body.invitation;
    };
    assert.deepEqual(
      [(await shown(by)).is_held, (await shown(second)).release_refusal],
      [true, null],
    );
    const released = await post(withMail, second, release);
    assert.deepEqual([released.status, released.body.url], [200, null]);
    assert.equal((await shown(second)).is_held, false);
    assert.equal((await post(withMail, second, release)).status, 409, 'it is released once');
    const mail = (await mailsTo('sipho@example.com')).at(-1);
    await register(mail?.token ?? '');
    const last = (await mailsTo('sipho@example.com')).at(-1);
    assert.equal(last?.subject, 'A passkey was registered with your invitation');
  });

  test('without mail gives the link to the second administrator, never to the inviter', async () => {
    const [by, second] = [await admin(), await admin()];
    const { body } = await invite(withoutMail, by, 'unmailed@example.com');
    assert.equal(body.delivery, 'held');
    const release = `/api/people/${body.person.id}/release`;
    assert.equal((await post(withoutMail, by, release)).status, 409);
    const { url } = (await post(withoutMail, second, release)).body;
    await register(new URL(url).hash.slice(1));
    assert.deepEqual(
      (await mailsTo('unmailed@example.com')).map(({ subject }) => subject),
      ['A passkey was registered with your invitation'],
    );
  });

  test('that waits ends after 72 hours', async () => {
    const { body } = await invite(withoutMail, await admin(), 'late@example.com');
    clock.advance({ hours: 72 });
    const release = `/api/people/${body.person.id}/release`;
    assert.match(
      (await post(withoutMail, await admin(), release)).body.error.message,
      /^No invitation/,
    );
  });
});

describe('the command line', () => {
  test('prints the link of a colleague, raises an alert that names the user, and mails them', async () => {
    const known = await colleague('only@example.com');
    const origin = { os_user: 'root', host: 'pay-1' };
    const wanted = { email: 'only@example.com', roles: ['admin'], merchant_ids: null };
    const { url } = await invitePerson({ ...service.deps, origin }, 'nomsa', wanted);
    const alert = await alertAbout(known.person.id);
    assert.equal(alert.kind, 'ways_in_replaced');
    assert.match(alert.detail ?? '', /^nomsa \[root@pay-1\] invited only@example.com again/);
    const [mail] = (await mailsTo('only@example.com')).slice(-1);
    assert.equal(mail?.subject, 'Your passkeys and sessions of the console have ended');
    await register(new URL(url).hash.slice(1));
  });
});

test('a person is told by mail of each passkey that is added or removed, and of the end', async () => {
  const { person, cookie } = await colleague('told@example.com');
  const { options } = (await post(withMail, { cookie }, '/api/passkeys/options')).body;
  const response = createAuthenticator().create(options, here());
  const added = { name: 'Phone', response };
  assert.equal((await post(withMail, { cookie }, '/api/passkeys', added)).status, 200);
  const console = { app: withMail, deps: service.deps };
  const [first] = (await ask(console, { cookie }, 'GET', '/api/passkeys')).body.data;
  await ask(console, { cookie }, 'DELETE', `/api/passkeys/${first.id}`);
  await revokePerson(service.deps, 'nomsa', { id: person.id });
  assert.deepEqual(
    (await mailsTo('told@example.com')).map(({ subject }) => subject),
    [
      'A passkey was registered with your invitation',
      'A passkey was added',
      'A passkey was removed',
      'You can no longer use the console',
    ],
  );
});

test('an invitation that ended before its mail was sent is not sent', async () => {
  const { body } = await invite(withMail, await admin(), 'gone@example.com');
  await revokePerson(service.deps, 'nomsa', { id: body.person.id });
  assert.deepEqual(
    (await mailsTo('gone@example.com')).map(({ token }) => token),
    [undefined],
  );
});

test('mail that the server refuses for good raises an alert, and a failure is retried', async () => {
  const { body } = await invite(withMail, await admin(), 'refused@example.com');
  let sent = 0;
  const mail: MailTransport = {
    concurrencyMax: 1,
    async send() {
      sent += 1;
      return { outcome: sent === 1 ? 'failed' : 'refused', response: 'no such mailbox' };
    },
    close: async () => {},
  };
  await sendPersonMails({ ...service.deps, mail });
  assert.equal(await sendPersonMails({ ...service.deps, mail }), 0);
  clock.advance({ minutes: 5 });
  await sendPersonMails({ ...service.deps, mail });
  assert.equal(sent, 2);
  const alert = await alertAbout(body.person.id);
  assert.deepEqual([alert.kind, alert.caused_by], ['message_refused', null]);
});
