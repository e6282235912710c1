import assert from 'node:assert/strict';
import { describe } from 'node:test';
import type { Page } from 'playwright-core';
import { confirm, payAs, shopperAt } from '#hosting/sandbox/shopper.ts';
import { systemClock } from '#platform/shared/clock.ts';
import { noBrowser } from '../support/browser.ts';
import { challengeCard, visa } from '../support/payments.ts';
import { actingOn } from '../support/plan-attempts.ts';
import {
  answerBank,
  heading,
  landed,
  openShop,
  payButton,
  term,
  typeCard,
  type Visit,
  type VisitOptions,
} from '../support/shop.ts';

// The page with a gateway whose card form confirms in the browser: the shopper chooses the term
// first, and enters the card in the session of the payment that has begun.

const mastercard = '5555555555554444';
const insufficient = '4000000000009995';

describe('a card that is entered in a session', { skip: noBrowser }, () => {
  const { shop, scenario: visits } = openShop({ protocol: 'hyperswitch' });

  const scenario = (
    title: string,
    options: Partial<VisitOptions>,
    run: (visit: Visit) => Promise<void>,
  ): void => visits(title, { ends: 'successful', ...options }, run);

  const goOn = async (page: Page, payments = 3) => {
    await term(page, payments).check();
    await page.getByRole('button', { name: 'Continue to your card' }).click();
    await heading(page, `${payments} payments, R 500,00 today`).waitFor();
  };

  scenario(
    'is declined in plain words; another one pays at its bank, and no number touches our server',
    {},
    async (visit) => {
      const { page, shopper, success_url } = visit;
      assert.equal(await page.locator('iframe').count(), 0);
      await goOn(page);
      // A page that is loaded again goes on in the same session.
      await page.reload();
      await typeCard(page, insufficient);
      await payButton(page).click();
      const words = 'Your bank declined this card: not enough funds.';
      await page.getByRole('alert').filter({ hasText: words }).waitFor();
      assert.equal((await shopper.attempts()).length, 1);
      assert.equal(await term(page, 3).isChecked(), true);
      await goOn(page);
      await typeCard(page, challengeCard, true);
      await payButton(page).click();
      await answerBank(page, 'Approve');
      await heading(page, 'Payment approved').waitFor();
      await landed(visit, page, success_url);
      assert.equal((await shopper.attempts()).length, 2);
      for (const number of [insufficient, challengeCard]) {
        assert.ok(!shop().received().includes(number));
      }
    },
  );

  scenario(
    'in a tab that another tab overtook pays nothing; the other tab pays once',
    { tolerates: /Failed to load resource/ },
    async (visit) => {
      const { page, shopper, success_url } = visit;
      await goOn(page);
      await typeCard(page, visa);
      const other = await visit.openTab();
      await other.getByRole('button', { name: 'Change' }).click();
      await goOn(other);
      // A tab that gets the focus asks for the state. That request is aborted, because it might
      // show the new session before the click.
      await page.route('**/state', (route) => route.abort());
      await payButton(page).click();
      await page.getByRole('alert').filter({ hasText: 'did not go through' }).waitFor();
      await typeCard(other, mastercard);
      await payButton(other).click();
      await landed(visit, other, success_url);
      const statuses = (await shopper.attempts()).map(({ status }) => status);
      assert.equal(statuses.at(-1), 'authorised');
    },
  );

  scenario(
    'is entered without a browser by a sandbox’s shopper',
    { closed: true },
    async (visit) => {
      const gateway = { gateway_url: visit.shop.origins.gateway, gateway_secret_key: '' };
      const shopper = shopperAt({ clock: systemClock, gateway }, visit.link);
      const how = { term: 3, challenge: 'approve' } as const;
      const mistyped = await payAs(shopper, { ...how, card: '4242424242424241' });
      assert.deepEqual([mistyped.status, mistyped.decline?.reason], ['begun', 'incorrect_number']);
      const session = await shopper.state();
      assert.equal((await confirm(shopper, session, challengeCard)).status, 'challenge');
      assert.equal((await payAs(shopper, { ...how, card: visa })).status, 'successful');
    },
  );

  scenario('replaces the card of a plan', { closed: true }, async (visit) => {
    const { page, context, shopper, link } = visit;
    await shopper.pay(3);
    const { headers } = await actingOn(shop().paying, shopper);
    const [name = '', value = ''] = headers.cookie.split('=');
    await context.addCookies([{ name, value, url: link }]);
    await page.goto(link);
    await page.getByRole('button', { name: /^Change the card/ }).click();
    await page.getByRole('button', { name: 'Continue to your card' }).click();
    await typeCard(page, mastercard);
    await page.getByRole('button', { name: 'Use this card' }).click();
    await page.getByText(/4444/).first().waitFor();
    const [card] = await shopper.rows('stored_cards');
    assert.equal(card.last4, '4444');
  });
});
