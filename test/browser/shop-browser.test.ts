import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { startDemoShop } from '#hosting/sandbox/demo-shop.ts';
import { systemClock } from '#platform/shared/clock.ts';
import { axeViolations } from '../support/axe.ts';
import { connectBrowser, noBrowser } from '../support/browser.ts';
import { commandLine } from '../support/cli.ts';
import { challengeCard, visa } from '../support/payments.ts';
import { quietPort } from '../support/quiet-port.ts';
import { kill, type Sandbox, startSandbox } from '../support/sandbox-process.ts';
import { isLong, log } from '../support/service.ts';
import { answerBank, cancelButton, heading, pay, payButton } from '../support/shop.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

// The sandbox of `npm start` with its shop, and a shopper who buys in it.

describe('a shopper in the demo shop', { skip: noBrowser }, () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let sandbox: Sandbox;
  let browser: Browser;
  let shopUrl: string;

  before(async () => {
    folder = await temporaryFolder();
    sandbox = await startSandbox(path.join(folder.path, 'data'));
    shopUrl = sandbox.file.shop_url ?? '';
    browser = await connectBrowser();
  });
  after(async () => {
    await browser?.close();
    if (sandbox) await kill(sandbox);
    await folder?.remove();
  });

  /**
   * Plays the scenario as a new visitor, and asserts that there are no console errors and no
   * requests to other origins.
   */
  async function visit(
    scenario: (page: Page, context: BrowserContext) => Promise<void>,
    tolerates?: RegExp,
  ): Promise<void> {
    const context = await browser.newContext({ viewport: { width: 390, height: 844 } });
    const complaints: string[] = [];
    const origins = new Set<string>();
    context.on('weberror', (error) => complaints.push(error.error().message));
    context.on('console', (message) => {
      const isKnown = tolerates?.test(message.text());
      if (message.type() === 'error' && !isKnown) complaints.push(message.text());
    });
    context.on('request', (request) => origins.add(new URL(request.url()).hostname));
    try {
      await scenario(await context.newPage(), context);
    } finally {
      await context.close();
    }
    assert.deepEqual(complaints, []);
    assert.deepEqual([...origins], ['localhost']);
  }

  const looks = [
    [320, 'light'],
    [1280, 'dark'],
  ] as const;
  let inspections = 0;

  /** Asserts that the page fits the window and passes axe; in `test:long` in both looks. */
  async function inspect(page: Page): Promise<void> {
    const before = page.viewportSize();
    inspections += 1;
    for (const [place, [width, colorScheme]] of looks.entries()) {
      await page.setViewportSize({ width, height: 844 });
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      const where = `${page.url()} at ${width} px, ${colorScheme}`;
      const isSeen = isLong || inspections % looks.length === place;
      if (isSeen) assert.deepEqual(await axeViolations(page), [], where);
      const excess = await page.evaluate(
        'document.documentElement.scrollWidth - document.documentElement.clientWidth',
      );
      assert.equal(excess, 0, where);
    }
    if (before) await page.setViewportSize(before);
  }

  /** Goes from the front page to the payment page and returns the order's address. */
  async function checkOut(page: Page, from = shopUrl): Promise<string> {
    await page.goto(`${from}/products/blanket`);
    await page.getByRole('button', { name: 'Add to cart' }).click();
    await page.getByLabel('First name').fill('Thandi');
    await page.getByLabel('E-mail address').fill('thandi@example.com');
    await page.getByRole('button', { name: 'Check out' }).click();
    await payButton(page).waitFor();
    const { pathname } = await latestOrder(page, from);
    return `${from}${pathname}`;
  }

  async function latestOrder(page: Page, from: string): Promise<URL> {
    // The request carries the visitor's cookies, and needs no other tab.
    const answer = await page.context().request.get(`${from}/orders`);
    const [, place = ''] =
      /<ul class="orders">.*?<a href="([^"]+)"/s.exec(await answer.text()) ?? [];
    return new URL(place, from);
  }

  const seen = (page: Page, text: string | RegExp) =>
    page.getByText(text, { exact: true }).waitFor();

  // The shop looks its open orders up every few seconds, so a look-up may come before the callback.
  const learned = (outcome: string) =>
    new RegExp(`^(Signed callback verified|Found by look-up): ${outcome}$`);

  test('the front page leads to the shop, the console and the mailbox', async () => {
    const { base_url, shop_url, console_url, mailbox_url } = sandbox.file;
    const text = await (await fetch(base_url)).text();
    for (const url of [shop_url, console_url, mailbox_url]) {
      assert.ok(text.includes(`href="${url}"`), String(url));
    }
  });

  test('buys in three payments through a challenge, reads the mails as they arrive, and is refunded', async () => {
    await visit(async (page, context) => {
      await page.goto(shopUrl);
      await inspect(page);
      await page.getByRole('link', { name: 'Mohair blanket' }).click();
      await heading(page, 'Mohair blanket').waitFor();
      await seen(page, '12 payments');
      await inspect(page);
      await page.getByRole('button', { name: 'Add to cart' }).click();
      await page.getByRole('button', { name: 'One Mohair blanket more' }).click();
      await page.getByRole('button', { name: 'One Mohair blanket less' }).click();
      await inspect(page);

      const orderUrl = await checkOutFromCart(page);
      const watching = await context.newPage();
      await watching.goto(orderUrl);
      await heading(watching, 'Waiting for your payment').waitFor();
      await inspect(watching);
      const mailbox = await openMailbox(context);

      await pay(page, challengeCard, 3);
      await answerBank(page, 'Approve');
      await page.waitForURL(orderUrl);
      await heading(page, 'Thank you').waitFor();
      await seen(page, learned('paid'));
      // The second tab changed without being touched.
      await heading(watching, 'Thank you').waitFor();
      await inspect(watching);
      await page.getByText('3 monthly payments').waitFor();
      await page.getByRole('link', { name: 'Cart', exact: true }).waitFor();
      await readReceipt(mailbox);

      await page.getByRole('button', { name: /^Refund R/ }).click();
      await heading(page, 'Refund in progress').waitFor();
      await inspect(page);
      await heading(watching, 'Refund in progress').waitFor();
      const command = (await page.locator('code').first().textContent()) ?? '';
      await approveRefund(watching, command);
      await mailArrives(mailbox, / refunded by /);
      // The message that is being read stays open.
      await mailbox.getByRole('heading', { name: / paid to /, level: 2 }).waitFor();
      assert.equal(await mailbox.evaluate('window.isFirstLoad'), true);

      await page.goto(`${shopUrl}/orders`);
      await inspect(page);
    });
  });

  const mailsIn = (mailbox: Page, subject: RegExp) =>
    mailbox.getByRole('listitem').filter({ hasText: subject });

  /** Opens the mailbox in a tab before the shopper has any mail. The tab is never loaded again. */
  async function openMailbox(context: BrowserContext): Promise<Page> {
    const mailbox = await context.newPage();
    // On a phone, the message that is being read covers the list.
    await mailbox.setViewportSize({ width: 1280, height: 844 });
    await mailbox.goto(sandbox.file.mailbox_url ?? '');
    await heading(mailbox, 'Mailbox').waitFor();
    await mailbox.evaluate('window.isFirstLoad = true');
    assert.equal(await mailsIn(mailbox, / paid to /).count(), 0);
    return mailbox;
  }

  async function mailArrives(mailbox: Page, subject: RegExp): Promise<void> {
    // A hidden page polls less often.
    await mailbox.bringToFront();
    await mailsIn(mailbox, subject).waitFor();
  }

  /** Opens the receipt as soon as it is listed, rendered and as source. */
  async function readReceipt(mailbox: Page): Promise<void> {
    await mailArrives(mailbox, / paid to /);
    await mailsIn(mailbox, / paid to /)
      .getByRole('button')
      .click();
    const rendered = mailbox.frameLocator('#frame');
    await rendered.getByText('Payment 3 of 3').waitFor();
    await mailbox.getByRole('tab', { name: 'Plain text' }).click();
    const text = mailbox.getByRole('tabpanel', { name: 'Plain text' });
    assert.match((await text.textContent()) ?? '', /Payment 3 of 3/);
    await mailbox.getByRole('tab', { name: 'Source' }).click();
    const source = mailbox.getByRole('tabpanel', { name: 'Source' });
    assert.match((await source.textContent()) ?? '', /^<!doctype html>.*<\/table>/is);
    // The frame runs no script, so axe can look at the page only while the frame is hidden.
    assert.equal(await mailbox.locator('#frame').isVisible(), false);
    await inspect(mailbox);
  }

  async function checkOutFromCart(page: Page): Promise<string> {
    await page.getByLabel('E-mail address').fill('thandi@example.com');
    await page.getByRole('button', { name: 'Check out' }).click();
    await payButton(page).waitFor();
    return (await latestOrder(page, shopUrl)).href;
  }

  /** The command that the page tells the operator to type. */
  async function approveRefund(watching: Page, command: string): Promise<void> {
    const tranche = commandLine({ DATA_DIR: sandbox.dataDir, MASTER_KEY: '' });
    const [, ...args] = command.split(' ');
    assert.match(command, /^bin\/tranche refunds approve [0-9a-f-]{36}$/);
    const { code, stderr } = await tranche.run(...args);
    assert.equal(code, 0, stderr);
    await heading(watching, 'Refunded').waitFor();
    await inspect(watching);
  }

  test('finds the mailbox in the banner, cancels, and finds the order cancelled and the cart as it was', async () => {
    await visit(async (page, context) => {
      const orderUrl = await checkOut(page);
      const banner = page.getByRole('complementary', { name: 'Test mode' });
      const opened = context.waitForEvent('page');
      await banner.getByRole('link', { name: 'Mailbox' }).click();
      const mailbox = await opened;
      await heading(mailbox, 'Mailbox').waitFor();
      assert.equal(new URL(mailbox.url()).origin, sandbox.file.mailbox_url);
      await mailbox.close();
      await cancelButton(page).click();
      await page.waitForURL(orderUrl);
      await heading(page, 'Not paid').waitFor();
      await seen(page, learned('cancelled'));
      await inspect(page);
      const shopsLink = page.getByRole('link', { name: 'mailbox' });
      assert.equal(await shopsLink.getAttribute('href'), sandbox.file.mailbox_url);
      await page.getByRole('link', { name: 'Back to the cart' }).click();
      await page.getByText('Mohair blanket').waitFor();
      await page.goto(`${shopUrl}/nothing`);
      await inspect(page);
    }, /404/);
  });

  test('pays while the shop is down, and the restarted shop learns of it', async () => {
    const { base_url, merchant, integration } = sandbox.file;
    const start = (shopPort: number) =>
      startDemoShop(
        { clock: systemClock, log },
        { baseUrl: base_url, dataDir: folder.path, shopPort },
        { merchant, integration } as Parameters<typeof startDemoShop>[2],
      );
    let shop = await start(await quietPort());
    assert.ok(shop);
    const { url } = shop;
    try {
      await visit(async (page) => {
        const orderUrl = await checkOut(page, url);
        await shop?.stop();
        const sentThere = page.waitForRequest(orderUrl);
        await pay(page, visa, 1);
        await sentThere;
        shop = await start(Number(new URL(url).port));
        // The error page of the failed request may still load and interrupt this navigation.
        await until('the order', () => page.goto(orderUrl).catch(() => null));
        await heading(page, 'Thank you').waitFor();
        await seen(page, learned('paid'));
      }, /ERR_CONNECTION_REFUSED/);
    } finally {
      await shop?.stop();
    }
  });
});
