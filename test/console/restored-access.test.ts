import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import {
  isOpenHere,
  moveAccessServer,
  readAccessServer,
  readServer,
} from '#checks/reconciliation/access-server.sql.ts';
import { confirmAccess } from '#checks/reconciliation/confirm-access.ts';
import { moveAccessConfirmed, resumeMoney } from '#checks/reconciliation/gateway-heartbeat.sql.ts';
import { createMoneyGuard } from '#checks/reconciliation/money-guard.ts';
import { type Gateway, OutcomeUnknown } from '#gateway/gateway.ts';
import type { Merchant } from '#merchants/merchant.ts';
import { insertBulkAction } from '#operating/bulk-actions/bulk-action.sql.ts';
import { runBulkActions } from '#operating/bulk-actions/run-bulk-actions.ts';
import { endAllAccess } from '#operating/people/end-all-access.ts';
import { invitePerson } from '#operating/people/invite-person.ts';
import { revokePerson } from '#operating/people/manage-people.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { newLegacyToken } from '#purchases/legacy/legacy-credential.ts';
import { recogniseToken } from '#purchases/legacy/recognise-token.ts';
import { findSession, openSession } from '#purchases/shoppers/open-session.ts';
import { createAuthenticator } from '../support/authenticator.ts';
import { commandLine } from '../support/cli.ts';
import { addPerson, ask, openConsole } from '../support/console.ts';
import { onlyGateway } from '../support/gateway.ts';
import {
  type Answer,
  checkoutBody,
  createAccount,
  movableClock,
  type Service,
  send,
  startService,
} from '../support/service.ts';
import { tamper } from '../support/tamper.ts';

// In a database that lost changes, sessions, links and tokens that were ended since the backup are
// valid again.

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

const post = async (url: string, body?: object): Promise<Answer> => {
  clock.advance({ seconds: 2 });
  return await ask({ app, deps: service.deps }, null, 'POST', url, body && { body });
};
const here = () => ({ origin: service.deps.console.url });
const tokenOf = (url: string) => new URL(url).hash.slice(1);
const count = async (query: string) =>
  (await service.deps.database.pool.query(`select count(*)::int as count from ${query}`)).rows[0]
    .count;

/**
 * Lets the service notice a restore: the gateway has seen a later heartbeat than the database has.
 */
async function noticeRestore(): Promise<void> {
  const { deps } = service;
  const { rows } = await deps.database.pool.query(
    `update gateway_heartbeat set id = coalesce(id, gen_random_uuid()) returning id`,
  );
  const ahead = { heartbeat_ref: 'cus_1', database: rows[0].id, count: 99 };
  const gateways = onlyGateway({ listHeartbeats: async () => [ahead] } as unknown as Gateway);
  const guard = { ...deps, gateways, environment: 'sandbox' as const, endAccess: endAllAccess };
  assert.match(String(await createMoneyGuard(guard).problem()), /The gateway is ahead/);
}

test('a restore ends every session, link and token, and people wait until an operator confirms', async () => {
  const { deps } = service;
  const { pool } = deps.database;
  const signedIn = await addPerson(service, { roles: ['admin'] });
  const wanted = { email: 'nomsa@example.com', roles: ['admin'], merchant_ids: null };
  const token = tokenOf((await invitePerson(deps, 'test', wanted)).url);
  const authenticator = createAuthenticator();
  const { options } = (await post('/api/invitation/options', { token })).body;
  const response = authenticator.create(options, here());
  assert.equal((await post('/api/invitation/register', { token, response })).status, 200);
  const invited = { email: 'held@example.com', roles: ['viewer'], merchant_ids: null };
  const link = tokenOf((await invitePerson(deps, 'test', invited)).url);
  const account = await createAccount(service);
  const { body } = await send(service, account, 'POST', '/api/checkouts', { body: checkoutBody() });
  await pool.query(
    `insert into plan_sessions (merchant_id, checkout_id, session_hash, created_at, expires_at)
     select merchant_id, id, sha256('a'), now(), now() + interval '1 year' from checkouts where id = $1`,
    [body.data.id],
  );
  await pool.query(
    `insert into legacy_credentials (client_id, integration_id, secret_hash, created_at)
     values ($1, $2, sha256('a'), now())`,
    [deps.random.uuid(), account.id],
  );
  await pool.query(
    `insert into legacy_tokens (token_hash, merchant_id, client_id, created_at, expires_at)
     select sha256('a'), $1, client_id, now(), now() + interval '1 year' from legacy_credentials`,
    [account.merchant.id],
  );
  await noticeRestore();
  const session = () => ask({ app, deps }, signedIn, 'GET', '/api/session');
  assert.equal((await session()).status, 401);
  assert.equal((await post('/api/invitation', { token: link })).body.error.code, 'link_ended');
  for (const table of ['plan_sessions', 'plan_links', 'legacy_tokens', 'console_challenges']) {
    assert.equal(await count(table), 0, table);
  }
  const signIn = async () => {
    const offered = (await post('/api/sign-in/options')).body.options;
    return await post('/api/sign-in', { response: authenticator.get(offered, here()) });
  };
  const waits = await signIn();
  assert.match(waits.body.error.message, /confirmed them at the command line/);
  const tranche = commandLine({ DATABASE_URL: service.databaseUrl });
  const shown = await tranche.json('operators', 'confirm');
  assert.ok(shown.waits_since);
  const own = shown.people.find(({ email }: { email: string }) => email === 'nomsa@example.com');
  assert.deepEqual([own.roles, own.can_sign_in], [['admin'], true]);
  assert.ok(shown.integrations.some(({ id }: { id: string }) => id === account.id));
  const confirm = ['operators', 'confirm', '--reason', 'Compared with the alerts.'];
  await tranche.refused(1, /cannot be read \(ENOENT\)/, ...confirm, '--log', '/none');
  assert.equal((await signIn()).status, 409, 'listing them confirms nothing');
  assert.equal((await tranche.json(...confirm)).waits_since, null);
  assert.equal((await signIn()).status, 200);
  await tranche.refused(1, /nothing to confirm/, ...confirm);
});

