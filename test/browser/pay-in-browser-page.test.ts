import assert from 'node:assert/strict';
import { describe } from 'node:test';
import type { Page } from 'playwright-core';
import { axeViolations } from '../support/axe.ts';
import { noBrowser, painted } from '../support/browser.ts';
import { challengeCard, visa } from '../support/payments.ts';
import { isLong } from '../support/service.ts';
import {
  answerBank,
  cancelButton,
  cardField,
  heading,
  landed,
  openShop,
  pay,
  payButton,
  term,
  typeCard,
} from '../support/shop.ts';
import { until } from '../support/until.ts';

const insufficient = '4000000000009995';

describe('the hosted page, served by the real server', { skip: noBrowser }, () => {
  const { shop, scenario } = openShop();

  const looks = [
    [320, 'light'],
    [1280, 'dark'],
  ] as const;
  // `pay-page-states` checks these states one by one, so they run here only in `test:long`.
  for (const [width, colorScheme] of isLong ? looks : []) {
    scenario(
      `at ${width} px axe finds nothing when open, declined, at the bank and after it, where the shopper may cancel`,
      {
        ends: 'cancelled',
        viewport: { width, height: 800 },
        colorScheme,
        reducedMotion: 'reduce',
        checkout: {
          line_items: [{ name: 'Ethiopia Yirgacheffe 1 kg', amount: 75_000, quantity: 2 }],
        },
      },
      async (visit) => {
        const { page, cancel_url } = visit;
        await ready(page);
        await term(page, 12).check();
        await assertAccessible(page, 'open');
        await pay(page, insufficient, 12);
        await page.getByText('not enough funds').waitFor();
        await assertAccessible(page, 'declined');
        await pay(page, challengeCard, 3);
        await heading(page, 'Confirm your payment').waitFor();
        await assertAccessible(page, 'at the bank');
        await answerBank(page, 'Close');
        await heading(page, 'Your bank wants to hear from you').waitFor();
        await assertAccessible(page, 'back from the bank');
        await cancelButton(page).click();
        await landed(visit, page, cancel_url);
      },
    );
  }

  scenario(
    'can be paid with a keyboard alone, from the first tab stop to the landing',
    { ends: 'successful' },
    async (visit) => {
      const { page, success_url } = visit;
      await ready(page);
      await painted(page);
      const stops: string[] = [];
      // Every element that gets the focus shows it.
      const tab = async () => {
        await page.keyboard.press('Tab');
        const { name, ring } = await focused(page);
        assert.ok(ring, `the focus on ${name} can be seen`);
        stops.push(name);
      };
      await tab();
      await tab();
      await tab();
      // Arrow keys move between terms.
      await page.keyboard.press('ArrowDown');
      assert.equal(await term(page, 3).isChecked(), true);
      await tab();
      await page.keyboard.type(visa);
      await tab();
      await page.keyboard.type('1240');
      await tab();
      await page.keyboard.type('123');
      await tab();
      assert.deepEqual(stops, [
        'Test mode: no real money moves. Test cards',
        'Show the order',
        'term',
        'Card number',
        'Expiry',
        'Security code',
        'Pay R 500,00 now',
      ]);
      await page.keyboard.press('Enter');
      await landed(visit, page, success_url);
      const [checkout] = await visit.shopper.rows('checkouts');
      assert.equal(checkout.number_of_payments, 3);
    },
  );

  scenario(
    'a decline moves the focus to its notice, and the shopper can cancel from there',
    { ends: 'cancelled' },
    async (visit) => {
      const { page, cancel_url } = visit;
      await pay(page, insufficient);
      await page.getByRole('alert').and(page.locator(':focus')).waitFor();
      while (!(await cancelButton(page).evaluate((button) => button.matches(':focus')))) {
        await page.keyboard.press('Tab');
      }
      await page.keyboard.press('Space');
      await landed(visit, page, cancel_url);
    },
  );

  for (const width of isLong ? [320, 390, 1280] : [320]) {
    scenario(
      `nothing moves by itself at ${width} px: while it loads, and while it pays`,
      { ends: 'successful', viewport: { width, height: 1600 } },
      async (visit) => {
        const { page, success_url } = visit;
        await ready(page);
        const shiftsSince = (time: number) =>
          page.evaluate<{ at: number }[]>(`window.shifted.filter(({ at }) => at >= ${time})`);
        // A slow browser may paint half a page once. A shift that the page causes comes each time.
        if ((await shiftsSince(0)).length > 0) {
          await page.reload();
          await ready(page);
        }
        assert.deepEqual(await shiftsSince(0), [], 'while loading');
        const animated = await page.evaluate(`[...document.querySelectorAll('*')]
          .filter((element) => getComputedStyle(element).animationName !== 'none')
          .map(({ className }) => className)`);
        assert.deepEqual(animated, [], 'what is there from the start does not slide in');
        await term(page, 3).check();
        await page.getByText('By paying you agree').waitFor();
        await typeCard(page, visa);
        // Choosing a term moves what is below it. In a slow browser that shift comes too late after
        // the input, and would count as an unexpected one.
        await painted(page);
        const chosenAt = await page.evaluate<number>('performance.now()');
        const hold = await visit.hold();
        await payButton(page).click();
        await hold.reached();
        await page.getByRole('button', { name: 'Asking your bank…' }).waitFor();
        // After eight seconds the page says that it takes long, which is another text.
        const shifts = (await shiftsSince(chosenAt)).filter(({ at }) => at < chosenAt + 8_000);
        assert.deepEqual(shifts, [], 'while paying');
        await hold.release();
        await landed(visit, page, success_url);
      },
    );
  }

  scenario(
    'shows the amounts and dates of all charges, Enter in the card form pays, and the consent is recorded as shown',
    {
      ends: 'successful',
      checkout: {
        amount: 100_001,
        line_items: [
          { name: 'Moka pot', amount: 45_000, quantity: 2 },
          { name: 'Delivery', amount: 10_001, quantity: 1 },
        ],
      },
    },
    async (visit) => {
      const { page, shopper, success_url } = visit;
      await page.getByText('Test mode').waitFor();
      await page.getByText('R 1 000,01', { exact: true }).first().waitFor();
      await page.getByRole('button', { name: 'Show the order (2 items)' }).click();
      await page.getByText('2 at R 450,00').waitFor();
      assert.equal(await term(page, 1).isChecked(), true);
      assert.equal(await page.getByText('By paying you agree').count(), 0);

      await term(page, 3).check();
      await page.getByText('R 333,35 today, then R 333,33 a month').waitFor();
      await page.getByText('The payments add up to R 1 000,01.').waitFor();
      const { plans } = await shopper.state();
      const payments = plans.find((plan) => plan.number_of_payments === 3)?.payments ?? [];
      const dates = payments
        .slice(1)
        .map(({ due_on }) =>
          new Intl.DateTimeFormat('en-ZA', { dateStyle: 'long', timeZone: 'UTC' }).format(
            new Date(due_on),
          ),
        );
      for (const date of dates) await page.getByText(date, { exact: true }).waitFor();
      const consent = await page.getByText('By paying you agree').textContent();
      assert.equal(
        consent?.replaceAll('\u00a0', ' '),
        `By paying you agree that this card is also charged R 333,33 on ${dates[0]} and R 333,33 on ${dates[1]}, without asking you again.`,
      );
      await typeCard(page, visa);
      await page.getByRole('button', { name: 'Pay R 333,35 now' }).waitFor();
      await cardField(page, 'Security code').press('Enter');
      await landed(visit, page, success_url);
      const [card] = await shopper.rows('stored_cards');
      assert.deepEqual(card.consent.payments, payments);
    },
  );

  const name = '<b>Bean</b> & "There" \u05e7\u05e4\u05d4';
  const items = [
    '<img src=x onerror=alert(1)>',
    '</script><script>alert(1)</script>',
    '\u0642\u0647\u0648\u0629 <i>1 kg</i>',
    'invoice\u202egnp.exe',
    '{{7*7}} &amp; %3Cb%3E',
  ];
  scenario(
    'a merchant’s text stays text: markup, scripts, either direction',
    {
      ends: 'cancelled',
      merchantName: name,
      viewport: { width: 1280, height: 900 },
      checkout: {
        client_reference_id: '"><svg onload=alert(1)>',
        line_items: items.map((item) => ({ name: item, amount: 100, quantity: 1 })),
      },
    },
    async (visit) => {
      const { page, cancel_url } = visit;
      page.on('dialog', (dialog) => assert.fail(dialog.message()));
      await ready(page);
      const texts = await page.locator('.items bdi').allTextContents();
      assert.deepEqual(texts, items);
      await page.getByText('"><svg onload=alert(1)>', { exact: true }).waitFor();
      assert.equal(await page.title(), `Pay · ${name}`);
      assert.equal(await page.locator('img, b, i, script:not([src]):not([type])').count(), 0);
      await page.getByRole('button', { name: `Cancel and return to ${name}`, exact: true }).click();
      await landed(visit, page, cancel_url);
    },
  );

  scenario(
    'the address of the payment leaks nowhere, and the browser stores nothing',
    { ends: 'successful', closed: true },
    async (visit) => {
      const { page, context, link, success_url } = visit;
      const token = link.split('/').at(-1) as string;
      const told: string[] = [];
      context.on('request', async (request) => {
        if (request.url().startsWith(shop().origins.service)) return;
        const headers = await request.allHeaders().catch(() => request.headers());
        told.push(`${request.url()} ${JSON.stringify(headers)} ${request.postData() ?? ''}`);
      });
      const answer = await page.goto(link);
      const headers = answer?.headers() ?? {};
      assert.equal(headers['referrer-policy'], 'no-referrer');
      assert.match(headers['content-security-policy'] ?? '', /frame-ancestors 'none'/);
      assert.doesNotMatch(headers['content-security-policy'] ?? '', /unsafe|\*/);
      assert.match(headers['cache-control'] ?? '', /no-store/);
      assert.equal(headers['set-cookie'], undefined);
      await pay(page, challengeCard, 3);
      await answerBank(page, 'Approve');
      await landed(visit, page, success_url);
      await until('the requests to others', () => told.length > 5);
      assert.deepEqual(
        told.filter((one) => one.includes(token)),
        [],
      );
      assert.deepEqual(await context.cookies(), []);
    },
  );
});

