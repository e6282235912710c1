import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { readConfig } from '#config.ts';
import { cookieName } from '#operating/console/cookie.ts';
import { atMerchants, buildConsole } from '#operating/console/server.ts';
import { newToken } from '#operating/people/console-session.ts';
import { invitePerson } from '#operating/people/invite-person.ts';
import { changeAccess } from '#operating/people/manage-people.ts';
import { findPerson } from '#operating/people/person.sql.ts';
import { sendPersonMails } from '#operating/people/send-person-mails.ts';
import { open } from '#operating/people/sign-in.ts';
import { NotRecognised } from '#operating/people/webauthn.ts';
import type { Mail } from '#purchases/messages/sending/mail.ts';
import { addPerson, ask, type ConsolePerson, openConsole, readPages } from '../support/console.ts';
import {
  type Account,
  createAccount,
  productionSettings,
  type Service,
  startService,
} from '../support/service.ts';

// The console at the merchants' origin, where staff cannot sign in.

const staffUrl = 'https://console.example';
const shopUrl = 'https://shops.example';

let service: Service;
let account: Account;
let staffApp: FastifyInstance;
let shopApp: FastifyInstance;
let shopDeps: Service['deps'];
before(async () => {
  service = await startService({
    env: { CONSOLE_URL: staffUrl, MERCHANT_CONSOLE_URL: shopUrl },
  });
  account = await createAccount(service);
  staffApp = await openConsole(service);
  shopDeps = atMerchants(service.deps, shopUrl) as Service['deps'];
  shopApp = buildConsole(shopDeps);
  await shopApp.ready();
});
after(async () => {
  await Promise.all([staffApp?.close(), shopApp?.close()]);
  await service?.close();
});

const staff = () => ({ app: staffApp, deps: service.deps });
const shop = () => ({ app: shopApp, deps: shopDeps });
const ofShop = () =>
  addPerson(service, { roles: ['merchant-admin'], merchant_ids: [account.merchant.id] });
type Sent = [method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: object];
const session = (console: ReturnType<typeof staff>, person: ConsolePerson) =>
  ask(console, person, 'GET', '/api/session');

test('a person of a merchant has their session there, and it says that the console is a shop’s', async () => {
  const answer = await session(shop(), await ofShop());
  assert.equal(answer.status, 200);
  assert.deepEqual(
    [answer.body.is_for_merchants, answer.body.scope],
    [true, [account.merchant.id]],
  );
});

test('a person of the staff gets no session there: no token, no passkey and no link of theirs opens it', async () => {
  const admin = await addPerson(service, { roles: ['admin'] });
  assert.equal((await session(staff(), admin)).body.is_for_merchants, false);
  assert.equal((await session(shop(), admin)).status, 401);
  const person = await findPerson(service.deps.database.db, admin.id);
  assert.ok(person);
  const browser = { address: '192.0.2.1', user_agent: 'a test', token: null };
  const opening = (deps: Service['deps']) =>
    open(deps, browser, person, 'passkey', 'console sign-in', async () => ({
      passkey_id: null,
      details: {},
    }));
  await assert.rejects(opening(shopDeps), NotRecognised);
  assert.ok((await opening(service.deps)).token);
  const invited = await invitePerson(service.deps, 'test', {
    ...{ email: 'staff@example.com', roles: ['admin'], merchant_ids: null },
  });
  assert.ok(invited.url.startsWith(`${staffUrl}/register#`));
  const body = { token: invited.url.split('#')[1] as string };
  for (const path of ['/api/invitation', '/api/invitation/options']) {
    assert.equal((await ask(shop(), null, 'POST', path, { body })).status, 404, path);
    assert.equal((await ask(staff(), null, 'POST', path, { body })).status, 200, path);
  }
});

test('a person who becomes one of the staff has no session left there', async () => {
  const person = await ofShop();
  await changeAccess(service.deps, 'test', person.id, { merchant_ids: null });
  assert.equal((await session(staff(), person)).status, 401);
});

test('its passkeys, cookies, policy and origin are its own, and it has no issuer and no sign-in links', async () => {
  const { body } = await ask(shop(), null, 'POST', '/api/sign-in/options');
  assert.equal(body.options.rpId, 'shops.example');
  assert.equal(cookieName(shopUrl), '__Host-tranche-console');
  // On this machine both consoles may have the same host, and cookies ignore the port.
  const names = ['https://localhost:4443', 'https://localhost:4444', 'https://localhost'];
  assert.equal(new Set([...names, 'http://localhost:4443'].map(cookieName)).size, 4);
  assert.ok(names.every((url) => cookieName(url).startsWith('__Host-')));
  const ways = await ask(shop(), null, 'GET', '/api/sign-in');
  assert.deepEqual(ways.body, { oidc: false, sandbox: false, is_for_merchants: true });
  const token = { token: newToken(service.deps.random) };
  const link = await ask(shop(), null, 'POST', '/api/sign-in/link', { body: token });
  assert.equal(link.status, 404);
  const headers = { origin: staffUrl };
  const foreign = await ask(shop(), await ofShop(), 'DELETE', '/api/session', { headers });
  assert.deepEqual([foreign.status, foreign.body.error.code], [403, 'foreign_origin']);
});

