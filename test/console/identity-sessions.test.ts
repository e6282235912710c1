import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { forgetIdentities } from '#operating/people/forget-identities.ts';
import { changeAccess, revokePerson, revokeSession } from '#operating/people/manage-people.ts';
import { statement } from '#platform/database/compile-once.ts';
import { operate } from '#record/actions/operate.ts';
import { unknownId } from '../support/cli.ts';
import { addPerson, ask, openAnotherSession, openConsole } from '../support/console.ts';
import { createAccount, movableClock, type Service, startService } from '../support/service.ts';

const clock = movableClock();
let service: Service;
let app: FastifyInstance;
const console = () => ({ app, deps: service.deps });
before(async () => {
  service = await startService({ clock });
  app = await openConsole(service);
});
after(async () => {
  await app.close();
  await service.close();
});

const rename = statement((db, { id, name }: { id: string; name: string }) =>
  db.updateTable('people').set({ name }).where('id', '=', id).returning('id'),
);

describe('a session', () => {
  test('says who the person is, what they may do and which merchants they see', async () => {
    const admin = await addPerson(service, { roles: ['admin'] });
    const { status, body, headers } = await ask(console(), admin, 'GET', '/api/session');
    assert.equal(status, 200);
    assert.deepEqual(body.person, {
      id: admin.id,
      name: 'Nomsa Dube',
      email: admin.email,
      roles: ['admin'],
    });
    assert.equal(body.scope, 'all');
    assert.ok(body.permissions.includes('people.manage'));
    assert.equal(body.sandbox, true);
    assert.equal(headers['cache-control'], 'no-store');
    assert.match(String(headers['content-security-policy']), /frame-ancestors 'none'/);
  });

  test('is not needed for our headers and limits: a path that cannot be decoded has both', async () => {
    const remoteAddress = '203.0.113.9';
    const { consoleRequest } = service.deps.rateLimits;
    const answer = await ask(console(), null, 'GET', '/%zz', { remoteAddress });
    assert.deepEqual([answer.status, answer.body.error.code], [404, 'not_found']);
    assert.match(String(answer.headers['content-security-policy']), /frame-ancestors 'none'/);
    assert.equal(answer.headers['x-content-type-options'], 'nosniff');
    for (let count = 1; count < 1_200; count++) await consoleRequest(remoteAddress);
    const refused = await ask(console(), null, 'GET', '/%zz', { remoteAddress });
    assert.equal(refused.status, 429);
  });

  test('that ended, or whose access was revoked or narrowed, while an action waited, does nothing', async () => {
    const { deps } = service;
    const [one, other] = [await addPerson(service, { roles: ['admin'] }), 'sipho@example.com'];
    const change = (to: Parameters<typeof changeAccess>[3]) =>
      changeAccess(deps, other, one.id, to);
    const ends: Record<string, () => Promise<unknown>> = {
      'adds a role': () => change({ roles: ['admin', 'viewer'] }),
      'takes a role': () => change({ roles: ['viewer'] }),
      'takes merchants': () => change({ merchant_ids: [merchant.id] }),
      'ends another session': () =>
        revokeSession(deps, other, { person_id: one.id, id: again.session_id }),
      'ends the session': () =>
        revokeSession(deps, other, { person_id: one.id, id: one.session_id }),
      'revokes the person': () => revokePerson(deps, other, { email: one.email }),
    };
    const again = await openAnotherSession(service, one);
    const last = await openAnotherSession(service, one);
    const { merchant } = await createAccount(service);
    let renamed = 0;
    const attempt = (
      session_id: string,
      meanwhile: () => Promise<unknown>,
      merchant_ids: string[] | null = null,
    ) => {
      const rest = { roles: ['admin'], merchant_ids, address: '192.0.2.7', counts_from: null };
      const origin = { person_id: one.id, access_id: one.id, session_id, ...rest };
      return operate({ ...deps, origin }, one.email, 'test action', async () => {
        await meanwhile();
        renamed += 1;
        const writes = { person: rename({ id: one.id, name: `Name ${renamed}` }) };
        return { subject_id: one.id, details: {}, result: 'done', writes };
      });
    };
    assert.equal(await attempt(one.session_id, ends['ends another session'] as never), 'done');
    assert.equal(await attempt(one.session_id, ends['adds a role'] as never), 'done');
    // The person does not exist, so the write fails.
    const failing = operate(deps, other, 'test action', async () => {
      const writes = { person: rename({ id: unknownId, name: 'No one' }) };
      return { subject_id: one.id, details: {}, result: null, writes };
    });
    await assert.rejects(failing, /person was not written/);
    for (const [session, how, merchant_ids] of [
      [one, 'takes a role', null],
      [one, 'ends the session', null],
      [last, 'takes merchants', null],
      [last, 'revokes the person', [merchant.id]],
    ] as const) {
      const refusal = /Your session has ended, or your access was changed\. Nothing was done/;
      const refused = attempt(
        session.session_id,
        ends[how] as never,
        merchant_ids && [...merchant_ids],
      );
      await assert.rejects(refused, refusal, how);
      if (how === 'takes a role') await change({ roles: ['admin'] });
    }
    const audit = await deps.database.pool.query(
      `select count(*)::int as count from operator_actions where action = 'test action' and subject_id = $1`,
      [one.id],
    );
    assert.equal(audit.rows[0].count, 2);
    const { rows } = await deps.database.pool.query('select name from people where id = $1', [
      one.id,
    ]);
    assert.deepEqual([rows[0].name, renamed], ['Name 2', 6]);
  });

  test('is needed: without one, with an unknown one and with two the answer is 401', async () => {
    const admin = await addPerson(service, { roles: ['admin'] });
    const unknown = admin.cookie.replace(/.{43}$/, 'A'.repeat(43));
    for (const cookie of ['', unknown, `${admin.cookie}; ${unknown}`, `${admin.cookie}x`]) {
      const answer = await ask(console(), { cookie }, 'GET', '/api/session');
      assert.equal(answer.status, 401, cookie);
      assert.equal(answer.body.error.code, 'signed_out');
    }
  });

  test('ends after 30 minutes without an action; a page that refreshes itself is not an action', async () => {
    const person = await addPerson(service, { roles: ['viewer'] });
    const get = async (headers = {}) =>
      (await ask(console(), person, 'GET', '/api/session', { headers })).status;
    for (let times = 0; times < 4; times++) {
      clock.advance({ minutes: 20 });
      assert.equal(await get(), 200);
    }
    clock.advance({ minutes: 20 });
    assert.equal(await get({ 'tranche-background': '1' }), 200);
    clock.advance({ minutes: 11 });
    assert.equal(await get(), 401);
  });

  test('ends after 12 hours, however busy the person is', async () => {
    const person = await addPerson(service, { roles: ['viewer'] });
    for (let minutes = 0; minutes < 12 * 60 - 15; minutes += 15) {
      clock.advance({ minutes: 15 });
      assert.equal((await ask(console(), person, 'GET', '/api/session')).status, 200);
    }
    clock.advance({ minutes: 15 });
    assert.equal((await ask(console(), person, 'GET', '/api/session')).status, 401);
  });

  test('ends when the person signs out', async () => {
    const person = await addPerson(service, { roles: ['viewer'] });
    const left = await ask(console(), person, 'DELETE', '/api/session');
    assert.equal(left.headers['clear-site-data'], '"cache", "storage"');
    assert.equal(left.status, 200);
    assert.match(String(left.headers['set-cookie']), /Max-Age=0/);
    assert.equal((await ask(console(), person, 'GET', '/api/session')).status, 401);
  });

  test('is stored as a hash only', async () => {
    const person = await addPerson(service, { roles: ['viewer'] });
    const token = person.cookie.split('=')[1] ?? '';
    const { rows } = await service.deps.database.pool.query(
      'select s::text as text from console_sessions s where id = $1',
      [person.session_id],
    );
    assert.equal(rows.length, 1);
    assert.ok(!rows[0].text.includes(token));
    assert.ok(!rows[0].text.includes(Buffer.from(token, 'base64url').toString('hex')));
  });
});

