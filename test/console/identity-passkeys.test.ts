import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { invitePerson } from '#operating/people/invite-person.ts';
import { revokePerson } from '#operating/people/manage-people.ts';
import { verifyOperatorChain } from '#record/actions/verify-operator-chain.ts';
import { createAuthenticator } from '../support/authenticator.ts';
import { ask, cookieOf, openConsole } from '../support/console.ts';
import { countLockWaits } from '../support/database-server.ts';
import { type Answer, movableClock, type Service, startService } from '../support/service.ts';

const clock = movableClock();
let service: Service;
let app: FastifyInstance;
before(async () => {
  service = await startService({ clock });
  app = await openConsole(service);
});
after(async () => {
  await app.close();
  await service.close();
});

const here = () => ({ origin: service.deps.console.url });
const post = async (url: string, body: object | undefined, cookie = ''): Promise<Answer> => {
  // These tests are not about rate limits.
  clock.advance({ seconds: 2 });
  return await ask({ app, deps: service.deps }, { cookie }, 'POST', url, body && { body });
};
const get = (url: string, cookie: string) =>
  ask({ app, deps: service.deps }, { cookie }, 'GET', url);
const tokenOf = (url: string) => new URL(url).hash.slice(1);

let people = 0;
async function invite(roles = ['viewer']) {
  people += 1;
  const email = `person${people}@example.com`;
  const wanted = { email, roles, merchant_ids: null };
  return { email, ...(await invitePerson(service.deps, 'test', wanted)) };
}

async function register(authenticator = createAuthenticator(), roles = ['viewer']) {
  const invited = await invite(roles);
  const token = tokenOf(invited.url);
  const { body } = await post('/api/invitation/options', { token });
  const response = authenticator.create(body.options, here());
  const answer = await post('/api/invitation/register', { token, response });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return { ...invited, token, authenticator, cookie: cookieOf(answer), answer };
}

async function signInOptions() {
  return (await post('/api/sign-in/options', undefined)).body.options;
}