async function ready(page: Page): Promise<void> {
  await payButton(page).and(page.locator('[aria-disabled=false]')).waitFor();
}

async function assertAccessible(page: Page, when: string): Promise<void> {
  assert.deepEqual(await axeViolations(page), [], when);
  const excess = await page.evaluate(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  );
  assert.equal(excess, 0, `${when}: nothing is wider than the window`);
}

/** The focused element, in the page or in the frame, and whether the focus is visible. */
async function focused(page: Page): Promise<{ name: string; ring: boolean }> {
  const script = `(() => {
    const element = document.activeElement;
    const name = element.getAttribute('name') === 'term' ? 'term'
      : (element.labels?.[0] ?? element).innerText.trim().replaceAll(/\\s+/g, ' ');
    const rings = [element, element.closest('label, summary, .term')].filter(Boolean);
    const ring = rings.some((one) => getComputedStyle(one).outlineStyle !== 'none');
    return { tag: element.tagName, name, ring };
  })()`;
  type Focus = { tag: string; name: string; ring: boolean };
  const found = await page.evaluate<Focus>(script);
  if (found.tag !== 'IFRAME') return found;
  const frame = page.frames().find((one) => one.url().includes('/v1/card-frame'));
  assert.ok(frame);
  return await frame.evaluate<Focus>(script);
}
