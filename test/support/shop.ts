import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { pino } from 'pino';
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core';
import type { CheckoutStatus } from '../../src/checkouts/checkout.ts';
import { createIntegration } from '../../src/integrations/create-integration.ts';
import { createMerchant } from '../../src/merchants/create-merchant.ts';
import { advanceClock } from '../../src/sandbox/advance-clock.ts';
import { launchBrowser } from './browser.ts';
import { assertSound, type Paying, type Shopper, startPaying } from './payments.ts';
import { until } from './sandbox-process.ts';
import { type Account, liftLimits, rules } from './service.ts';

// Shoppers in a real browser, the service and the test gateway on ports of their own, and the
// merchant's own pages on a third origin, so that landing there is real.

export type Shop = {
  paying: Paying;
  browser: Browser;
  origins: { service: string; gateway: string; merchant: string };
  /** What the merchant's pages were asked for. */
  landings: { url: string; referer: string | undefined }[];
  /** Every byte that browsers sent to our server. */
  received(): string;
  /** Every line that our server logged. */
  logged(): string;
  close(): Promise<void>;
};

export async function startShop(): Promise<Shop> {
  const pageOrigins: string[] = [];
  const lines: string[] = [];
  const log = pino({ level: 'trace' }, { write: (line: string) => lines.push(line) });
  // The browser's clock is the real one, and the page looks at it.
  const start = Temporal.Now.instant().toString();
  const paying = await startPaying({ pageOrigins, log, start, gatewayTimeoutMs: 50_000 });
  const { app, deps } = paying.service;
  const chunks: Buffer[] = [];
  app.server.on('connection', (socket) => {
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  });
  deps.baseUrl = await app.listen({ host: '127.0.0.1', port: 0 });
  pageOrigins.push(deps.baseUrl);

  const landings: Shop['landings'] = [];
  const merchant = http.createServer((request, response) => {
    landings.push({ url: request.url ?? '', referer: request.headers.referer });
    response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' });
    response.end(
      `<!doctype html><title>The shop</title><link rel="icon" href="data:,"><h1>${request.url?.split('?')[0]}</h1>`,
    );
  });
  await new Promise<void>((resolve) => merchant.listen(0, '127.0.0.1', resolve));
  const browser = await launchBrowser();
  return {
    paying,
    browser,
    origins: {
      service: deps.baseUrl,
      gateway: paying.gateway.url,
      merchant: `http://127.0.0.1:${(merchant.address() as AddressInfo).port}`,
    },
    landings,
    received: () => Buffer.concat(chunks).toString('latin1'),
    logged: () => lines.join(''),
    async close() {
      await browser.close();
      merchant.closeAllConnections();
      merchant.close();
      app.server.closeAllConnections();
      await paying.close();
    },
  };
}

export type Visit = {
  shop: Shop;
  context: BrowserContext;
  /** At the payment page, ready to pay, unless told otherwise. */
  page: Page;
  shopper: Shopper;
  link: string;
  success_url: string;
  cancel_url: string;
  /** Where the browser is asked to go, from now on. */
  requests: { method: string; url: string; body: string | null }[];
  /** Another tab of the same shopper. */
  openTab(): Promise<Page>;
  /** Moves this merchant's clock, and does what falls due on the way. */
  advance(by: Temporal.DurationLike): Promise<void>;
  /** The gateway does not answer this checkout's payments until it is let. */
  hold(when?: 'before' | 'after' | 'drop_before' | 'drop_after'): Promise<Hold>;
};

type Hold = { reached(): Promise<void>; release(): Promise<void> };

export type VisitOptions = {
  /** What the checkout is at the end, when due work has been done. */
  ends: CheckoutStatus;
  /** Of the checkout, instead of the usual. */
  checkout?: object;
  /** Begins the checkout in another way, and returns its ID. */
  begin?(shop: Shop, account: Account): Promise<string>;
  merchantName?: string;
  browser?: Parameters<Browser['newContext']>[0];
  /** The merchant's local time at the start, today or tomorrow, when it matters. */
  startAt?: string;
  /** Do not open the link. */
  closed?: boolean;
  /** Console messages that belong to the scenario. */
  tolerates?: RegExp;
};