describe('an invitation', () => {
  test('registers a passkey, signs in, and names the person, address and session in the audit', async () => {
    const invited = await invite(['support']);
    const token = tokenOf(invited.url);
    assert.equal(new URL(invited.url).pathname, '/register');
    const shown = await post('/api/invitation', { token });
    assert.deepEqual(shown.body, {
      email: invited.email,
      name: invited.email.split('@')[0],
      roles: ['support'],
      expires_at: invited.expires_at,
      must_sign_in: false,
    });
    const { options } = (await post('/api/invitation/options', { token })).body;
    assert.equal(options.authenticatorSelection.residentKey, 'required');
    assert.equal(options.authenticatorSelection.userVerification, 'required');
    assert.equal(options.attestation, 'none');
    assert.equal(options.rp.id, 'localhost');
    const response = createAuthenticator().create(options, here());
    // A name that the person chooses changes nothing: colleagues rely on the administrator's.
    const named = { token, name: 'Sipho Dlamini', response };
    const answer = await post('/api/invitation/register', named);
    assert.equal(answer.status, 200);
    const cookie = String(answer.headers['set-cookie']);
    assert.match(cookie, /^tranche-console-3003=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/);
    assert.deepEqual(answer.body, { done: true });
    const { body: session } = await get('/api/session', cookieOf(answer));
    assert.equal(session.person.name, invited.email.split('@')[0]);
    assert.ok(session.proof_until, 'a registration is a proof of presence');
    const { rows } = await service.deps.database.pool.query(
      `select * from operator_actions where action = 'operators accept' and subject_id = $1`,
      [session.person.id],
    );
    assert.equal(rows.length, 1);
    assert.equal(rows[0].operator, invited.email);
    assert.equal(rows[0].person_id, session.person.id);
    assert.deepEqual(rows[0].roles, ['support']);
    assert.equal(rows[0].address, '127.0.0.1');
    assert.equal(rows[0].session_id, session.session.id);
    assert.deepEqual((await verifyOperatorChain(service.deps)).differences, []);
  });

  test('registers a passkey whose transports are not a list', async () => {
    const authenticator = createAuthenticator();
    const create: typeof authenticator.create = (...asked) => {
      const { response, ...rest } = authenticator.create(...asked);
      return { ...rest, response: { ...response, transports: 'usb' as never } };
    };
    await register({ ...authenticator, create });
  });

  test('works once', async () => {
    const { token } = await register();
    for (const url of ['/api/invitation', '/api/invitation/options']) {
      const answer = await post(url, { token });
      assert.equal(answer.status, 404);
      assert.equal(answer.body.error.code, 'link_ended');
    }
  });

  test('registers one of two passkeys that answer at the same time', async () => {
    const { url } = await invite();
    const token = tokenOf(url);
    const responses = await Promise.all(
      [1, 2].map(async () => {
        const { options } = (await post('/api/invitation/options', { token })).body;
        return createAuthenticator().create(options, here());
      }),
    );
    const answers = await Promise.all(
      responses.map((response) => post('/api/invitation/register', { token, response })),
    );
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 404]);
  });

  test('ends after 72 hours', async () => {
    const { url } = await invite();
    const token = tokenOf(url);
    const { options } = (await post('/api/invitation/options', { token })).body;
    clock.advance({ hours: 72 });
    const response = createAuthenticator().create(options, here());
    const answer = await post('/api/invitation/register', { token, response });
    assert.equal(answer.status, 404);
    assert.equal(answer.body.error.code, 'link_ended');
  });

  test('ends when a newer one is made, or when the person is revoked', async () => {
    const first = await invite();
    const wanted = { email: first.email, roles: ['viewer'], merchant_ids: null };
    const second = await invitePerson(service.deps, 'test', wanted);
    assert.equal((await post('/api/invitation', { token: tokenOf(first.url) })).status, 404);
    assert.equal((await post('/api/invitation', { token: tokenOf(second.url) })).status, 200);
    await revokePerson(service.deps, 'test', { email: first.email });
    assert.equal((await post('/api/invitation', { token: tokenOf(second.url) })).status, 404);
  });

  test('to a person who lost their passkey ends it and their sessions before any new role applies', async () => {
    const lost = await register();
    const wanted = { email: lost.email, roles: ['admin'], merchant_ids: null };
    const again = await invitePerson(service.deps, 'test', wanted);
    const token = tokenOf(again.url);
    assert.equal((await get('/api/session', lost.cookie)).status, 401);
    const old = lost.authenticator.get(await signInOptions(), here());
    assert.equal((await post('/api/sign-in', { response: old })).status, 403);
    const { options } = (await post('/api/invitation/options', { token })).body;
    const response = createAuthenticator().create(options, here());
    const answer = await post('/api/invitation/register', { token, response });
    assert.equal(answer.status, 200);
    const { body } = await get('/api/session', cookieOf(answer));
    assert.deepEqual([body.person.id, body.person.roles], [again.person.id, ['admin']]);
  });

  test('ends a sign-in and a new passkey that are being accepted at that moment', async () => {
    const lost = await register();
    const wanted = { email: lost.email, roles: ['admin'], merchant_ids: null };
    const { pool } = service.deps.database;
    const { id } = (await get('/api/session', lost.cookie)).body.person;
    const old = lost.authenticator.get(await signInOptions(), here());
    const { options } = (await post('/api/passkeys/options', undefined, lost.cookie)).body;
    const added = createAuthenticator().create(options, here());
    // All three wait for the lock of the person: the invitation first.
    const holder = await pool.connect();
    const waiting = async (count: number) => {
      while ((await countLockWaits(pool)) < count);
    };
    try {
      await holder.query('begin');
      await holder.query('select from people where id = $1 for update', [id]);
      const inviting = invitePerson(service.deps, 'test', wanted);
      await waiting(1);
      const signingIn = post('/api/sign-in', { response: old });
      await waiting(2);
      const adding = post('/api/passkeys', { name: 'Phone', response: added }, lost.cookie);
      await waiting(3);
      await holder.query('commit');
      await inviting;
      for (const answer of [await signingIn, await adding]) {
        assert.deepEqual([answer.status, answer.body.error?.code], [403, 'not_recognised']);
      }
    } finally {
      holder.release();
    }
    const { rows } = await pool.query(
      `select from console_sessions where person_id = $1 and ended_at is null
       union all select from passkeys where person_id = $1`,
      [id],
    );
    assert.equal(rows.length, 0);
  });

  test('is stored as a hash only', async () => {
    const { url } = await invite();
    const { rows } = await service.deps.database.pool.query(
      `select count(*)::int as count from person_links l
       where position($1 in l::text) > 0 or position($2 in l::text) > 0`,
      [tokenOf(url), Buffer.from(tokenOf(url), 'base64url').toString('hex')],
    );
    assert.equal(rows[0].count, 0);
  });
});

