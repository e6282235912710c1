import assert from 'node:assert/strict';
import { describe } from 'node:test';
import type { Page } from 'playwright-core';
import { noBrowser } from '../support/browser.ts';
import { challengeCard, visa } from '../support/payments.ts';
import {
  answerBank,
  cancelButton,
  heading,
  landed,
  openShop,
  pay,
  payButton,
  term,
  typeCard,
  type Visit,
} from '../support/shop.ts';
import { until } from '../support/until.ts';

// Whatever the shopper, the browser or the network does, there is one outcome, the page states it
// plainly, and the page never offers to pay twice.

const networkErrors = /Failed to load resource/;

describe('one outcome, whatever happens meanwhile', { skip: noBrowser }, () => {
  const { scenario } = openShop();

  const asking = (page: Page) => page.getByRole('button', { name: 'Asking your bank…' });

  async function assertAttempts({ shopper }: Visit, expected: string[]): Promise<void> {
    assert.deepEqual(
      (await shopper.attempts()).map(({ status }) => status),
      expected,
    );
  }

  async function assertTerm({ shopper }: Visit, number_of_payments: number): Promise<void> {
    const callback = JSON.parse((await shopper.callback()) ?? '{}');
    assert.equal(callback.number_of_payments, number_of_payments);
  }

  async function followReturnLink(visit: Visit, url: string): Promise<void> {
    const link = visit.page.getByRole('link', { name: 'Return to Bean There' });
    await Promise.all([link.click(), landed(visit, visit.page, url)]);
  }

  // Several tabs.

  scenario(
    'two tabs pay at once: one payment, both land',
    { ends: 'successful' },
    async (visit) => {
      const tabs = [visit.page, await visit.openTab()];
      const hold = await visit.hold();
      for (const tab of tabs) {
        await term(tab, 3).check();
        await typeCard(tab, visa);
      }
      await Promise.all(tabs.map((tab) => payButton(tab).click()));
      await Promise.all(tabs.map((tab) => asking(tab).waitFor()));
      await hold.reached();
      await hold.release();
      for (const tab of tabs) await landed(visit, tab, visit.success_url);
      await assertAttempts(visit, ['authorised']);
    },
  );

  // Other races between tabs are tested without a browser, in test/payments.

  // One tab.

  scenario(
    'a double click after a decline pays once and cancels nothing; the back button leads to the shop',
    { ends: 'successful', closed: true },
    async (visit) => {
      const { page, link, success_url, cancel_url } = visit;
      await page.goto(cancel_url);
      await page.goto(link);
      await pay(page, '4000000000009995', 3);
      await page.getByText('not enough funds').waitFor();
      await typeCard(page, visa);
      // This scrolls to the button and waits until it stands still.
      await payButton(page).click({ trial: true });
      const box = await payButton(page).boundingBox();
      assert.ok(box);
      await page.mouse.dblclick(box.x + box.width / 2, box.y + box.height / 2, { delay: 30 });
      await landed(visit, page, success_url);
      await assertAttempts(visit, ['declined', 'authorised']);
      await Promise.all([page.goBack(), landed(visit, page, cancel_url)]);
      await Promise.all([page.goForward(), landed(visit, page, success_url)]);
    },
  );

  scenario('reloaded while paying: it waits, and lands', { ends: 'successful' }, async (visit) => {
    const { page, success_url } = visit;
    const hold = await visit.hold();
    await pay(page, visa, 3);
    await hold.reached();
    await page.reload();
    await heading(page, 'Asking your bank…').waitFor();
    assert.equal(await payButton(page).count(), 0);
    await hold.release();
    await heading(page, 'Payment approved').waitFor();
    await landed(visit, page, success_url);
    await assertAttempts(visit, ['authorised']);
  });

  scenario(
    'back from the bank’s page, or reloaded there: the payment can be continued',
    { ends: 'successful' },
    async (visit) => {
      const { page, success_url } = visit;
      await pay(page, challengeCard, 3);
      await heading(page, 'Confirm your payment').waitFor();
      await page.goBack();
      await heading(page, 'Your bank wants to hear from you').waitFor();
      await page.reload();
      await page.getByRole('button', { name: 'Continue at your bank' }).click();
      await answerBank(page, 'Approve');
      await landed(visit, page, success_url);
      await assertAttempts(visit, ['authorised']);

      // The back button does not lead to a page that asks for the payment again.
      await page.goBack();
      await heading(page, 'R 500,00 of R 1 500,00 paid').waitFor();
    },
  );

  scenario('cancelled: the browser lands at cancel_url', { ends: 'cancelled' }, async (visit) => {
    const { page, link, cancel_url } = visit;
    await term(page, 6).check();
    await cancelButton(page).dblclick();
    await heading(page, 'Payment cancelled').waitFor();
    await landed(visit, page, cancel_url);
    await assertTerm(visit, 6);

    await page.goto(link);
    await heading(page, 'Payment cancelled').waitFor();
    await page.getByText('To buy after all, start again at Bean There.').waitFor();
    await followReturnLink(visit, cancel_url);
  });

  // The network.

  scenario(
    'offline while paying, online again after it went through',
    { ends: 'successful', tolerates: networkErrors },
    async (visit) => {
      const { page, context, shopper, success_url } = visit;
      const hold = await visit.hold();
      let cut = () => {};
      const isCut = new Promise<void>((resolve) => {
        cut = resolve;
      });
      await page.route('**/pay', async (route) => {
        route.fetch().catch(() => {});
        await isCut;
        await route.abort('internetdisconnected');
      });
      await pay(page, visa, 3);
      await hold.reached();
      await context.setOffline(true);
      cut();
      await page.getByText('The connection was lost.').waitFor();
      await hold.release();
      await until('the payment', async () => (await shopper.state()).status === 'successful');
      assert.equal(await payButton(page).count(), 0);
      await context.setOffline(false);
      await landed(visit, page, success_url);
      await assertAttempts(visit, ['authorised']);
    },
  );

  scenario(
    'the card cannot be checked: no payment is requested, and the shopper need not type again',
    { ends: 'successful', tolerates: networkErrors },
    async (visit) => {
      const { page, success_url } = visit;
      await page.route('**/v1/confirmation_tokens', (route) => route.abort(), { times: 1 });
      await pay(page, visa, 3);
      const words = await page.getByRole('alert').textContent();
      assert.equal(words?.match(/Nothing was charged/g)?.length, 1);
      await assertAttempts(visit, []);
      await payButton(page).click();
      await landed(visit, page, success_url);
    },
  );
});
