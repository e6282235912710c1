import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { sql } from 'kysely';
import { createIntegration } from '#merchants/integrations/create-integration.ts';
import { advanceListTotal } from '#platform/database/merchant-lists.sql.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { createLegacyCheckout, createPlugin, logIn } from '../support/legacy.ts';
import { challengeCard, type Paying, startPaying, visa } from '../support/payments.ts';
import { actingOn } from '../support/plan-attempts.ts';
import { checkoutBody, createAccount, liftLimits, type Service, send } from '../support/service.ts';

// One request per endpoint, which must succeed. `npm run test:quick` runs these and the tests of
// pure rules. The test at the end finds an endpoint that is missing here.

let paying: Paying;
let service: Service;
before(async () => {
  paying = await startPaying();
  service = paying.service;
});
after(() => paying.close());

const ask = (method: 'GET' | 'POST', path: string, body?: object) =>
  send(service, paying.account, method, path, body && { body });

async function paidCheckout(): Promise<string> {
  const shopper = await paying.shopper();
  await shopper.pay(3);
  return shopper.id;
}

/** Makes a shopper with a plan, who has a session from a one-time link. */
async function signedInShopper() {
  const shopper = await paying.shopper();
  await shopper.pay(3);
  const { status } = await shopper.send('POST', 'link', { email: 'thandi@example.com' });
  assert.equal(status, 202);
  await paying.work();
  const mails: { text: string }[] = await shopper.rows('mailbox');
  const token = mails.map(({ text }) => /manage#([\w-]+)/.exec(text)?.[1]).find(Boolean);
  const answer = await shopper.send('POST', 'session', { token });
  assert.equal(answer.status, 200);
  return { shopper, cookie: String(answer.headers['set-cookie']).split(';')[0] ?? '' };
}

async function createRefund(): Promise<string> {
  const body = { checkout_id: await paidCheckout(), amount: 50_000 };
  const answer = await ask('POST', '/api/refunds', body);
  assert.deepEqual([answer.status, answer.body.data.attributes.status], [200, 'requested']);
  return answer.body.data.id;
}

/** Makes a payout of one line. Other tests are about how the service makes payouts. */
async function makePayout(): Promise<{ id: string; amount: number }> {
  const merchant_id = paying.account.merchant.id;
  const { db } = service.deps.database;
  const created_at = timestamp(service.deps.clock.now());
  const { total } = await advanceListTotal(db, merchant_id, 'payouts', 1, created_at);
  const [id, amount] = [randomUUID(), 1_000 + total];
  await sql`
    insert into payouts (merchant_id, id, number, reference, business_on, amount, currency, lines,
      status, created_at)
    values (${merchant_id}, ${id}, ${total}, ${`TR${total}`}, date '2026-01-01' + ${total}::integer,
      ${amount}, 'ZAR', 1, 'draft', ${created_at})`.execute(db);
  return { id, amount };
}

async function createLink() {
  const { checkout } = checkoutBody();
  const { status, body } = await ask('POST', '/api/payment-links', checkout);
  assert.equal(status, 200);
  return { id: body.data.id, path: new URL(body.data.attributes.url).pathname };
}

const paths: Record<string, () => Promise<void>> = {
  async 'GET /api/config'() {
    const { status, body } = await ask('GET', '/api/config');
    assert.deepEqual([status, body.data.attributes.name], [200, 'Bean There']);
  },
  async 'GET /api/merchants/:merchant_id/config'() {
    const { merchant } = await createAccount(service);
    const platform = await createIntegration(service.deps, 'test', {
      managed_merchant_ids: [merchant.id],
      refund_mode: 'manual',
    });
    await liftLimits(service.deps, platform.id);
    const path = `/api/merchants/${merchant.id}/config`;
    const { status, body } = await send(service, platform, 'GET', path);
    assert.deepEqual([status, body.data.id], [200, merchant.id]);
  },
  async 'POST /api/checkouts'() {
    const { status, body } = await ask('POST', '/api/checkouts', checkoutBody());
    assert.equal(status, 200);
    assert.match(body.data.payment_url, /\/pay\//);
  },
  async 'GET /api/checkouts'() {
    const id = await paidCheckout();
    const { status, body } = await ask('GET', '/api/checkouts');
    assert.deepEqual([status, body.data[0].id], [200, id]);
  },
  async 'GET /api/checkouts/:id'() {
    const { status, body } = await ask('GET', `/api/checkouts/${await paidCheckout()}`);
    assert.deepEqual([status, body.data.attributes.status], [200, 'successful']);
  },
  async 'POST /api/payment-links'() {
    await createLink();
  },
  async 'GET /api/payment-links'() {
    const { id } = await createLink();
    const { status, body } = await ask('GET', '/api/payment-links');
    assert.deepEqual([status, body.data[0].id], [200, id]);
  },
  async 'GET /api/payment-links/:id'() {
    const { id } = await createLink();
    const { status, body } = await ask('GET', `/api/payment-links/${id}`);
    assert.deepEqual([status, body.data.attributes.status], [200, 'active']);
  },
  async 'GET /link/:token'() {
    const { statusCode, body } = await service.app.inject((await createLink()).path);
    assert.equal(statusCode, 200);
    assert.match(body, /Continue/);
  },
  async 'POST /link/:token'() {
    const { path } = await createLink();
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const answer = await service.app.inject({ method: 'POST', url: path, headers, payload: '' });
    assert.match(String(answer.headers.location), /^\/pay\//);
  },
  async 'GET /link/:token/print'() {
    const { statusCode, body } = await service.app.inject(`${(await createLink()).path}/print`);
    assert.equal(statusCode, 200);
    assert.match(body, /aria-label="Scan to pay"/);
  },
  async 'GET /link/:token/qr.svg'() {
    const { headers } = await service.app.inject(`${(await createLink()).path}/qr.svg`);
    assert.equal(headers['content-type'], 'image/svg+xml');
  },
  async 'GET /link/:token/qr.png'() {
    const { headers } = await service.app.inject(`${(await createLink()).path}/qr.png`);
    assert.equal(headers['content-type'], 'image/png');
  },
  async 'POST /api/refunds'() {
    await createRefund();
  },
  async 'GET /api/refunds'() {
    const id = await createRefund();
    const { status, body } = await ask('GET', '/api/refunds');
    assert.deepEqual([status, body.data[0].id], [200, id]);
  },
  async 'GET /api/refunds/:id'() {
    const { status, body } = await ask('GET', `/api/refunds/${await createRefund()}`);
    assert.deepEqual([status, body.data.attributes.amount], [200, 50_000]);
  },
  async 'GET /api/payouts'() {
    const { id } = await makePayout();
    const { status, body } = await ask('GET', '/api/payouts');
    assert.deepEqual([status, body.data[0].id], [200, id]);
  },
  async 'GET /api/payouts/:id'() {
    const { id, amount } = await makePayout();
    const { status, body } = await ask('GET', `/api/payouts/${id}`);
    assert.deepEqual([status, body.data.attributes.amount], [200, amount]);
  },
  async 'GET /pay/:token'() {
    const { url } = await paying.shopper();
    const { statusCode, body } = await service.app.inject(url);
    assert.equal(statusCode, 200);
    assert.match(body, /How do you want to pay\?/);
  },
  async 'GET /pay/:token/state'() {
    const shopper = await paying.shopper();
    assert.equal((await shopper.state()).status, 'open');
  },
  async 'POST /pay/:token/pay'() {
    const shopper = await paying.shopper();
    assert.equal((await shopper.pay(3)).status, 'successful');
  },
  async 'POST /pay/:token/confirm'() {
    const shopper = await paying.shopper();
    const { status, body } = await shopper.send('POST', 'confirm', {});
    assert.deepEqual([status, body.status], [200, 'open']);
  },
  async 'GET /pay/logos/:logo.png'() {
    const { merchant } = await createAccount(service);
    const logo = 'ab'.repeat(32);
    await service.deps.database.pool.query(
      'update merchants set logo = $2, logo_png = $3 where id = $1',
      [merchant.id, logo, Buffer.from('a picture')],
    );
    const { statusCode, headers } = await service.app.inject(`/pay/logos/${logo}.png`);
    assert.deepEqual([statusCode, headers['content-type']], [200, 'image/png']);
  },
  async 'POST /pay/:token/cancel'() {
    const shopper = await paying.shopper();
    assert.equal((await shopper.cancel()).status, 'cancelled');
  },
  async 'POST /pay/:token/language'() {
    const shopper = await paying.shopper();
    const { status, body } = await shopper.send('POST', 'language', { language: 'zu' });
    assert.deepEqual([status, body.page.language], [200, 'zu']);
  },
  async 'GET /pay/:token/return'() {
    const shopper = await paying.shopper();
    assert.equal((await shopper.pay(3, { card: challengeCard })).status, 'challenge');
    await shopper.decide('approve');
    assert.equal((await shopper.comeBack()).status, 'successful');
  },
  async 'POST /pay/:token/link'() {
    await signedInShopper();
  },
  async 'POST /pay/:token/session'() {
    const { cookie } = await signedInShopper();
    assert.match(cookie, /^plan-[\da-f-]{36}=[\w-]{43}$/);
  },
  async 'DELETE /pay/:token/session'() {
    const { shopper, cookie } = await signedInShopper();
    const request = {
      method: 'DELETE',
      url: `${shopper.url}/session`,
      headers: { cookie },
    } as const;
    assert.equal((await service.app.inject(request)).statusCode, 204);
  },
  async 'POST /pay/:token/report'() {
    const { shopper, cookie } = await signedInShopper();
    const { statusCode } = await service.app.inject({
      method: 'POST',
      url: `${shopper.url}/report`,
      headers: { cookie },
      payload: { text: 'The amount is wrong.' },
    });
    assert.equal(statusCode, 202);
  },
  async 'GET /pay/:token/manage'() {
    const { shopper } = await signedInShopper();
    const { statusCode, body } = await service.app.inject(`${shopper.url}/manage`);
    assert.equal(statusCode, 200);
    assert.match(body, /Your payments/);
  },
  async 'POST /pay/:token/plan/pay'() {
    const shopper = await paying.shopper();
    await shopper.pay(3);
    const acting = await actingOn(paying, shopper);
    assert.equal((await acting.pay('next')).attempt?.status, 'done');
  },
  async 'POST /pay/:token/plan/card'() {
    const shopper = await paying.shopper();
    await shopper.pay(3);
    const acting = await actingOn(paying, shopper);
    assert.equal((await acting.replaceCard(visa)).attempt?.status, 'done');
  },
  async 'GET /pay/:token/payments.ics'() {
    const shopper = await paying.shopper();
    await shopper.pay(3);
    const { status, body } = await shopper.send('GET', 'payments.ics');
    assert.equal(status, 200);
    assert.match(String(body), /BEGIN:VCALENDAR/);
  },
  async 'GET /pay/:token/receipts/:number'() {
    const shopper = await paying.shopper();
    await shopper.pay(3);
    const { status, body } = await shopper.send('GET', 'receipts/1');
    assert.equal(status, 200);
    assert.match(String(body), /R\s500,00/);
  },
  async 'GET /pay/:token/receipts/:number/pdf'() {
    const shopper = await paying.shopper();
    await shopper.pay(3);
    const { status, headers } = await shopper.send('GET', 'receipts/1/pdf');
    assert.equal(status, 200);
    assert.equal(headers['content-type'], 'application/pdf');
  },
  async 'GET /docs*'() {
    // This address does not exist.
    assert.equal((await service.app.inject('/docs/nothing')).statusCode, 404);
  },
  async 'POST /login'() {
    const { plugin } = await createPlugin(service);
    assert.match(await logIn(service, plugin), /./);
  },
  async 'POST /payment/checkout'() {
    const { plugin } = await createPlugin(service);
    const { payment_url } = await createLegacyCheckout(service, await logIn(service, plugin));
    assert.match(payment_url, /\/pay\//);
  },
};

describe('a correct request succeeds', () => {
  for (const [endpoint, run] of Object.entries(paths)) test(endpoint, run);

  test('every page without a parameter, and every file', async () => {
    for (const { method, path } of listRoutes()) {
      if (!isPage(method, path)) continue;
      const { statusCode } = await service.app.inject(path);
      assert.ok(statusCode < 400, `${path} answers ${statusCode}`);
    }
  });

  test('the paths that a proxy must forward are those of the routes', async () => {
    const text = await readFile(
      new URL('../../docs/operators/running.md', import.meta.url),
      'utf8',
    );
    const [, list = ''] =
      /these paths to `HOST:PORT`: ([\s\S]*?)\s+for yourself\./.exec(text) ?? [];
    const listed = [...list.matchAll(/`(\/[^`]*)`/g)].map(([, path = '']) => path);
    const served = listRoutes().map(({ path }) => path.replace(/^(\/[^/*]*).*$/, '$1'));
    // The route /gateway exists only if the secret for events is set.
    assert.deepEqual(listed.toSorted(), [...new Set([...served, '/gateway'])].toSorted());
  });

  test('no endpoint is missing above', () => {
    const missing = listRoutes()
      .filter(({ method, path }) => method !== 'HEAD' && !isPage(method, path))
      .map(({ method, path }) => `${method} ${path}`)
      // `GET /docs*` answers 404, because it is for addresses without a page.
      .filter((endpoint) => endpoint !== 'GET /docs*' && !(endpoint in paths));
    assert.deepEqual(missing, []);
  });
});

const isPage = (method: string, path: string): boolean =>
  method === 'GET' && !path.includes(':') && !path.includes('*') && !path.startsWith('/api/');

/** Reads Fastify's own tree of routes. A child's line has only what follows its parent's path. */
function listRoutes(): { method: string; path: string }[] {
  const parents: string[] = [];
  const tree = service.app.printRoutes({ commonPrefix: false });
  return tree.split('\n').flatMap((line) => {
    const [, indent = '', part = '', methods = ''] =
      /^([│ ]*)[├└]── (\S+) \((.*)\)$/.exec(line) ?? [];
    if (part === '') return [];
    const depth = indent.length / 4;
    parents[depth] = `${depth === 0 ? '' : parents[depth - 1]}${part}`;
    return methods.split(', ').map((method) => ({ method, path: parents[depth] ?? '' }));
  });
}
