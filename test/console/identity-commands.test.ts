import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import { after, before, describe, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import type { FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { BadSettings, readConfig } from '#config.ts';
import { serveMetrics } from '#hosting/running/serve-metrics.ts';
import { startProcess } from '#main.ts';
import { invitePerson } from '#operating/people/invite-person.ts';
import { createAuthority } from '../support/certificates.ts';
import { commandLine, type Tranche, unknownId } from '../support/cli.ts';
import { addPerson, ask, cookieOf, openConsole } from '../support/console.ts';
import {
  createAccount,
  productionSettings,
  type Service,
  startService,
  testConfig,
} from '../support/service.ts';

let service: Service;
let app: FastifyInstance;
let tranche: Tranche;
before(async () => {
  service = await startService();
  app = await openConsole(service);
  tranche = commandLine({ DATABASE_URL: service.databaseUrl });
});
after(async () => {
  await app.close();
  await service.close();
});

const post = (url: string, body: object) =>
  ask({ app, deps: service.deps }, null, 'POST', url, { body });
const tokenOf = (url: string) => new URL(url).hash.slice(1);

describe('tranche operators', () => {
  test('invites a person with roles and merchants, and the link works at the console', async () => {
    const { merchant } = await createAccount(service);
    const invitation = await tranche.json(
      ...['operators', 'invite', 'Nomsa@Example.com', '--role', 'support', '--role', 'refunds'],
      ...['--merchant', merchant.id, '--name', 'Nomsa Dube'],
    );
    assert.deepEqual(Object.keys(invitation), ['url', 'expires_at']);
    assert.match(invitation.url, /^http:\/\/localhost:3006\/register#[\w-]{43}$/);
    const shown = await post('/api/invitation', { token: tokenOf(invitation.url) });
    assert.equal(shown.body.email, 'nomsa@example.com');
    assert.deepEqual(shown.body.roles, ['support', 'refunds']);
    const { data } = await tranche.json('operators', 'list');
    const [person] = data;
    assert.equal(person.name, 'Nomsa Dube');
    assert.deepEqual(person.merchant_ids, [merchant.id]);
    assert.equal(person.oidc_subject, undefined);
    const page = (await tranche.run('operators', 'list')).stdout;
    assert.ok(page.includes('nomsa@example.com') && page.includes('support, refunds'), page);

    const revoked = await tranche.json('operators', 'revoke', 'nomsa@example.com');
    assert.ok(revoked.revoked_at);
    assert.equal((await post('/api/invitation', { token: tokenOf(invitation.url) })).status, 404);
    await tranche.refused(1, /was revoked/, 'operators', 'revoke', 'nomsa@example.com');
    const audit = (await tranche.json('audit', 'list')).data;
    const actions = audit.map(({ action }: { action: string }) => action);
    assert.ok(actions.includes('operators invite') && actions.includes('operators revoke'));
    assert.ok(!JSON.stringify(audit).includes(tokenOf(invitation.url)), 'no token in the audit');
  });

  test('releases an invitation as the second administrator, with the roles that it has', async () => {
    const inviter = await addPerson(service, { roles: ['admin'] });
    const colleague = await addPerson(service, { roles: ['viewer'] });
    const { email } = colleague;
    const console = { app, deps: service.deps };
    const body = { email, roles: ['support', 'refunds'], merchant_ids: null };
    assert.equal((await ask(console, inviter, 'POST', '/api/people', { body })).status, 200);
    const release = ['operators', 'release', email];
    const held = await tranche.json(...release);
    assert.deepEqual([held.made_by, held.roles], [inviter.email, ['support', 'refunds']]);
    await tranche.refused(1, /changed in the meantime/, ...release, '--role', 'support');
    const env = { DATABASE_URL: service.databaseUrl, TRANCHE_OPERATOR: inviter.email };
    const roles = ['--role', 'refunds', '--role', 'support'];
    await commandLine(env).refused(1, /You made this invitation/, ...release, ...roles);
    assert.equal((await ask(console, colleague, 'GET', '/api/session')).status, 200);
    const { url } = await tranche.json(...release, ...roles);
    assert.equal(url, null, 'the link goes to the person by mail');
    assert.equal((await ask(console, colleague, 'GET', '/api/session')).status, 401);
    const { rows } = await service.deps.database.pool.query(
      `select (select array_agg(kind order by kind) from person_mails where person_id = $1) as mails,
         (select count(*)::int from alerts where subject_id = $1 and kind = 'ways_in_replaced') as alerts`,
      [colleague.id],
    );
    const mails = ['invitation', 'invitation_requested', 'invited_again'];
    assert.deepEqual(rows, [{ mails, alerts: 1 }]);
    await tranche.refused(1, /No invitation/, ...release, ...roles);
  });

  test('confirms a person with all merchants, named by their roles alone', async () => {
    const { email, id } = await addPerson(service, { roles: ['support'] });
    await service.deps.database.pool.query(
      `update people set unconfirmed_since = now(), unconfirmed_by = gen_random_uuid(),
         oidc_subject = id where id = $1`,
      [id],
    );
    const confirm = ['operators', 'confirm', email];
    assert.notEqual((await tranche.json(...confirm)).unconfirmed_since, null);
    await tranche.refused(1, /changed in the meantime/, ...confirm, '--role', 'refunds');
    const confirmed = await tranche.json(...confirm, '--role', 'support');
    assert.equal(confirmed.unconfirmed_since, null);
  });

  test('refuses unknown roles, merchants and addresses', async () => {
    const invite = ['operators', 'invite'];
    await tranche.refused(2, /--role is missing/, ...invite, 'a@example.com');
    await tranche.refused(1, /no role "boss"/, ...invite, 'a@example.com', '--role', 'boss');
    await tranche.refused(1, /not an e-mail address/, ...invite, 'nomsa', '--role', 'viewer');
    const accept = (email: string) =>
      invitePerson(service.deps, 'test', { email, roles: ['viewer'], merchant_ids: null });
    const wrong = ['a@x', 'a b@x.com', 'a@x..com', 'a@b@x.com', 'a"b@x.com', 'a@x.com;id'];
    for (const email of [...wrong, 'a;id@x.com', '$(id)@x.com', '`id`@x.com', 'a|id@x.com']) {
      await assert.rejects(accept(email), /is not an e-mail address/, email);
    }
    for (const email of [
      "o'brien+ops@mail.example.com",
      'zoë_m@bücher.example',
      'नमस@उदाहरण.भारत',
    ]) {
      assert.equal((await accept(email)).person.email, email);
    }
    const scoped = [...invite, 'a@example.com', '--role', 'viewer', '--merchant'];
    await tranche.refused(1, /There is no merchant/, ...scoped, unknownId);
    await tranche.refused(2, /must be an ID/, ...scoped, 'beans');
    await tranche.refused(1, /There is no person/, 'operators', 'revoke', 'b@example.com');
  });

  test('prints a command for the next page that a shell reads as it is meant', async () => {
    // An invitation refuses such an address, but a row may hold any.
    const email = `0;$(echo a)\`echo b\`|'"&*@example.com`;
    await addPerson(service, { roles: ['viewer'], email });
    const { stdout } = await tranche.run('operators', 'list', '--limit', '1');
    const line = stdout.split('More:\n  ')[1] ?? '';
    const script = `tranche() { printf '%s\\n' "$@"; }; ${line}`;
    const words = execFileSync('sh', ['-c', script], { encoding: 'utf8' }).trimEnd().split('\n');
    const cursor = words.pop() ?? '';
    assert.deepEqual(words, ['operators', 'list', '--limit', '1', '--after']);
    const { data } = await tranche.json(...words, cursor);
    assert.ok(data.length === 1 && data[0].email > email);
  });
});

describe('tranche console sign-in', () => {
  test('prints a link that signs in once as the demo administrator, who re-authenticates by a click', async () => {
    const { url } = await tranche.json('console', 'sign-in');
    assert.match(url, /^http:\/\/localhost:3003\/sign-in#[\w-]{43}$/);
    const token = tokenOf(url);
    const answer = await post('/api/sign-in/link', { token });
    assert.equal(answer.status, 200);
    assert.equal((await post('/api/sign-in/link', { token })).status, 404);
    const cookie = cookieOf(answer);
    const console = { app, deps: service.deps };
    const { body } = await ask(console, { cookie }, 'GET', '/api/session');
    assert.equal(body.person.email, 'admin@sandbox.example');
    assert.deepEqual([body.scope, body.session.method], ['all', 'sandbox_link']);
    assert.equal((await ask(console, { cookie }, 'POST', '/api/proof/sandbox')).status, 200);
  });

  test('does not take an invitation for a sign-in link, nor the other way round', async () => {
    const { url } = await tranche.json('console', 'sign-in');
    const args = ['operators', 'invite', 'c@example.com', '--role', 'viewer'];
    const invitation = await tranche.json(...args);
    const crossed = [
      await post('/api/sign-in/link', { token: tokenOf(invitation.url) }),
      await post('/api/invitation', { token: tokenOf(url) }),
    ];
    assert.deepEqual(
      crossed.map(({ status }) => status),
      [404, 404],
    );
  });

  test('is refused where the console is on another machine, by the command and by the console', async () => {
    const { url } = await tranche.json('console', 'sign-in');
    const env = { DATABASE_URL: service.databaseUrl, CONSOLE_URL: 'https://console.example' };
    await commandLine(env).refused(1, /Only a sandbox on this machine/, 'console', 'sign-in');
    const remote = await startService({ databaseUrl: service.databaseUrl, env });
    const remoteApp = await openConsole(remote);
    try {
      const console = { app: remoteApp, deps: remote.deps };
      const body = { token: tokenOf(url) };
      const answer = await ask(console, null, 'POST', '/api/sign-in/link', { body });
      assert.equal(answer.status, 404);
    } finally {
      await remoteApp.close();
      await remote.close();
    }
  });
});

describe('settings of the console', () => {
  const problemsOf = (env: NodeJS.ProcessEnv): string => {
    try {
      readConfig(env);
      return '';
    } catch (error) {
      assert.ok(error instanceof BadSettings);
      return error.problems.join('\n');
    }
  };

  test('production has no sign-in links, even on loopback', () => {
    const { console } = readConfig(productionSettings);
    assert.deepEqual([console.allowsSignInLinks, console.url], [false, 'http://localhost:3003']);
  });

  test('the console listens on loopback only, whatever address the API listens on', async () => {
    for (const env of [{}, productionSettings]) {
      assert.equal(readConfig(env).console.host, 'localhost');
    }
    const lines: string[] = [];
    const log = pino({}, { write: (line: string) => void lines.push(line) });
    const config = testConfig(service.databaseUrl, { HOST: '0.0.0.0', PORT: '0' });
    const running = await startProcess(config, 'web', log);
    try {
      const addresses = lines.flatMap((line) => {
        const { msg, address, port } = JSON.parse(line);
        const [, first] = /^Server listening at http:\/\/(.+)$/.exec(msg) ?? [];
        const [, host, number] = /^(.+):(\d+)$/.exec(first ?? `${address}:${port}`) ?? [];
        return host && number ? [{ host, port: number }] : [];
      });
      // Only the consoles have this route.
      const isConsole = async (port: string) =>
        (await (await fetch(`http://localhost:${port}/api/session`)).text()).includes('signed_out');
      const ports = [...new Set(addresses.map(({ port }) => port))];
      const answers = await Promise.all(ports.map(isConsole));
      // The staff's console and the merchants' console answer.
      assert.deepEqual(answers.toSorted(), [false, true, true]);
      const ofConsoles = addresses.filter(({ port }) => answers[ports.indexOf(port)]);
      for (const { host } of ofConsoles) assert.match(host, /^(127[.]0[.]0[.]1|\[?::1\]?)$/);
    } finally {
      await running.stop(0);
    }
  });

  test('with a certificate every server on a network speaks TLS and nothing else', async () => {
    const authority = createAuthority();
    const { cert, key } = authority.certify(['localhost', '127.0.0.1']);
    const ca = authority.cert;
    const lines: string[] = [];
    const log = pino({}, { write: (line: string) => void lines.push(line) });
    const hosts = { HOST: '0.0.0.0', METRICS_HOST: '0.0.0.0', MERCHANT_CONSOLE_HOST: '0.0.0.0' };
    const ports = { PORT: '0', METRICS_PORT: '0' };
    const env = { ...hosts, ...ports, TLS_CERTIFICATE: cert, TLS_KEY: key };
    const config = testConfig(service.databaseUrl, env);
    const metrics = await serveMetrics(config, async () => 'a_metric 1');
    const running = await startProcess(config, 'web', log);
    try {
      const addresses = [...lines.map((line) => JSON.parse(line).msg), `at ${metrics.url}`];
      const portsOf = (start: string) =>
        new Set(
          addresses.flatMap((text) => new RegExp(`at ${start}.+:(\\d+)`).exec(text)?.[1] ?? []),
        );
      // These are the API, the merchants' console and the metrics. The staff's console stays on
      // this machine.
      const secure = portsOf('https:');
      assert.equal(secure.size, 3);
      assert.equal(portsOf('http:').size, 1);
      for (const port of secure) {
        const url = `https://localhost:${port}/`;
        const [response] = await once(https.get(url, { ca, agent: false }), 'response');
        response.resume();
        assert.equal((response.socket as TLSSocket).authorized, true, url);
        const plain = http.get(url.replace('https', 'http'), { agent: false });
        await assert.rejects(once(plain, 'response'), /hang up|ECONNRESET/, url);
      }
    } finally {
      await running.stop(0);
      await metrics.close();
    }
  });

  test('unsafe addresses are refused', () => {
    const console = (CONSOLE_URL: string) => problemsOf({ ...productionSettings, CONSOLE_URL });
    assert.equal(console('https://console.example'), '');
    assert.match(console('http://console.example'), /must be https/);
    assert.match(console('https://10.0.0.1'), /must have a name/);
    assert.match(console('https://pay.example'), /must differ from BASE_URL/);
    assert.match(console('https://pay.example:8443'), /must have a host name that differs/);
    assert.match(console('https://console.example/ops'), /must not have a path/);
    for (const CONSOLE_HOST of ['0.0.0.0', '0', '::', '[::]', '0:0:0:0:0:0:0:0']) {
      assert.match(
        problemsOf({ ...productionSettings, CONSOLE_HOST }),
        /add console-everywhere to ACCEPT_INSECURE/,
        CONSOLE_HOST,
      );
    }
    assert.match(problemsOf({ CONSOLE_OIDC_ISSUER: 'https://id.example' }), /belong together/);
    const oidc = { CONSOLE_OIDC_CLIENT_ID: 'a', CONSOLE_OIDC_CLIENT_SECRET: 'b' };
    assert.match(
      problemsOf({ ...oidc, CONSOLE_OIDC_ISSUER: 'http://id.example' }),
      /must be an https address/,
    );
  });

  test('over https the cookie is a __Host- cookie, and only that one counts', async () => {
    const secure = await startService({
      databaseUrl: service.databaseUrl,
      env: { CONSOLE_URL: 'https://console.example' },
    });
    const secureApp = await openConsole(secure);
    try {
      const { cookie } = await addPerson(secure, { roles: ['viewer'] });
      assert.match(cookie, /^__Host-tranche-console=/);
      const console = { app: secureApp, deps: secure.deps };
      const get = (named: string) => ask(console, { cookie: named }, 'GET', '/api/session');
      const answer = await get(cookie);
      assert.equal(answer.status, 200);
      const year = 'max-age=31536000; includeSubDomains';
      assert.equal(answer.headers['strict-transport-security'], year);
      const plain = cookie.replace('__Host-tranche-console', 'tranche-console-443');
      assert.equal((await get(plain)).status, 401);
    } finally {
      await secureApp.close();
      await secure.close();
    }
  });
});
