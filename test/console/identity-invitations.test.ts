import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import type { FastifyInstance } from 'fastify';
import { findViolations } from '#checks/invariants/invariants.ts';
import { createIntegration } from '#merchants/integrations/create-integration.ts';
import { invitePerson, releaseInvitation } from '#operating/people/invite-person.ts';
import { changeAccess, revokePerson } from '#operating/people/manage-people.ts';
import {
  findPerson,
  insertPerson,
  listAccesses,
  type Person,
} from '#operating/people/person.sql.ts';
import { sendPersonMails } from '#operating/people/send-person-mails.ts';
import { timestamp } from '#platform/shared/clock.ts';
import type { MailTransport } from '#purchases/messages/sending/mail.ts';
import { confirmAccount } from '#purchases/payouts/set-bank-account.ts';
import { createAuthenticator } from '../support/authenticator.ts';
import { addPerson, ask, type ConsolePerson, cookieOf, openConsole } from '../support/console.ts';
import {
  type Answer,
  createAccount,
  movableClock,
  runs,
  type Service,
  startService,
} from '../support/service.ts';

// How a person gets access, and who is told.

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
  return { authenticator, cookie: cookieOf(answer) };
}

async function signIn(authenticator: ReturnType<typeof createAuthenticator>) {
  const { options } = (await post(withMail, null, '/api/sign-in/options')).body;
  const response = authenticator.get(options, here());
  const answer = await post(withMail, null, '/api/sign-in', { response });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return { cookie: cookieOf(answer) };
}

async function alertAbout(person_id: string): Promise<Record<string, string>> {
  const { rows } = await service.deps.database.pool.query(
    `select * from alerts where subject_id = $1 and kind <> 'access_ended'
     order by at desc, id desc limit 1`,
    [person_id],
  );
  return rows[0];
}

/** A person who registered a passkey with an invitation from the command line. */
async function colleague(email: string) {
  const wanted = { email, roles: ['finance'], merchant_ids: null };
  const { url, person } = await invitePerson(service.deps, 'test', wanted);
  return { person, ...(await register(new URL(url).hash.slice(1))) };
}

