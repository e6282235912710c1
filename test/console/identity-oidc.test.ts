import assert from 'node:assert/strict';
import { generateKeyPairSync, sign } from 'node:crypto';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { type JWK, Provider } from 'oidc-provider';
import { invitePerson } from '#operating/people/invite-person.ts';
import { revokePerson } from '#operating/people/manage-people.ts';
import { beginOidc, explainWeakSignIn } from '#operating/people/oidc.ts';
import { createAuthenticator } from '../support/authenticator.ts';
import { addPerson, ask, openConsole } from '../support/console.ts';
import { type Answer, createAccount, type Service, startService } from '../support/service.ts';

// Tests signing in through a real provider on this machine, with its own login and consent pages.

const client = { id: 'tranche-console', secret: 'a-secret-of-the-tests' };
/** The accounts at the provider, by subject. */
const accounts: Record<string, { email: string; email_verified: boolean }> = {};

let issuer: string;
let provider: Server;
/** Changes the ID token in the provider's answer, as a man in the middle could. */
let forgeToken: ((token: string) => string) | null = null;
let service: Service;
let app: FastifyInstance;
before(async () => {
  provider = createServer();
  // A pause of this process must not end a connection that is about to be used again.
  provider.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => provider.listen(0, 'localhost', resolve));
  issuer = `http://localhost:${(provider.address() as AddressInfo).port}`;
  const oidc = new Provider(issuer, {
    clients: [
      {
        client_id: client.id,
        client_secret: client.secret,
        redirect_uris: ['http://localhost:3003/api/sign-in/oidc/callback'],
        token_endpoint_auth_method: 'client_secret_post',
      },
    ],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    cookies: { keys: ['a key of the tests'] },
    jwks: { keys: [signingKey.export({ format: 'jwk' }) as JWK] },
    findAccount: (_context, sub) => ({
      accountId: sub,
      claims: async () => ({ sub, ...accounts[sub] }),
    }),
  });
  const answerRequest = oidc.callback();
  provider.on('request', (request, response) => {
    if (request.url === '/token' && forgeToken !== null) changeAnswer(response, forgeToken);
    answerRequest(request, response);
  });
  service = await startService({
    env: {
      CONSOLE_OIDC_ISSUER: issuer,
      CONSOLE_OIDC_CLIENT_ID: client.id,
      CONSOLE_OIDC_CLIENT_SECRET: client.secret,
    },
  });
  app = await openConsole(service);
});
after(async () => {
  await app.close();
  await service.close();
  provider.closeAllConnections();
  await new Promise((resolve) => provider.close(resolve));
});

function changeAnswer(response: ServerResponse, forge: (token: string) => string): void {
  const end = response.end.bind(response);
  response.end = ((body: unknown, ...rest: never[]) => {
    const { id_token } = JSON.parse(String(body));
    const changed = String(body).replace(id_token, forge(id_token));
    response.setHeader('content-length', Buffer.byteLength(changed));
    return end(changed, ...rest);
  }) as typeof response.end;
}

/** The key that the provider signs with, so that a test can sign other claims. */
const signingKey = generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey;

function signAgain(token: string, change: object): string {
  const [head, claims = ''] = token.split('.');
  const changed = { ...JSON.parse(Buffer.from(claims, 'base64url').toString()), ...change };
  const signed = `${head}.${Buffer.from(JSON.stringify(changed)).toString('base64url')}`;
  const signature = sign('sha256', Buffer.from(signed), signingKey);
  return `${signed}.${signature.toString('base64url')}`;
}

const console = () => ({ app, deps: service.deps });
/** Each sign-in comes from another network, since sign-ins are counted by network. */
let network = 0;
const get = (url: string, cookie = '') =>
  ask(console(), { cookie }, 'GET', url, { remoteAddress: `10.0.${network}.1` });
const post = (url: string, cookie = '', body?: object) =>
  ask(console(), { cookie }, 'POST', url, body && { body });
const cookiesOf = (answer: Answer): string[] =>
  [answer.headers['set-cookie'] ?? []].flat() as never;
