import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import type { Page } from 'playwright-core';
import { noBrowser } from '../support/browser.ts';
import { challengeCard, visa } from '../support/payments.ts';
import { until } from '../support/sandbox-process.ts';
import { isLong } from '../support/service.ts';
import {
  answerBank,
  cancelButton,
  heading,
  landed,
  pay,
  payButton,
  type Shop,
  startShop,
  term,
  typeCard,
  type Visit,
  type VisitOptions,
  visitTest,
} from '../support/shop.ts';

// Whatever the shopper, the browser or the network does meanwhile: there is one outcome, the page
// says it plainly, and it never offers to pay twice.

const networkErrors = /Failed to load resource/;

describe('one outcome, whatever happens meanwhile', { skip: noBrowser, concurrency: 4 }, () => {
  let shop: Shop;
  before(async () => {
    shop = await startShop();
  });
  after(async () => {
    await shop?.close();
  });

  const scenario = (
    title: string,
    options: VisitOptions,
    run: (visit: Visit) => Promise<void>,
  ): void => visitTest(title, () => shop, options, run);

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

  // The other order of events is in the long run, and without a browser in test/payments.
  for (const when of isLong ? (['before', 'after'] as const) : (['after'] as const)) {
    scenario(
      `cancelled in one tab while the other pays, the gateway slow ${when} it holds the amount`,
      { ends: 'cancelled' },
      async (visit) => {
        const { page, cancel_url } = visit;
        const hold = await visit.hold(when);
        await pay(page, visa, 3);
        await hold.reached();
        const other = await visit.openTab();
        await heading(other, 'Asking your bank…').waitFor();
        assert.equal(await payButton(other).count(), 0);
        await cancelButton(other).click();
        await heading(other, 'Payment cancelled').waitFor();
        await landed(visit, other, cancel_url);
        await hold.release();
        await heading(page, 'Payment cancelled').waitFor();
        await page.getByText('Nothing was charged.').waitFor();
        await landed(visit, page, cancel_url);
        await assertTerm(visit, 3);
      },
    );
  }

  scenario(
    'a tab left open before the payment can neither pay nor cancel after it',
    { ends: 'successful' },
    async (visit) => {
      const { page, success_url } = visit;
      const [payer, canceller] = [await visit.openTab(), await visit.openTab()];
      await typeCard(payer, visa);
      await pay(page, visa, 3);
      await landed(visit, page, success_url);
      await payButton(payer).click();
      await landed(visit, payer, success_url);
      await cancelButton(canceller).click();
      await landed(visit, canceller, success_url);
      await assertAttempts(visit, ['authorised']);
      await assertTerm(visit, 3);
    },
  );

  scenario(
    'cancelled in one tab while the other is at the bank, which then approves: nothing stays held',
    { ends: 'cancelled' },
    async (visit) => {
      const { page, cancel_url } = visit;
      await pay(page, challengeCard, 3);
      await heading(page, 'Confirm your payment').waitFor();
      const other = await visit.openTab();
      await cancelButton(other).click();
      await landed(visit, other, cancel_url);
      await answerBank(page, 'Approve');
      await heading(page, 'Payment cancelled').waitFor();
      await landed(visit, page, cancel_url);
    },
  );

  scenario(
    'the bank’s page open in two tabs: the first answer counts, and both land',
    { ends: 'successful' },
    async (visit) => {
      const { page, success_url } = visit;
      await pay(page, challengeCard, 3);
      await heading(page, 'Confirm your payment').waitFor();
      const other = await visit.openTab();
      await other.getByRole('button', { name: 'Continue at your bank' }).click();
      await answerBank(other, 'Approve');
      await landed(visit, other, success_url);
      await answerBank(page, 'Decline');
      await landed(visit, page, success_url);
      await assertAttempts(visit, ['authorised']);
    },
  );

  // One tab.

  scenario('a double click pays once', { ends: 'successful' }, async (visit) => {
    const { page, success_url } = visit;
    const hold = await visit.hold();
    await typeCard(page, visa);
    await payButton(page).dblclick();
    await page.keyboard.press('Enter');
    await hold.reached();
    await asking(page).click({ force: true });
    await hold.release();
    await landed(visit, page, success_url);
    await assertAttempts(visit, ['authorised']);
    const asked = visit.requests.filter(({ method, url }) => method === 'POST' && /pay$/.test(url));
    assert.equal(asked.length, 1);
  });

  scenario(
    'a double click after a decline pays once and cancels nothing, even if the layout moved',
    { ends: 'successful' },
    async (visit) => {
      const { page, success_url } = visit;
      await pay(page, '4000000000009995', 3);
      await page.getByText('not enough funds').waitFor();
      await typeCard(page, visa);
      // Scrolls to the button and waits until it stands still.
      await payButton(page).click({ trial: true });
      const box = await payButton(page).boundingBox();
      assert.ok(box);
      await page.mouse.dblclick(box.x + box.width / 2, box.y + box.height / 2, { delay: 30 });
      await landed(visit, page, success_url);
      await assertAttempts(visit, ['declined', 'authorised']);
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

  scenario('reloaded after a decline: it still says why', { ends: 'received' }, async (visit) => {
    const { page } = visit;
    await pay(page, '4000000000009995', 3);
    const words = page.getByText('not enough funds');
    await words.waitFor();
    await page.reload();
    await words.waitFor();
    assert.equal(await term(page, 3).isChecked(), true);
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

  scenario(
    'the back button after the return leads to the shop',
    { ends: 'successful', closed: true },
    async (visit) => {
      const { page, link, success_url, cancel_url } = visit;
      await page.goto(cancel_url);
      await page.goto(link);
      await pay(page, visa);
      await landed(visit, page, success_url);
      await Promise.all([page.goBack(), landed(visit, page, cancel_url)]);
      await Promise.all([page.goForward(), landed(visit, page, success_url)]);
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

  scenario(
    'opened after it was paid: the page says so and links back',
    { ends: 'successful', closed: true },
    async (visit) => {
      const { page, shopper, link, success_url } = visit;
      await shopper.pay(3);
      await page.goto(link);
      await heading(page, 'R 500,00 of R 1 500,00 paid').waitFor();
      assert.equal(await payButton(page).count(), 0);
      assert.equal(await cancelButton(page).count(), 0);
      await followReturnLink(visit, success_url);
    },
  );

  scenario(
    'an order that the gateway refuses: the page says so, and nothing is charged',
    { ends: 'invalid_payload', checkout: { customer: { email: 'refused@example.com' } } },
    async (visit) => {
      const { page, cancel_url } = visit;
      await pay(page, visa);
      await heading(page, 'This order cannot be paid').waitFor();
      await page.getByText('Nothing was charged.').waitFor();
      await followReturnLink(visit, cancel_url);
    },
  );

  scenario(
    'an unknown link',
    { ends: 'received', closed: true, tolerates: /404/ },
    async (visit) => {
      const { page, link } = visit;
      for (const url of [`${link.slice(0, -1)}~`, `${shop.origins.service}/pay/nothing`]) {
        const answer = await page.goto(url);
        assert.equal(answer?.status(), 404);
        await heading(page, 'This link leads nowhere').waitFor();
        assert.equal(await page.getByRole('button').count(), 0);
      }
    },
  );

  // Time.

  scenario('the time runs out: paying is over', { ends: 'received' }, async (visit) => {
    const { page, link, cancel_url } = visit;
    await typeCard(page, visa);
    await visit.advance({ minutes: 31 });
    await payButton(page).click();
    await heading(page, 'This payment link can no longer be used').waitFor();
    await page.getByText('Nothing was charged.').waitFor();
    await assertAttempts(visit, []);
    await page.goto(link);
    await heading(page, 'This payment link can no longer be used').waitFor();
    await followReturnLink(visit, cancel_url);
  });

  scenario(
    'the time runs out at the bank’s page: it may still finish',
    { ends: 'successful' },
    async (visit) => {
      const { page, success_url } = visit;
      await pay(page, challengeCard, 3);
      await heading(page, 'Confirm your payment').waitFor();
      await visit.advance({ minutes: 44 });
      await answerBank(page, 'Approve');
      await landed(visit, page, success_url);
    },
  );

  scenario(
    'approved at the bank long after the deadline: nothing stays held',
    { ends: 'received' },
    async (visit) => {
      const { page } = visit;
      await pay(page, challengeCard, 3);
      await heading(page, 'Confirm your payment').waitFor();
      await visit.advance({ minutes: 46 });
      await answerBank(page, 'Approve');
      await heading(page, 'This payment link can no longer be used').waitFor();
    },
  );

  scenario(
    'a page opened before midnight pays, and the consent is what it showed',
    { ends: 'successful', startAt: '23:50' },
    async (visit) => {
      const { page, shopper, success_url } = visit;
      const shown = (await shopper.state()).plans.find((plan) => plan.number_of_payments === 3);
      await term(page, 3).check();
      await typeCard(page, visa);
      await visit.advance({ minutes: 15 });
      await payButton(page).click();
      await landed(visit, page, success_url);
      const [card] = await shopper.rows('stored_cards');
      assert.deepEqual(card.consent.payments, shown?.payments);
    },
  );

  // The network.

  scenario(
    'the request to pay is lost: the page learns that nothing was charged, and paying works',
    { ends: 'successful', tolerates: networkErrors },
    async (visit) => {
      const { page, success_url } = visit;
      await page.route('**/pay', (route) => route.abort('connectionreset'), { times: 1 });
      await pay(page, visa, 3);
      await page.getByText('Your payment did not go through. Nothing was charged.').waitFor();
      await assertAttempts(visit, []);
      await payButton(page).click();
      await landed(visit, page, success_url);
      await assertAttempts(visit, ['authorised']);
    },
  );

  scenario(
    'the answer is lost, then the connection: the page does not offer to pay and learns the outcome',
    { ends: 'successful', tolerates: networkErrors },
    async (visit) => {
      const { page, success_url } = visit;
      await page.route(
        '**/pay',
        async (route) => {
          await route.fetch();
          await route.abort('connectionreset');
        },
        { times: 1 },
      );
      await page.route('**/state', (route) => route.abort(), { times: 2 });
      await pay(page, visa, 3);
      await page.getByText('The connection was lost.').waitFor();
      const { status } = await visit.shopper.state();
      assert.equal(status, 'successful');
      assert.equal(await payButton(page).count(), 0);
      await landed(visit, page, success_url);
      await assertAttempts(visit, ['authorised']);
    },
  );

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

  for (const when of isLong
    ? (['drop_before', 'drop_after'] as const)
    : (['drop_after'] as const)) {
    scenario(
      `the gateway’s connection breaks (${when}): the page waits for the outcome, then lands`,
      { ends: 'successful' },
      async (visit) => {
        const { page, success_url } = visit;
        const hold = await visit.hold(when);
        // Listen before the response can arrive.
        const answered = page.waitForResponse(/\/pay$/);
        await pay(page, visa, 3);
        await hold.reached();
        await answered;
        await asking(page).waitFor();
        assert.equal(await payButton(page).count(), 0);
        // Each look-up that finds nothing yet makes the next one later.
        const isPaid = async () => (await visit.shopper.state()).status === 'successful';
        for (let looks = 0; looks < 6 && !(await isPaid()); looks += 1) {
          await visit.advance({ seconds: 10 });
        }
        await landed(visit, page, success_url);
        await assertAttempts(visit, ['authorised']);
      },
    );
  }

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

  scenario(
    'the gateway’s script does not load: the page says so and loads it again on request',
    { ends: 'successful', closed: true, tolerates: networkErrors },
    async (visit) => {
      const { page, link, success_url } = visit;
      await page.route('**/v1/tranche.js', (route) => route.abort());
      await page.goto(link);
      await page.getByText('The card form did not load. Nothing was charged.').waitFor();
      assert.equal(await payButton(page).isEnabled(), false);
      await page.unroute('**/v1/tranche.js');
      await page.getByRole('button', { name: 'Load it again' }).click();
      await pay(page, visa);
      await landed(visit, page, success_url);
    },
  );

  scenario(
    'the gateway’s script does not load: cancelling still works',
    { ends: 'cancelled', closed: true, tolerates: networkErrors },
    async (visit) => {
      const { page, link, cancel_url } = visit;
      await page.route('**/v1/tranche.js', (route) => route.abort());
      await page.goto(link);
      await page.getByText('The card form did not load.').waitFor();
      await cancelButton(page).click();
      await landed(visit, page, cancel_url);
    },
  );

  scenario(
    'the server fails while cancelling: the page asks until it gets an answer',
    { ends: 'cancelled', tolerates: networkErrors },
    async (visit) => {
      const { page, cancel_url } = visit;
      await page.route(
        '**/cancel',
        async (route) => {
          await route.fetch();
          await route.fulfill({ status: 502, body: 'Bad Gateway' });
        },
        { times: 1 },
      );
      await cancelButton(page).click();
      await landed(visit, page, cancel_url);
    },
  );
});
