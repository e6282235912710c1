import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { startCardEntry, startGallery } from '../../web/pay/gallery.ts';
import { axeViolations } from '../support/axe.ts';
import { connectBrowser, noBrowser } from '../support/browser.ts';
import { isLong } from '../support/service.ts';

const phone = { width: 390, height: 844 };

type Gallery = Awaited<ReturnType<typeof startGallery>>;

describe('the hosted page in a browser', { skip: noBrowser }, () => {
  let browser: Browser;
  let cards: Awaited<ReturnType<typeof startCardEntry>>;
  let gallery: Gallery;
  let page: Page;
  const complaints: string[] = [];

  before(async () => {
    cards = await startCardEntry();
    // In a final state the page returns to the shop, but the tests have to look at it. So the
    // gallery answers for the shop with a 204, and the page stays. (A route of the context could
    // also answer, but would turn off the browser's cache.)
    gallery = await startGallery(cards.cardEntry, { staysOnPage: true });
    cards.pageOrigins.push(gallery.url);
    browser = await connectBrowser();
    page = await openPage();
  });
  after(async () => {
    await browser?.close();
    await gallery?.stop();
    await cards?.stop();
  });
  // The first page of a profile takes much longer than the next ones, so all tests share one.
  beforeEach(async () => {
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await open('about:blank');
    await page.setViewportSize(phone);
    await page.emulateMedia({ colorScheme: 'light' });
    page.removeAllListeners('request');
    complaints.length = 0;
    gallery.asked.length = 0;
  });

  const looks = [
    { width: 320, colorScheme: 'light' },
    { width: 1280, colorScheme: 'dark' },
  ] as const;

  // Axe checks each state here in one language and at one of the two widths, and in `test:long` in
  // all languages at both. Every state has to fit in every language, because the lengths of the
  // texts differ.
  for (const [place, { width, colorScheme }] of looks.entries()) {
    const name = `${colorScheme} at ${width} px`;
    test(`every state passes axe, ${name}, and fits into 320 px`, async () => {
      await page.emulateMedia({ colorScheme });
      for (const [index, state] of Object.keys(gallery.states).entries()) {
        if (!isLong && index % looks.length !== place) continue;
        await reach(state);
        if (isLong || !/-(afrikaans|isizulu)$/.test(state)) {
          await page.setViewportSize({ width, height: 844 });
          assert.deepEqual(await axeViolations(page), [], `${state}, ${name}`);
        }
        await page.setViewportSize({ width: 320, height: 844 });
        const excess = await page.evaluate(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        );
        assert.equal(excess, 0, `${state} is wider than 320 px`);
      }
      assert.deepEqual(complaints, []);
    });
  }

  test('a change of language keeps the choice and the card, and the payment names the new language', async () => {
    await page.goto(`${gallery.url}/pay/approved`);
    await ready(page);
    await page.getByRole('radio', { name: /6 payments/ }).check();
    await typeCard(page);
    await page.getByRole('button', { name: 'isiZulu' }).click();
    await page.getByRole('heading', { name: 'Ufuna ukukhokha kanjani?' }).waitFor();
    // The page sets its language and its title after it has shown the texts.
    await page.locator('html[lang="zu"]').waitFor();
    assert.equal(await page.title(), 'Khokha · Karoo Coffee Roasters');
    assert.equal(await page.getByRole('radio', { checked: true }).getAttribute('value'), '6');
    await page.getByText('15 Disemba 2026').first().waitFor();
    const card = page.frameLocator('iframe[title="Imininingwane yekhadi"]');
    assert.match(await card.getByLabel('Card number').inputValue(), /^4242/);
    assert.deepEqual(await axeViolations(page), []);
    await page.getByRole('button', { name: 'Khokha R 250,00 manje' }).click();
    await page.getByText('Inkokhelo ivunyiwe').waitFor();
    const { language, number_of_payments } = lastAsked('/pay/approved/pay') as Record<
      string,
      unknown
    >;
    assert.deepEqual([language, number_of_payments], ['zu', 6]);
    assert.deepEqual(complaints, []);
  });

  describe('without a script', () => {
    let plain: Page;
    before(async () => {
      plain = await openPage({ javaScriptEnabled: false });
    });
    after(() => plain?.context().close());

    test('the page explains itself in place of a form that never loads', async () => {
      for (const [state, text] of [
        ['open', 'Paying needs JavaScript'],
        ['open-afrikaans', 'Betaling benodig JavaScript'],
        ['paying-elsewhere', 'Paying needs JavaScript'],
      ] as const) {
        await plain.goto(`${gallery.url}/pay/${state}`);
        const notice = plain.locator('main .notice');
        assert.ok(await notice.isVisible());
        const said = String(await notice.textContent());
        assert.match(said, new RegExp(text));
        // A payment may be in flight: then the page must not say that nothing was charged.
        assert.equal(
          /Nothing was charged|Niks is verhaal/.test(said),
          state !== 'paying-elsewhere',
        );
        assert.equal(await plain.getByRole('button').count(), 0, 'nothing that would do nothing');
        assert.ok(await plain.getByText('Hand grinder, steel').isVisible());
        assert.equal(
          await plain.locator('.card-loading, .progress').filter({ visible: true }).count(),
          0,
        );
      }
    });

    test('the plan is readable, and its receipts and dates are links', async () => {
      await plain.goto(`${gallery.url}/pay/plan-long`);
      assert.ok(
        await plain.getByRole('heading', { name: 'R 4 500,00 of R 12 000,00' }).isVisible(),
      );
      assert.equal(await plain.locator('.plan li').filter({ visible: true }).count(), 24);
      assert.equal(await plain.getByRole('link', { name: /^Receipt for payment \d+$/ }).count(), 9);
      assert.ok(
        await plain.getByRole('link', { name: 'Add the dates to your calendar' }).isVisible(),
      );
      assert.ok(await plain.getByRole('link', { name: /^Return to Karoo/ }).isVisible());
      assert.match(String(await plain.locator('.notice').textContent()), /switch JavaScript on/);
      assert.equal(await plain.getByRole('button').count(), 0, 'nothing that would do nothing');
      // A one-time link shows the plan, too.
      await plain.goto(`${gallery.url}/pay/plan-late/manage#token`);
      assert.ok(await plain.getByText('R 500,00 is late.').isVisible());
      assert.ok(await plain.getByText('It costs you nothing extra.').isVisible());
    });
  });

  test('where no links are mailed, the plan offers no choices and says whom to contact', async () => {
    const mainOf = async (state: string) => {
      const answer = await fetch(`${gallery.url}/pay/${state}`);
      return /<main.*<\/main>/s.exec(await answer.text())?.[0] ?? '';
    };
    assert.match(await mainOf('plan'), /<button/);
    for (const [state, text] of [
      ['plan-no-links', 'To make a payment, to change the card or to report a problem, contact '],
      ['plan-no-links-early', 'To make a payment, to change the card or to report a problem'],
      ['plan-no-links-afrikaans', ' om ’n betaling te maak, die kaart te verander of '],
      ['plan-no-links-isizulu', 'Ukuze ukhokhe, ushintshe ikhadi noma ubike inkinga, xhumana '],
    ] as const) {
      const main = await mainOf(state);
      assert.ok(main.includes(text), state);
      assert.match(main, /Karoo Coffee Roasters/);
      assert.doesNotMatch(main, /<button/, 'nothing that would do nothing');
    }
  });

  test('an amount and the parts of a price stay on one line, even at twice the zoom', async () => {
    for (const state of ['open', 'open-odd-amounts', 'open-isizulu']) {
      await page.goto(`${gallery.url}/pay/${state}`);
      for (const width of [195, 320, 390, 1280]) {
        await page.setViewportSize({ width, height: 844 });
        const parts = width > 195 ? '.amount, .term-price span' : '.amount';
        const lines = await page.locator(parts).evaluateAll((found) =>
          found.map((one) => {
            const range = one.ownerDocument.createRange();
            range.selectNodeContents(one);
            return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size;
          }),
        );
        assert.ok(lines.length > 0);
        assert.deepEqual(new Set(lines), new Set([1]), `${state} at ${width} px`);
      }
    }
  });

  test('after a lost connection the page offers to pay only once nothing can begin any more', async () => {
    await reach('lost');
    await page.getByText('The connection was lost.').waitFor();
    const asked = watch(page, '/pay');
    await page.waitForRequest(/lost\/state/);
    await page.waitForRequest(/lost\/state/);
    assert.equal(await page.getByRole('button', { name: /^Pay/ }).count(), 0);
    assert.equal(asked.length, 0);

    // The page's clock stands still, and then moves on to when the server no longer begins anything.
    await page.addInitScript(() => {
      if (/lost-then-open$/.test(String(Reflect.get(globalThis, 'location')))) {
        performance.now = () => 0;
      }
    });
    await reach('lost-then-open');
    await page.waitForResponse(/lost-then-open\/state/);
    await page.getByText('The connection was lost.').waitFor();
    await page.evaluate(() => {
      performance.now = () => 60_001;
    });
    await page.getByText('Your payment did not go through.').waitFor();
    await ready(page);
    const number = cardFrame(page).getByLabel('Card number');
    assert.equal(await number.inputValue(), '4242 4242 4242 4242');
  });

  test('a paid order opened again does not redirect, and links back', async () => {
    await reach('plan');
    await page.getByRole('heading', { name: 'R 500,00 of R 1 500,00 paid' }).waitFor();
    const link = page.getByRole('link', { name: 'Return to Karoo Coffee Roasters' });
    assert.equal(await link.getAttribute('href'), `${gallery.url}/shop?paid`);
  });

  test('a card form that does not load says so and loads again on request', async () => {
    const script = cards.cardEntry.scriptUrl;
    await page.route(script, (route) => route.abort());
    await page.goto(`${gallery.url}/pay/open`);
    await page.getByText('The card form did not load.').waitFor();
    assert.equal(
      await page.getByRole('button', { name: /^Pay/ }).getAttribute('aria-disabled'),
      'true',
    );
    assert.equal(await page.getByRole('button', { name: /^Cancel/ }).isEnabled(), true);
    await page.unroute(script);
    await page.getByRole('button', { name: 'Load it again' }).click();
    await ready(page);
  });

  async function openPage(options: Parameters<Browser['newContext']>[0] = {}): Promise<Page> {
    const context = await browser.newContext({
      viewport: phone,
      reducedMotion: 'reduce',
      ...options,
    });
    context.on('weberror', (error) => complaints.push(error.error().message));
    context.on('console', (message) => {
      if (/Content Security Policy|integrity/i.test(message.text()))
        complaints.push(message.text());
    });
    return await context.newPage();
  }

  /**
   * Opens an address. The previous page may return to the shop meanwhile, which aborts this once.
   */
  async function open(address: string): Promise<void> {
    await page.goto(address).catch(() => page.goto(address));
  }

  /** Opens a state of the gallery and does what leads to it. */
  async function reach(name: string): Promise<void> {
    const state = gallery.states[name];
    assert.ok(state);
    const address = `${gallery.url}/pay/${name}${state.link ? '/manage#token' : ''}`;
    await open(address);
    const showsForm = state.page?.status === 'open' || state.page?.status === 'begun';
    if (showsForm && name !== 'card-form-missing') await ready(page);
    for (const click of state.clicks ?? []) {
      const button = page.getByRole('button', { name: click });
      await button.or(page.getByRole('radio', { name: click })).click();
    }
    if (state.typesCard) await typeCard(page);
    if (state.presses) await page.getByRole('button', { name: state.presses }).click();
    if (state.fills) {
      await page.getByLabel(state.fills.label).fill(state.fills.text);
      await page.getByRole('button', { name: state.fills.press, exact: true }).click();
    }
    switch (state.step) {
      case 'pay':
        await typeCard(page);
        await page.getByRole('button', { name: /^Pay/ }).click();
        break;
      case 'cancel':
        await page.getByRole('button', { name: /^Cancel/ }).click();
        break;
      case 'open-test-cards':
        await page.getByText('Test cards').click();
        break;
      case 'show-order': {
        const toggle = page.getByRole('button', { name: 'Show the order' });
        if (await toggle.isVisible()) await toggle.click();
      }
    }
    if (state.sees) await page.getByText(state.sees).first().waitFor();
  }

  function lastAsked(path: string): unknown {
    return gallery.asked.findLast((each) => each.path === path)?.body;
  }
});

/** Counts the page's POSTs from now on, without those that the browser itself repeats. */
function watch(page: Page, ending: string): string[] {
  const asked: string[] = [];
  page.on('request', (request) => {
    if (request.method() === 'POST' && request.url().endsWith(ending)) asked.push(request.url());
  });
  return asked;
}

async function ready(page: Page): Promise<void> {
  await page.locator('button[type=submit][aria-disabled=false]').waitFor();
}

function cardFrame(page: Page) {
  return page.frameLocator('iframe[title="Card details"]');
}

async function typeCard(page: Page): Promise<void> {
  await cardFrame(page).getByLabel('Card number').fill('4242424242424242');
  await cardFrame(page).getByLabel('Expiry').fill('12/40');
  await cardFrame(page).getByLabel('Security code').fill('123');
}