const cookieOf = (answer: Answer, name: RegExp) =>
  cookiesOf(answer)
    .find((one) => name.test(one))
    ?.split(';')[0] ?? '';
const session = /^tranche-console-3003=/;
const state = /^tranche-console-3003-oidc=/;

/** Goes to the issuer and signs in there. Returns the address that it sends the browser back to. */
async function visitIssuer(url: string, subject: string): Promise<string> {
  const jar = new Map<string, string>();
  let next = url;
  for (let hops = 0; hops < 12; hops++) {
    if (next.startsWith(service.deps.console.url))
      return next.slice(service.deps.console.url.length);
    const page = await send(next);
    const location = page.headers.get('location');
    if (location !== null) {
      next = new URL(location, next).href;
      continue;
    }
    const html = await page.text();
    const isLogin = html.includes('value="login"');
    const form = isLogin
      ? { prompt: 'login', login: subject, password: 'x' }
      : { prompt: 'consent' };
    const answered = await send(next, new URLSearchParams(form));
    next = new URL(answered.headers.get('location') ?? '', next).href;
  }
  throw new Error('the issuer did not send the browser back');

  async function send(address: string, body?: URLSearchParams): Promise<Response> {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const method = body ? 'POST' : 'GET';
    const init: RequestInit = { method, redirect: 'manual', headers: { cookie } };
    const response = await fetch(address, body ? { ...init, body } : init);
    for (const line of response.headers.getSetCookie()) {
      const [name = '', ...value] = (line.split(';')[0] ?? '').split('=');
      jar.set(name, value.join('='));
    }
    return response;
  }
}

async function signIn(subject: string) {
  network += 1;
  const begun = await get('/api/sign-in/oidc');
  assert.equal(begun.status, 303);
  const stateCookie = cookieOf(begun, state);
  const callback = await visitIssuer(String(begun.headers.location), subject);
  return { callback, stateCookie, answer: await get(callback, stateCookie) };
}

async function invite(subject: string, options: { verified?: boolean; email?: string } = {}) {
  const email = options.email ?? `${subject}@example.com`;
  accounts[subject] = { email, email_verified: options.verified ?? true };
  const wanted = { email, roles: ['support'], merchant_ids: null };
  return await invitePerson(service.deps, 'test', wanted);
}

async function addPasskey(cookie: string, authenticator: ReturnType<typeof createAuthenticator>) {
  const { options } = (await post('/api/passkeys/options', cookie)).body;
  const response = authenticator.create(options, { origin: service.deps.console.url });
  const answer = await post('/api/passkeys', cookie, { name: 'Laptop', response });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
}

const isRefused = ({ status, headers }: Answer) => {
  assert.deepEqual([status, headers.location], [303, '/sign-in?refused=oidc']);
  assert.ok(!cookiesOf({ headers } as Answer).some((one) => session.test(one)));
};

