import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { axeViolations } from '../support/axe.ts';
import { connectBrowser, noBrowser } from '../support/browser.ts';
import {
  type GatewayUnderTest,
  newPayment,
  publishableKey,
  secretKey,
  startGateway,
} from '../support/gateway.ts';

// The card frame and the issuer's page in a real browser, on a page of another origin with the
// same policy as the payment page.

describe('the card frame', { skip: noBrowser }, () => {
  let gateway: GatewayUnderTest;
  let server: http.Server;
  let browser: Browser;
  let page: Page;
  let origin = '';
  const requests: string[] = [];

  before(async () => {
    const pageOrigins: string[] = [];
    gateway = await startGateway({ pageOrigins });
    server = http.createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk) => chunks.push(chunk));
      request.on('end', () => {
        requests.push(`${request.url} ${Buffer.concat(chunks)}`);
        response.writeHead(200, {
          'Content-Type': 'text/html; charset=utf-8',
          'Content-Security-Policy': `default-src 'none'; script-src 'nonce-n' ${gateway.url}; style-src 'nonce-n'; img-src data:; frame-src ${gateway.url}`,
          'Referrer-Policy': 'no-referrer',
        });
        const isHyper = request.url?.startsWith('/hyper');
        response.end(shop(gateway.url, isHyper ? hyperPage(gateway.url) : stripePage));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    pageOrigins.push(origin);
    browser = await connectBrowser();
    page = await browser.newPage();
  });

  after(async () => {
    await browser?.close();
    server?.closeAllConnections();
    server?.close();
    await gateway?.close();
  });

  /**
   * Opens the page in a tab that all tests share, because the first page of a browser profile takes
   * much longer than the next ones.
   */
  async function open(
    look: { width?: number; colorScheme?: 'light' | 'dark' } = {},
    at = origin,
  ): Promise<void> {
    await page.setViewportSize({ width: look.width ?? 480, height: 640 });
    await page.emulateMedia({ colorScheme: look.colorScheme ?? 'light' });
    await page.goto(at);
  }

  async function ready() {
    await page.waitForFunction(() => Reflect.get(globalThis, 'isReady'));
    const frame = page.frameLocator('iframe[title="Card details"]');
    return {
      number: frame.getByLabel('Card number'),
      expiry: frame.getByLabel('Expiry'),
      code: frame.getByLabel('Security code'),
      text: (words: string) => frame.getByText(words),
      height: () => page.evaluate<number>('document.querySelector("iframe").offsetHeight'),
      // biome-ignore lint/suspicious/noExplicitAny: what the script answers is what is tested
      token: () => page.evaluate<any>('window.createToken()'),
    };
  }

  test('returns a token that pays, and shows no digit of the card to the page', async () => {
    await open();
    const card = await ready();
    await card.number.pressSequentially('4000002500003155');
    assert.equal(await card.number.inputValue(), '4000 0025 0000 3155');
    await card.expiry.pressSequentially('1230');
    assert.equal(await card.expiry.inputValue(), '12 / 30');
    await card.code.pressSequentially('123');
    const { confirmationToken } = await card.token();
    const payment = await newPayment(gateway, 'pm_card_visa', {
      card_token: confirmationToken.id,
      return_url: `${origin}/return`,
    });
    const answer = await gateway.gateway.authorise(payment);
    assert.equal(answer.outcome, 'challenge');
    await page.goto((answer as { url: string }).url);
    assert.deepEqual(await axeViolations(page), []);
    await page.getByRole('button', { name: 'Approve', exact: true }).click();
    await page.waitForURL(`${origin}/return?*`);
    const held = await gateway.gateway.payment(payment.merchant, answer.payment_ref ?? '');
    assert.equal(held.outcome, 'authorised');
    assert.ok(requests.every((request) => !/4000.?0025|0000.?3155/.test(request)));
  });

  test('confirms a payment of the other protocol, at the bank or at once', async () => {
    for (const [number, status] of [
      ['4242424242424242', 'succeeded'],
      ['4000000000000002', 'failed'],
      ['4000000000003220', 'requires_customer_action'],
    ] as const) {
      const at = async (path: string, body?: object) => {
        const response = await fetch(`${gateway.url}/payments${path}`, {
          method: body ? 'POST' : 'GET',
          headers: { 'api-key': secretKey },
          ...(body && { body: JSON.stringify(body) }),
        });
        // biome-ignore lint/suspicious/noExplicitAny: the test checks what the answer holds
        return (await response.json()) as any;
      };
      const begun = await at('', { amount: 50_000, currency: 'ZAR' });
      const secret = new URLSearchParams({ secret: begun.client_secret });
      await open({}, `${origin}/hyper?${secret}`);
      const card = await ready();
      await card.number.fill(number);
      await card.expiry.fill('12/30');
      await card.code.fill('123');
      if (status === 'requires_customer_action') {
        void page.evaluate('window.confirmPayment()').catch(() => {});
        await page.getByRole('button', { name: 'Approve', exact: true }).click();
        await page.waitForURL(`${origin}/return?*`);
        const { searchParams } = new URL(page.url());
        assert.equal(searchParams.get('status'), 'succeeded');
      } else {
        // biome-ignore lint/suspicious/noExplicitAny: what the script answers is what is tested
        const answer = await page.evaluate<any>('window.confirmPayment()');
        assert.equal(answer.status, status);
      }
      const { status: kept } = await at(`/${begun.payment_id}`);
      assert.equal(kept, status === 'requires_customer_action' ? 'succeeded' : status);
    }
    assert.ok(requests.every((request) => !/4242.?4242|0000.?3220/.test(request)));
  });

  test('describes every problem beside its field without moving the layout', async () => {
    await open({ width: 320 });
    const card = await ready();
    const height = await card.height();
    const { error } = await card.token();
    assert.equal(error.type, 'validation_error');
    for (const words of ['Enter the card number.', 'Enter the date.', 'Enter the code.']) {
      await card.text(words).waitFor();
    }
    assert.equal(await card.number.getAttribute('aria-invalid'), 'true');
    await card.number.pressSequentially('4242424242424241');
    await card.expiry.pressSequentially('1319');
    await card.text('This card number is not right.').waitFor();
    await card.code.focus();
    await card.text('Check the month.').waitFor();
    assert.equal(await card.height(), height);
    for (const [written, words] of [
      ['0120', 'It has expired.'],
      ['12', 'Enter it as MM / YY.'],
      ['0199', 'Check the year.'],
    ] as const) {
      await card.expiry.fill(written);
      await card.code.focus();
      await card.text(words).waitFor();
      assert.equal(await card.height(), height, words);
    }
    await card.number.fill('4242424242424242');
    assert.equal(await card.number.getAttribute('aria-invalid'), null);
  });

  test('accepts every common way to write an expiry date', async () => {
    await open();
    const { expiry } = await ready();
    for (const written of ['08/2029', '8/29', '2029-08', '0829', '08 / 29', '08/29']) {
      await expiry.fill(written);
      assert.equal(await expiry.inputValue(), '08 / 29', written);
    }
  });

  for (const colorScheme of ['light', 'dark'] as const) {
    test(`axe finds nothing, ${colorScheme}, with errors shown`, async () => {
      await open({ colorScheme });
      const card = await ready();
      await card.token();
      assert.deepEqual(await axeViolations(page), []);
    });
  }

  test('does not load on a page of another origin, and ignores its messages', async () => {
    // The same server under another name is another origin.
    await open({}, origin.replace('127.0.0.1', 'localhost'));
    const frame = await page.waitForSelector('iframe');
    const content = await frame.contentFrame();
    await content?.waitForLoadState();
    assert.equal(await content?.getByLabel('Card number').count(), 0);
    assert.equal(await page.evaluate('window.isReady === true'), false);
  });
});