describe('an invitation at the console', () => {
  test('for a new person goes to their address alone, and the inviter cannot close its alert', async () => {
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

  test('for a colleague who had a passkey works only once a second administrator released it', async () => {
    const known = await colleague('sipho@example.com');
    const [by, second] = [await admin(), await admin()];
    const answer = await invite(withMail, by, 'sipho@example.com');
    assert.equal(answer.body.delivery, 'held');
    const asked = await alertAbout(known.person.id);
    assert.deepEqual([asked.kind, asked.caused_by], ['person_invited', by.email]);
    // Neither another invitation nor a revocation before it makes the second administrator
    // unnecessary.
    assert.equal((await invite(withMail, by, 'sipho@example.com')).body.delivery, 'held');
    await post(withMail, by, `/api/people/${known.person.id}/revoke`);
    assert.equal((await invite(withMail, by, 'sipho@example.com')).body.delivery, 'held');
    const before = await mailsTo('sipho@example.com');
    assert.ok(before.every(({ token }) => token === undefined));
    for (const subject of [
      'A new invitation to the console was requested for you',
      'Your access to the console was revoked',
    ]) {
      assert.ok(before.some((mail) => mail.subject === subject));
    }

    const release = `/api/people/${known.person.id}/release`;
    const was = { roles: ['finance'], merchant_ids: null };
    const refused = await post(withMail, by, release, { was });
    assert.match(refused.body.error.message, /^You made this invitation/);
    const shown = async (one: ConsolePerson) => {
      const url = `/api/people/${known.person.id}`;
      return (await ask({ app: withMail, deps: service.deps }, one, 'GET', url)).body.invitation;
    };
    assert.deepEqual(
      [(await shown(by)).is_held, (await shown(second)).release_refusal],
      [true, null],
    );
    const released = await post(withMail, second, release, { was });
    assert.deepEqual([released.status, released.body.url], [200, null]);
    assert.equal((await shown(second)).is_held, false);
    assert.equal(
      (await post(withMail, second, release, { was })).status,
      409,
      'it is released once',
    );
    const mail = (await mailsTo('sipho@example.com')).find(({ token }) => token !== undefined);
    await register(mail?.token ?? '');
    const last = (await mailsTo('sipho@example.com')).at(-1);
    assert.equal(last?.subject, 'A passkey was registered with your invitation');
  });

  test('for a colleague revokes their credentials and changes their name and roles at the release, not before', async () => {
    const { person, cookie } = await colleague('thandi@example.com');
    const [by, second] = [await admin(), await admin()];
    const seen = async (one: { cookie: string }, url: string) =>
      await ask({ app: withMail, deps: service.deps }, one, 'GET', url);
    const about = `/api/people/${person.id}`;
    await invite(withMail, by, 'thandi@example.com', ['viewer']);
    const wanted = { email: 'thandi@example.com', roles: ['support', 'refunds'] };
    const renamed = { ...wanted, name: 'Sam Naidoo', merchant_ids: null };
    assert.equal((await post(withMail, by, '/api/people', renamed)).body.delivery, 'held');
    assert.equal((await seen({ cookie }, '/api/session')).status, 200);
    const { body: held } = await seen(second, about);
    assert.deepEqual([held.roles, held.is_registered], [['finance'], true]);
    assert.deepEqual(held.invitation.access.roles, ['support', 'refunds']);
    const was = held.invitation.access;
    for (const stale of [{ roles: ['viewer'] }, { name: held.name }]) {
      const body = { was: { ...was, ...stale } };
      const refused = await post(withMail, second, `${about}/release`, body);
      assert.match(refused.body.error.message, /^This invitation was changed in the meantime/);
    }
    assert.equal((await post(withMail, second, `${about}/release`, { was })).status, 200);
    assert.equal((await seen({ cookie }, '/api/session')).status, 401);
    const { body: released } = await seen(second, about);
    assert.deepEqual([released.roles, released.is_registered], [['support', 'refunds'], false]);
    const renaming = { body: { name: 'Kim Jacobs' } };
    await ask({ app: withMail, deps: service.deps }, by, 'PATCH', about, renaming);
    const { rows: actions } = await service.deps.database.pool.query(
      `select details from operator_actions
       where subject_id = $1 and action ~ '^operators (invite|release|change)' order by number`,
      [person.id],
    );
    assert.deepEqual(
      actions
        .slice(-3)
        .map(({ details: { name, before, after } }) => [name, before?.name, after?.name]),
      [
        ['Sam Naidoo', undefined, undefined],
        ['Sam Naidoo', held.name, undefined],
        [undefined, 'Sam Naidoo', 'Kim Jacobs'],
      ],
    );
    const alert = await alertAbout(person.id);
    assert.deepEqual([alert.kind, alert.caused_by], ['ways_in_replaced', second.email]);
    assert.match(alert.detail ?? '', /1 passkey and 1 session ended/);
    const subjects = (await mailsTo('thandi@example.com')).map(({ subject }) => subject);
    assert.ok(subjects.includes('Your console passkeys and sessions have ended'));
  });

  test('without mail gives the link to the second administrator, never to the inviter', async () => {
    const [by, second] = [await admin(), await admin()];
    const { body } = await invite(withoutMail, by, 'unmailed@example.com');
    assert.equal(body.delivery, 'held');
    const release = `/api/people/${body.person.id}/release`;
    const was = { roles: ['finance'], merchant_ids: null };
    assert.equal((await post(withoutMail, by, release, { was })).status, 409);
    const { url } = (await post(withoutMail, second, release, { was })).body;
    await register(new URL(url).hash.slice(1));
    assert.deepEqual(
      (await mailsTo('unmailed@example.com')).map(({ subject }) => subject),
      ['A passkey was registered with your invitation'],
    );
  });

  test('whose link a second administrator saw adds no second approver until another administrator confirms', async () => {
    const [by, second] = [await admin(), await admin()];
    const [{ merchant }, other] = [await createAccount(service), await createAccount(service)];
    const was = { roles: ['merchant-admin'], merchant_ids: [merchant.id] };
    const wanted = { email: 'taken@example.com', ...was };
    const { db } = service.deps.database;
    // The address belongs first to a new person, then to a colleague who is invited again and also
    // has access elsewhere.
    for (const kind of ['person_invited', 'ways_in_replaced']) {
      const { id } = (await post(withoutMail, by, '/api/people', wanted)).body.person;
      const person = (await findPerson(db, id)) as Person;
      const elsewhere = { id: service.deps.random.uuid(), merchant_ids: [other.merchant.id] };
      if (kind === 'ways_in_replaced') {
        await insertPerson(db, { ...person, ...elsewhere, identity_id: id });
      }
      const { url } = (await post(withoutMail, second, `/api/people/${id}/release`, { was })).body;
      const alert = await alertAbout(id);
      assert.deepEqual([alert.kind, alert.caused_by], [kind, second.email]);
      assert.match(alert.detail ?? '', /got the person’s link, because mail is off/);
      const close = (one: ConsolePerson) =>
        post(withoutMail, one, `/api/alerts/${alert.id}/close`, { reason: 'Agreed.' });
      assert.match((await close(second)).body.error.message, /^Your own action/);
      const taken = await register(new URL(url).hash.slice(1));
      const propose = () =>
        post(withoutMail, taken, `/api/merchants/${merchant.id}/bank-accounts`, {
          ...{ holder: 'Bean There', bank: 'A Bank', branch_code: '051001' },
          account_number: '0123456789',
        });
      assert.match((await propose()).body.error.message, /has confirmed you/);
      const accesses = await listAccesses(db, id);
      assert.ok(
        accesses.every((one) => one.unconfirmed_by === second.id),
        'it opens all of them',
      );
      // Even after a merchant's administrator has given more access, the second administrator is
      // barred from confirming the person.
      const more = { ...was, roles: ['viewer', 'merchant-admin'] };
      const local = await addPerson(service, {
        ...{ roles: ['merchant-admin'], merchant_ids: was.merchant_ids },
      });
      const at = { app: withoutMail, deps: service.deps };
      const body = { roles: more.roles, was };
      const wider = await ask(at, local, 'PATCH', `/api/people/${id}`, { body });
      assert.equal(wider.status, 200);
      const confirm = (one: ConsolePerson) =>
        post(withoutMail, one, `/api/people/${id}/confirm`, { was: more });
      assert.match((await confirm(second)).body.error.message, /^You gave this access, or/);
      const confirmed = await confirm(by);
      assert.equal(confirmed.body.is_confirmed, true, JSON.stringify(confirmed.body));
      assert.equal((await close(by)).status, 200);
      assert.doesNotMatch(JSON.stringify((await propose()).body), /has confirmed you/);
    }
  });

  test('that waits ends after 72 hours', async () => {
    const { body } = await invite(withoutMail, await admin(), 'late@example.com');
    clock.advance({ hours: 72 });
    const was = { roles: ['finance'], merchant_ids: null };
    const release = `/api/people/${body.person.id}/release`;
    assert.match(
      (await post(withoutMail, await admin(), release, { was })).body.error.message,
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
    assert.equal(mail?.subject, 'Your console passkeys and sessions have ended');
    await register(new URL(url).hash.slice(1));
  });
});

test('one administrator cannot revoke all others and be the only one left', async () => {
  const { pool } = service.deps.database;
  await pool.query('update people set revoked_at = now() where revoked_at is null');
  const [by, second, third] = [await admin(), await admin(), await admin()];
  const console = { app: withMail, deps: service.deps };
  const take = {
    revoke: (one: ConsolePerson) => post(withMail, by, `/api/people/${one.id}/revoke`),
    demote: (one: ConsolePerson) =>
      ask(console, by, 'PATCH', `/api/people/${one.id}`, { body: { roles: ['viewer'] } }),
    narrow: (one: ConsolePerson) =>
      ask(console, by, 'PATCH', `/api/people/${one.id}`, { body: { merchant_ids: [merchant] } }),
  };
  const merchant = (await createAccount(service)).merchant.id;
  // A person who cannot sign in yet, and one with fewer merchants, do not count as other
  // administrators.
  await invite(withMail, by, 'not-yet@example.com', ['admin']);
  await addPerson(service, { roles: ['admin'], merchant_ids: [merchant] });
  const both = await Promise.all([take.revoke(second), take.demote(third)]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 409]);
  const left = both[0].status === 200 ? third : second;
  for (const one of Object.values(take)) {
    const { status, body } = await one(left);
    assert.equal(status, 409);
    assert.match(body.error.message, /would leave you as the only administrator/);
  }
  // Another of their roles may be removed, and a person who is not an administrator may be revoked.
  await admin();
  assert.equal((await take.demote(left)).status, 200);
  assert.equal((await take.revoke(left)).status, 200);
  const alert = await alertAbout(left.id);
  assert.deepEqual([alert.kind, alert.caused_by], ['person_revoked', by.email]);
  // The command line may still revoke a person, even the only administrator.
  await revokePerson(service.deps, 'nomsa', { id: by.id });
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
      'Your access to the console was revoked',
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

describe('a merchant’s administrator', () => {
  const people = async (
    by: { cookie: string },
    method: 'GET' | 'PATCH',
    url: string,
    body?: object,
  ) => await ask({ app: withMail, deps: service.deps }, by, method, url, body && { body });

  async function shop() {
    const { merchant } = await createAccount(service);
    const merchant_ids = [merchant.id];
    const own = await addPerson(service, { roles: ['merchant-admin'], merchant_ids });
    return { merchant, merchant_ids, own };
  }

  test('invites a colleague of their own merchant, who works there and nowhere else', async () => {
    const { own, merchant_ids, merchant } = await shop();
    const email = `till-${merchant.id}@example.com`;
    const wanted = { email, roles: ['till'], merchant_ids };
    const answer = await post(withMail, own, '/api/people', wanted);
    assert.equal(answer.body.delivery, 'mailed', JSON.stringify(answer.body));
    const till = await register((await mailsTo(email))[0]?.token ?? '');
    const read = (url: string) => people(till, 'GET', url);
    assert.deepEqual(
      [(await read('/api/checkouts')).status, (await read('/api/overview')).status],
      [200, 403],
    );
    for (const url of [
      '/api/payouts',
      '/api/merchants',
      '/api/people',
      '/api/audit',
      '/api/alerts',
    ]) {
      assert.equal((await read(url)).status, 403, url);
    }
    const { body } = await people(own, 'GET', '/api/people');
    assert.deepEqual(
      body.data.map((one: { email: string }) => one.email).sort(),
      [email, own.email].sort(),
    );
  });

  test('never gives a right or a merchant that they do not have themselves', async () => {
    const { own, merchant_ids } = await shop();
    const other = (await shop()).merchant.id;
    const colleagueOf = () => addPerson(service, { roles: ['till'], merchant_ids });
    for (const [roles, ids] of [
      [['admin'], merchant_ids],
      [['finance'], merchant_ids],
      [['on-call'], merchant_ids],
      [['till', 'auditor'], merchant_ids],
      [['till'], [other]],
      [['till'], [...merchant_ids, other]],
      [['till'], null],
    ] as const) {
      const what = JSON.stringify([roles, ids]);
      const email = `x-${crypto.randomUUID()}@example.com`;
      const invited = await post(withMail, own, '/api/people', { email, roles, merchant_ids: ids });
      assert.equal(invited.status, 409, what);
      const { id } = await colleagueOf();
      const body = { roles, merchant_ids: ids };
      assert.equal((await people(own, 'PATCH', `/api/people/${id}`, body)).status, 409, what);
    }
    const { body } = await people(own, 'GET', '/api/roles');
    assert.deepEqual(
      body.data.map((one: { role: string }) => one.role),
      ['viewer', 'support', 'refunds', 'merchant-admin', 'till'],
    );
    const { id } = await colleagueOf();
    const changed = await people(own, 'PATCH', `/api/people/${id}`, { roles: ['refunds'] });
    assert.deepEqual([changed.status, changed.body.roles], [200, ['refunds']]);
    assert.equal((await post(withMail, own, `/api/people/${id}/revoke`)).status, 200);
  });

  test('neither sees nor changes other merchants’ people, nor a person who has more rights', async () => {
    const { own, merchant_ids } = await shop();
    const theirs = await shop();
    const staff = await admin();
    const strong = await addPerson(service, { roles: ['admin'], merchant_ids });
    for (const { id } of [theirs.own, staff]) {
      assert.equal((await people(own, 'GET', `/api/people/${id}`)).status, 404);
      assert.equal((await post(withMail, own, `/api/people/${id}/revoke`)).status, 404);
    }
    const url = `/api/people/${strong.id}`;
    const seen = await people(own, 'GET', url);
    assert.deepEqual([seen.status, seen.body.merchant_ids], [200, merchant_ids]);
    assert.equal((await people(own, 'PATCH', url, { name: 'Another' })).status, 409);
    assert.equal((await post(withMail, own, `${url}/revoke`)).status, 409);
    const session = `${url}/sessions/${strong.session_id}`;
    const ended = await ask({ app: withMail, deps: service.deps }, own, 'DELETE', session);
    assert.equal(ended.status, 409);
    const wanted = { email: strong.email, roles: ['till'], merchant_ids };
    const answer = await post(withMail, own, '/api/people', wanted);
    assert.equal(answer.status, 409);
    assert.match(answer.body.error.message, /^Only an administrator of the payment service/);
  });

  test('changes and removes a colleague’s access to their own merchant alone, and learns of no other', async () => {
    const { own, merchant_ids } = await shop();
    const theirs = await shop();
    const roles: ['till'] = ['till'];
    const add = async (ids: string[]) => {
      const wanted = { email: `two-${crypto.randomUUID()}@example.com`, name: 'Thandi', roles };
      const invited = await invitePerson(service.deps, 'test', { ...wanted, merchant_ids: ids });
      const { cookie, authenticator } = await register(new URL(invited.url).hash.slice(1));
      return { id: invited.person.id, email: wanted.email, cookie, authenticator };
    };
    /** All that the administrator reads, without what differs between any two people. */
    const observe = async ({ id, email }: { id: string; email: string }) => {
      const url = `/api/people/${id}`;
      const was = { roles, merchant_ids };
      const seen: unknown[] = [];
      const note = ({ status, body }: Answer) => seen.push([status, body]);
      const list = async () => {
        const { data } = (await people(own, 'GET', '/api/people')).body;
        seen.push(data.filter((one: { email: string }) => one.email === email));
      };
      note(await people(own, 'PATCH', url, { name: 'T. Nkosi', roles: ['refunds'], was }));
      await list();
      const sessions = (await people(own, 'GET', `${url}/sessions`)).body.data;
      seen.push(sessions.length);
      const session = `${url}/sessions/${sessions[0]?.id}`;
      note(await ask({ app: withMail, deps: service.deps }, own, 'DELETE', session));
      note(await post(withMail, own, `${url}/revoke`));
      note(await post(withMail, own, `${url}/revoke`));
      await list();
      seen.push((await people(own, 'GET', `/api/audit?subject=${id}&person=${own.id}`)).body.data);
      const times = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;
      return JSON.stringify(seen, (key, value) => (key === 'session_id' ? 'SESSION' : value))
        .replaceAll(times, 'TIME')
        .replaceAll(id, 'ID')
        .replaceAll(email, 'EMAIL')
        .replace(/"id":"[\w-]{36}"/g, '"id":"OTHER"');
    };
    const one = await add(merchant_ids);
    const both = await add([...merchant_ids, ...theirs.merchant_ids].sort());
    assert.equal(await observe(both), await observe(one));
    // The other merchant's administrator sees no change, under the id that they knew.
    const kept = (await people(theirs.own, 'GET', `/api/people/${both.id}`)).body;
    assert.deepEqual(
      [kept.name, kept.roles, kept.merchant_ids, kept.is_registered, kept.revoked_at],
      ['Thandi', roles, theirs.merchant_ids, true, null],
    );
    const { data } = (await people(theirs.own, 'GET', '/api/people')).body;
    assert.equal(data.filter(({ email }: { email: string }) => email === both.email).length, 1);
    // The person signs in there as before, and has nothing left here.
    const person = await signIn(both.authenticator);
    const { scope } = (await people(person, 'GET', '/api/session')).body;
    assert.deepEqual(scope, theirs.merchant_ids);
    const { options } = (await post(withMail, null, '/api/sign-in/options')).body;
    const response = one.authenticator.get(options, here());
    assert.equal((await post(withMail, null, '/api/sign-in', { response })).status, 403);
    await post(withMail, theirs.own, `/api/people/${kept.id}/revoke`);
    assert.equal((await people(person, 'GET', '/api/session')).status, 401);
    const { rows } = await service.deps.database.pool.query(
      'select from passkeys where person_id = any($1)',
      [[one.id, both.id]],
    );
    assert.equal(rows.length, 0, 'the last revocation deletes the passkeys');
  });

  test('does not end what another merchant gave a person who has not accepted yet', async () => {
    const [mine, theirs] = [await shop(), await shop()];
    const [staff, releaser] = [await admin(), await admin()];
    const both = [...mine.merchant_ids, ...theirs.merchant_ids].sort();
    const invitationOf = async (reader: ConsolePerson, email: string) => {
      const { data } = (await people(reader, 'GET', '/api/people')).body;
      return data.find((one: { email: string }) => one.email === email);
    };
    for (const end of [
      (id: string) => people(mine.own, 'PATCH', `/api/people/${id}`, { roles: ['viewer'] }),
      (id: string) => post(withMail, mine.own, `/api/people/${id}/revoke`),
    ]) {
      // If the link was sent, the remaining shop's part of the invitation gets a link of its own.
      const email = `both-${crypto.randomUUID()}@example.com`;
      const wanted = { email, roles: ['till'], merchant_ids: both };
      const { id } = (await post(withMail, staff, '/api/people', wanted)).body.person;
      const [sent] = await mailsTo(email);
      const before = (await invitationOf(theirs.own, email)).invitation;
      assert.equal((await end(id)).status, 200);
      assert.deepEqual((await invitationOf(theirs.own, email)).invitation, before);
      const tokens = (await mailsTo(email)).flatMap(({ token }) => token ?? []);
      const own = tokens.find((token) => token !== sent?.token);
      const { cookie } = await register(own ?? '');
      const { scope } = (await people({ cookie }, 'GET', '/api/session')).body;
      assert.deepEqual(scope, theirs.merchant_ids);
      // If the invitation is held, the remaining shop's part of it stays held too.
      const waiting = { ...wanted, email: `held-${email}` };
      const held = (await post(withoutMail, staff, '/api/people', waiting)).body;
      assert.equal(held.delivery, 'held');
      assert.equal((await end(held.person.id)).status, 200);
      const kept = await invitationOf(theirs.own, waiting.email);
      assert.deepEqual(
        [kept.invitation?.is_held, kept.invitation?.access.merchant_ids],
        [true, theirs.merchant_ids],
      );
      const was = { roles: ['till'], merchant_ids: theirs.merchant_ids };
      const released = await post(withMail, releaser, `/api/people/${kept.id}/release`, { was });
      assert.equal(released.status, 200, JSON.stringify(released.body));
    }
  });

  test('a person who invites a colleague again asks for nothing at the colleague’s other merchants', async () => {
    for (const isInviter of [true, false]) {
      const [mine, theirs, added] = [await shop(), await shop(), await shop()];
      const own = [...mine.merchant_ids, ...added.merchant_ids].sort();
      const inviter = await addPerson(service, { roles: ['merchant-admin'], merchant_ids: own });
      // A person who only reads at the other merchant gives no one access there.
      const reader = { email: inviter.email, roles: ['viewer'], merchant_ids: theirs.merchant_ids };
      assert.equal((await post(withMail, theirs.own, '/api/people', reader)).status, 200);
      const both = [...mine.merchant_ids, ...theirs.merchant_ids].sort();
      const known = await addPerson(service, { roles: ['till'], merchant_ids: both });
      const wanted = { email: known.email, name: 'Other', roles: ['viewer'], merchant_ids: own };
      const { body } = await post(withMail, inviter, '/api/people', wanted);
      assert.equal(body.delivery, 'held', JSON.stringify(body));
      const by = isInviter ? mine.own : theirs.own;
      const url = `/api/people/${known.id}`;
      assert.equal((await people(by, 'PATCH', url, { name: 'Thandi' })).status, 200);
      const invitationOf = async (reader: ConsolePerson) => {
        const { data } = (await people(reader, 'GET', '/api/people')).body;
        const one = data.find(({ email }: { email: string }) => email === known.email);
        const { access } = one.invitation ?? {};
        return access && [access.name, access.roles, access.merchant_ids];
      };
      assert.equal(await invitationOf(theirs.own), undefined);
      assert.deepEqual(await invitationOf(inviter), ['Other', ['viewer'], own]);
    }
  });

  test('neither replaces nor learns of a waiting invitation from the service’s staff', async () => {
    const { own, merchant_ids } = await shop();
    const elsewhere = await shop();
    const [staff, releaser] = [await admin(), await admin()];
    const roles: ['till'] = ['till'];
    for (const app of [withMail, withoutMail]) {
      const known = await addPerson(service, { roles, merchant_ids });
      // This person has accepted an invitation from another merchant, and not yet this one.
      const open = `open-${crypto.randomUUID()}@example.com`;
      const wanted = { email: open, roles, merchant_ids };
      const { id } = (await post(withMail, own, '/api/people', wanted)).body.person;
      const other = { ...wanted, merchant_ids: elsewhere.merchant_ids };
      assert.equal((await post(withMail, elsewhere.own, '/api/people', other)).status, 200);
      await register((await mailsTo(open)).at(-1)?.token ?? '');
      for (const one of [known, { id, email: open }]) {
        const wanted = { email: one.email, roles, merchant_ids };
        const read = async (reader: ConsolePerson) =>
          (await people(reader, 'GET', `/api/people/${one.id}`)).body;
        const before = await read(own);
        assert.equal((await post(app, staff, '/api/people', wanted)).body.delivery, 'held');
        assert.deepEqual(await read(own), before);
        assert.equal((await post(app, own, '/api/people', wanted)).status, 200);
        assert.equal((await read(own)).invitation.made_by, 'Nomsa Dube');
        assert.equal((await read(staff)).invitation.made_by, staff.email);
        const release = `/api/people/${one.id}/release`;
        const was = { roles, merchant_ids };
        assert.equal((await post(app, releaser, release, { was })).status, 200);
        assert.equal((await read(staff)).invitation.is_held, false);
      }
    }
  });

  test('a person who invites a colleague again does not learn that they work for another merchant too', async () => {
    const { own, merchant_ids } = await shop();
    const second = await addPerson(service, { roles: ['merchant-admin'], merchant_ids });
    const all = [...merchant_ids, ...(await shop()).merchant_ids].sort();
    const [staff, releaser] = [await admin(), await admin()];
    /**
     * The answers, lists and mails of an invitation, without what differs between any two people.
     */
    const observe = async (app: FastifyInstance, email: string, roles: string[]) => {
      const answer = await post(app, own, '/api/people', { email, roles, merchant_ids });
      const found = [];
      for (const reader of [own, second]) {
        const { data } = (await people(reader, 'GET', '/api/people')).body;
        found.push(data.find((one: { email: string }) => one.email === email));
      }
      const id = answer.body.person?.id ?? found[0].id;
      const was = { roles, merchant_ids };
      const released = await post(app, second, `/api/people/${id}/release`, { was });
      const mails = (await mailsTo(email)).map(({ subject, token }) => [subject, !!token]);
      const audit = (
        await people(own, 'GET', `/api/audit?subject=${id}&person=${own.id}`)
      ).body.data.map(({ action, details }: { action: string; details: object }) => [
        action,
        details,
      ]);
      const times = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;
      const seen = [answer.status, answer.body, found, released.body, mails.sort(), audit];
      return JSON.stringify(seen)
        .replaceAll(times, 'TIME')
        .replaceAll(id, 'ID')
        .replaceAll(email, 'EMAIL');
    };
    const add = async (ids: string[], isRegistered: boolean, isRevoked = false) => {
      const email = `again-${crypto.randomUUID()}@example.com`;
      const name = 'Thandi';
      const wanted = { email, name, roles: ['till'], merchant_ids: ids };
      const { person, url } = await invitePerson(service.deps, 'test', wanted);
      if (isRegistered) await register(new URL(url).hash.slice(1));
      if (isRevoked) await revokePerson(service.deps, 'test', { email });
      return { id: person.id, email };
    };
    for (const app of [withMail, withoutMail]) {
      for (const [isRegistered, isRevoked] of [
        [true, false],
        [false, false],
        [true, true],
        [false, true],
      ] as const) {
        for (const roles of isRevoked ? [['till']] : [['till'], ['viewer', 'refunds']]) {
          const one = await add(merchant_ids, isRegistered, isRevoked);
          const both = await add(all, isRegistered, isRevoked);
          const what = JSON.stringify({
            isMailed: app === withMail,
            isRegistered,
            isRevoked,
            roles,
          });
          assert.equal(
            await observe(app, both.email, roles),
            await observe(app, one.email, roles),
            what,
          );
          if (isRevoked) continue;
          const kept = (await people(staff, 'GET', `/api/people/${both.id}`)).body;
          assert.deepEqual([kept.roles, kept.merchant_ids], [['till'], all], what);
          if (!isRegistered) continue;
          // The staff reads what the release would give: no merchant is taken away.
          const { access } = kept.invitation;
          assert.deepEqual([access.roles, access.merchant_ids], [roles, all], what);
          const release = `/api/people/${both.id}/release`;
          const was = { roles: access.roles, merchant_ids: all };
          assert.equal((await post(app, releaser, release, { was })).status, 200, what);
        }
      }
    }
  });

  test('changes only their own part of a colleague’s access once their invitation is released', async () => {
    const [mine, theirs, added] = [await shop(), await shop(), await shop()];
    const staff = await admin();
    const wanted = { email: 'parts@example.com', name: 'Thandi', roles: ['till'] };
    const merchant_ids = [...mine.merchant_ids, ...theirs.merchant_ids].sort();
    const { person, url } = await invitePerson(service.deps, 'test', { ...wanted, merchant_ids });
    await register(new URL(url).hash.slice(1));
    const again = { email: wanted.email, name: 'Other', roles: ['viewer'] };
    const asked = { ...again, merchant_ids: mine.merchant_ids };
    assert.equal((await post(withMail, mine.own, '/api/people', asked)).body.delivery, 'held');
    // A merchant that is added while the invitation waits is kept too.
    const grown = [...merchant_ids, ...added.merchant_ids].sort();
    const widened = { merchant_ids: grown };
    assert.equal((await people(staff, 'PATCH', `/api/people/${person.id}`, widened)).status, 200);
    const was = { roles: again.roles, merchant_ids };
    const release = `/api/people/${person.id}/release`;
    const released = await post(withMail, staff, release, { was });
    assert.equal(released.status, 200, JSON.stringify(released.body));
    const kept = [...theirs.merchant_ids, ...added.merchant_ids].sort();
    const accesses = await listAccesses(service.deps.database.db, person.id);
    assert.deepEqual(
      accesses.map(({ name, roles, merchant_ids }) => [name, roles, merchant_ids]),
      [
        ['Other', ['viewer'], mine.merchant_ids],
        ['Thandi', ['till'], kept],
      ],
    );
    // One new passkey opens both.
    const sent = (await mailsTo(wanted.email)).find(({ token }) => token);
    const { cookie } = await register(sent?.token ?? '');
    const { accesses: both } = (await people({ cookie }, 'GET', '/api/session')).body;
    assert.equal(both.length, 2);
  });

  test('does not read which of the service’s staff invited them', async () => {
    const { own, merchant_ids, merchant } = await shop();
    const staff = await admin();
    const email = `new-${merchant.id}@example.com`;
    const { person } = (
      await post(withMail, staff, '/api/people', { email, roles: ['till'], merchant_ids })
    ).body;
    const { body } = await people(own, 'GET', '/api/people');
    assert.doesNotMatch(JSON.stringify(body), new RegExp(staff.email));
    // The shop invites the staff member's address as a guess. Its list still does not name who
    // invited them.
    const guess = { email: staff.email, name: 'A guess', roles: ['till'], merchant_ids };
    assert.equal((await post(withMail, own, '/api/people', guess)).status, 200);
    const { data } = (await people(own, 'GET', '/api/people')).body;
    const made = data.find((one: { email: string }) => one.email === email);
    assert.equal(made.invitation.made_by, 'admin');
    await post(withMail, staff, `/api/people/${person.id}/revoke`);
    await mailsTo(email);
    const { rows } = await service.deps.database.pool.query(
      'select text from mailbox where recipient = $1',
      [email],
    );
    assert.match(rows[0].text, /^The payment service revoked/m);
  });
});

describe('a mail about a person’s access', () => {
  const cli = { os_user: 'root', host: 'pay-1' };
  const textsTo = async (email: string) => {
    while ((await sendPersonMails(service.deps)) > 0);
    const { rows } = await service.deps.database.pool.query(
      'select subject, text from mailbox where recipient = $1',
      [email],
    );
    return rows.map(({ subject, text }) => `${subject}\n${text}`);
  };
  /** Makes every change of access, by the staff at the console and by the command line. */
  async function playAll(email: string, merchant_ids: string[] | null) {
    const [staff, second] = [await admin(), await admin()];
    const deps = { ...service.deps, origin: cli };
    const was = { roles: ['till'], merchant_ids };
    const wanted = { email, ...was };
    const accept = async () =>
      await register((await mailsTo(email)).findLast(({ token }) => token)?.token ?? '');
    const { id } = (await post(withMail, staff, '/api/people', wanted)).body.person;
    await accept();
    await post(withMail, staff, '/api/people', wanted);
    await post(withMail, second, `/api/people/${id}/release`, { was });
    await accept();
    const console = { app: withMail, deps: service.deps };
    const wider = { body: { roles: ['till', 'viewer'] } };
    assert.equal((await ask(console, staff, 'PATCH', `/api/people/${id}`, wider)).status, 200);
    await changeAccess(deps, 'nomsa', id, { roles: ['till', 'viewer', 'support'] });
    await service.deps.database.pool.query(
      'update people set unconfirmed_since = now(), unconfirmed_by = $2 where id = $1',
      [id, id],
    );
    const access = { roles: ['viewer', 'support', 'till'], merchant_ids };
    const confirmed = await post(withMail, staff, `/api/people/${id}/confirm`, { was: access });
    assert.equal(confirmed.status, 200, JSON.stringify(confirmed.body));
    await invitePerson(deps, 'nomsa', wanted);
    await post(withMail, staff, `/api/people/${id}/revoke`);
    return { id, names: [staff.email, second.email, 'nomsa', 'root@pay-1'] };
  }

  test('names no one of the service’s staff to a merchant’s person, and names a colleague', async () => {
    const merchant_ids = [(await createAccount(service)).merchant.id];
    const email = 'quiet@example.com';
    const { id, names } = await playAll(email, merchant_ids);
    const texts = await textsTo(email);
    for (const name of names) assert.ok(!texts.join().includes(name), name);
    const byService = texts.filter((text) => text.includes('The payment service '));
    assert.equal(byService.length, 9, texts.join('\n\n'));
    const boss = await addPerson(service, { roles: ['merchant-admin'], merchant_ids });
    await post(withMail, boss, '/api/people', { email, roles: ['till'], merchant_ids });
    const last = (await textsTo(email)).filter((text) => !texts.includes(text));
    assert.equal(last.length, 1);
    assert.match(last[0] ?? '', new RegExp(`${boss.email} asked`));
    // A person of another merchant is not a colleague, even if they came to act here meanwhile.
    const elsewhere = [(await createAccount(service)).merchant.id];
    await service.deps.database.pool.query('update people set merchant_ids = $2 where id = $1', [
      boss.id,
      elsewhere,
    ]);
    const was = { roles: ['till'], merchant_ids };
    await post(withMail, await admin(), `/api/people/${id}/release`, { was });
    const naming = (await textsTo(email)).filter((text) => text.includes(boss.email));
    assert.deepEqual(naming, last);
  });

  test('names the operator to the service’s staff, and the user at the command line', async () => {
    const { names } = await playAll('office-2@example.com', null);
    const texts = (await textsTo('office-2@example.com')).join();
    for (const name of names) assert.ok(texts.includes(name), name);
  });
});

describe('a merchant’s administrator who invites', () => {
  const createShop = async () => (await createAccount(service)).merchant.id;
  const shopAdmin = (merchant_id: string) =>
    addPerson(service, { roles: ['merchant-admin'], merchant_ids: [merchant_id] });
  const read = async (by: { cookie: string }, url: string) =>
    (await ask({ app: withMail, deps: service.deps }, by, 'GET', url)).body;

  test('gets the same answer for an address that has access elsewhere, and changes nothing there', async () => {
    const { pool } = service.deps.database;
    const [shop, other] = [await createShop(), await createShop()];
    const by = await shopAdmin(shop);
    const till = (email: string, roles = ['till']) =>
      post(withMail, by, '/api/people', { email, roles, merchant_ids: [shop] });
    const elsewhere = await addPerson(service, { roles: ['refunds'], merchant_ids: [other] });
    const staff = await addPerson(service, { roles: ['admin'] });
    const shapeOf = ({ status, body }: Answer) => {
      const { id, created_at, email, name, ...person } = body.person;
      const { expires_at, ...invitation } = person.invitation;
      return { status, ...body, expires_at, person: { ...person, invitation } };
    };
    const fresh = await till('fresh@example.com');
    const before = await pool.query('select * from people where id = any($1)', [
      [elsewhere.id, staff.id],
    ]);
    for (const { email } of [elsewhere, staff]) {
      const answer = await till(email);
      const { id, created_at } = answer.body.person;
      assert.deepEqual({ ...shapeOf(answer), expires_at: 0 }, { ...shapeOf(fresh), expires_at: 0 });
      assert.ok(created_at >= fresh.body.person.created_at, 'it is as old as the invitation');
      // The person is read, changed, invited again and revoked like any other who has not accepted
      // yet.
      const about = `/api/people/${id}`;
      const patched = await ask({ app: withMail, deps: service.deps }, by, 'PATCH', about, {
        body: { name: 'Thabo', roles: ['viewer'] },
      });
      assert.deepEqual([patched.status, patched.body.name], [200, 'Thabo']);
      assert.match((await till(email)).body.error.message, /is already invited, as Thabo: viewer/);
      const again = await till(email, ['viewer']);
      assert.equal(again.body.person.id, id, 'an address is listed once');
      assert.deepEqual((await read(by, `${about}/sessions`)).data, []);
      if (email === staff.email) {
        const alert = await alertAbout(id);
        const url = `/api/alerts/${alert.id}/close`;
        const { body } = await post(withMail, staff, url, { reason: 'It is fine.' });
        assert.match(body.error?.message ?? '', /^This alert is about you/);
      }
      assert.equal((await post(withMail, by, `${about}/revoke`)).body.revoked_at === null, false);
      const subjects = (await mailsTo(email)).map(({ subject }) => subject);
      assert.equal(subjects.at(-1), 'Your access to the console was revoked');
      const seen = await read(staff, about);
      assert.deepEqual([seen.identity_id === null, seen.is_registered], [false, false]);
    }
    const kept = await pool.query('select * from people where id = any($1)', [
      [elsewhere.id, staff.id],
    ]);
    assert.deepEqual(kept.rows, before.rows);
    const listed = (await read(by, '/api/people')).data as { email: string }[];
    assert.equal(listed.filter(({ email }) => email === elsewhere.email).length, 1);
  });

  test('gives a person of another merchant separate access, which they accept as themselves', async () => {
    const [shop, other] = [await createShop(), await createShop()];
    const [by, theirs] = [await shopAdmin(shop), await shopAdmin(other)];
    const email = 'accountant@example.com';
    const first = { email, name: 'Thabo', roles: ['merchant-admin'], merchant_ids: [other] };
    const known = await invitePerson(service.deps, 'test', first);
    const { authenticator, cookie } = await register(new URL(known.url).hash.slice(1));
    const bulkAction = (await post(withMail, { cookie }, '/api/callbacks/retry-all', {})).body;
    const wanted = { email, name: 'T. Mokoena', roles: ['refunds'], merchant_ids: [shop] };
    const { person } = (await post(withMail, by, '/api/people', wanted)).body;
    const token = (await mailsTo(email)).at(-1)?.token ?? '';
    // The link replaces no credentials, and opens nothing to anyone but the person.
    const invited = (await post(withMail, null, '/api/invitation', { token })).body;
    assert.deepEqual([invited.must_sign_in, invited.name], [true, 'T. Mokoena']);
    assert.equal((await post(withMail, null, '/api/invitation/options', { token })).status, 409);
    const accept = (one: { cookie: string } | null) =>
      post(withMail, one, '/api/session/invitation', { token });
    assert.deepEqual([(await accept(null)).status, (await accept(theirs)).status], [401, 409]);
    assert.equal((await read(by, `/api/people/${person.id}`)).is_registered, false);
    const accepted = await accept({ cookie });
    assert.equal(accepted.status, 200, JSON.stringify(accepted.body));
    assert.equal((await accept({ cookie })).status, 401, 'the earlier session has ended');
    const here = { cookie: cookieOf(accepted) };
    const session = await read(here, '/api/session');
    assert.deepEqual(
      [session.person.name, session.person.roles, session.scope, session.proof_until],
      ['T. Mokoena', ['refunds'], [shop], null],
    );
    assert.equal((await read(by, `/api/people/${person.id}`)).is_registered, true);
    // A bulk action is shown only under the access with which it was begun.
    const bulkActions = async (one: { cookie: string }) => {
      const { data } = await read(one, '/api/bulk-actions');
      const { id } = await read(one, `/api/bulk-actions/${bulkAction.id}`);
      return [data.length, id];
    };
    assert.deepEqual(await bulkActions(here), [0, undefined]);
    // Changes of their own passkeys and sessions are recorded under the id that this merchant
    // knows.
    const { url: origin } = service.deps.console;
    const { options: proof } = (await post(withMail, here, '/api/proof/options')).body;
    const proved = { response: authenticator.get(proof, { origin }) };
    here.cookie = cookieOf(await post(withMail, here, '/api/proof', proved));
    const { options } = (await post(withMail, here, '/api/passkeys/options')).body;
    const phone = { name: 'Phone', response: createAuthenticator().create(options, { origin }) };
    assert.equal((await post(withMail, here, '/api/passkeys', phone)).status, 200);
    const added = (await read(here, '/api/passkeys')).data.find(
      ({ name }: { name: string }) => name === 'Phone',
    );
    const remove = (url: string) => ask({ app: withMail, deps: service.deps }, here, 'DELETE', url);
    assert.equal((await remove(`/api/passkeys/${added.id}`)).status, 200);
    const elsewhere = await read(await signIn(authenticator), '/api/session');
    const session_id = elsewhere.session.id;
    assert.equal((await remove(`/api/sessions/${session_id}`)).status, 200);
    assert.equal((await post(withMail, here, '/api/sessions/end-others')).status, 200);
    const own = await read(by, `/api/audit?subject=${person.id}&person=${person.id}`);
    const did = (own.data as { action: string; details: object }[]).map(({ action }) => action);
    for (const action of ['passkeys add', 'passkeys remove', 'operators end session'])
      assert.ok(did.includes(action), action);
    const ended = own.data.filter(({ action }: { action: string }) =>
      /^operators end/.test(action),
    );
    assert.deepEqual(
      ended.map(({ details }: { details: object }) => details),
      [{}, {}],
    );
    // Both accesses belong to the same human, who never counts twice.
    const there = session.accesses.find((one: { current: boolean }) => !one.current);
    const chosen = await post(withMail, here, '/api/session/access', { id: there.id });
    const back = { cookie: cookieOf(chosen) };
    assert.deepEqual(await bulkActions(back), [1, bulkAction.id]);
    const earlier = await read(back, '/api/session');
    assert.deepEqual([earlier.person.id, earlier.scope], [session.person.id, [other]]);
    assert.deepEqual(
      earlier.session.expires_at,
      session.session.expires_at,
      'no longer than before',
    );
    const stranger = await post(withMail, back, '/api/session/access', { id: theirs.id });
    assert.equal(stranger.status, 409);
    // Neither merchant's audit names the other access.
    const audits = await Promise.all([read(by, '/api/audit'), read(theirs, '/api/audit')]);
    const [ownAudit, theirAudit] = audits.map((body) => JSON.stringify(body.data));
    assert.doesNotMatch(ownAudit ?? '', new RegExp(`Thabo|${known.person.id}|${other}`));
    assert.doesNotMatch(theirAudit ?? '', new RegExp(`Mokoena|${person.id}|${shop}`));
    // One merchant's revocation ends its own access, whichever was used last.
    assert.equal(
      (await post(withMail, theirs, `/api/people/${known.person.id}/revoke`)).status,
      200,
    );
    assert.equal(
      (await ask({ app: withMail, deps: service.deps }, back, 'GET', '/api/session')).status,
      401,
    );
    const rest = await read(await signIn(authenticator), '/api/session');
    assert.deepEqual([rest.scope, rest.accesses], [[shop], []]);
  });

  test('reads the same steps and sessions of a person who works elsewhere too', async () => {
    const [shop, other] = [await createShop(), await createShop()];
    const by = await shopAdmin(shop);
    const signedIn = (answer: Answer) => ({ cookie: cookieOf(answer) });
    const inviteHere = async (email: string) => {
      const wanted = { email, roles: ['till'], merchant_ids: [shop] };
      const { id } = (await post(withMail, by, '/api/people', wanted)).body.person;
      return { id, token: (await mailsTo(email)).findLast((mail) => mail.token)?.token ?? '' };
    };
    const observe = async (id: string) => {
      const { data } = await read(by, `/api/audit?subject=${id}`);
      const steps = data
        .filter(({ action }: { action: string }) => action !== 'operators invite')
        .map(({ action, details }: { action: string; details: object }) => [action, details]);
      const sessions: object[] = (await read(by, `/api/people/${id}/sessions`)).data;
      return { steps, members: sessions.map((one) => Object.keys(one))[0] };
    };
    const fresh = await inviteHere('only-here@example.com');
    const { authenticator } = await register(fresh.token);
    await signIn(authenticator);

    const email = 'elsewhere-too@example.com';
    const first = { email, roles: ['till'], merchant_ids: [other] };
    const known = await invitePerson(service.deps, 'test', first);
    const there = await register(new URL(known.url).hash.slice(1));
    const { id, token } = await inviteHere(email);
    const choose = async (one: { cookie: string }, access: string) =>
      signedIn(await post(withMail, one, '/api/session/access', { id: access }));
    const accepted = signedIn(await post(withMail, there, '/api/session/invitation', { token }));
    await choose(await choose(accepted, known.person.id), id);
    const seen = await observe(id);
    assert.deepEqual(seen, await observe(fresh.id));
    assert.equal(seen.steps.length, 2);
    // `expires_at` would reveal that the session continues another one.
    assert.ok(!seen.members?.includes('expires_at'));
  });

  test('lets no old sign-in without a passkey add one by a change of access', async () => {
    const [shop, other] = [await createShop(), await createShop()];
    const merchant_ids = [other];
    const person = await addPerson(service, {
      ...{ roles: ['till'], merchant_ids, method: 'oidc', isFresh: false },
    });
    const wanted = { email: person.email, roles: ['till'], merchant_ids: [shop] };
    await post(withMail, await shopAdmin(shop), '/api/people', wanted);
    const token = (await mailsTo(person.email)).at(-1)?.token ?? '';
    clock.advance({ minutes: 5 });
    const adds = async (answer: Answer) => {
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      const cookie = cookieOf(answer);
      const { status, body } = await post(withMail, { cookie }, '/api/passkeys/options');
      assert.deepEqual([status, body.error?.code], [403, 'sign_in_again']);
      return { cookie };
    };
    const accepted = await adds(await post(withMail, person, '/api/session/invitation', { token }));
    const choose = (one: { cookie: string }) =>
      post(withMail, one, '/api/session/access', { id: person.id });
    const chosen = await adds(await choose(accepted));
    assert.equal((await choose(chosen)).status, 409, 'it is the access of this session');
  });

  test('does not let a lost passkey use the access that the service’s staff gives again', async () => {
    const replaceBy = {
      console: async ({ id, ...wanted }: Wanted) => {
        const asked = await post(withMail, await admin(), '/api/people', wanted);
        assert.equal(asked.body.delivery, 'held');
        const { roles, merchant_ids } = wanted;
        const was = { was: { roles, merchant_ids } };
        const released = await post(withMail, await admin(), `/api/people/${id}/release`, was);
        assert.equal(released.status, 200, JSON.stringify(released.body));
        return (await mailsTo(wanted.email)).findLast(({ token }) => token)?.token;
      },
      'command line': async ({ id: _, ...wanted }: Wanted) =>
        new URL((await invitePerson(service.deps, 'test', wanted)).url).hash.slice(1),
      'wider access': async ({ id, email }: Wanted, both: string[]) => {
        const { token } = (await mailsTo(email)).find((mail) => mail.token) ?? {};
        await changeAccess(service.deps, 'test', id, { merchant_ids: both });
        return token;
      },
    };
    type Wanted = { id: string; email: string; roles: string[]; merchant_ids: string[] };
    for (const [way, replace] of Object.entries(replaceBy)) {
      const email = `lost-${crypto.randomUUID()}@example.com`;
      const both = [await createShop(), await createShop()].sort();
      const [first, second] = both as [string, string];
      const inviteFor = async (shop: string) => {
        const wanted = { email, roles: ['till'], merchant_ids: [shop] };
        const answer = await post(withMail, await shopAdmin(shop), '/api/people', wanted);
        return { ...wanted, id: answer.body.person.id as string };
      };
      const wanted = await inviteFor(first);
      const ignored = await mailsTo(email);
      await inviteFor(second);
      const token = (await mailsTo(email)).find((mail) => mail.token !== ignored[0]?.token)?.token;
      const { authenticator } = await register(token ?? '');
      const found = await register((await replace(wanted, both)) ?? '');
      const { options } = (await post(withMail, null, '/api/sign-in/options')).body;
      const response = authenticator.get(options, here());
      assert.equal((await post(withMail, null, '/api/sign-in', { response })).status, 403, way);
      assert.ok((await read(await signIn(found.authenticator), '/api/session')).person, way);
      if (way === 'wider access') continue;
      const alert = await alertAbout(wanted.id);
      assert.equal(alert.kind, 'ways_in_replaced', way);
      assert.match(alert.detail ?? '', /1 passkey and 1 session ended/);
    }
  });

  test('reopens no other access of a person whose credentials were revoked', async () => {
    const [shop, other] = [await createShop(), await createShop()];
    const email = 'reopened@example.com';
    const first = { email, roles: ['till'], merchant_ids: [other] };
    const { url } = await invitePerson(service.deps, 'test', first);
    await register(new URL(url).hash.slice(1));
    const again = await invitePerson(service.deps, 'test', first);
    const wanted = { email, roles: ['till'], merchant_ids: [shop] };
    await post(withMail, await shopAdmin(shop), '/api/people', wanted);
    const token = (await mailsTo(email)).findLast((mail) => mail.token)?.token ?? '';
    assert.equal(
      (await post(withMail, null, '/api/invitation', { token })).body.must_sign_in,
      true,
    );
    const refused = await post(withMail, null, '/api/invitation/options', { token });
    assert.equal(refused.status, 409);
    // The new invitation to the other merchant opens both accesses.
    const { cookie } = await register(new URL(again.url).hash.slice(1));
    assert.equal(
      (await post(withMail, { cookie }, '/api/session/invitation', { token })).status,
      200,
    );
  });

  test('keeps one access for each person and merchant, whoever gives it', async () => {
    const [shop, other] = [await createShop(), await createShop()];
    const [by, staff] = [await shopAdmin(shop), await admin()];
    const known = await addPerson(service, { roles: ['till'], merchant_ids: [other] });
    const wanted = { email: known.email, roles: ['till'], merchant_ids: [shop] };
    const { person } = (await post(withMail, by, '/api/people', wanted)).body;
    const token = (await mailsTo(known.email)).at(-1)?.token ?? '';
    const body = { merchant_ids: [shop, other] };
    const console = { app: withMail, deps: service.deps };
    const changed = await ask(console, staff, 'PATCH', `/api/people/${known.id}`, { body });
    assert.equal(changed.status, 200, JSON.stringify(changed.body));
    assert.equal((await post(withMail, null, '/api/invitation', { token })).status, 404);
    const listed = (await read(by, '/api/people')).data as { id: string; email: string }[];
    const ids = listed.filter(({ email }) => email === known.email).map(({ id }) => id);
    assert.deepEqual(ids, [known.id]);
    assert.notEqual((await read(staff, `/api/people/${person.id}`)).revoked_at, null);
  });

  test('never gives one person two accesses to the same merchant, whatever is done', async () => {
    const step = fc.record({
      kind: fc.constantFrom('invite', 'invite', 'change', 'revoke', 'release', 'accept'),
      by: fc.nat(4),
      shops: fc.nat(4),
      row: fc.nat(2),
    });
    type Step = { kind: string; by: number; shops: number; row: number };
    const play = async (steps: Step[]) => {
      const [one, two, three] = [await createShop(), await createShop(), await createShop()];
      const roles = ['merchant-admin' as const];
      const [staff, releaser] = [await admin(), await admin()];
      const ofBoth = await addPerson(service, { roles, merchant_ids: [one, two] });
      const givers = [staff, releaser, ofBoth, await shopAdmin(one), await shopAdmin(two)];
      const shops = [[one], [two], [one, two], [two, three], null];
      const email = `${crypto.randomUUID()}@example.com`;
      const { pool } = service.deps.database;
      const list = async () =>
        (
          await pool.query(
            'select id, revoked_at from people where email = $1 order by created_at, id',
            [email],
          )
        ).rows;
      for (const { kind, ...chosen } of steps) {
        const by = givers[chosen.by] as ConsolePerson;
        const merchant_ids = shops[chosen.shops];
        const url = `/api/people/${(await list())[chosen.row]?.id}`;
        if (kind === 'invite') {
          await post(withMail, by, '/api/people', { email, roles: ['till'], merchant_ids });
        } else if (kind === 'change') {
          const body = { merchant_ids };
          await ask({ app: withMail, deps: service.deps }, by, 'PATCH', url, { body });
        } else if (kind === 'revoke') {
          await post(withMail, by, `${url}/revoke`);
        } else if (kind === 'release') {
          const { invitation } = await read(staff, url);
          const { access } = invitation ?? {};
          const was = access && { roles: access.roles, merchant_ids: access.merchant_ids };
          await post(withMail, chosen.by === 0 ? staff : releaser, `${url}/release`, { was });
        } else {
          const token = (await mailsTo(email)).findLast((mail) => mail.token)?.token ?? '';
          const offered = await post(withMail, null, '/api/invitation/options', { token });
          if (offered.status !== 200) continue;
          const response = createAuthenticator().create(offered.body.options, here());
          await post(withMail, null, '/api/invitation/register', { token, response });
        }
        const now = timestamp(clock.now());
        assert.deepEqual(await findViolations(service.deps.database, now, ['A6']), []);
      }
      return (await list()).map(({ revoked_at }) => revoked_at === null);
    };
    // A staff member whom a shop invited too is given that shop alone.
    const narrowed = await play([
      { kind: 'invite', by: 0, shops: 4, row: 0 },
      { kind: 'invite', by: 3, shops: 0, row: 0 },
      { kind: 'change', by: 0, shops: 0, row: 0 },
    ]);
    assert.deepEqual(narrowed, [true, false]);
    const steps = fc.array(step, { minLength: 5, maxLength: 15 });
    const property = fc.asyncProperty(steps, async (one) => void (await play(one)));
    await fc.assert(property, { numRuns: runs(60) });
  });

  test('sees the access that a person has, and not an earlier one whose merchants it took', async () => {
    const [shop, other] = [await createShop(), await createShop()];
    const [by, theirs] = [await shopAdmin(shop), await shopAdmin(other)];
    const known = await addPerson(service, { roles: ['admin'], merchant_ids: [shop] });
    const wanted = { email: known.email, roles: ['till'], merchant_ids: [other] };
    const { person } = (await post(withMail, theirs, '/api/people', wanted)).body;
    const widen = (one: ConsolePerson) =>
      ask({ app: withMail, deps: service.deps }, one, 'PATCH', `/api/people/${person.id}`, {
        body: { merchant_ids: [shop, other] },
      });
    // An administrator takes nothing from an access that they may not manage.
    const roles = ['merchant-admin' as const];
    const ofBoth = await addPerson(service, { roles, merchant_ids: [shop, other] });
    assert.equal((await widen(ofBoth)).status, 409);
    assert.equal((await read(known, '/api/session')).person.id, known.id);
    const changed = await widen(await admin());
    assert.equal(changed.status, 200, JSON.stringify(changed.body));
    assert.equal((await read(known, '/api/session')).person, undefined);
    for (const one of [by, theirs, ofBoth]) {
      const { data } = await read(one, '/api/people');
      const listed = data.filter(({ email }: { email: string }) => email === known.email);
      assert.deepEqual(
        listed.map(({ id, revoked_at }: { id: string; revoked_at: string }) => [id, revoked_at]),
        [[person.id, null]],
      );
    }
    assert.equal((await read(by, `/api/people/${known.id}`)).id, person.id);
    const again = { ...wanted, merchant_ids: [shop] };
    assert.equal((await post(withMail, by, '/api/people', again)).body.person.id, person.id);
    // The end of the earlier access is reported like every revocation.
    const { rows } = await service.deps.database.pool.query(
      'select kind from alerts where subject_id = $1 order by kind',
      [known.id],
    );
    assert.deepEqual(
      rows.map(({ kind }) => kind),
      ['access_ended', 'person_revoked'],
    );
    const subjects = (await mailsTo(known.email)).map(({ subject }) => subject);
    assert.ok(subjects.includes('Your access to the console was revoked'));
  });

  test('adds no one who can be the second approver before the service’s staff confirms them', async () => {
    const shop = await createShop();
    const [by, staff] = [await shopAdmin(shop), await admin()];
    const wanted = { email: 'second@example.com', roles: ['merchant-admin'], merchant_ids: [shop] };
    const { person } = (await post(withMail, by, '/api/people', wanted)).body;
    const about = `/api/people/${person.id}`;
    const was = { roles: wanted.roles, merchant_ids: wanted.merchant_ids };
    const confirm = (one: ConsolePerson | { cookie: string }) =>
      post(withMail, one, `${about}/confirm`, { was });
    assert.match((await confirm(staff)).body.error.message, /has not accepted the invitation/);
    const invited = await register((await mailsTo(wanted.email))[0]?.token ?? '');
    assert.equal((await confirm(by)).status, 403);
    assert.equal((await confirm(invited)).status, 403);
    const stale = { was: { ...was, roles: ['viewer'] } };
    const changed = await post(withMail, staff, `${about}/confirm`, stale);
    assert.match(changed.body.error.message, /was changed in the meantime/);
    assert.equal((await read(by, about)).is_confirmed, false);
    assert.equal((await confirm(staff)).body.is_confirmed, true);
    assert.equal(
      (await mailsTo(wanted.email)).at(-1)?.subject,
      'You can now be the second approver',
    );
    // The confirmation ends when the merchant gives the person a right that they did not have.
    const change = (body: object) =>
      ask({ app: withMail, deps: service.deps }, by, 'PATCH', about, { body });
    assert.equal((await change({ name: 'Thabo' })).body.is_confirmed, true);
    const both = ['merchant-admin', 'till'];
    assert.equal((await change({ roles: both })).body.is_confirmed, true);
    assert.equal((await change({ roles: ['till'] })).body.is_confirmed, true);
    assert.equal((await change({ roles: both })).body.is_confirmed, false);
    assert.equal((await change({ roles: was.roles })).body.is_confirmed, false);
    assert.equal((await confirm(staff)).body.is_confirmed, true);
    assert.equal((await post(withMail, by, '/api/people', wanted)).body.delivery, 'held');
    // A colleague cannot release the new credentials, because both may be the same human.
    const release = (one: ConsolePerson) => post(withMail, one, `${about}/release`, { was });
    assert.equal((await release(await shopAdmin(shop))).status, 409);
    assert.equal((await release(staff)).body.person.is_confirmed, true);
  });

  test('makes no second approver of an address whose lost passkey the staff replaces', async () => {
    const { merchant } = await createAccount(service);
    const [by, staff] = [await shopAdmin(merchant.id), await admin()];
    const wanted = {
      email: `second-${merchant.id}@example.com`,
      roles: ['merchant-admin'],
      merchant_ids: [merchant.id],
    };
    const { person } = (await post(withMail, by, '/api/people', wanted)).body;
    await register((await mailsTo(wanted.email))[0]?.token ?? '');
    const was = { roles: wanted.roles, merchant_ids: wanted.merchant_ids };
    const inviteAgain = async () =>
      assert.equal((await post(withMail, by, '/api/people', wanted)).body.delivery, 'held');
    await inviteAgain();
    const released = await post(withMail, staff, `/api/people/${person.id}/release`, { was });
    assert.equal(released.status, 200);
    assert.equal(released.body.person.is_confirmed, false);
    await register((await mailsTo(wanted.email)).findLast(({ token }) => token)?.token ?? '');
    await inviteAgain();
    const printed = await releaseInvitation(service.deps, 'test', person.id, was);
    assert.notEqual(printed.person.unconfirmed_since, null, 'nor at the command line');
  });

  test('adds no second approver by the release of an invitation that gives more', async () => {
    const shop = await createShop();
    const [by, staff] = [await shopAdmin(shop), await admin()];
    for (const isRevoked of [false, true]) {
      const known = await addPerson(service, { roles: ['till'], merchant_ids: [shop] });
      if (isRevoked) await post(withMail, by, `/api/people/${known.id}/revoke`);
      const was = { roles: [isRevoked ? 'till' : 'merchant-admin'], merchant_ids: [shop] };
      const wanted = { email: known.email, ...was };
      assert.equal((await post(withMail, by, '/api/people', wanted)).body.delivery, 'held');
      const url = `/api/people/${known.id}`;
      assert.equal((await post(withMail, staff, `${url}/release`, { was })).status, 200);
      assert.equal((await read(by, url)).is_confirmed, false);
      // The merchant's administrator who asked cannot confirm, even as one of the service's staff.
      const { unconfirmed_by } = (await findPerson(service.deps.database.db, known.id)) as Person;
      assert.equal(unconfirmed_by, by.id);
    }
  });

  test('proposes the bank account, which only the service’s staff confirms, and reads each step by mail', async () => {
    const { merchant } = await createAccount(service);
    const url = `/api/merchants/${merchant.id}/bank-accounts`;
    const [by, colleague, staff] = [
      await shopAdmin(merchant.id),
      await shopAdmin(merchant.id),
      await admin(),
    ];
    const till = await addPerson(service, { roles: ['till'], merchant_ids: [merchant.id] });
    const foreign = await shopAdmin(await createShop());
    const account = { holder: 'Bean There', bank: 'A Bank', branch_code: '051001' };
    const propose = (one: ConsolePerson, account_number: string, replaces?: number) =>
      post(withMail, one, url, { ...account, account_number, ...(replaces && { replaces }) });
    assert.equal((await propose(foreign, '0123456789')).status, 404);
    assert.equal((await propose(till, '0123456789')).status, 403);
    assert.equal((await propose(by, '0123456789')).status, 200);
    // A second proposal is refused while one waits, unless the person has read the first.
    const second = await propose(colleague, '9876543210');
    assert.equal(second.status, 409);
    assert.match(second.body.error.message, /^Account 1, which ends in 6789, was proposed on /);
    assert.equal((await propose(colleague, '9876543210', 1)).body.proposed.number, 2);
    assert.equal((await propose(by, '9876543210', 1)).status, 409);
    const confirm = (one: ConsolePerson, account_number: string) =>
      post(withMail, one, `${url}/2/confirm`, { account_number });
    assert.equal((await confirm(by, '9876543210')).status, 403);
    assert.equal((await confirm(staff, '0123456789')).status, 409);
    assert.equal((await confirm(staff, '9876543210')).status, 200);
    const { name } = merchant;
    for (const { email } of [by, colleague]) {
      const mails = await mailsTo(email);
      assert.deepEqual(
        mails.map(({ subject }) => subject),
        [
          `A bank account was proposed for ${name}`,
          `A bank account was proposed for ${name}`,
          `The bank account of ${name} was confirmed`,
        ],
      );
    }
    for (const { email } of [till, foreign, staff]) assert.deepEqual(await mailsTo(email), []);
    // With a waiting time the mail says from when the account is paid.
    assert.equal((await propose(by, '1234567890', 2)).status, 200);
    const waiting = { ...service.deps, newAccountBusinessDays: 1 };
    const third = { number: 3, account_number: '1234567890' };
    await confirmAccount(waiting, 'test', merchant.id, third);
    await mailsTo(by.email);
    const { rows } = await service.deps.database.pool.query(
      'select text from mailbox where recipient = $1',
      [by.email],
    );
    const text = JSON.stringify(rows);
    assert.match(text, /ends in 3210\. Payouts go there from now on\./);
    assert.match(text, /ends in 7890\. Payouts go there from \d+ \w+ \d{4} on\./);
    assert.ok(text.includes('The payment service confirmed') && !text.includes(staff.email));
    assert.ok(text.includes(colleague.email));
  });

  test('invites 50 times a day for a merchant, proposes ten accounts, corrects 20 statements and rotates 100 times: then only the staff can', async () => {
    const { ofMerchant } = service.deps.rateLimits;
    const [shop, other] = [await createShop(), await createShop()];
    const [by, theirs, staff] = [await shopAdmin(shop), await shopAdmin(other), await admin()];
    const invite = (one: ConsolePerson, merchant_ids: string[]) => {
      const email = `limit-${crypto.randomUUID()}@example.com`;
      return post(withMail, one, '/api/people', { email, roles: ['till'], merchant_ids });
    };
    const bank = { holder: 'Bean There', bank: 'A Bank', branch_code: '051001' };
    const propose = (one: ConsolePerson, replaces?: number) =>
      post(withMail, one, `/api/merchants/${shop}/bank-accounts`, {
        ...{ ...bank, account_number: '0123456789', ...(replaces && { replaces }) },
      });
    // Another merchant's administrator uses up none of these limits by naming this merchant.
    for (let count = 0; count < 3; count += 1)
      assert.equal((await invite(theirs, [shop])).status, 409);
    for (let count = 0; count < 48; count += 1) await ofMerchant(shop, 'access');
    for (let count = 0; count < 9; count += 1) await ofMerchant(shop, 'account');
    for (let count = 0; count < 20; count += 1) await ofMerchant(shop, 'correction');
    for (let count = 0; count < 99; count += 1) await ofMerchant(shop, 'rotation');
    const { id: integration } = await createIntegration(service.deps, 'test', {
      ...{ merchant_id: shop, refund_mode: 'manual' },
    });
    const rotate = (one: ConsolePerson) =>
      post(withMail, one, `/api/integrations/${integration}/rotate`, {
        ...{ credential: 'client_secret', overlap_seconds: 0 },
      });
    const statement = crypto.randomUUID();
    await service.deps.database.pool.query(
      `insert into monthly_statements (merchant_id, id, number, reference, month, created_at,
         lines_of, currency, lines, opening, closing, reserve, sums, merchant_name, issuer_name,
         language, locale, time_zone)
       values ($1, $2, 1, 'TS-1', '2026-01-01', '2026-02-01', 1, 'ZAR', 1, 0, 0, 0, '[]', 'A', 'B',
         'en', 'en-ZA', 'Africa/Johannesburg')`,
      [shop, statement],
    );
    const correct = (one: ConsolePerson) =>
      post(withMail, one, `/api/statements/${statement}/correct`);
    assert.equal((await rotate(by)).status, 200);
    const { person } = (await invite(by, [shop.toUpperCase()])).body;
    const change = (one: ConsolePerson, name: string) =>
      ask({ app: withMail, deps: service.deps }, one, 'PATCH', `/api/people/${person.id}`, {
        body: { name },
      });
    assert.equal((await change(by, 'Thabo')).status, 200);
    const proposed = await propose(by);
    assert.equal(proposed.status, 200, JSON.stringify(proposed.body));
    for (const answer of [
      await invite(by, [shop]),
      await change(by, 'Sipho'),
      await propose(by, 1),
      await rotate(by),
      await correct(by),
      await post(withMail, by, `/api/integrations/${integration}/enable-v1`),
    ]) {
      assert.deepEqual([answer.status, answer.body.error.code], [429, 'too_many_requests']);
      assert.match(answer.body.error.message, /today\. .*ask the payment service/);
      assert.ok(Number(answer.headers['retry-after']) > 80_000);
    }
    assert.equal((await invite(theirs, [other])).status, 200);
    assert.equal((await invite(staff, [shop])).status, 200);
    assert.equal((await propose(staff, 1)).status, 200);
    assert.equal((await rotate(staff)).status, 200);
    assert.notEqual((await correct(staff)).status, 429);
    // A leaked secret need not wait: its integration can be revoked.
    assert.equal((await post(withMail, by, `/api/integrations/${integration}/revoke`)).status, 200);
    assert.equal((await post(withMail, by, `/api/people/${person.id}/revoke`)).status, 200);
  });

  test('of several merchants lists the people of the one that they chose', async () => {
    const [one, other] = [await createShop(), await createShop()];
    const roles = ['merchant-admin' as const];
    const by = await addPerson(service, { roles, merchant_ids: [one, other] });
    const here = await addPerson(service, { roles: ['till'], merchant_ids: [one] });
    const there = await addPerson(service, { roles: ['till'], merchant_ids: [other] });
    const emails = async (query: string) =>
      (await read(by, `/api/people${query}`)).data
        .map((row: { email: string }) => row.email)
        .sort();
    assert.deepEqual(await emails(''), [by.email, here.email, there.email].sort());
    assert.deepEqual(await emails(`?merchant=${one}`), [by.email, here.email].sort());
    assert.deepEqual(await emails(`?merchant=${await createShop()}`), []);
  });
});