test('a revocation of access is posted and logged, where it survives a restore', async () => {
  const { deps } = service;
  const person = await addPerson(service, { roles: ['viewer'], email: 'leaver@example.com' });
  const lines: object[] = [];
  const log = { ...deps.log, warn: (line: object) => void lines.push(line) } as typeof deps.log;
  const logged = { ...deps, log };
  await revokePerson(logged, 'sipho', { id: person.id });
  const { rows } = await deps.database.pool.query(
    `select * from alerts where subject_id = $1 and kind = 'access_ended'`,
    [person.id],
  );
  assert.equal(rows.length, 1);
  assert.match(rows[0].detail, /^sipho ran `operators revoke`: .*leaver@example.com/);
  assert.ok(rows[0].due_at !== null && rows[0].closed_at !== null, 'posted, with nothing to do');
  assert.match(JSON.stringify(lines), /access_ended/);
  // A database from before the revocation lacks its alert. The log still has it, and so does the
  // alert as it was posted.
  const logOf = (alerts: object[]) =>
    ['not JSON', '{"msg":"access_ended"}', ...alerts.map((line) => JSON.stringify(line))].join(
      '\n',
    );
  const { id, at, kind, detail } = rows[0];
  for (const kept of [lines, [{ id, at, kind, detail }]]) {
    const confirm = async () =>
      (
        await commandLine(
          { DATABASE_URL: service.databaseUrl },
          { stdin: logOf([...kept, ...kept]) },
        ).json('operators', 'confirm', '--log', '-')
      ).lost;
    assert.deepEqual(await confirm(), []);
    await tamper(deps.database.pool, 'update alerts set id = gen_random_uuid() where id = $1', [
      id,
    ]);
    assert.deepEqual(await confirm(), [{ id, at, kind, detail }]);
    const back = 'update alerts set id = $1 where subject_id = $2 and kind = $3';
    await tamper(deps.database.pool, back, [id, person.id, kind]);
  }
  const tranche = commandLine({ DATABASE_URL: service.databaseUrl });
  await tranche.refused(1, /cannot be read \(ENOENT\)/, 'operators', 'confirm', '--log', '/none');
});

/** Starts a process with its console. Its gateway answers when the test lets it. */
async function startProcess() {
  const { deps } = service;
  const gateway = { answers: false };
  const listHeartbeats = async () => {
    if (!gateway.answers) throw new OutcomeUnknown('The gateway did not answer.', 'no_answer');
    return [];
  };
  const money = createMoneyGuard({
    ...{ ...deps, gateways: onlyGateway({ listHeartbeats } as unknown as Gateway) },
    ...{ environment: 'sandbox', endAccess: endAllAccess },
  });
  const started = { ...deps, money };
  return { gateway, money, deps: started, app: await openConsole({ deps: started }) };
}

/** Makes the database look as if a process had opened access, on this server or on another. */
async function leaveOpen(server?: string): Promise<void> {
  const { db } = service.deps.database;
  await resumeMoney(db);
  await moveAccessConfirmed(db);
  const at = timestamp(clock.now().subtract({ hours: 1 }));
  await moveAccessServer(db, { server: server ?? (await readServer(db)), at });
}

/** Lets time pass, and asks again each second, until access is open in the database. */
async function untilOpen(money: { accessProblem(): Promise<string | null> }): Promise<void> {
  const { db } = service.deps.database;
  while (!isOpenHere(await readAccessServer(db))) {
    clock.advance({ seconds: 1 });
    await money.accessProblem();
  }
  clock.advance({ seconds: 1 });
}