function shop(gateway: string, script: string): string {
  return `<!doctype html>
<html lang="en-ZA">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>A shop</title>
    <link rel="icon" href="data:,">
    <style nonce="n">:root { color-scheme: light dark } body { background: light-dark(#fff, #131d1c) }</style>
    <script nonce="n" src="${gateway}/v1/tranche.js"></script>
    <script nonce="n" src="${gateway}/v1/HyperLoader.js"></script>
  </head>
  <body>
    <main>
      <h1>Pay</h1>
      <form><div id="card"></div><button>Pay</button></form>
    </main>
    <script nonce="n">
      ${script}
    </script>
  </body>
</html>`;
}

const stripePage = `const stripe = Stripe('${publishableKey}');
      const dark = matchMedia('(prefers-color-scheme: dark)').matches;
      const elements = stripe.elements({ mode: 'payment', appearance: { theme: dark ? 'night' : 'stripe' } });
      const card = elements.create('payment');
      card.on('ready', () => { window.isReady = true; });
      card.mount('#card');
      window.createToken = async () => {
        const { error } = await elements.submit();
        return error ? { error } : stripe.createConfirmationToken({ elements });
      };`;

/** The five calls of HyperLoader.js that a page makes. */
const hyperPage = (
  gateway: string,
) => `const hyper = Hyper('${publishableKey}', { customBackendUrl: '${gateway}' });
      const clientSecret = new URL(location).searchParams.get('secret');
      const elements = hyper.elements({ clientSecret });
      const card = elements.create('payment');
      card.on('ready', () => { window.isReady = true; });
      card.mount('#card');
      window.confirmPayment = () => hyper.confirmPayment({
        elements,
        confirmParams: { return_url: location.origin + '/return' },
        redirect: 'if_required',
      });`;
