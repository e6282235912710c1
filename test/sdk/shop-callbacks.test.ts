import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { startDemoShop } from '#hosting/sandbox/demo-shop.ts';
import { systemClock } from '#platform/shared/clock.ts';
import { callbackHeaders } from '#purchases/callbacks/delivery/callback-headers.ts';
import { approveRefund, declineRefund } from '#purchases/refunds/review-refund.ts';
import { Tranche } from '../../sdk/src/index.ts';
import { type Paying, startPaying } from '../support/payments.ts';
import { quietPort } from '../support/quiet-port.ts';
import { type Account, log, type Service, sign } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

// The demo shop as a program against the real service, without a browser.

type Order = {
  id: string;
  status: string;
  checkout_id: string;
  amount: number;
  refund?: { status: string };
  events: { text: string }[];
};

let paying: Paying;
let service: Service;
let account: Account;
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let shop: NonNullable<Awaited<ReturnType<typeof startDemoShop>>>;
let baseUrl: string;
let shopPort: number;

const start = async () => {
  const config = { baseUrl, dataDir: folder.path, shopPort };
  const demo = { merchant: account.merchant, integration: account };
  const started = await startDemoShop({ clock: systemClock, log }, config, demo);
  assert.ok(started);
  shop = started;
};

before(async () => {
  folder = await temporaryFolder();
  // The shop reads the real clock. The test itself sends it the outcomes.
  paying = await startPaying({ start: Temporal.Now.instant().toString() });
  ({ service, account } = paying);
  baseUrl = await service.app.listen({ host: '127.0.0.1', port: 0 });
  shopPort = await quietPort();
  await start();
});
after(async () => {
  await shop?.stop();
  service.app.server.closeAllConnections();
  await paying.close();
  await folder.remove();
});

async function readFileOfShop(): Promise<{ orders: Order[]; config: { at: number } }> {
  return JSON.parse(await readFile(path.join(folder.path, 'shop.json'), 'utf8'));
}

async function orderOf(id: string): Promise<Order> {
  const order = (await readFileOfShop()).orders.find((each) => each.id === id);
  assert.ok(order);
  return order;
}