describe('a sign-in', () => {
  test('by passkey opens a new session, whatever cookie the browser brought along', async () => {
    const { authenticator } = await register();
    const fixed = `tranche-console-3003=${'A'.repeat(43)}`;
    const response = authenticator.get(await signInOptions(), here());
    const answer = await post('/api/sign-in', { response }, fixed);
    assert.equal(answer.status, 200);
    assert.notEqual(cookieOf(answer), fixed);
    assert.equal((await get('/api/session', fixed)).status, 401);
    assert.equal((await get('/api/session', cookieOf(answer))).status, 200);
    const again = authenticator.get(await signInOptions(), here());
    await post('/api/sign-in', { response: again }, cookieOf(answer));
    assert.equal((await get('/api/session', cookieOf(answer))).status, 401, 'its token has ended');
  });

  test('with an answer that was used before is refused', async () => {
    const { authenticator } = await register();
    const response = authenticator.get(await signInOptions(), here());
    assert.equal((await post('/api/sign-in', { response })).status, 200);
    const replayed = await post('/api/sign-in', { response });
    assert.equal(replayed.status, 403);
    assert.equal(replayed.body.error.code, 'not_recognised');
  });

  test('with two answers to one challenge at the same time accepts one', async () => {
    const { authenticator } = await register();
    const options = await signInOptions();
    const answers = await Promise.all(
      [1, 2].map(() => post('/api/sign-in', { response: authenticator.get(options, here()) })),
    );
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 403]);
  });

  test('is refused in each wrong detail, and each attempt uses its challenge up', async () => {
    const { authenticator } = await register();
    const stranger = createAuthenticator();
    const evil = { origin: 'https://evil.example' };
    const wrong: [string, (options: { challenge: string }) => object][] = [
      ['a passkey of another site', (o) => authenticator.get(o, evil)],
      [
        'the right site on another origin',
        (o) => authenticator.get(o, { origin: 'http://localhost:9999' }),
      ],
      ['another relying party', (o) => authenticator.get(o, { ...here(), rpId: 'evil.example' })],
      ['no user verification', (o) => authenticator.get(o, { ...here(), verified: false })],
      ['an unknown passkey', (o) => stranger.get(o, here())],
      [
        'a challenge that we did not make',
        () => authenticator.get({ challenge: Buffer.alloc(32).toString('base64url') }, here()),
      ],
      [
        'a registration in place of a sign-in',
        (o) => authenticator.get(o, { ...here(), type: 'webauthn.create' }),
      ],
      [
        'a broken signature',
        (o) => {
          const response = authenticator.get(o, here());
          response.response.signature = stranger.get(o, here()).response.signature;
          return response;
        },
      ],
      [
        'no client data',
        (o) => {
          const response = authenticator.get(o, here());
          response.response.clientDataJSON = '';
          return response;
        },
      ],
    ];
    for (const [what, answer] of wrong) {
      const options = await signInOptions();
      const refused = await post('/api/sign-in', { response: answer(options) });
      assert.equal(refused.status, 403, what);
      assert.equal(refused.headers['set-cookie'], undefined, what);
    }
    const options = await signInOptions();
    await post('/api/sign-in', { response: authenticator.get(options, evil) });
    const second = await post('/api/sign-in', { response: authenticator.get(options, here()) });
    assert.equal(second.status, 403, 'the challenge was used up');
  });

  test('with a challenge for another purpose, or an old one, is refused', async () => {
    const { authenticator, cookie } = await register();
    const proof = (await post('/api/proof/options', undefined, cookie)).body.options;
    const crossed = authenticator.get(proof, here());
    assert.equal((await post('/api/sign-in', { response: crossed })).status, 403);
    const options = await signInOptions();
    clock.advance({ minutes: 5 });
    const late = authenticator.get(options, here());
    assert.equal((await post('/api/sign-in', { response: late })).status, 403);
  });

  test('by a copy of the authenticator, whose counter is behind, is refused', async () => {
    const { authenticator } = await register();
    const first = authenticator.get(await signInOptions(), here());
    assert.equal((await post('/api/sign-in', { response: first })).status, 200);
    authenticator.rewind(1);
    const copy = authenticator.get(await signInOptions(), here());
    assert.equal((await post('/api/sign-in', { response: copy })).status, 403);
  });

  test('of a revoked person is refused, and their sessions have ended', async () => {
    const { authenticator, cookie, email } = await register();
    const options = await signInOptions();
    await revokePerson(service.deps, 'test', { email });
    assert.equal((await get('/api/session', cookie)).status, 401);
    const response = authenticator.get(options, here());
    assert.equal((await post('/api/sign-in', { response })).status, 403);
  });

  test('from another origin is refused before anything else', async () => {
    const { authenticator } = await register();
    const response = authenticator.get(await signInOptions(), here());
    const console = { app, deps: service.deps };
    const answer = await ask(console, null, 'POST', '/api/sign-in', {
      body: { response },
      headers: { origin: 'https://evil.example' },
    });
    assert.equal(answer.status, 403);
    assert.equal(answer.body.error.code, 'foreign_origin');
  });
});