test('no one can sign in to a database that may be a backup, until the gateway answers', async (t) => {
  const person = await addPerson(service, { roles: ['admin'] });
  await leaveOpen('another/1/1');
  const { gateway, money, deps, app } = await startProcess();
  t.after(() => app.close());
  const asked = async (method: 'GET' | 'POST', url: string) => {
    clock.advance({ seconds: 2 });
    const { status, body } = await ask({ app, deps }, person, method, url);
    return status === 503 ? body.error.message : status;
  };
  const authorization = `Bearer ${newLegacyToken(deps.environment, deps.random)}`;
  const ways: Record<string, () => Promise<unknown>> = {
    session: () => asked('GET', '/api/session'),
    'sign-in': () => asked('POST', '/api/sign-in/options'),
    invitation: () => asked('POST', '/api/invitation/options'),
    'v1 token': () =>
      recogniseToken(deps, { authorization, network: '192.0.2.1' }).catch(({ status }) => status),
    'bulk action': () => runBulkActions(deps),
    'plan session': () => findSession(deps, merchant, { merchant_id, checkout_id }, 'x'),
    'plan link': () => openSession(deps, merchant, { merchant_id, checkout_id }, 'x', true),
  };
  const acting = { person_id: person.id, access_id: person.id, session_id: person.session_id };
  await insertBulkAction(deps.database.db, {
    ...{ id: deps.random.uuid(), kind: 'refunds approve', wanted: { ids: [] }, total: 0 },
    actor: { ...acting, operator: person.email, roles: ['admin'], address: '192.0.2.1' },
    created_at: timestamp(clock.now()),
  });
  const merchant = { now: () => clock.now() } as Merchant;
  const [merchant_id, checkout_id] = [deps.random.uuid(), deps.random.uuid()];
  const results = async () => {
    const found: [string, unknown][] = [];
    for (const [name, open] of Object.entries(ways)) {
      found.push([name, await open().catch(({ status }) => status)]);
    }
    return Object.fromEntries(found);
  };
  const closed = await results();
  for (const name of ['session', 'sign-in', 'invitation']) {
    assert.match(String(closed[name]), /may be a restored backup.*tranche operators confirm/);
  }
  for (const name of ['v1 token', 'plan session', 'plan link']) assert.equal(closed[name], 503);
  assert.equal(closed['bulk action'], 0);
  assert.equal(await asked('GET', '/api/sign-in'), 200, 'the page says how people sign in');
  const other = await startProcess();
  t.after(() => other.app.close());
  assert.notEqual(await other.money.accessProblem(), null);
  gateway.answers = true;
  await untilOpen(money);
  assert.deepEqual(await results(), {
    ...{ session: 200, 'sign-in': 200, invitation: 400, 'v1 token': 401 },
    ...{ 'bulk action': 1, 'plan session': null, 'plan link': null },
  });
  gateway.answers = false;
  // The database remembers the answer, so that other processes open access while the gateway is
  // away.
  clock.advance({ seconds: 20 });
  assert.equal(await asked('GET', '/api/session'), 200);
  assert.equal(await other.money.accessProblem(), null);
});

test('a gateway that is away keeps no one out of a database that is still on its server', async () => {
  await leaveOpen();
  const { money, app } = await startProcess();
  await app.close();
  assert.equal(await money.accessProblem(), null);
});

test('what is open stays open when a standby takes over, if the gateway answers soon', async () => {
  for (const answers of [true, false]) {
    await leaveOpen();
    const { gateway, money, app } = await startProcess();
    await app.close();
    gateway.answers = answers;
    assert.equal(await money.accessProblem(), null);
    await leaveOpen('another/1/1');
    for (const seconds of [11, 2]) {
      clock.advance({ seconds });
      assert.equal(await money.accessProblem(), null);
    }
    if (answers) await untilOpen(money);
    clock.advance({ seconds: 20 });
    assert.equal((await money.accessProblem()) === null, answers);
  }
});

test('an operator opens access without the gateway, and everyone signs in again', async (t) => {
  const { deps } = service;
  const person = await addPerson(service, { roles: ['admin'] });
  await leaveOpen('another/1/1');
  const started = await startProcess();
  t.after(() => started.app.close());
  const asked = async (url: string, method: 'GET' | 'POST' = 'GET') => {
    clock.advance({ seconds: 2 });
    return (await ask(started, person, method, url)).status;
  };
  assert.equal(await asked('/api/session'), 503);
  const confirm = () =>
    confirmAccess({ ...deps, endAccess: endAllAccess }, 'nomsa', 'Compared with the alerts.');
  await confirm();
  assert.equal(await asked('/api/session'), 401, 'the session may have been revived');
  assert.equal(await asked('/api/sign-in/options', 'POST'), 200);
  await assert.rejects(confirm(), /nothing to confirm/);
});
