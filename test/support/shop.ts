import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { pino } from 'pino';
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core';
import type { Protocol } from '#gateway/settings.ts';
import { createMerchant } from '#merchants/create-merchant.ts';
import { createIntegration } from '#merchants/integrations/create-integration.ts';
import { advanceClock } from '#operating/clock/advance-clock.ts';
import type { CheckoutStatus } from '#purchases/checkouts/checkout.ts';
import { connectBrowser, hangMilliseconds } from './browser.ts';
import { assertSound, type Paying, type Shopper, startPaying } from './payments.ts';
import { type Account, liftLimits, rules } from './service.ts';
import { until } from './until.ts';

// Shoppers in a real browser. The service, the test gateway and the merchant's pages are on three
// origins, so redirects between them are real.

export type Shop = {
  paying: Paying;
  browser: Browser;
  /** The browser profiles of earlier visits. */
  idle: Profile[];
  origins: { service: string; gateway: string; merchant: string };
  /** Requests to the merchant's pages. */
  landings: { url: string; referer: string | undefined }[];
  /** Lets browsers return to this path of the merchant until the returned function is called. */
  admit(path: string): () => void;
  /** Every byte that browsers sent to the server. */
  received(): string;
  /** Every line that the server logged. */
  logged(): string;
  close(): Promise<void>;
};