describe('a sign-in through an issuer', () => {
  test('opens a session with the roles that we gave, and does not count as re-authentication', async () => {
    const { person } = await invite('nomsa');
    assert.equal((await get('/api/sign-in')).body.oidc, true);
    const { answer } = await signIn('nomsa');
    assert.deepEqual([answer.status, answer.headers.location], [303, '/']);
    const { body } = await get('/api/session', cookieOf(answer, session));
    assert.deepEqual(body.person.roles, ['support']);
    assert.deepEqual([body.person.id, body.session.method], [person.id, 'oidc']);
    assert.equal(body.proof_until, null);
  });

  test('is tied to the subject: a new address there changes nothing, another subject is refused', async () => {
    const { person } = await invite('thabo');
    await signIn('thabo');
    accounts.thabo = { email: 'renamed@example.com', email_verified: true };
    const { answer } = await signIn('thabo');
    const { body } = await get('/api/session', cookieOf(answer, session));
    assert.equal(body.person.id, person.id);
    accounts.imposter = { email: 'thabo@example.com', email_verified: true };
    isRefused((await signIn('imposter')).answer);
  });

  test('accepts the invitation from another merchant, and not for an earlier holder of the address', async () => {
    const [one, other] = [await createAccount(service), await createAccount(service)];
    const by = (merchant_id: string) =>
      addPerson(service, { roles: ['merchant-admin'], merchant_ids: [merchant_id] });
    const email = 'lindiwe@example.com';
    accounts.lindiwe = { email, email_verified: true };
    const first = { email, roles: ['till'], merchant_ids: [one.merchant.id] };
    await invitePerson(service.deps, 'test', first);
    const scopeOf = async ({ answer }: { answer: Answer }) =>
      (await get('/api/session', cookieOf(answer, session))).body.scope;
    assert.deepEqual(await scopeOf(await signIn('lindiwe')), [one.merchant.id]);
    await revokePerson(service.deps, 'test', { email });
    isRefused((await signIn('lindiwe')).answer);
    const wanted = { email, roles: ['till'], merchant_ids: [other.merchant.id] };
    const admin = await by(other.merchant.id);
    assert.equal((await post('/api/people', admin.cookie, wanted)).status, 200);
    // The issuer gave the address to another account.
    accounts.lindiwe = { email: 'gone@example.com', email_verified: true };
    accounts.heir = { email, email_verified: true };
    isRefused((await signIn('lindiwe')).answer);
    assert.deepEqual(await scopeOf(await signIn('heir')), [other.merchant.id]);
    isRefused((await signIn('lindiwe')).answer);
  });

  test('accepts no invitation from a merchant in place of the access that a person has', async () => {
    const { merchant } = await createAccount(service);
    const merchant_ids = [merchant.id];
    const by = await addPerson(service, { roles: ['merchant-admin'], merchant_ids });
    const elsewhere = (await createAccount(service)).merchant.id;
    const inviteHere = (email: string) =>
      post('/api/people', by.cookie, { email, roles: ['till'], merchant_ids });
    // The credentials of this person were revoked, and the new link was not used in time.
    const email = 'reopened@example.com';
    accounts.reopened = { email, email_verified: true };
    const wanted = { email, roles: ['till'], merchant_ids: [elsewhere] };
    const { person } = await invitePerson(service.deps, 'test', wanted);
    assert.equal((await signIn('reopened')).answer.headers.location, '/');
    await invitePerson(service.deps, 'test', wanted);
    await service.deps.database.pool.query(
      "update person_links set expires_at = now() - interval '1 hour' where person_id = $1",
      [person.id],
    );
    assert.equal((await inviteHere(email)).status, 200);
    isRefused((await signIn('reopened')).answer);
    // A new colleague of the service's staff begins with the access that the staff gave.
    await invite('recruit');
    assert.equal((await inviteHere('recruit@example.com')).status, 200);
    const scopeOf = async ({ answer }: { answer: Answer }) =>
      (await get('/api/session', cookieOf(answer, session))).body.scope;
    assert.equal(await scopeOf(await signIn('recruit')), 'all');
    // The invitation for one of the staff stays without effect, even after they leave.
    const staff = await invite('leaving');
    assert.equal(await scopeOf(await signIn('leaving')), 'all');
    assert.equal((await inviteHere('leaving@example.com')).status, 200);
    await revokePerson(service.deps, 'test', { id: staff.person.id });
    isRefused((await signIn('leaving')).answer);
    assert.equal((await inviteHere('leaving@example.com')).status, 200);
    assert.deepEqual(await scopeOf(await signIn('leaving')), merchant_ids);
  });

  test('is tied anew after another invitation, and the old subject no longer signs in', async () => {
    const { person } = await invite('zanele');
    assert.equal((await signIn('zanele')).answer.headers.location, '/');
    const email = 'zanele@example.com';
    await revokePerson(service.deps, 'test', { email });
    // The address passes to a new colleague, with another account at the issuer.
    accounts.zanele = { email: 'former@example.com', email_verified: true };
    await invite('zanele-2', { email });
    isRefused((await signIn('zanele')).answer);
    const { answer } = await signIn('zanele-2');
    const { body } = await get('/api/session', cookieOf(answer, session));
    assert.equal(body.person.id, person.id);
    isRefused((await signIn('zanele')).answer);
  });

  test('after an invitation for a colleague leaves the earlier holder no way to act', async () => {
    const email = 'desk@example.com';
    const { person } = await invite('former', { email });
    const former = cookieOf((await signIn('former')).answer, session);
    const authenticator = createAuthenticator();
    await addPasskey(former, authenticator);
    const byPasskey = async () => {
      const { options } = (await post('/api/sign-in/options')).body;
      const response = authenticator.get(options, { origin: service.deps.console.url });
      return await post('/api/sign-in', '', { response });
    };
    assert.equal((await byPasskey()).status, 200);

    accounts.former = { email: 'former@example.com', email_verified: true };
    accounts.successor = { email, email_verified: true };
    const wanted = { email, roles: ['admin'], merchant_ids: null };
    const { url } = await invitePerson(service.deps, 'test', wanted);
    assert.equal((await get('/api/session', former)).status, 401);
    assert.equal((await byPasskey()).status, 403);
    isRefused((await signIn('former')).answer);

    const successor = cookieOf((await signIn('successor')).answer, session);
    const { body } = await get('/api/session', successor);
    assert.deepEqual([body.person.id, body.person.roles], [person.id, ['admin']]);
    assert.equal((await get('/api/session', former)).status, 401);
    const token = new URL(url).hash.slice(1);
    assert.equal((await post('/api/invitation', '', { token })).body.error.code, 'link_ended');
  });

  test('is tied to no account once the invitation was accepted by passkey or has ended', async () => {
    const { url } = await invite('palesa');
    const token = new URL(url).hash.slice(1);
    const { options } = (await post('/api/invitation/options', '', { token })).body;
    const here = { origin: service.deps.console.url };
    const response = createAuthenticator().create(options, here);
    const registered = await post('/api/invitation/register', '', { token, response });
    assert.equal(registered.status, 200);
    isRefused((await signIn('palesa')).answer);
    const cookie = cookieOf(registered, session);
    assert.equal((await get('/api/passkeys', cookie)).body.data.length, 1);

    await invite('late');
    const ended =
      "update person_links set expires_at = now() - interval '1 hour' where used_at is null";
    await service.deps.database.pool.query(ended);
    isRefused((await signIn('late')).answer);
  });

  test('is tied from a session with a recent re-authentication to an account with the same address alone', async () => {
    const { url } = await invite('boitumelo');
    const token = new URL(url).hash.slice(1);
    const { options } = (await post('/api/invitation/options', '', { token })).body;
    const here = { origin: service.deps.console.url };
    const response = createAuthenticator().create(options, here);
    const registered = await post('/api/invitation/register', '', { token, response });
    const cookie = cookieOf(registered, session);
    const tie = async (subject: string) => {
      network += 1;
      const begun = await post('/api/issuer/tie', cookie);
      const callback = await visitIssuer(begun.body.url, subject);
      return await get(callback, cookieOf(begun, state));
    };
    const isTied = async () => (await get('/api/passkeys', cookie)).body.issuer.is_tied;
    accounts.other = { email: 'other@example.com', email_verified: true };
    assert.equal((await tie('other')).headers.location, '/me?refused=issuer');
    assert.equal(await isTied(), false);
    isRefused((await signIn('boitumelo')).answer);
    const tied = await tie('boitumelo');
    assert.deepEqual([tied.headers.location, await isTied()], ['/me', true]);
    assert.ok(!cookiesOf(tied).some((one) => session.test(one)), 'it opens no session');
    assert.equal((await signIn('boitumelo')).answer.headers.location, '/');
    const { rows } = await service.deps.database.pool.query(
      "select from person_mails m join people p on p.id = m.person_id where kind = 'issuer_tied' and email = 'boitumelo@example.com'",
    );
    assert.equal(rows.length, 1);
    const alerts = await service.deps.database.pool.query(
      "select detail from alerts where caused_by = 'boitumelo@example.com'",
    );
    assert.equal(alerts.rows.length, 1);
    assert.match(alerts.rows[0].detail, /linked an account at http.* from the address /);
    // A session that ended while its person was at the issuer's page links nothing.
    const begun = await post('/api/issuer/tie', cookie);
    await ask(console(), { cookie }, 'DELETE', '/api/session');
    const late = await visitIssuer(begun.body.url, 'boitumelo');
    assert.equal((await get(late, cookieOf(begun, state))).headers.location, '/me?refused=issuer');
  });

  test('needs the acr and the amr that the settings ask for', async () => {
    const asked = { acr: ['gold', 'silver'], amr: ['mfa', 'hwk'] };
    const enough = { acr: 'silver', amr: ['hwk', 'mfa', 'pwd'] };
    assert.equal(explainWeakSignIn(asked, enough), null);
    assert.equal(explainWeakSignIn({ acr: [], amr: [] }, {}), null);
    const weak = [{}, { ...enough, acr: 'bronze' }, { ...enough, amr: ['mfa'] }];
    for (const claims of [...weak, { ...enough, amr: 'mfa hwk' }]) {
      assert.notEqual(explainWeakSignIn(asked, claims), null, JSON.stringify(claims));
    }
    await invite('weak');
    const { oidc } = service.deps.console;
    assert.ok(oidc);
    oidc.amr = ['mfa'];
    try {
      isRefused((await signIn('weak')).answer);
    } finally {
      oidc.amr = [];
    }
    assert.equal((await signIn('weak')).answer.headers.location, '/');
  });

  test('distinguishes addresses that Unicode folds to the same letters', async () => {
    await invite('karel');
    accounts.kelvin = { email: '\u212aarel@example.com', email_verified: true };
    isRefused((await signIn('kelvin')).answer);
    accounts.capital = { email: 'KAREL@example.com', email_verified: true };
    assert.equal((await signIn('capital')).answer.headers.location, '/');
  });

  test('is refused without an invitation, without a verified address, and after a revocation', async () => {
    accounts.stranger = { email: 'stranger@example.com', email_verified: true };
    isRefused((await signIn('stranger')).answer);
    await invite('unverified', { verified: false });
    isRefused((await signIn('unverified')).answer);
    await invite('leaver');
    assert.equal((await signIn('leaver')).answer.headers.location, '/');
    await revokePerson(service.deps, 'test', { email: 'leaver@example.com' });
    isRefused((await signIn('leaver')).answer);
  });

  test('ends the session that the browser had when it left for the issuer', async () => {
    await invite('again');
    const first = cookieOf((await signIn('again')).answer, session);
    network += 1;
    const begun = await get('/api/sign-in/oidc', first);
    const callback = await visitIssuer(String(begun.headers.location), 'again');
    assert.equal((await get('/api/session', first)).status, 200, 'until the person is back');
    // A browser does not send a cookie with `SameSite=Strict` when it comes from another site.
    const second = cookieOf(await get(callback, cookieOf(begun, state)), session);
    assert.equal((await get('/api/session', first)).status, 401);
    assert.equal((await get('/api/session', second)).status, 200);
  });

  test('counts once, and only in the browser that began it', async () => {
    await invite('sipho');
    const { callback, stateCookie } = await signIn('sipho');
    isRefused(await get(callback, stateCookie));
    const begun = await get('/api/sign-in/oidc');
    const answered = await visitIssuer(String(begun.headers.location), 'sipho');
    isRefused(await get(answered));
    const other = cookieOf(await get('/api/sign-in/oidc'), state);
    isRefused(await get(answered, other));
    assert.equal((await get(answered, cookieOf(begun, state))).headers.location, '/');
  });

  test('with a code of another sign-in, a made-up code, or an error of the issuer is refused', async () => {
    await invite('lerato');
    const first = await get('/api/sign-in/oidc');
    const second = await get('/api/sign-in/oidc');
    const foreign = await visitIssuer(String(first.headers.location), 'lerato');
    const code = new URLSearchParams(foreign.split('?')[1]).get('code') ?? '';
    const own = cookieOf(second, state);
    const value = own.split('=')[1];
    const at = '/api/sign-in/oidc/callback';
    const iss = encodeURIComponent(issuer);
    isRefused(await get(`${at}?code=${code}&state=${value}&iss=${iss}`, own));
    const third = cookieOf(await get('/api/sign-in/oidc'), state);
    isRefused(await get(`${at}?code=made-up&state=${third.split('=')[1]}&iss=${iss}`, third));
    const fourth = cookieOf(await get('/api/sign-in/oidc'), state);
    isRefused(
      await get(`${at}?error=access_denied&state=${fourth.split('=')[1]}&iss=${iss}`, fourth),
    );
  });

  test('with an ID token of another key, audience, issuer, nonce or time is refused', async () => {
    await invite('forger');
    const unsigned = Buffer.from(JSON.stringify({ alg: 'none' })).toString('base64url');
    const other = generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey;
    const forgeries: Record<string, (token: string) => string> = {
      'a wrong signature': (token) => {
        const signed = token.slice(0, token.lastIndexOf('.'));
        return `${signed}.${sign('sha256', Buffer.from(signed), other).toString('base64url')}`;
      },
      'no algorithm': (token) => `${unsigned}.${token.split('.')[1]}.`,
      'another audience': (token) => signAgain(token, { aud: 'another-client' }),
      'another issuer': (token) => signAgain(token, { iss: 'https://issuer.example' }),
      'another nonce': (token) => signAgain(token, { nonce: 'another' }),
      'an hour that is over': (token) => signAgain(token, { exp: 1_000_000_000 }),
    };
    for (const [name, forge] of Object.entries(forgeries)) {
      forgeToken = forge;
      try {
        isRefused((await signIn('forger')).answer);
      } catch (error) {
        throw new Error(name, { cause: error });
      } finally {
        forgeToken = null;
      }
    }
    // A token that the test signs unchanged is accepted, so the others were refused for their
    // claims.
    forgeToken = (token) => signAgain(token, {});
    const { answer } = await signIn('forger');
    forgeToken = null;
    assert.ok(cookieOf(answer, session));
  });

  test('is begun by the person, not by a link on another site', async () => {
    const begin = (site: string) =>
      ask(console(), null, 'GET', '/api/sign-in/oidc', { headers: { 'sec-fetch-site': site } });
    for (const site of ['cross-site', 'same-site']) {
      const answer = await begin(site);
      assert.deepEqual([answer.status, answer.headers.location], [303, '/sign-in']);
      assert.deepEqual(cookiesOf(answer), []);
    }
    for (const site of ['same-origin', 'none']) {
      assert.match(String((await begin(site)).headers.location), /\/auth\?/);
    }
  });

  test('needs metadata that names the issuer of the settings', async (t) => {
    const liar = createServer((_request, response) => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ issuer, authorization_endpoint: `${issuer}/auth` }));
    });
    await new Promise<void>((resolve) => liar.listen(0, 'localhost', resolve));
    t.after(() => liar.close());
    const { port } = liar.address() as AddressInfo;
    const settings = { clientId: client.id, clientSecret: client.secret, acr: [], amr: [] };
    const other = { ...settings, issuer: `http://localhost:${port}` };
    await assert.rejects(beginOidc(service.deps, other, { token: null }), /issuer/);
    assert.match(
      (await beginOidc(service.deps, { ...settings, issuer }, { token: null })).url,
      /\/auth\?/,
    );
  });

  test('lets a person add their first passkey, which then re-authenticates them', async () => {
    await invite('ayanda');
    const cookie = cookieOf((await signIn('ayanda')).answer, session);
    assert.equal((await post('/api/proof/options', cookie)).status, 409);
    const authenticator = createAuthenticator();
    await addPasskey(cookie, authenticator);
    const offered = (await post('/api/proof/options', cookie)).body.options;
    const proof = authenticator.get(offered, { origin: service.deps.console.url });
    assert.equal((await post('/api/proof', cookie, { response: proof })).status, 200);
  });

  test('stores nothing of the exchange in clear', async () => {
    const begun = await get('/api/sign-in/oidc');
    const value = cookieOf(begun, state).split('=')[1] ?? '';
    const url = new URL(String(begun.headers.location));
    const { rows } = await service.deps.database.pool.query(
      'select c::text as text from console_challenges c',
    );
    const stored = rows.map(({ text }) => text).join('\n');
    assert.ok(rows.length > 0);
    for (const secret of [value, url.searchParams.get('nonce') ?? '']) {
      assert.ok(secret.length > 20 && !stored.includes(secret));
    }
  });
});