describe('a registration', () => {
  test('is refused for another site, without verification, and for the challenge of another person', async () => {
    const { url } = await invite();
    const token = tokenOf(url);
    const offer = async () => (await post('/api/invitation/options', { token })).body.options;
    const other = (await post('/api/invitation/options', { token: tokenOf((await invite()).url) }))
      .body.options;
    const authenticator = createAuthenticator();
    for (const response of [
      authenticator.create(await offer(), { origin: 'https://evil.example' }),
      authenticator.create(await offer(), { ...here(), rpId: 'evil.example' }),
      authenticator.create(await offer(), { ...here(), verified: false }),
      authenticator.create(other, here()),
    ]) {
      const answer = await post('/api/invitation/register', { token, response });
      assert.equal(answer.status, 403);
    }
    const right = authenticator.create(await offer(), here());
    assert.equal((await post('/api/invitation/register', { token, response: right })).status, 200);
  });

  test("of another person's passkey is refused", async () => {
    const { authenticator } = await register();
    const { url } = await invite();
    const token = tokenOf(url);
    const { options } = (await post('/api/invitation/options', { token })).body;
    const response = authenticator.create(options, here());
    assert.equal((await post('/api/invitation/register', { token, response })).status, 409);
  });
});

describe('a recent re-authentication', () => {
  const adminAction = (cookie: string) =>
    post(
      '/api/people',
      { email: 'new@example.com', roles: ['viewer'], merchant_ids: null },
      cookie,
    );

  test('is needed five minutes after the sign-in, and a passkey gives it', async () => {
    const admin = await register(createAuthenticator(), ['admin']);
    assert.equal((await adminAction(admin.cookie)).status, 200);
    clock.advance({ minutes: 5 });
    const refused = await adminAction(admin.cookie);
    assert.equal(refused.status, 403);
    assert.equal(refused.body.error.code, 'proof_needed');
    const { options } = (await post('/api/proof/options', undefined, admin.cookie)).body;
    const response = admin.authenticator.get(options, here());
    const proved = await post('/api/proof', { response }, admin.cookie);
    assert.equal(proved.status, 200);
    assert.ok(proved.body.proof_until);
    assert.equal((await adminAction(cookieOf(proved))).status, 200);
    assert.equal((await get('/api/session', admin.cookie)).status, 401, 'the old token has ended');
  });

  test("is not given by another person's passkey, for another session, or without a passkey", async () => {
    const admin = await register(createAuthenticator(), ['admin']);
    const other = await register(createAuthenticator(), ['admin']);
    clock.advance({ minutes: 5 });
    const offer = async (cookie: string) =>
      (await post('/api/proof/options', undefined, cookie)).body.options;
    const foreign = other.authenticator.get(await offer(admin.cookie), here());
    assert.equal((await post('/api/proof', { response: foreign }, admin.cookie)).status, 403);
    const crossed = admin.authenticator.get(await offer(other.cookie), here());
    assert.equal((await post('/api/proof', { response: crossed }, admin.cookie)).status, 403);
    assert.equal((await post('/api/proof/sandbox', undefined, admin.cookie)).status, 404);
    assert.equal((await adminAction(admin.cookie)).status, 403);
  });
});