async function startShop(options: { protocol?: Protocol } = {}): Promise<Shop> {
  const pageOrigins: string[] = [];
  const lines: string[] = [];
  const log = pino({ level: 'trace' }, { write: (line: string) => lines.push(line) });
  // The page reads the browser's clock, which is the real one.
  const start = Temporal.Now.instant().toString();
  const paying = await startPaying({
    ...options,
    pageOrigins,
    log,
    start,
    gatewayTimeoutMs: holdMilliseconds + 10_000,
  });
  const { app, deps } = paying.service;
  const chunks: Buffer[] = [];
  app.server.on('connection', (socket) => {
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  });
  deps.baseUrl = await app.listen({ host: '127.0.0.1', port: 0 });
  pageOrigins.push(deps.baseUrl);

  const landings: Shop['landings'] = [];
  const admitted: string[] = [];
  let held: { path: string; answer: () => void }[] = [];
  const merchant = http.createServer((request, response) => {
    const path = request.url ?? '';
    landings.push({ url: path, referer: request.headers.referer });
    const answer = () => {
      response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' });
      response.end(
        `<!doctype html><title>The shop</title><link rel="icon" href="data:,"><h1>${path.split('?')[0]}</h1>`,
      );
    };
    // The page shows its outcome for two seconds before it returns, and a slow machine may not read
    // it in time. So a return is answered only when the test waits for it; until then, the browser
    // shows the page.
    const site = request.headers['sec-fetch-site'] ?? 'none';
    if (site === 'none' || admitted.includes(path)) answer();
    else held.push({ path, answer });
  });
  const admit: Shop['admit'] = (path) => {
    admitted.push(path);
    for (const one of held) if (one.path === path) one.answer();
    held = held.filter((one) => one.path !== path);
    return () => admitted.splice(admitted.indexOf(path), 1);
  };
  await new Promise<void>((resolve) => merchant.listen(0, '127.0.0.1', resolve));
  const browser = await connectBrowser();
  return {
    paying,
    browser,
    idle: [],
    origins: {
      service: deps.baseUrl,
      gateway: paying.gateway.url,
      merchant: `http://127.0.0.1:${(merchant.address() as AddressInfo).port}`,
    },
    landings,
    admit,
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
  /** A page at the payment link, ready to pay unless the options say otherwise. */
  page: Page;
  shopper: Shopper;
  link: string;
  success_url: string;
  cancel_url: string;
  /** The browser's navigations from now on. */
  requests: { method: string; url: string; body: string | null }[];
  /** Opens another tab of the same shopper. */
  openTab(): Promise<Page>;
  /** Moves this merchant's clock and does the work that becomes due. */
  advance(by: Temporal.DurationLike): Promise<void>;
  /** Keeps the gateway from answering this checkout's payments until released. */
  hold(when?: 'before' | 'after' | 'drop_before' | 'drop_after'): Promise<Hold>;
};

type Hold = { reached(): Promise<void>; release(): Promise<void> };

export type VisitOptions = {
  /** The checkout's expected status at the end, after due work. */
  ends: CheckoutStatus;
  /** Overrides fields of the checkout. */
  checkout?: object;
  /** Creates the checkout in another way and returns its id. */
  begin?(shop: Shop, account: Account): Promise<string>;
  merchantName?: string;
  viewport?: { width: number; height: number };
  colorScheme?: 'light' | 'dark';
  reducedMotion?: 'reduce';
  /** The merchant's local time at the start, today or tomorrow, if it matters. */
  startAt?: string;
  /** How many payments the gateway holds or took at the end, if more than one. */
  payments?: number;
  /** Whether the link stays unopened. */
  closed?: boolean;
  /** Console errors that the scenario may cause. */
  tolerates?: RegExp;
};

/** This is longer than a test holds a payment on a slow machine. */
const holdMilliseconds = 2 * hangMilliseconds;

let orders = 0;

/** Opens a shop for the tests of a `describe`. `scenario` is a test that visits it. */
export function openShop(options: { protocol?: Protocol } = {}) {
  let opened: Shop;
  before(async () => {
    opened = await startShop(options);
  });
  after(async () => {
    await opened?.close();
  });
  const shop = () => opened;
  const scenario = (
    title: string,
    visited: VisitOptions,
    run: (visit: Visit) => Promise<void>,
  ): void => visitTest(title, shop, visited, run);
  return { shop, scenario };
}

/**
 * Declares a test with its own merchant, checkout and browser context. At its end it checks the
 * invariants, the gateway's books, and what the browser did.
 */
function visitTest(
  title: string,
  shop: () => Shop,
  options: VisitOptions,
  scenario: (visit: Visit) => Promise<void>,
): void {
  test(title, async () => {
    const { paying, origins } = shop();
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

    const profile = await takeProfile(shop(), options);
    const { context, page } = profile;
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
    const openTab = async () => {
      const tab = await context.newPage();
      await tab.goto(link);
      return tab;
    };

    try {
      if (!options.closed) await page.goto(link);
      await scenario({
        shop: shop(),
        context,
        page,
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
            // This upper bound is shorter than the service's gateway timeout. The test releases
            // the payment earlier.
            ms: holdMilliseconds,
            // The gateway's client retries a request whose connection broke.
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
    } catch (error) {
      const seen = `${await describeTabs(context, requests)}${describeLog(shop().logged())}`;
      const complained = complaints.map((text) => `\nThe browser complained: ${text}`).join('');
      await context.close();
      throw new Error(`The scenario failed.${seen}${complained}`, { cause: error });
    }
    await keepProfile(shop(), profile);

    await until('claimed rows to be released', async () =>
      (await shopper.attempts()).every(({ lease }) => lease === null),
    );
    await workOnce(paying);
    const [checkout] = await shopper.rows('checkouts');
    assert.equal(checkout.status, options.ends);
    const payments = options.payments ?? 1;
    assert.equal((await shopper.live()).length, options.ends === 'successful' ? payments : 0);
    await assertSound(paying);
    assert.deepEqual(complaints, []);
    const known = Object.values(origins);
    const elsewhere = requests.filter(
      ({ url }) => !url.startsWith('data:') && !known.includes(new URL(url).origin),
    );
    assert.deepEqual(elsewhere, []);
  });
}

type Profile = { context: BrowserContext; page: Page };

/** Creating a profile takes as long as loading a page, so visits reuse profiles. */
async function takeProfile({ browser, idle }: Shop, options: VisitOptions): Promise<Profile> {
  const profile = idle.pop() ?? (await createProfile(browser));
  const { colorScheme = null, reducedMotion = null } = options;
  await profile.page.setViewportSize(options.viewport ?? phone);
  await profile.page.emulateMedia({ colorScheme, reducedMotion });
  return profile;
}

const phone = { width: 390, height: 844 };

async function createProfile(browser: Browser): Promise<Profile> {
  const context = await browser.newContext({ viewport: phone });
  await context.addInitScript(watchScript);
  return { context, page: await context.newPage() };
}

/** Keeps the profile for the next visit. Only the files that the browser has cached stay in it. */
async function keepProfile(shop: Shop, profile: Profile): Promise<void> {
  try {
    await emptyProfile(shop, profile);
    shop.idle.push(profile);
  } catch {
    await profile.context.close();
  }
}

async function emptyProfile({ origins }: Shop, { context, page }: Profile): Promise<void> {
  for (const event of ['weberror', 'console', 'request'] as const)
    context.removeAllListeners(event);
  for (const event of ['dialog', 'request'] as const) page.removeAllListeners(event);
  for (const tab of context.pages()) if (tab !== page) await tab.close();
  await context.setOffline(false);
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await page.evaluate(() => sessionStorage.clear()).catch(() => {});
  // The browser leaves the payment page, which would keep asking for its state.
  await page.goto(`${origins.merchant}/left`);
  await context.clearCookies();
}

/**
 * Records what a shopper saw when a scenario failed: otherwise a timeout only names what was
 * missing.
 */
async function describeTabs(context: BrowserContext, requests: Visit['requests']): Promise<string> {
  const lines = context.pages().map(async (page) => {
    const words = await page.locator('body').innerText({ timeout: 2_000 }).catch(String);
    return `\nA tab at ${page.url()} shows: ${JSON.stringify(words)}`;
  });
  const last = requests.slice(-12).map(({ method, url }) => `\n  ${method} ${url}`);
  return `${(await Promise.all(lines)).join('')}\nLast requests:${last.join('')}`;
}

/** The last warnings and errors of the service. */
function describeLog(logged: string): string {
  const lines = logged.split('\n').filter((line) => /^{"level":[456]0/.test(line));
  return lines.length > 0 ? `\nThe service logged:\n  ${lines.slice(-8).join('\n  ')}` : '';
}

/** Reports violations of the page's policy and records layout shifts with their elements. */
const watchScript = `
  addEventListener('securitypolicyviolation', (event) => {
    console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI);
  });
  window.shifted = [];
  const place = ({ x, y, width, height }) => [x, y, width, height].join(' ');
  const centre = ({ x, y, width, height }) => [Math.round(x + width / 2), y, height].join(' ');
  new PerformanceObserver((list) => {
    for (const { hadRecentInput, value, startTime, sources } of list.getEntries()) {
      if (hadRecentInput) continue;
      // New words in the same box, or around the same centre of a button, do not count as a shift.
      const isStill = ({ node, previousRect, currentRect }) =>
        place(previousRect) === place(currentRect) ||
        (node?.parentElement?.closest('button') && centre(previousRect) === centre(currentRect));
      if (sources.length > 0 && sources.every(isStill)) continue;
      const moved = sources.map(({ node, previousRect, currentRect }) => {
        const what = (node?.outerHTML ?? node?.data ?? 'something that is gone').slice(0, 120);
        return what + ' from ' + place(previousRect) + ' to ' + place(currentRect);
      });
      window.shifted.push({ at: startTime, what: value + ': ' + moved.join(', ') });
    }
  }).observe({ type: 'layout-shift', buffered: true });
`;

let working: Promise<void> = Promise.resolve();

/**
 * Does due work. Calls run one at a time, because each waits for work that another test has
 * claimed.
 */
export function workOnce(paying: Paying): Promise<void> {
  const mine = working.then(() => paying.work());
  // A failure must fail only one test.
  working = mine.catch(() => {});
  return mine;
}

// The page's elements by their accessible names, as shoppers and screen readers find them.

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

/** Types digit by digit like a person, or at once where typing does not matter. */
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

/**
 * Asserts that the browser is at exactly this address and that the merchant's server got the
 * request. A return waits for this call, so the test has time to read the page before it.
 */
export async function landed(
  { shop }: Pick<Visit, 'shop'>,
  page: Page,
  url: string,
): Promise<void> {
  const { pathname, search } = new URL(url);
  const close = shop.admit(`${pathname}${search}`);
  try {
    await page.waitForURL((current) => current.href === url);
  } finally {
    close();
  }
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