describe('a change', () => {
  test('from another origin, or from none, is refused', async () => {
    const person = await addPerson(service, { roles: ['admin'] });
    for (const origin of ['https://evil.example', 'null', '', 'http://localhost:9999']) {
      const answer = await ask(console(), person, 'DELETE', '/api/session', {
        headers: { origin },
      });
      assert.equal(answer.status, 403, origin);
      assert.equal(answer.body.error.code, 'foreign_origin');
    }
    const { statusCode } = await app.inject({
      method: 'DELETE',
      url: '/api/session',
      headers: { cookie: person.cookie },
    });
    assert.equal(statusCode, 403);
    assert.equal((await ask(console(), person, 'GET', '/api/session')).status, 200);
  });
});

test('a path that does not exist below /api is 404 in the envelope of the console', async () => {
  const answer = await ask(console(), null, 'GET', '/api/nothing');
  assert.equal(answer.status, 404);
  assert.equal(answer.body.error.code, 'not_found');
});

test('attempts to sign in are limited per address, and other requests are served', async () => {
  const person = await addPerson(service, { roles: ['viewer'] });
  const remoteAddress = '198.51.100.9';
  const attempt = () =>
    ask(console(), null, 'POST', '/api/invitation', { body: { token: 'x' }, remoteAddress });
  for (let count = 0; count < 60; count++) assert.equal((await attempt()).status, 404);
  const refused = await attempt();
  assert.equal(refused.status, 429);
  assert.equal(refused.body.error.code, 'too_many_requests');
  assert.ok(Number(refused.headers['retry-after']) > 0);
  const answer = await ask(console(), person, 'GET', '/api/session', { remoteAddress });
  assert.equal(answer.status, 200);
});

test('challenges are deleted once they have ended, and sessions a month later', async () => {
  const { pool } = service.deps.database;
  const person = await addPerson(service, { roles: ['viewer'] });
  await ask(console(), null, 'POST', '/api/sign-in/options');
  const count = async (table: string, where = 'true') =>
    (await pool.query(`select count(*)::int as n from ${table} where ${where}`)).rows[0].n;
  const isIt = `id = '${person.session_id}'`;
  await forgetIdentities(service.deps);
  assert.equal(await count('console_challenges'), 1);
  clock.advance({ minutes: 6 });
  await forgetIdentities(service.deps);
  assert.equal(await count('console_challenges'), 0);
  clock.advance({ days: 30 });
  await forgetIdentities(service.deps);
  assert.equal(await count('console_sessions', isIt), 1);
  clock.advance({ days: 1 });
  await forgetIdentities(service.deps);
  assert.equal(await count('console_sessions', isIt), 0);
});