/** A shopper with a cart who has gone to the payment page. */
async function buy(cart = 'boots.1'): Promise<Order> {
  const answer = await fetch(`${shop.url}/orders`, {
    method: 'POST',
    headers: { cookie: `cart=${cart}` },
    body: new URLSearchParams({ email: 'thandi@example.com', first_name: 'Thandi' }),
    redirect: 'manual',
  });
  assert.equal(answer.status, 303, await answer.text());
  assert.match(answer.headers.get('location') ?? '', /\/pay\//);
  const order = (await readFileOfShop()).orders.at(-1);
  assert.ok(order);
  return order;
}

async function deliver(
  fields: object,
  signingKey = account.signing_key,
  site = 'none',
): Promise<number> {
  const outcome = { status: 'successful', amount: 189_900, currency: 'ZAR', number_of_payments: 3 };
  return await post({ ...outcome, ...fields }, signingKey, site);
}

async function post(content: object, signingKey = account.signing_key, site = 'none') {
  const body = JSON.stringify(content);
  const { status } = await fetch(`${shop.url}/callback`, {
    method: 'POST',
    headers: { ...headersOf(body, signingKey), 'sec-fetch-site': site },
    body,
  });
  return status;
}

/** The headers of a delivery at this moment, or earlier. */
function headersOf(body: string, key = account.signing_key, secondsAgo = 0) {
  return callbackHeaders({
    id: crypto.randomUUID(),
    payload: Buffer.from(body),
    number: 1,
    key,
    now: Temporal.Now.instant().subtract({ seconds: secondsAgo }),
  });
}

describe('the demo shop', () => {
  test('accepts a signed callback once, and no later outcome changes the order', async () => {
    const { id } = await buy();
    const events = async () => (await orderOf(id)).events.map(({ text }) => text);
    assert.equal(await deliver({ client_reference_id: id }), 200);
    assert.equal((await orderOf(id)).status, 'paid');
    const told = await events();
    assert.equal(await deliver({ client_reference_id: id }), 200);
    assert.equal(await deliver({ client_reference_id: id, status: 'cancelled' }), 200);
    assert.deepEqual(await events(), told);
    assert.equal((await orderOf(id)).status, 'paid');
  });

  test('makes a cancelled order paid when its payment arrives', async () => {
    const { id } = await buy();
    assert.equal(await deliver({ client_reference_id: id, status: 'cancelled' }), 200);
    assert.equal((await orderOf(id)).status, 'cancelled');
    assert.equal(await deliver({ client_reference_id: id }), 200);
    assert.equal((await orderOf(id)).status, 'paid');
  });

  test('refuses a forged callback and another amount, and ignores an unknown order', async () => {
    const { id } = await buy();
    assert.equal(await deliver({ client_reference_id: id }, 'sig_sandbox_of_somebody'), 400);
    assert.equal(await deliver({ client_reference_id: id, amount: 100 }), 422);
    assert.equal(await deliver({ client_reference_id: id, currency: 'USD' }), 422);
    const before = await readFileOfShop();
    assert.equal(await deliver({ client_reference_id: 'order-1001' }), 200);
    assert.deepEqual(await readFileOfShop(), before);
    assert.equal((await orderOf(id)).status, 'pending');
  });

  test('refuses a callback that is old, undated or played again', async () => {
    const { id } = await buy();
    const body = JSON.stringify({
      status: 'successful',
      amount: 189_900,
      currency: 'ZAR',
      client_reference_id: id,
      number_of_payments: 3,
    });
    const play = async (headers: Record<string, string>) =>
      (await fetch(`${shop.url}/callback`, { method: 'POST', headers, body })).status;
    assert.equal(await play(headersOf(body, account.signing_key, 301)), 400);
    assert.equal(await play({ 'x-signature': sign(account.signing_key, body) }), 400);
    assert.equal((await orderOf(id)).status, 'pending');
    const headers = headersOf(body);
    assert.deepEqual([await play(headers), await play(headers)], [200, 400]);
    assert.equal((await orderOf(id)).status, 'paid');
  });

  test('keeps its orders over a restart, and looks up those without a callback', async () => {
    const { id, checkout_id } = await buy();
    await shop.stop();
    await paying.open(checkout_id).pay(3);
    await start();
    await until('the shop to learn of it', async () => (await orderOf(id)).status === 'paid');
    const page = await (await fetch(`${shop.url}/orders/${id}`)).text();
    assert.match(page, /Found by look-up: paid/);
  });

  test('retries a create whose answer was lost, and gets the same checkout', async () => {
    const { id, checkout_id } = await buy();
    await shop.stop();
    const kept = await readFileOfShop();
    const forget = { checkout_id: undefined, payment_url: undefined };
    const orders = kept.orders.map((order) => (order.id === id ? { ...order, ...forget } : order));
    await writeFile(path.join(folder.path, 'shop.json'), JSON.stringify({ ...kept, orders }));
    await start();
    await until('it to have a checkout', async () => Boolean((await orderOf(id)).checkout_id));
    assert.equal((await orderOf(id)).checkout_id, checkout_id);
    assert.match(await (await fetch(`${shop.url}/orders/${id}`)).text(), /Continue to payment/);
  });

  test('reads the bands and terms once, and shows the monthly price', async () => {
    await fetch(shop.url);
    const { config } = await readFileOfShop();
    for (let visit = 0; visit < 8; visit += 1) {
      const page = await (await fetch(`${shop.url}/`)).text();
      assert.match(page, /or from <b class="whole"><span class="money">R.158,25<\/span> a month/);
    }
    assert.equal((await readFileOfShop()).config.at, config.at);
  });

  test('requests one refund however often the button is clicked, and shows when it is done', async () => {
    const { id, checkout_id } = await buy();
    await paying.open(checkout_id).pay(3);
    await deliver({ client_reference_id: id });
    const click = () =>
      fetch(`${shop.url}/orders/${id}/refund`, { method: 'POST', redirect: 'manual' });
    const answers = await Promise.all([click(), click(), click()]);
    assert.deepEqual(
      answers.map(({ status }) => status),
      [303, 303, 303],
    );
    const { rows } = await service.deps.database.pool.query(
      'select id, amount::int from refund_requests where checkout_id = $1',
      [checkout_id],
    );
    assert.deepEqual(
      rows.map(({ amount }) => amount),
      [189_900],
    );
    await approveRefund(service.deps, 'test', rows[0].id);
    // A restarted shop looks up at once; otherwise this would take a quarter of a minute.
    await shop.stop();
    await start();
    await until('the shop to learn of it', async () => {
      const page = await (await fetch(`${shop.url}/orders/${id}`)).text();
      return page.includes('Refund complete') && page.includes('<h1>Refunded</h1>');
    });
    // An event that was overtaken changes nothing.
    for (const [sequence, status] of [
      [3, 'complete'],
      [2, 'failed'],
    ] as const) {
      const { id: refund_id } = rows[0];
      const data = { id: refund_id, type: 'refund_requests', attributes: { status } };
      const event = { event: 'refund.updated', id: crypto.randomUUID(), sequence, data };
      const { merchant } = account;
      const about = { created_at: '2026-11-15T08:06:10.000Z', merchant_id: merchant.id };
      assert.equal(await post({ ...event, ...about }), 200);
    }
    assert.equal((await orderOf(id)).refund?.status, 'complete');
  });

  test('shows why a refund was refused, and can request it again later', async () => {
    const { id, checkout_id } = await buy();
    await paying.open(checkout_id).pay(3);
    await deliver({ client_reference_id: id });
    const click = async () => {
      const answer = await fetch(`${shop.url}/orders/${id}/refund`, { method: 'POST' });
      return { status: answer.status, url: answer.url, text: await answer.text() };
    };
    const tranche = new Tranche({
      baseUrl,
      clientSecret: account.client_secret,
      signingKey: account.signing_key,
    });
    const other = await tranche.refunds.create({ checkout_id, amount: 100_000 });
    const refused = await click();
    assert.deepEqual([refused.status, refused.url], [200, `${shop.url}/orders/${id}`]);
    assert.match(refused.text, /Refund refused: [A-Z][^<]+\./);
    assert.doesNotMatch(refused.text, /charged/);
    await declineRefund(service.deps, 'test', other.id, 'Asked for by mistake');
    assert.match((await click()).text, /<h1>Refund in progress<\/h1>/);
  });

  test('does not mention a charge if the refund request failed', async () => {
    const { id } = await buy();
    await deliver({ client_reference_id: id });
    await shop.stop();
    const kept = await readFileOfShop();
    const checkout_id = '0199a8f2-31b4-7c05-8e6d-5f0a9b3c7e24';
    const orders = kept.orders.map((order) =>
      order.id === id ? { ...order, checkout_id } : order,
    );
    await writeFile(path.join(folder.path, 'shop.json'), JSON.stringify({ ...kept, orders }));
    await start();
    const answer = await fetch(`${shop.url}/orders/${id}/refund`, { method: 'POST' });
    assert.equal(answer.status, 500);
    assert.doesNotMatch(await answer.text(), /charged/);
  });

  test('ends an abandoned order by its own age, wherever the clock of its merchant is', async () => {
    paying.clock.advance({ hours: 240 });
    const { id } = await buy();
    await shop.stop();
    const kept = await readFileOfShop();
    const at = Temporal.Now.instant().subtract({ minutes: 46 }).toString();
    const orders = kept.orders.map((order) => ({
      ...order,
      events: order.events.map((event) => ({ ...event, at })),
    }));
    await writeFile(path.join(folder.path, 'shop.json'), JSON.stringify({ ...kept, orders }));
    await start();
    await until('the order to end', async () => (await orderOf(id)).status !== 'pending');
    const { status, events } = await orderOf(id);
    assert.deepEqual([status, events.at(-1)?.text], ['cancelled', 'Not paid in time: cancelled']);
  });

  test('ignores forms on another site or on another port of this host', async () => {
    const own = new URL(shop.url).origin;
    const cases: [Record<string, string>, number][] = [
      [{}, 303],
      [{ origin: own, 'sec-fetch-site': 'same-origin' }, 303],
      [{ 'sec-fetch-site': 'none' }, 303],
      [{ 'sec-fetch-site': 'same-site' }, 403],
      [{ 'sec-fetch-site': 'cross-site' }, 403],
      [{ origin: 'null' }, 403],
      [{ origin: 'http://localhost:1' }, 403],
      [{ origin: 'https://shop.example', 'sec-fetch-site': 'same-origin' }, 403],
      [{ origin: own, 'sec-fetch-site': 'same-site' }, 403],
    ];
    for (const [headers, status] of cases) {
      const body = new URLSearchParams({ product: 'mug' });
      const init = { method: 'POST', headers, body, redirect: 'manual' } as const;
      const answer = await fetch(`${shop.url}/cart`, init);
      assert.equal(answer.status, status, JSON.stringify(headers));
    }
    // A callback needs no origin: its signature proves the sender.
    assert.equal(
      await deliver({ client_reference_id: 'x' }, account.signing_key, 'same-site'),
      200,
    );
  });

  test('says what is wrong with an order that cannot be paid, and keeps serving', async () => {
    const post = (cart: string, email: string, headers = {}) =>
      fetch(`${shop.url}/orders`, {
        method: 'POST',
        headers: { cookie: `cart=${cart}`, ...headers },
        body: new URLSearchParams({ email }),
        redirect: 'manual',
      });
    const nobody = await post('mug.1', 'nobody');
    assert.equal(nobody.status, 422);
    assert.match(await nobody.text(), /e-mail address/);
    const dear = await post('tent.9', 'thandi@example.com');
    assert.equal(dear.status, 422);
    assert.match(await dear.text(), /Amount has to be between.*Nothing was charged/);
    const foreign = await post('mug.1', 'a@b.example', { 'sec-fetch-site': 'cross-site' });
    assert.equal(foreign.status, 403);
    assert.equal((await post('nothing.1', 'a@b.example')).status, 303);
    for (const path of ['/orders/none', '/products/none', '/none', '/..%2f', '/orders/a/b/c']) {
      assert.equal((await fetch(`${shop.url}${path}`)).status, 404, path);
    }
    const markup = '"><script>alert(1)</script>';
    assert.ok(!(await (await post('mug.1', markup)).text()).includes(markup));
  });
});

test('the shop and its guide name only terms whose payments are at least R 10', async () => {
  const rules = [{ from_amount: 2_000, to_amount: 100_000, terms: [1, 3, 12] }];
  const { home, product } = await import(
    new URL('../../examples/shop/pages.js', import.meta.url).href
  );
  const guide = await readFile(
    new URL('../../docs/merchants/payments.md', import.meta.url),
    'utf8',
  );
  const [written] = /export function monthly[\s\S]*?\n}/.exec(guide) ?? [];
  const code = `const attributes = ${JSON.stringify({ rules })};\n${written}`;
  const { monthly } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
  for (const [amount, each, terms] of [
    [12_000, 1_000, ['3 payments', '12 payments']],
    [11_999, 3_999, ['3 payments']],
    [2_999, 2_999, []],
    [100_001, null, []],
  ] as const) {
    const item = { id: 'mug', name: 'Mug', amount, about: '', picture: '' };
    assert.equal(monthly(amount), each);
    const plans = String(product(item, rules, new Map()));
    assert.deepEqual(plans.match(/\d+ payments/g) ?? [], terms);
    const from = /or from .*? a month/.exec(String(home([item], rules, new Map())))?.[0] ?? null;
    assert.equal(from?.replaceAll(/\D/g, '') ?? null, terms.length > 0 ? String(each) : null);
  }
});

test('the shop has the same colours as the other pages', async () => {
  const read = (file: string) => readFile(new URL(`../../${file}`, import.meta.url), 'utf8');
  assert.equal(await read('examples/shop/public/tokens.css'), await read('web/tokens.css'));
});

test('a sandbox that is not at localhost has no shop', async () => {
  const config = { baseUrl: 'https://pay.example', dataDir: folder.path, shopPort: 0 };
  const demo = { merchant: account.merchant, integration: account };
  assert.equal(await startDemoShop({ clock: systemClock, log }, config, demo), null);
});
