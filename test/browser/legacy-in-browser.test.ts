import assert from 'node:assert/strict';
import { describe } from 'node:test';
import { disableLegacy } from '#purchases/legacy/disable-legacy.ts';
import { noBrowser } from '../support/browser.ts';
import { request } from '../support/http.ts';
import { credentialsOf, enablePlugin, legacyBody, toForm } from '../support/legacy.ts';
import { challengeCard, visa } from '../support/payments.ts';
import { isSigned, type Received } from '../support/receiver.ts';
import { type Account, send } from '../support/service.ts';
import {
  answerBank,
  cancelButton,
  heading,
  landed,
  openShop,
  pay,
  type Shop,
} from '../support/shop.ts';

// v1 from end to end, as a plugin and a shopper use it, over real sockets: login, checkout, page,
// challenge, form callback, redirect.

describe('a v1 plugin, in the browser', { skip: noBrowser }, () => {
  const { shop, scenario } = openShop();

  type Begun = { account: Account; id: string; payment_url: string; transaction_verify: string };
  const begun = new Map<string, Begun>();
  let orders = 0;

  /**
   * Logs in and creates a checkout, as a plugin does when the shopper wants to pay. `as` encodes
   * the bodies.
   */
  function beginWith(as: (body: object) => object, order: string) {
    return async ({ paying, origins }: Shop, account: Account) => {
      const plugin = await enablePlugin(paying.service, account.id, account.merchant.id);
      const post = async (path: string, body: object, headers: Record<string, string> = {}) => {
        const written = as(body);
        const isForm = written instanceof URLSearchParams;
        const answer = await request(`${origins.service}${path}`, {
          method: 'POST',
          headers: {
            'content-type': isForm ? 'application/x-www-form-urlencoded' : 'application/json',
            ...headers,
          },
          body: isForm ? written.toString() : JSON.stringify(written),
        });
        assert.equal(answer.status, 200, JSON.stringify(answer.body));
        return answer.body;
      };
      const { token, token_type } = await post('/login', credentialsOf(plugin));
      const created: Omit<Begun, 'account'> = await post(
        '/payment/checkout',
        legacyBody({
          merchant: {
            notify_url: `${paying.receiver.url}/v1/${order}`,
            return_url: `${origins.merchant}/order/${order}`,
          },
          purchase: { order_id: order },
        }),
        { authorization: `${token_type} ${token}` },
      );
      begun.set(order, { ...created, account });
      return created.id;
    };
  }

  const nextOrder = () => {
    orders += 1;
    return `v1-${orders}`;
  };
  const callbacksOf = (order: string) =>
    shop()
      .paying.receiver.at(`/v1/${order}`)
      .map(({ raw }) => raw.toString('utf8'));

  const challenged = nextOrder();
  scenario(
    'pays in three with a challenge; the plugin gets a form callback, and its redirect moves the browser',
    { ends: 'successful', begin: beginWith((body) => body, challenged) },
    async (visit) => {
      const { page, link, shopper } = visit;
      const { payment_url, transaction_verify } = begun.get(challenged) as Begun;
      assert.equal(payment_url, link);
      const thanks = `${shop().origins.merchant}/thanks/${challenged}`;
      const { receiver } = shop().paying;
      const usual = receiver.answer;
      receiver.answer = (received, count) =>
        received.path === `/v1/${challenged}`
          ? { body: JSON.stringify({ redirect: thanks }) }
          : usual(received, count);
      await page.getByText('Boots').first().waitFor({ state: 'attached' });
      await pay(page, challengeCard, 3);
      await answerBank(page, 'Approve');
      await landed(visit, page, thanks);
      assert.deepEqual(callbacksOf(challenged), [
        `status=success&order_id=${challenged}&transaction_verify=${transaction_verify}&number_of_payments=3`,
      ]);
      const [card] = await shopper.rows('stored_cards');
      assert.equal(card.last4, '3155');
    },
  );

  const cancelled = nextOrder();
  scenario(
    'cancels; the plugin gets the callback, and the browser returns to return_url',
    { ends: 'cancelled', begin: beginWith(toForm, cancelled) },
    async (visit) => {
      const { page } = visit;
      await cancelButton(page).click();
      await landed(visit, page, `${shop().origins.merchant}/order/${cancelled}`);
      const { transaction_verify } = begun.get(cancelled) as Begun;
      assert.deepEqual(callbacksOf(cancelled), [
        `status=cancelled&order_id=${cancelled}&transaction_verify=${transaction_verify}&number_of_payments=1`,
      ]);
    },
  );

  const moving = nextOrder();
  scenario(
    'is on the page while its shop moves to v2: the old payment sends a v1 callback, the new one a v2 callback',
    { ends: 'successful', begin: beginWith((body) => body, moving) },
    async (visit) => {
      const { page, shopper } = visit;
      const { paying, origins } = shop();
      const { account } = begun.get(moving) as Begun;
      await disableLegacy(paying.service.deps, 'nomsa', account.id);
      const success_url = `${origins.merchant}/v2/${moving}`;
      const next = await paying.shopper({ success_url, client_reference_id: moving }, account);
      const tab = await visit.context.newPage();
      await tab.goto(`${origins.service}${next.url}`);
      await pay(tab, visa);
      await heading(tab, 'Payment approved').waitFor();
      await landed(visit, tab, success_url);
      const json = paying.receiver.at('/callback').at(-1) as Received;
      assert.ok(isSigned(json, account.signing_key));
      assert.equal(JSON.parse(json.raw.toString()).client_reference_id, moving);

      await pay(page, visa);
      await landed(visit, page, `${origins.merchant}/order/${moving}`);
      assert.match(callbacksOf(moving)[0] ?? '', /^status=success&order_id=v1-3&/);
      const refund = await send(paying.service, account, 'POST', '/api/refunds', {
        body: { checkout_id: shopper.id, amount: 150_000 },
      });
      assert.equal(refund.status, 200);
    },
  );
});
