import assert from 'node:assert/strict';
import http, { type Server } from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { invitePerson } from '#operating/people/invite-person.ts';
import { createSignInLink } from '#operating/people/sandbox-link.ts';
import { connectBrowser, noBrowser } from '../support/browser.ts';
import { selfSigned } from '../support/certificates.ts';
import { openConsole } from '../support/console.ts';
import { type Service, startService } from '../support/service.ts';
import { until } from '../support/until.ts';

// Shows what only a browser can show: which cookies it accepts and sends, what it frames, and what
// its authenticator signs for which site.

const portOf = (server: Server) => (server.address() as AddressInfo).port;
const listening = (server: Server) =>
  new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));

describe('the console against other sites, in a browser', { skip: noBrowser }, () => {
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let service: Service;
  let app: FastifyInstance;
  /** Another site: any page that a test gives it. */
  let elsewhere: Server;
  let html = '';
  const console = () => service.deps.console.url;

  before(async () => {
    service = await startService();
    app = await openConsole(service);
    await app.listen({ host: 'localhost', port: 0 });
    service.deps.console.url = `http://localhost:${portOf(app.server)}`;
    elsewhere = http.createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end(html);
    });
    await listening(elsewhere);
    browser = await connectBrowser();
    context = await browser.newContext({ ignoreHTTPSErrors: true });
    page = await context.newPage();
  });
  // The first page of a profile takes much longer than the next ones, so all tests share one.
  beforeEach(async () => {
    for (const other of context.pages()) if (other !== page) await other.close();
    await page.goto('about:blank');
    await context.clearCookies();
  });
  after(async () => {
    await browser?.close();
    elsewhere?.closeAllConnections();
    elsewhere?.close();
    await app?.close();
    await service?.close();
  });

  const tokenOf = (url: string) => new URL(url).hash.slice(1);

  /** Opens the console in a browser that gets a session of the demo administrator. */
  async function signIn(): Promise<void> {
    await page.goto(`${console()}/sign-in`);
    const link = await createSignInLink(service.deps, 'test');
    const answered = await call('POST', '/api/sign-in/link', { token: tokenOf(link) });
    assert.equal(answered.status, 200);
  }

  // biome-ignore lint/suspicious/noExplicitAny: assertions read the answer.
  async function call(method: string, path: string, body?: object): Promise<any> {
    return await page.evaluate(
      async ([verb, url, text]) => {
        const headers = { 'content-type': 'application/json' };
        const answer = await fetch(url, { method: verb, ...(text && { headers, body: text }) });
        return { status: answer.status, body: await answer.json() };
      },
      [method, path, body ? JSON.stringify(body) : ''] as [string, string, string],
    );
  }

  const peopleCount = async () =>
    (await service.deps.database.pool.query('select count(*)::int as n from people')).rows[0].n;

  test('a page on this host and another port sends the cookie along and changes nothing', async () => {
    await signIn();
    const before = await peopleCount();
    const victim = JSON.stringify({ email: 'x@example.com', roles: ['admin'], merchant_ids: null });
    const url = `${console()}/api/people`;
    const refused: { status: number; hasCookie: boolean }[] = [];
    app.server.on('request', ({ method, url: path, headers }, response) => {
      if (method !== 'POST' || path !== '/api/people') return;
      const hasCookie = headers.cookie !== undefined;
      response.on('finish', () => refused.push({ status: response.statusCode, hasCookie }));
    });
    html = `<form method="post" enctype="text/plain" action="${url}" target="frame">
      <input name='${victim.slice(0, -1)},"a":"' value='"}'></form><iframe name="frame"></iframe>
      <script>
        document.forms[0].submit();
        fetch('${url}', { method: 'POST', credentials: 'include', mode: 'no-cors', body: '${victim}' });
      </script>`;
    const evil = await context.newPage();
    await evil.goto(`http://localhost:${portOf(elsewhere)}`);
    await until('both to be refused', () => refused.length >= 2);
    for (const { status } of refused) assert.equal(status, 403);
    assert.ok(
      refused.some(({ hasCookie }) => hasCookie),
      'the browser takes another port for the same site, so only the origin stops this',
    );
    assert.equal(await peopleCount(), before);
    const still = await call('GET', '/api/session');
    assert.equal(still.status, 200);
  });

  test('a page of another site sends no cookie, reads no answer and frames no page', async () => {
    await signIn();
    html = `<iframe src="${console()}/sign-in"></iframe><script>
      fetch('${console()}/api/session', { credentials: 'include' })
        .then((answer) => answer.text(), () => 'blocked').then((text) => { window.read = text; });
    </script>`;
    const evil = await context.newPage();
    let cookie: string | undefined;
    evil.on('request', async (request) => {
      if (request.url().endsWith('/api/session')) cookie = (await request.allHeaders()).cookie;
    });
    await evil.route('http://evil.example/**', (route) =>
      route.fulfill({ contentType: 'text/html', body: html }),
    );
    await evil.goto('http://evil.example/');
    const read = await evil.waitForFunction('window.read');
    assert.equal(await read.jsonValue(), 'blocked');
    assert.equal(cookie, undefined);
    const frame = evil.frames().find((one) => one !== evil.mainFrame());
    assert.equal(await frame?.locator('#root').count(), 0);
  });

  test('an authenticator that signs for a page on another port does not sign in here', async () => {
    const devtools = await context.newCDPSession(page);
    await devtools.send('WebAuthn.enable');
    await devtools.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    });
    await page.goto(`${console()}/sign-in`);
    const wanted = { email: 'nomsa@example.com', roles: ['viewer'], merchant_ids: null };
    const token = tokenOf((await invitePerson(service.deps, 'test', wanted)).url);
    const { options } = (await call('POST', '/api/invitation/options', { token })).body;
    const create = (json: object) =>
      page.evaluate(`navigator.credentials.create({ publicKey:
        PublicKeyCredential.parseCreationOptionsFromJSON(${JSON.stringify(json)}) })
        .then((credential) => credential.toJSON())`);
    const sign = (json: object) =>
      page.evaluate(`navigator.credentials.get({ publicKey:
        PublicKeyCredential.parseRequestOptionsFromJSON(${JSON.stringify(json)}) })
        .then((credential) => credential.toJSON())`);
    const registered = { token, name: 'Nomsa', response: await create(options) };
    assert.equal((await call('POST', '/api/invitation/register', registered)).status, 200);

    const offer = async () => (await call('POST', '/api/sign-in/options')).body.options;
    const stolen = await offer();
    html = '<h1>Win a prize</h1>';
    await page.goto(`http://localhost:${portOf(elsewhere)}`);
    const phished = await sign(stolen);
    await page.goto(`${console()}/sign-in`);
    const refused = await call('POST', '/api/sign-in', { response: phished });
    assert.deepEqual([refused.status, refused.body.error.code], [403, 'not_recognised']);
    const response = await sign(await offer());
    assert.equal((await call('POST', '/api/sign-in', { response })).status, 200);
  });

  test('over https the browser keeps the __Host- cookie from scripts and other sites', async () => {
    const plain = console();
    const { cert, key } = selfSigned('localhost');
    const secure = https.createServer({ cert, key }, (request, response) => {
      const { method, url, headers } = request;
      const forwarded = http.request(`${plain}${url}`, { method, headers } as never, (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(response);
      });
      request.pipe(forwarded);
    });
    await listening(secure as never);
    service.deps.console.url = `https://localhost:${portOf(secure as never)}`;
    try {
      await signIn();
      const cookies = (await context.cookies()).map(
        ({ name, secure, httpOnly, sameSite, path }) => ({
          name,
          secure,
          httpOnly,
          sameSite,
          path,
        }),
      );
      const attributes = { secure: true, httpOnly: true, sameSite: 'Strict', path: '/' };
      const name = `__Host-tranche-console-${portOf(secure as never)}`;
      assert.deepEqual(cookies, [{ name, ...attributes }]);
      assert.equal((await call('GET', '/api/session')).status, 200);
      assert.equal(await page.evaluate('document.cookie'), '');
    } finally {
      service.deps.console.url = plain;
      secure.closeAllConnections();
      secure.close();
    }
  });
});
