import assert from 'node:assert/strict';
import { describe } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { axeViolations } from '../support/axe.ts';
import { noBrowser } from '../support/browser.ts';
import { cards } from '../support/money.ts';
import { challengeCard } from '../support/payments.ts';
import { isLong } from '../support/service.ts';
import {
  answerBank,
  heading,
  openShop,
  typeCard,
  type Visit,
  type VisitOptions,
  workOnce,
} from '../support/shop.ts';
import { until } from '../support/until.ts';

// The plan page in a browser: signing in by e-mail, sessions in several tabs, and the parts that
// need no session.

const standing = 'R 500,00 of R 1 500,00 paid';
const refusals = /Failed to load resource/;
const mastercard = '5555555555554444';
/** This is longer than any month, and shorter than the time until the payment after the next. */
const month = { hours: 31 * 24 + 12 };

describe('the plan page in a browser', { skip: noBrowser }, () => {
  const { shop, scenario: visits } = openShop();

  const scenario = (
    title: string,
    { card, term = 3, ...options }: Partial<VisitOptions> & { card?: string; term?: number },
    run: (visit: Visit) => Promise<void>,
  ): void =>
    visits(title, { ends: 'successful', closed: true, ...options }, async (visit) => {
      const { challenge_url } = await visit.shopper.pay(term, card === undefined ? {} : { card });
      if (challenge_url !== null) {
        await visit.shopper.decide('approve');
        await visit.shopper.comeBack();
      }
      await run(visit);
    });

  scenario(
    'a link by mail opens a session in every tab of the browser, and its token leaves the address',
    { tolerates: refusals },
    async (visit) => {
      const { link, context, page, cancel_url } = visit;
      await page.goto(link);
      await heading(page, standing).waitFor();
      await page.getByRole('button', { name: 'Manage your payments' }).click();
      await heading(page, 'First, show that it is you').waitFor();
      await page.getByLabel('E-mail address').fill(' Thandi@Example.com ');
      await page.keyboard.press('Enter');
      await page.getByText('Check your e-mail.').waitFor();
      const token = await mailedToken(visit);

      const tab = await context.newPage();
      await tab.goto(cancel_url);
      await tab.goto(`${link}/manage#${token}`);
      await signedIn(tab).waitFor();
      assert.equal(tab.url(), link);
      assert.match(shop().received(), new RegExp(`GET ${new URL(link).pathname}/manage HTTP`));

      // The tab that asked for the link learns of the session when the shopper returns to it.
      await page.bringToFront();
      await learnsOfSession(page, signedIn(page));

      // The back button leads to the page before, and forward again to an address without the
      // token.
      await tab.goBack();
      assert.equal(tab.url(), cancel_url);
      await tab.goForward();
      await signedIn(tab).waitFor();
      assert.equal(tab.url(), link);

      // A used link changes nothing for a browser that still has its session.
      const again = await context.newPage();
      await again.goto(`${link}/manage#${token}`);
      await signedIn(again).waitFor();
      assert.equal(await again.getByText('This link was already used').count(), 0);

      await again.getByRole('button', { name: 'Sign out' }).click();
      await again.getByRole('button', { name: 'Manage your payments' }).waitFor();
      const late = await context.newPage();
      await late.goto(`${link}/manage#${token}`);
      await late.getByText('This link was already used or has expired.').waitFor();
      await heading(late, standing).waitFor();
      assert.equal(late.url(), link);

      // The other tab still shows the attempts. It learns that the session is over only when the
      // shopper uses it.
      await tab.getByRole('button', { name: 'Something is wrong' }).click();
      await tab.getByLabel('What is wrong?').fill('Hello');
      await tab.getByRole('button', { name: 'Send', exact: true }).click();
      await tab.getByText('You are signed out.').waitFor();
      // After signing in again, the shopper finds the text that they typed.
      await tab.getByLabel('E-mail address').fill('thandi@example.com');
      await tab.getByRole('button', { name: 'Send me a link' }).click();
      await tab.getByText('Check your e-mail.').waitFor();
      await again.goto(`${link}/manage#${await mailedToken(visit)}`);
      await signedIn(again).waitFor();
      await tab.bringToFront();
      const text = tab.getByLabel('What is wrong?');
      await learnsOfSession(tab, text);
      assert.equal(await text.inputValue(), 'Hello');
    },
  );

  scenario(
    'a link that is too old, and one of another plan, open nothing and say what to do',
    { tolerates: refusals },
    async (visit) => {
      const { link, page, shopper } = visit;
      await shopper.send('POST', 'link', { email: 'thandi@example.com' });
      const token = await mailedToken(visit);
      const other = await shop().paying.shopper();
      await other.pay(3);
      await page.goto(`${shop().origins.service}${other.url}/manage#${token}`);
      await page.getByText('This link was already used or has expired.').waitFor();

      await visit.advance({ minutes: 11 });
      await page.goto(`${link}/manage#${token}`);
      await page.getByText('Ask for a new one. Nothing has changed.').waitFor();
      assert.equal(await signedIn(page).count(), 0);
      // From this page the shopper can ask for a new link.
      await page.getByRole('button', { name: 'Manage your payments' }).click();
      await page.getByLabel('E-mail address').waitFor();
      await workOnce(shop().paying);
    },
  );

  scenario(
    'the back button closes a choice, and a shopper who asks too often is told so',
    { tolerates: refusals },
    async ({ link, page }) => {
      await page.goto(link);
      await page.getByRole('button', { name: 'Manage your payments' }).click();
      await page.getByLabel('E-mail address').fill('sipho@example.com');
      const ask = page.getByRole('button', { name: 'Send me a link' });
      for (let count = 0; count < 3; count += 1) {
        // The message about the previous link is still shown, so only the response proves that this
        // request was answered.
        await Promise.all([page.waitForResponse(`${link}/link`), ask.click()]);
        await page.getByText('Check your e-mail.').waitFor();
      }
      await ask.click();
      await page.getByText('You have tried too often.').waitFor();
      await page.goBack();
      await heading(page, standing).waitFor();
      assert.equal(page.url(), link);
      await page.goForward();
      await heading(page, 'First, show that it is you').waitFor();
      await page.getByRole('button', { name: 'Back' }).click();
      await heading(page, standing).waitFor();
    },
  );

  scenario('a message to the merchant is on the page after it is sent', {}, async (visit) => {
    const { page, shopper } = visit;
    await signIn(visit, page);
    await page.getByRole('button', { name: 'Something is wrong' }).click();
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await page.getByText('First, write what is wrong.').waitFor();
    await page.getByLabel('What is wrong?').fill('I do not know this shop.');
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await page.getByText('Thank you. We have your message.').waitFor();
    const { rows } = await shop().paying.service.deps.database.pool.query(
      'select text from conversation_entries where checkout_id = $1',
      [shopper.id],
    );
    assert.deepEqual(rows, [{ text: 'I do not know this shop.' }]);
    await page.getByRole('heading', { name: 'Your messages' }).waitFor();
    await page.getByText('I do not know this shop.').waitFor();
    await page.getByRole('button', { name: 'Back' }).click();
    await heading(page, standing).waitFor();
  });

  scenario(
    'a receipt opens beside the plan in its language, and the dates are a file',
    { viewport: { width: 1280, height: 900 } },
    async ({ link, page, context, shopper }) => {
      await page.goto(link);
      await page.getByRole('button', { name: 'Afrikaans' }).click();
      const [receipt] = await Promise.all([
        context.waitForEvent('page'),
        page.getByRole('link', { name: 'Kwitansie vir betaling 1', exact: true }).click(),
      ]);
      await receipt.getByRole('heading', { name: 'Kwitansie' }).waitFor();
      assert.equal(await receipt.locator('html').getAttribute('lang'), 'af');
      await receipt.getByText('Bean There').first().waitFor();
      await receipt.getByText(shopper.id).waitFor();
      for (const width of isLong ? [390, 1280] : [390]) {
        await receipt.setViewportSize({ width, height: 844 });
        assert.deepEqual(await axeViolations(receipt), []);
      }
      await receipt.emulateMedia({ media: 'print' });
      assert.equal(await receipt.locator('button, a, .ribbon').count(), 0, 'nothing to press');
      assert.equal(await receipt.getByText('Test mode').count(), 0);
      const paper = await receipt.evaluate('getComputedStyle(document.body).backgroundColor');
      assert.equal(paper, 'rgb(255, 255, 255)');
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('link', { name: 'Voeg die datums by u kalender' }).click(),
      ]);
      assert.equal(file.suggestedFilename(), 'payments.ics');
    },
  );

  for (const width of isLong ? [390, 1280] : [390]) {
    scenario(
      `the mail about a decline leads to another card through the bank: the plan is clean and continues, at ${width} px`,
      {
        card: cards.laterLost,
        payments: 3,
        viewport: { width, height: 900 },
      },
      async (visit) => {
        const { link, page, shopper } = visit;
        await visit.advance(month);
        await followMail(visit, 'Your payment of R 500,00 to Bean There did not go through');
        // The link of the mail signs the shopper in and leads to the card. The lost card cannot
        // pay, so the page proposes another one.
        await heading(page, 'Pay R 500,00').waitFor();
        assert.equal(page.url(), link);
        // That session covers only the late payment. A link that the shopper asks for leads them
        // back to the step at which they asked.
        await page.getByRole('button', { name: 'Back' }).click();
        await page.getByText('R 500,00 is late.').waitFor();
        await page.context().clearCookies();
        await page.reload();
        // A person who found the card must not learn from the page that it was reported.
        await page.getByText('Your bank declined this card. It costs you nothing extra.').waitFor();
        await payNow(page).click();
        await page.getByLabel('E-mail address').fill('thandi@example.com');
        await page.getByRole('button', { name: 'Send me a link' }).click();
        await page.getByText('Check your e-mail.').waitFor();
        await followMail(visit, 'Your link to the payments for Bean There');
        await heading(page, 'Pay R 500,00').waitFor();
        assert.ok(await page.getByRole('radio', { name: 'Another card' }).isChecked());
        await typeCard(page, challengeCard);
        await page.getByRole('checkbox', { name: /^Also charge this card R 500,00 on/ }).check();
        await payNow(page).click();
        await answerBank(page, 'Approve');
        await page.getByText('R 500,00 is paid. Thank you.').waitFor();
        await heading(page, 'R 1 000,00 of R 1 500,00 paid').waitFor();
        assert.equal(page.url(), link);
        assert.equal(await page.getByText('Visa ending 3155').first().isVisible(), true);
        assert.equal(await page.getByText('is late').count(), 0);

        await visit.advance(month);
        await page.reload();
        await heading(page, 'Everything is paid').waitFor();
        const [card] = await shopper.rows('stored_cards');
        const collections = await shopper.rows('collections');
        const last = collections.find(({ instalment }) => instalment === 3);
        assert.equal(card.last4, '3155');
        assert.equal(last.card_ref, card.card_ref);
      },
    );
  }

  scenario(
    'a single payment whose hold lapsed asks for a card, and offers no card that is not stored',
    { term: 1 },
    async (visit) => {
      const { page, shopper } = visit;
      const [payment] = await shopper.rows('instalments');
      await shop().paying.gateway.call(
        'POST',
        `/v1/payment_intents/${payment.payment_ref}/cancel`,
        {},
      );
      await visit.advance({ hours: 48 });
      await signIn(visit, page);
      await page.getByText('R 1 500,00 is late.').waitFor();
      await page.getByText('Your bank’s reservation ended before we took the money.').waitFor();
      assert.equal(await page.getByRole('button', { name: /^Change the card/ }).count(), 0);
      assert.equal(await page.getByText('Visa ending 4242').count(), 0);
      await payNow(page).click();
      await heading(page, 'Pay R 1 500,00').waitFor();
      assert.equal(await page.getByRole('radio').count(), 0);
      await typeCard(page, mastercard);
      await payNow(page).click();
      await page.getByText('R 1 500,00 is paid. Thank you.').waitFor();
      await page.getByText('Paid with').waitFor();
      await page.getByText('Mastercard ending 4444').waitFor();
    },
  );

  scenario(
    'a shopper who left their bank’s challenge pays with another card; a mistyped one closes nothing',
    { payments: 3 },
    async (visit) => {
      const { link, page, shopper } = visit;
      const payEarly = async (card: string) => {
        await page.getByRole('button', { name: /^Pay the next one early/ }).click();
        await page.getByRole('radio', { name: 'Another card' }).check();
        await typeCard(page, card);
        await payNow(page).click();
      };
      const correct = async () => {
        const frame = page.frameLocator('iframe[title="Card details"]');
        await frame.getByText('This card number is not right.').waitFor();
        await payNow(page).waitFor();
        await typeCard(page, mastercard);
        await payNow(page).click();
      };
      await signIn(visit, page);
      await payEarly(challengeCard);
      await heading(page, 'Confirm your payment').waitFor();
      await page.goto(link);
      await page.getByRole('button', { name: 'Continue at your bank' }).waitFor();
      await payEarly('4242424242424241');
      await correct();
      await heading(page, 'R 1 000,00 of R 1 500,00 paid').waitFor();
      await payEarly('4242424242424241');
      await correct();
      await heading(page, 'Everything is paid').waitFor();
      const attempts = (await shopper.planAttempts()).map(({ status }) => status);
      assert.deepEqual(attempts.sort(), ['charged', 'charged', 'voided']);
    },
  );

  /** Signs in by mail, without the form. */
  async function signIn(visit: Visit, page: Page): Promise<void> {
    await visit.shopper.send('POST', 'link', { email: 'thandi@example.com' });
    await page.goto(`${visit.link}/manage#${await mailedToken(visit)}`);
    await signedIn(page).waitFor();
  }

  /** Opens the only mail with this subject in the visitor's page and presses its one link. */
  async function followMail({ page, shopper }: Visit, subject: string): Promise<void> {
    await workOnce(shop().paying);
    const { rows } = await shop().paying.service.deps.database.pool.query(
      `select html from mailbox where checkout_id = $1 and translate(subject, '\u00a0', ' ') = $2`,
      [shopper.id, subject],
    );
    assert.equal(rows.length, 1, subject);
    await page.goto('about:blank');
    await page.setContent(rows[0].html);
    await page.getByRole('link').click();
  }

  /** Sends the mails that are due. Returns the token in the newest mail to the shopper. */
  async function mailedToken({ shopper }: Visit): Promise<string> {
    await workOnce(shop().paying);
    const { rows } = await shop().paying.service.deps.database.pool.query(
      "select text from mailbox where checkout_id = $1 and text like '%manage#%' order by sent_at desc, id desc",
      [shopper.id],
    );
    const token = /manage#([\w-]+)/.exec(rows[0]?.text ?? '')?.[1];
    assert.ok(token, 'a mail with a link');
    return token;
  }
});

const signedIn = (page: Page) => page.getByText('You are signed in until');
/**
 * Waits until a tab learns of a session. It asks when it gets the focus, at most every two seconds.
 * A fast machine is back sooner, so the event is repeated.
 */
const learnsOfSession = (page: Page, sign: Locator) =>
  until('the tab to learn of the session', async () => {
    await page.evaluate('dispatchEvent(new Event("focus"))');
    return (await sign.count()) > 0;
  });
const payNow = (page: Page) => page.getByRole('button', { name: /^Pay R.* now$/ });