test('links and mails for merchants’ people lead to it, and those for the staff to the other console', async () => {
  const merchant_ids = [account.merchant.id];
  const wanted = { email: 'till@example.com', roles: ['till' as const], merchant_ids };
  const { url } = await invitePerson(service.deps, 'test', wanted);
  assert.ok(url.startsWith(`${shopUrl}/register#`), url);
  const path = '/api/invitation';
  const body = { token: url.split('#')[1] as string };
  assert.equal((await ask(shop(), null, 'POST', path, { body })).status, 200);
  const admin = await addPerson(service, { roles: ['admin'] });
  const invite = (email: string, access: object) =>
    ask(staff(), admin, 'POST', '/api/people', { body: { email, name: 'Thandi', ...access } });
  await invite('shop@example.com', { roles: ['support'], merchant_ids });
  await invite('office@example.com', { roles: ['support'], merchant_ids: null });
  const mails: Mail[] = [];
  const mail = {
    concurrencyMax: 1,
    async send(one: Mail) {
      mails.push(one);
      return { outcome: 'sent' as const, response: '250' };
    },
    async close() {},
  };
  while ((await sendPersonMails({ ...service.deps, mail })) > 0);
  const addressIn = (to: string) =>
    mails.find((one) => one.to === to)?.text.match(/https:\/\/[a-z]+[.]example\/register#/)?.[0];
  assert.equal(addressIn('shop@example.com'), `${shopUrl}/register#`);
  assert.equal(addressIn('office@example.com'), `${staffUrl}/register#`);
});

test('its administrator reads what its own people did, and nothing of other merchants or of the staff', async () => {
  const other = await createAccount(service);
  const own = account.merchant.id;
  const [admin, both] = await Promise.all([
    ofShop(),
    addPerson(service, { roles: ['merchant-admin'], merchant_ids: [own, other.merchant.id] }),
  ]);
  const staffAdmin = await addPerson(service, { roles: ['admin'] });
  const change = async (console: ReturnType<typeof staff>, person: ConsolePerson, id: string) => {
    const path = `/api/merchants/${id}`;
    const body = { short_name: `Shop ${person.id.slice(-4)}` };
    assert.equal((await ask(console, person, 'PATCH', path, { body })).status, 200);
  };
  await change(shop(), admin, own);
  await change(shop(), both, other.merchant.id);
  await change(shop(), both, own);
  await change(staff(), staffAdmin, own);
  const read = async (console: ReturnType<typeof staff>, person: ConsolePerson, query = '') => {
    const { status, body } = await ask(console, person, 'GET', `/api/audit${query}`);
    assert.equal(status, 200);
    type Row = { action: string } & Record<
      'operator' | 'subject_id' | 'number' | 'address',
      unknown
    >;
    return (body.data as Row[]).filter(({ action }) => action === 'merchants page');
  };
  const rows = await read(shop(), admin);
  assert.deepEqual(
    rows.map(({ operator, subject_id }) => [operator, subject_id]),
    [
      [both.email, own],
      [admin.email, own],
    ],
  );
  assert.ok(rows.every(({ number, address }) => number === null && address !== null));
  // A person of two merchants reads the actions of both, or of the one that they choose.
  assert.equal((await read(shop(), both)).length, 3);
  assert.equal((await read(shop(), both, `?merchant=${other.merchant.id}`)).length, 1);
  assert.equal((await read(shop(), admin, `?merchant=${other.merchant.id}`)).length, 0);
  assert.equal((await read(shop(), admin, `?person=${staffAdmin.id}`)).length, 0);
  assert.equal((await read(staff(), staffAdmin)).length, 4);
  const filtered = await read(staff(), staffAdmin, `?merchant=${own}`);
  assert.equal(filtered.length, 2);
  assert.ok(filtered.every(({ number }) => number !== null));
  const { body: one } = await ask(staff(), staffAdmin, 'GET', `/api/audit?person=${staffAdmin.id}`);
  const hidden = await ask(shop(), admin, 'GET', `/api/audit/${one.data[0].id}`);
  assert.equal(hidden.status, 404);
});

test('its administrator reads what a person of two merchants did for it, alone or with the other, and nothing of the other', async () => {
  const other = (await createAccount(service)).merchant.id;
  const own = account.merchant.id;
  const both = await addPerson(service, { roles: ['merchant-admin'], merchant_ids: [own, other] });
  const seller = await addPerson(service, { roles: ['till'], merchant_ids: [own] });
  const ofBoth = await addPerson(service, { roles: ['till'], merchant_ids: [own, other] });
  const send = async (...[method, path, body]: Sent) => {
    const { status, body: answer } = await ask(shop(), both, method, path, {
      ...(body && { body }),
    });
    assert.equal(status, 200, `${method} ${path}: ${JSON.stringify(answer)}`);
    return answer;
  };
  const { id: integration } = await send('POST', '/api/integrations', {
    ...{ merchant_id: own, refund_mode: 'manual' },
  });
  const invite = (email: string, merchant_ids: string[]): Sent => [
    ...(['POST', '/api/people', { email, roles: ['till'], merchant_ids }] as const),
  ];
  const limit = { endpoint: 'POST /api/checkouts', max_requests: 1, window_seconds: 1 };
  const forOne: [string[], ...Sent][] = [
    [['integrations limit'], 'POST', `/api/integrations/${integration}/limit`, limit],
    [['merchants bank statements'], 'POST', `/api/merchants/${own}/statements-to`, { email: null }],
    [['operators invite'], ...invite('till-of-one@example.com', [own])],
    [['operators change'], 'PATCH', `/api/people/${seller.id}`, { roles: ['merchant-admin'] }],
    [
      ['operators end session'],
      ...(['DELETE', `/api/people/${seller.id}/sessions/${seller.session_id}`] as const),
    ],
    [['operators revoke'], 'POST', `/api/people/${seller.id}/revoke`],
    [['files read', 'files sent'], 'GET', `/api/checkouts.csv?merchant=${own.toUpperCase()}`],
    [['callbacks retry many'], 'POST', '/api/callbacks/retry-all', { merchant: own }],
    [['lists read'], 'GET', `/api/people?merchant=${own}`],
  ];
  const aboutPeople: Sent[] = [
    invite('till-of-both@example.com', [own, other]),
    // A waiting invitation would reveal to one merchant that the person works for another one.
    invite(ofBoth.email, [own]),
    ['PATCH', `/api/people/${ofBoth.id}`, { merchant_ids: [own] }],
  ];
  const forBoth: [string[], ...Sent][] = [
    [['files read', 'files sent'], 'GET', '/api/checkouts.csv'],
    [['callbacks retry many'], 'POST', '/api/callbacks/retry-all', {}],
    [['lists read'], 'GET', '/api/people'],
  ];
  // A person who has read this many pages in an hour is reading in bulk, so the audit records each
  // further page.
  await readPages(shopDeps, both, 100);
  for (const [, ...sent] of forOne) await send(...sent);
  for (const sent of aboutPeople) await send(...sent);
  for (const [, ...sent] of forBoth) await send(...sent);
  const { rows } = await service.deps.database.pool.query(
    `select id from bulk_actions where actor ->> 'person_id' = $1 and finished_at is null
     order by created_at desc limit 1`,
    [both.id],
  );
  await send('POST', `/api/bulk-actions/${rows[0].id}/stop`);
  const read = async (merchant_id: string) => {
    const admin = await addPerson(service, {
      ...{ roles: ['merchant-admin' as const], merchant_ids: [merchant_id] },
    });
    const { body } = await ask(shop(), admin, 'GET', `/api/audit?person=${both.id}`);
    assert.ok(!JSON.stringify(body).includes(merchant_id === own ? other : own));
    return body.data.map(({ action }: { action: string }) => action).reverse();
  };
  const together = [...forBoth.flatMap(([actions]) => actions), 'bulk-actions stop'];
  assert.deepEqual(await read(own), [
    'integrations create',
    ...forOne.flatMap(([actions]) => actions),
    ...together,
  ]);
  assert.deepEqual(await read(other), together);
});

test('its address must be https, a name, and neither the shoppers’ host nor the staff’s', () => {
  const settings = { ...productionSettings, CONSOLE_URL: staffUrl };
  const read = (url?: string) =>
    readConfig({ ...settings, ...(url !== undefined && { MERCHANT_CONSOLE_URL: url }) });
  assert.equal(read().merchantConsole, null);
  assert.equal(read(`${shopUrl}/`).merchantConsole?.url, shopUrl);
  assert.equal(read(shopUrl).console.merchantUrl, shopUrl);
  const refusals: [string, RegExp][] = [
    ['http://shops.example', /MERCHANT_CONSOLE_URL must be https/],
    ['https://192.0.2.1', /MERCHANT_CONSOLE_URL must have a name/],
    ['https://shops.example/console', /MERCHANT_CONSOLE_URL must not have a path/],
    [staffUrl, /MERCHANT_CONSOLE_URL must differ from CONSOLE_URL/],
    ['https://console.example:8443', /differs from that of CONSOLE_URL/],
    ['https://pay.example:8443', /differs from that of BASE_URL/],
    ['shops', /MERCHANT_CONSOLE_URL must be an http or https address/],
  ];
  for (const [url, refusal] of refusals) assert.throws(() => read(url), refusal, url);
  const other = (url: string) =>
    readConfig({ ...settings, MERCHANT_CONSOLE_URL: shopUrl, OTHER_CONSOLE_URL: url }).console;
  assert.equal(other('https://sandbox.example/').otherUrl, 'https://sandbox.example');
  assert.throws(() => other('http://sandbox.example'), /OTHER_CONSOLE_URL must be https/);
  assert.throws(() => other('https://sandbox.example/x'), /without a path/);
  assert.throws(() => other(shopUrl), /OTHER_CONSOLE_URL is an address of this environment/);
  const sandbox = readConfig({ PORT: '4000' });
  assert.equal(sandbox.merchantConsole?.url, 'http://localhost:4006');
});