let orders = 0;

/**
 * A test with a merchant, a checkout and a browser context of its own. At its end all that must
 * be true is: in the database, in the gateway's books, and in what the browser was asked to do.
 */
export function visitTest(
  title: string,
  shop: () => Shop,
  options: VisitOptions,
  scenario: (visit: Visit) => Promise<void>,
): void {
  test(title, async () => {
    const { paying, browser, origins } = shop();
    const { service, gateway } = paying;
    const merchant = await createMerchant(service.deps, 'test', {
      name: options.merchantName ?? 'Bean There',
      territory: 'ZA',
      rules,
    });
    const credentials = await createIntegration(service.deps, 'test', {
      merchant_id: merchant.id,
      refund_mode: 'manual',
    });
    await liftLimits(service.deps, credentials.id);
    const advance = async (by: Temporal.DurationLike) => {
      const duration = Temporal.Duration.from(by);
      await advanceClock(service.deps, 'test', merchant.id, { by: duration });
    };
    if (options.startAt) {
      const now = paying.clock.now().toZonedDateTimeISO('Africa/Johannesburg');
      const next = now.withPlainTime(options.startAt);
      await advance(
        now.until(Temporal.ZonedDateTime.compare(next, now) > 0 ? next : next.add({ days: 1 })),
      );
    }
    orders += 1;
    const success_url = `${origins.merchant}/paid?order=${orders}&note=a%20b#thanks`;
    const cancel_url = `${origins.merchant}/cart?order=${orders}`;
    const account = { ...credentials, merchant };
    const shopper = options.begin
      ? paying.open(await options.begin(shop(), account), account)
      : await paying.shopper({ success_url, cancel_url, ...options.checkout }, account);
    const link = `${origins.service}${shopper.url}`;

    const context = await browser.newContext({
      viewport: { width: 390, height: 844 },
      ...options.browser,
    });
    context.setDefaultTimeout(30_000);
    const complaints: string[] = [];
    const requests: Visit['requests'] = [];
    context.on('weberror', (error) => complaints.push(error.error().message));
    context.on('console', (message) => {
      const text = message.text();
      if (message.type() !== 'error' || options.tolerates?.test(text)) return;
      complaints.push(text);
    });
    context.on('request', (request) => {
      requests.push({ method: request.method(), url: request.url(), body: request.postData() });
    });
    await context.addInitScript(watchScript);
    const openTab = async () => {
      const tab = await context.newPage();
      await tab.goto(link);
      return tab;
    };

    try {
      await scenario({
        shop: shop(),
        context,
        page: options.closed ? await context.newPage() : await openTab(),
        shopper,
        link,
        success_url,
        cancel_url,
        requests,
        openTab,
        advance,
        async hold(when = 'before') {
          const kind = { before: 'latency', after: 'latency_after' } as const;
          const isDrop = when === 'drop_before' || when === 'drop_after';
          await gateway.fault({
            fault: isDrop ? when : kind[when],
            method: 'POST',
            path: '/v1/payment_intents',
            key_contains: shopper.id,
            // Released long before; shorter than the service waits for the gateway.
            ms: 45_000,
            // A client of the gateway repeats a request whose connection broke.
            times: isDrop ? 2 : 1,
          });
          const find = async () => {
            const { body } = await gateway.call('GET', '/_test/faults');
            return body.data.find(
              (one: { key_contains: string }) => one.key_contains === shopper.id,
            );
          };
          const { id, times } = await find();
          return {
            async reached() {
              await until('the gateway to be asked', async () => (await find()).struck === times);
            },
            async release() {
              await gateway.call('DELETE', `/_test/faults/${id}`);
            },
          };
        },
      });
    } finally {
      await context.close();
    }

    await until('what was begun to be put down', async () =>
      (await shopper.attempts()).every(({ lease }) => lease === null),
    );
    await workOnce(paying);
    const [checkout] = await shopper.rows('checkouts');
    assert.equal(checkout.status, options.ends);
    assert.equal((await shopper.live()).length, options.ends === 'successful' ? 1 : 0);
    await assertSound(paying);
    assert.deepEqual(complaints, []);
    const known = Object.values(origins);
    const elsewhere = requests.filter(
      ({ url }) => !url.startsWith('data:') && !known.includes(new URL(url).origin),
    );
    assert.deepEqual(elsewhere, []);
  });
}