describe('passkeys', () => {
  test('can be several; adding one needs a recent re-authentication and raises an alert; the last one stays', async () => {
    const person = await register(createAuthenticator(), ['admin']);
    const list = async () => (await get('/api/passkeys', person.cookie)).body.data;
    const second = createAuthenticator();
    const offer = async () => await post('/api/passkeys/options', undefined, person.cookie);
    const response = second.create((await offer()).body.options, here());
    const added = await post('/api/passkeys', { name: 'Phone', response }, person.cookie);
    assert.equal(added.status, 200, JSON.stringify(added.body));
    // Another person reads of it, even without mail.
    const { rows } = await service.deps.database.pool.query(
      `select id, caused_by, subject_id, detail from alerts where kind = 'sign_in_method_added'`,
    );
    assert.deepEqual(
      rows.map(({ caused_by, subject_id }) => [caused_by, subject_id]),
      [[person.email, person.person.id]],
    );
    assert.match(rows[0].detail, /added a passkey from the address 127\.0\.0\.1/);
    const handle = `/api/alerts/${rows[0].id}/close`;
    const closed = await post(handle, { reason: 'It was me.' }, person.cookie);
    assert.match(closed.body.error.message, /^Your own action raised this alert/);
    const signedIn = second.get(await signInOptions(), here());
    assert.equal((await post('/api/sign-in', { response: signedIn })).status, 200);
    const [first, phone] = await list();
    assert.equal(phone.name, 'Phone');
    const remove = (id: string) =>
      ask({ app, deps: service.deps }, person, 'DELETE', `/api/passkeys/${id}`);
    assert.equal((await remove(first.id)).status, 200);
    assert.equal((await remove(phone.id)).status, 409);
    clock.advance({ minutes: 5 });
    assert.equal((await offer()).body.error.code, 'proof_needed');
  });

  test('are removed with the sessions that they opened, and other sessions can be ended', async () => {
    const person = await register();
    const phone = createAuthenticator();
    const { options } = (await post('/api/passkeys/options', undefined, person.cookie)).body;
    const response = phone.create(options, here());
    await post('/api/passkeys', { name: 'Phone', response }, person.cookie);
    const signIn = async (by: typeof phone) =>
      cookieOf(await post('/api/sign-in', { response: by.get(await signInOptions(), here()) }));
    const [byPhone, byFirst] = [await signIn(phone), await signIn(person.authenticator)];
    const status = async (cookie: string) => (await get('/api/session', cookie)).status;
    const [, added] = (await get('/api/passkeys', person.cookie)).body.data;
    const url = `/api/passkeys/${added.id}`;
    const removed = await ask({ app, deps: service.deps }, person, 'DELETE', url);
    assert.equal(removed.status, 200);
    assert.deepEqual([await status(byPhone), await status(byFirst)], [401, 200]);
    assert.equal((await post('/api/sessions/end-others', undefined, person.cookie)).status, 200);
    assert.deepEqual([await status(byFirst), await status(person.cookie)], [401, 200]);
  });

  test('and other sessions are changed only with a recent re-authentication', async () => {
    const person = await register();
    clock.advance({ minutes: 5 });
    const attempts = [
      ['DELETE', '/api/sessions/00000000-0000-7000-8000-000000000000'],
      ['POST', '/api/sessions/end-others'],
      ['DELETE', '/api/passkeys/00000000-0000-7000-8000-000000000000'],
      ['POST', '/api/passkeys/options'],
      ['POST', '/api/issuer/tie'],
    ] as const;
    for (const [method, url] of attempts) {
      const answer = await ask({ app, deps: service.deps }, person, method, url);
      assert.equal(answer.body.error.code, 'proof_needed', url);
    }
  });
});