/** What breaks the page's policy is said aloud, and what moves by itself is kept: what, and where. */
const watchScript = `
  addEventListener('securitypolicyviolation', (event) => {
    console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI);
  });
  window.shifted = [];
  const place = ({ x, y, width, height }) => [x, y, width, height].join(' ');
  new PerformanceObserver((list) => {
    for (const { hadRecentInput, value, startTime, sources } of list.getEntries()) {
      if (hadRecentInput) continue;
      const moved = sources.map(({ node, previousRect, currentRect }) => {
        const what = (node?.outerHTML ?? node?.data ?? 'something that is gone').slice(0, 120);
        return what + ' from ' + place(previousRect) + ' to ' + place(currentRect);
      });
      window.shifted.push(value + ' after ' + Math.round(startTime) + ' ms: ' + moved.join(', '));
    }
  }).observe({ type: 'layout-shift', buffered: true });
`;

let working: Promise<void> = Promise.resolve();

/** One at a time: what a neighbour has in hand is done before this goes on. */
function workOnce(paying: Paying): Promise<void> {
  working = working.then(() => paying.work());
  return working;
}

// What a shopper finds on the page, by the names that people and their tools find it by.

export function payButton(page: Page): Locator {
  return page.getByRole('button', { name: /^Pay/ });
}

export function cancelButton(page: Page): Locator {
  return page.getByRole('button', { name: /^Cancel/ });
}

export function term(page: Page, number_of_payments: number): Locator {
  const count = number_of_payments === 1 ? '1 payment' : `${number_of_payments} payments`;
  return page.getByRole('radio', { name: new RegExp(`^${count}\\b`) });
}

export function heading(page: Page, name: string): Locator {
  return page.getByRole('heading', { name, level: 1 });
}

export function cardField(page: Page, name: 'Card number' | 'Expiry' | 'Security code'): Locator {
  return page
    .frameLocator('iframe[title="Card details"]')
    .getByRole('textbox', { name, exact: true });
}

/** As a person types it, digit by digit, or, where typing is not the point, at once. */
export async function typeCard(page: Page, number: string, byKeys = false): Promise<void> {
  const entries = [
    ['Card number', number],
    ['Expiry', '1240'],
    ['Security code', number.startsWith('3') ? '1234' : '123'],
  ] as const;
  for (const [name, text] of entries) {
    const field = cardField(page, name);
    if (byKeys) await field.pressSequentially(text);
    else await field.fill(text);
  }
}

export async function pay(page: Page, number: string, number_of_payments = 1): Promise<void> {
  await term(page, number_of_payments).check();
  await typeCard(page, number);
  await payButton(page).click();
}

/** The browser is where it was to be sent, to the letter, and the merchant was asked for it. */
export async function landed(
  { shop }: Pick<Visit, 'shop'>,
  page: Page,
  url: string,
): Promise<void> {
  await page.waitForURL((current) => current.href === url);
  const { pathname, search } = new URL(url);
  const landings = shop.landings.filter((each) => each.url === `${pathname}${search}`);
  assert.ok(landings.length > 0);
  assert.ok(landings.every(({ referer }) => referer === undefined));
}

export async function answerBank(
  page: Page,
  answer: 'Approve' | 'Decline' | 'Close',
): Promise<void> {
  await heading(page, 'Confirm your payment').waitFor();
  await page.getByRole('button', { name: answer, exact: true }).click();
}
