import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { offerPaymentLink } from '#purchases/payment-links/offer-payment-link.ts';
import { axeViolations } from '../support/axe.ts';
import { fixClock, installClock, noBrowser, painted } from '../support/browser.ts';
import { type ConsoleBrowser, go } from '../support/console-browser.ts';
import { hostile, startConsoleScene } from '../support/console-scene.ts';
import { openDispute, refundNow } from '../support/money.ts';
import type { Shopper } from '../support/payments.ts';
import { isLong } from '../support/service.ts';

describe('the pages of the console in a browser', { skip: noBrowser }, () => {
  let console: ConsoleBrowser;
  let shopper: Shopper;
  let unlucky: Shopper;
  let disputed: Shopper;

  before(async () => {
    ({ console, shopper, unlucky, disputed } = await startConsoleScene());
    await refundNow(console.paying, shopper, 60_000);
    await console.paying.work();
    await openDispute(console.paying, disputed);
  });
  after(() => console?.close());

  test('a merchant beyond the hundredth is found in a filter, which a reload keeps', async (t) => {
    const { paying, url } = console;
    const { pool } = paying.service.deps.database;
    const { rows } = await pool.query(
      `insert into merchants (id, name, territory, rules, created_at)
       select gen_random_uuid(), 'Many ' || n, 'ZA', '[]', '2020-01-01T00:00:00Z'
       from generate_series(100, 200) n returning id, name`,
    );
    t.after(() => pool.query(`delete from merchants where name like 'Many %'`));
    const { page, complaints } = await console.withSession(t, ['admin']);
    await page.goto(`${url}/checkouts`);
    const field = page.getByRole('combobox', { name: 'Merchant' });
    await field.fill('many 200');
    await page.getByRole('option', { name: 'Many 200' }).click();
    await page.getByText('Nothing matches').waitFor();
    await page.getByLabel('From', { exact: true }).fill('2026-03-01');
    const last = rows.find(({ name }) => name === 'Many 200')?.id;
    await page.waitForURL(`**/checkouts?merchant=${last}&from=2026-03-01`);
    await page.reload();
    await page.getByText('Nothing matches').waitFor();
    await page.locator('input[value="Many 200"]').waitFor();
    assert.equal(await page.getByLabel('From', { exact: true }).inputValue(), '2026-03-01');
    await page.getByText('Johannesburg time').waitFor();
    // The same field says for whom a person is invited.
    await go(page, '/people');
    await page.getByRole('button', { name: 'Invite a person' }).click();
    await page.getByRole('combobox', { name: 'Sees' }).click();
    await page.getByRole('option', { name: 'Some merchants' }).click();
    await page.getByRole('combobox', { name: 'Merchants' }).fill('Many 199');
    await page.getByRole('option', { name: 'Many 199' }).click();
    await page.getByRole('combobox', { name: 'Merchants' }).fill('Many 200');
    await page.getByRole('option', { name: 'Many 200' }).click();
    await page.keyboard.press('Tab');
    await page.getByRole('dialog').getByText('Many 199').waitFor();
    await page.getByRole('option').first().waitFor({ state: 'hidden' });
    assert.deepEqual(await axeViolations(page), []);
    assert.deepEqual(complaints, []);
  });

  test('the items of an order add up to its amount, as on the payment page', async (t) => {
    const { page } = await console.withSession(t, ['viewer']);
    await page.goto(`${console.url}/checkouts/${shopper.id}`);
    const items = page.getByRole('table', { name: 'Items of the order' });
    await items.waitFor();
    const rows = await items.getByRole('row').allTextContents();
    assert.deepEqual(
      rows.map((text) => text.replaceAll(/\s/g, ' ')),
      [
        `${hostile('item')} · 3 at R 600,00R 1 800,00`,
        'Voucher-R 100,00',
        'Discounts-R 200,00',
        'TotalR 1 500,00',
      ],
    );
  });

  test('a page has no link and no request that the person’s roles do not allow', async (t) => {
    const { paying, url } = console;
    const { merchant } = paying.account;
    const link = await offerPaymentLink(paying.service.deps, 'test', merchant.id, {
      ...{ amount: 150_000, client_reference_id: 'LINK-1' },
    });
    const till = await console.withSession(t, ['till']);
    await till.page.goto(`${url}/checkouts/${disputed.id}`);
    for (const path of [`/checkouts/${disputed.id}`, `/payment-links/${link}`]) {
      await go(till.page, path);
      const main = till.page.locator('main', { hasText: /What happened|Who paid/ });
      await main.getByText(merchant.name).first().waitFor();
      const hrefs = await main
        .getByRole('link')
        .evaluateAll((all) => all.map((one) => one.getAttribute('href') ?? ''));
      assert.deepEqual(
        hrefs.filter((href) => /^\/(merchants|disputes)/.test(href)),
        [],
      );
    }
    const viewer = await console.withSession(t, ['viewer']);
    await viewer.page.goto(`${url}/disputes`);
    await viewer.page.getByRole('link', { name: 'ORDER-3' }).click();
    await viewer.page.getByText(/The bank decides on the evidence|an answer without it/).waitFor();
    assert.equal(await viewer.page.getByText(/Add what you know|that you add/).count(), 0);
    const shop = await console.withSession(t, ['viewer'], 'Shop Viewer');
    await paying.service.deps.database.pool.query(
      `update people set merchant_ids = $1 where name = 'Shop Viewer'`,
      [[merchant.id]],
    );
    await shop.page.goto(url);
    await shop.page.getByText('Signed request received').waitFor();
    const request = { name: /^Signed request received/ };
    assert.equal(await shop.page.getByRole('link', request).count(), 0);
    await shop.page.getByRole('link', { name: /^Refund tried/ }).waitFor();
    await shop.page.getByRole('link', { name: /^\d+ payments? (is|are) overdue/ }).waitFor();
  });

  test('a person with several shops reads the orders of the shop that is named', async (t) => {
    const { paying, url } = console;
    const { deps } = paying.service;
    const { pool } = deps.database;
    const { rows } = await pool.query(
      `insert into merchants (id, name, territory, rules, created_at)
       values (gen_random_uuid(), 'Tea There', 'ZA', '[]', '2020-01-01T00:00:00Z') returning id`,
    );
    const other = rows[0];
    t.after(() => pool.query('delete from merchants where id = $1', [other.id]));
    const { merchant: own } = paying.account;
    const { page } = await console.withSession(t, ['viewer'], 'Two Shops');
    await pool.query(`update people set merchant_ids = $1 where name = 'Two Shops'`, [
      [own.id, other.id],
    ]);
    const listed = (merchant: string | null) =>
      page.waitForRequest((request) => {
        const { pathname, searchParams } = new URL(request.url());
        return pathname === '/api/checkouts' && searchParams.get('merchant') === merchant;
      });
    const choose = async (name: string) => {
      await page.getByRole('button', { name: 'Two Shops' }).click();
      await page.getByRole('menuitem', { name, exact: true }).click();
    };
    // A link in a mail names the shop. It becomes the choice, also on pages that follow.
    await Promise.all([listed(other.id), page.goto(`${url}/checkouts?merchant=${other.id}`)]);
    const empty = page.getByText('No checkouts yet');
    await empty.waitFor();
    await Promise.all([listed(own.id), choose(own.name)]);
    await page.getByRole('link', { name: 'ORDER-1' }).waitFor();
    await page.waitForURL('**/checkouts');
    await go(page, `/refunds?merchant=${other.id}`);
    await page.getByText('Nothing to review').waitFor();
    await go(page, '/checkouts');
    await empty.waitFor();
    // A shop that is not theirs is ignored, and a page of another list leads to the first one.
    const unknown = `${url}/checkouts?merchant=${deps.random.uuid()}`;
    await Promise.all([listed(other.id), page.goto(unknown)]);
    await empty.waitFor();
    await Promise.all([listed(null), choose('All of them')]);
    await page.goto(`${url}/checkouts?after=of-another-list`);
    await page.getByRole('button', { name: 'First page' }).click();
    await page.getByRole('link', { name: 'ORDER-1' }).waitFor();
  });

  test('a list and a page show their shape while they are read', async (t) => {
    const { page, complaints } = await console.withSession(t, ['viewer']);
    await page.setViewportSize({ width: 390, height: 844 });
    const held = [
      ['/checkouts', 'Checkouts', 'table.bones .bone', 'ORDER-1'],
      [`/checkouts/${shopper.id}`, 'Checkout', '.bone', 'What happened'],
    ] as const;
    await page.goto(`${console.url}/me`);
    await page.getByText('Open sessions').waitFor();
    for (const [path, title, bones, text] of held) {
      const answer = Promise.withResolvers<void>();
      const address = new RegExp(`/api${path}([?]|$)`);
      await page.route(address, async (route) => {
        await answer.promise;
        await route.continue();
      });
      await go(page, path);
      const main = page.locator('#main');
      await main.getByRole('heading', { name: title, exact: true }).waitFor();
      const loading = main.getByRole('status', { name: 'Loading' });
      await loading.waitFor();
      assert.ok((await loading.locator(bones).count()) >= 8, path);
      assert.equal(await excessWidth(page), 0, path);
      assert.deepEqual(await axeViolations(page), [], path);
      answer.resolve();
      await main.getByText(text).first().waitFor();
      assert.equal(await loading.count(), 0, path);
      await page.unroute(address);
    }
    assert.deepEqual(complaints, []);
  });

  test('each figure of the overview leads to the list that it counts, of the same merchant', async (t) => {
    const { paying, url } = console;
    const { id } = paying.account.merchant;
    const { page, complaints } = await console.withSession(t, ['admin']);
    const links = page.getByRole('region', { name: 'Waiting' }).getByRole('link');
    const hrefs = () =>
      links.evaluateAll((found) => found.map((one) => one.getAttribute('href')).sort());
    await page.goto(url);
    await links.first().waitFor();
    assert.deepEqual(await hrefs(), [
      '/alerts',
      '/callbacks',
      '/disputes?status=needs_response',
      '/overdue',
      '/payouts?status=draft',
      '/refunds',
    ]);
    const alerts = links.filter({ hasText: 'Alerts' });
    const all = await alerts.locator('.value').textContent();
    const answer = Promise.withResolvers<void>();
    await page.route(/\/api\/overview/, async (route) => {
      await answer.promise;
      await route.continue();
    });
    await go(page, `/?merchant=${id}`);
    await page.getByRole('status', { name: 'Loading' }).first().waitFor();
    assert.equal(await links.count(), 0, 'no figure of another choice');
    answer.resolve();
    await links.first().waitFor();
    assert.deepEqual(await hrefs(), [
      `/alerts?merchant=${id}`,
      `/callbacks?merchant=${id}`,
      `/disputes?status=needs_response&merchant=${id}`,
      `/overdue?merchant=${id}`,
      `/payouts?status=draft&merchant=${id}`,
      `/refunds?merchant=${id}`,
    ]);
    const own = await alerts.locator('.value').textContent();
    assert.notEqual(own, all, 'some alerts belong to no merchant');
    await alerts.click();
    await page.getByText(new RegExp(`^${own} rows?$`)).waitFor();
    assert.deepEqual(await axeViolations(page), []);
    assert.deepEqual(complaints, []);
  });

  test('a search and the refused signatures ask for the passkey after very many pages', async (t) => {
    const { paying, url } = console;
    const { page } = await console.withPasskey(t, ['admin']);
    const asking = { error: { code: 'proof_needed', message: 'Confirm that it is you.' } };
    const refuseOnce = (address: RegExp) =>
      page.route(address, (route) => route.fulfill({ status: 403, json: asking }), { times: 1 });
    const proof = page.getByRole('dialog', { name: 'Confirm that it is you' });
    const close = proof.getByRole('button', { name: 'Close', exact: true });
    await refuseOnce(/\/api\/search/);
    await page.goto(`${url}/search?q=ORDER-1`);
    await proof.getByText('Search needs').waitFor();
    await proof.getByRole('button', { name: 'Use the passkey' }).click();
    await page.getByText(/^Found/).waitFor();
    await refuseOnce(/\/api\/search/);
    await page.getByRole('heading', { name: 'Search' }).press('/');
    await page.getByRole('dialog', { name: 'Search' }).getByRole('combobox').fill('ORDER-3');
    await close.click();
    await page.getByText('This needs your passkey. Search again to use it.').waitFor();
    await page.keyboard.press('Enter');
    await page.getByText(/^Found/).waitFor();
    await refuseOnce(/\/refused-requests/);
    await go(page, `/integrations/${paying.account.id}`);
    await proof.getByText('Show the refused signatures needs').waitFor();
    await close.click();
    await page.getByText('This needs your passkey').waitFor();
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('This needs your passkey').waitFor({ state: 'detached' });
  });

  test('a line of the balance without an order or a payout leads nowhere, and keys reach it', async (t) => {
    const { paying, url } = console;
    const { page, complaints } = await console.withSession(t, ['admin']);
    await page.route(/\/api\/balance-lines/, async (route) => {
      const response = await route.fetch();
      const { data, ...rest } = await response.json();
      const held = { ...data[0], id: crypto.randomUUID(), name: 'A reserve' };
      const alone = { ...held, checkout_id: null, payout_id: null, client_reference_id: null };
      await route.fulfill({ response, json: { ...rest, data: [alone, ...data] } });
    });
    await page.goto(`${url}/balance?merchant=${paying.account.merchant.id}`);
    const rows = page.locator('table.rows tbody tr');
    await rows.first().getByText('A reserve').first().waitFor();
    assert.equal(await rows.first().getByRole('link').count(), 0);
    const focused = () => page.evaluate<string>('document.activeElement.tagName');
    await painted(page);
    await page.keyboard.press('j');
    assert.equal(await focused(), 'SPAN');
    await page.keyboard.press('j');
    assert.equal(await focused(), 'A');
    assert.deepEqual(complaints, []);
  });

  // Axe sees each page at one of the three widths here, and at all of them in `test:long`.
  test('every page fits a phone, a desktop and a wide one, passes axe, and runs no foreign script', async (t) => {
    const { paying, url } = console;
    const name = hostile('person').slice(0, 90);
    const { page, complaints } = await console.withSession(t, ['admin'], name);
    await page.goto(`${url}/checkouts/${unlucky.id}`);
    await page.getByLabel('Add a note').fill(hostile('note'));
    await page.getByRole('button', { name: 'Add the note' }).click();
    await page.getByText(hostile('note')).first().waitFor();
    const { pool } = paying.service.deps.database;
    const dispute = (await pool.query('select id from disputes')).rows[0].id;
    const link = await offerPaymentLink(paying.service.deps, 'test', paying.account.merchant.id, {
      ...{ amount: 150_000, client_reference_id: hostile('link').slice(0, 200) },
    });
    const statement = (await pool.query('select id from monthly_statements')).rows[0].id;
    const payout = (await pool.query('select id from payouts order by number')).rows[0].id;
    const pages: [string, string | RegExp][] = [
      ['/', 'From created to paid, 30 days'],
      ['/search?q=thandi@example.com', /^Found/],
      ['/checkouts', 'ORDER-1'],
      [`/checkouts/${unlucky.id}`, 'What happened'],
      ['/payment-links', hostile('link').slice(0, 40)],
      [`/payment-links/${link}`, 'Who paid'],
      ['/refunds', 'Nothing to review'],
      ['/refunds?view=complete', 'ORDER-1'],
      ['/overdue', 'May work'],
      ['/callbacks?view=all', 'ORDER-1'],
      ['/callbacks?view=destinations', /127[.]0[.]0[.]1|in the last 7 days/],
      ['/disputes', 'ORDER-3'],
      [`/disputes/${dispute}`, 'The disputed payment is number 1'],
      ['/payouts', /^TR/],
      [`/payouts/${payout}`, '3 lines'],
      ['/statements', /2026$/],
      [`/statements/${statement}`, 'Tax invoice'],
      [`/balance?merchant=${paying.account.merchant.id}`, 'Next payout, as it stands'],
      ['/money', 'Money by day'],
      ['/reconciliation', 'Other amount'],
      ['/merchants', 'Bean There'],
      [`/merchants/${paying.account.merchant.id}`, 'Bands'],
      ['/integrations', 'Bean There'],
      [`/integrations/${paying.account.id}`, 'Signing keys'],
      ['/alerts', 'Signature mismatches'],
      ['/audit', 'test'],
      ['/people', 'person1@example.com'],
      ['/me', 'Open sessions'],
      ['/nowhere', 'There is no such page'],
    ];
    const found: string[] = [];
    const look = async (path: string, on: string, withAxe: boolean) => {
      const violations = withAxe || isLong ? await axeViolations(page) : [];
      for (const violation of violations) found.push(`${path} on ${on}: ${violation}`);
      // A chart keeps its old width until the next frame.
      await painted(page);
      const [excess, broken] = await page.evaluate<unknown[]>(`[${excessScript}, window.broken]`);
      if (excess !== 0) found.push(`${path} on ${on}: ${excess} px too wide`);
      if (broken !== undefined) found.push(`${path}: the script of ${broken} ran`);
    };
    const names = ['a phone', 'a desktop', 'a wide desktop'];
    const sizes = [
      { name: 'a phone', width: 390, height: 844 },
      { name: 'a desktop', width: 1280, height: 800 },
      { name: 'a wide desktop', width: 1920, height: 1080 },
    ];
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await page.locator(`html[data-mantine-color-scheme="${colorScheme}"]`).waitFor();
      for (const [index, [path, text]] of pages.entries()) {
        // On a phone axe sees the light scheme, elsewhere the dark one.
        const seen = index % sizes.length;
        if (!isLong && (seen === 0) !== (colorScheme === 'light')) continue;
        await go(page, path);
        // The window still has the last size of the previous page, so that size comes first.
        sizes.reverse();
        for (const { name, ...size } of sizes) {
          await page.setViewportSize(size);
          await page.locator('#main').getByText(text).first().waitFor();
          await look(path, `${name}, ${colorScheme}`, name === names[seen]);
        }
      }
    }
    assert.deepEqual(found, []);
    assert.deepEqual(complaints, []);
  });

  // A browser profile whose clock was moved is of no use to later tests, so these are last.
  test('a list keeps its rows when it refreshes, shows zones, and says why it cannot be read', async (t) => {
    const { paying, url } = console;
    const { page } = await console.withSession(t, ['viewer']);
    await installClock(page);
    await page.goto(`${url}/checkouts`);
    const first = page.locator('tbody tr').first();
    const order = first.locator('a.open');
    const before = await order.textContent();
    const hover = String(await first.locator('time').getAttribute('title'));
    const at = new Date(String(await first.locator('time').getAttribute('datetime')));
    const clock = (zone: string) =>
      new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium', timeZone: zone }).format(at);
    assert.match(hover, new RegExp(`, ${clock('Africa/Johannesburg')}\n.* ${clock('UTC')} UTC$`));
    await paying.shopper({ client_reference_id: 'ORDER-NEW' });
    await page.clock.fastForward(21_000);
    const changed = page.getByRole('button', { name: /^The list has changed/ });
    await changed.waitFor();
    assert.equal(await order.textContent(), before);
    await changed.click();
    await first.getByText('ORDER-NEW').waitFor();
    const refusal = { error: { code: 'refused', message: 'The database is away.' } };
    const address = /\/api\/checkouts\?/;
    await page.route(address, (route) => route.fulfill({ status: 409, json: refusal }));
    await page.clock.fastForward(21_000);
    await page.getByText('This list could not be refreshed. It may be out of date.').waitFor();
    await first.getByText('ORDER-NEW').waitFor();
    await page.reload();
    await page.getByText('The database is away.').waitFor();
    assert.deepEqual(await axeViolations(page), []);
    await page.unroute(address);
    await page.getByRole('button', { name: 'Try again' }).click();
    await first.getByText('ORDER-NEW').waitFor();
    // The list is filtered by a day only once the year has four digits.
    const days: string[] = [];
    page.on('request', (request) => days.push(new URL(request.url()).searchParams.get('to') ?? ''));
    const filtered = page.waitForRequest(/[?&]to=2026-12-31/);
    await page.getByLabel('To', { exact: true }).pressSequentially('12312026');
    await filtered;
    assert.deepEqual(new Set(days.filter(Boolean)), new Set(['2026-12-31']));
    // The rows of a later page have left the list.
    await page.route(address, (route) => route.fulfill({ json: { data: [], next: null } }));
    await go(page, '/checkouts?after=x');
    await page.getByText('This page has no rows any more').waitFor();
    await page.unroute(address);
    await page.getByRole('button', { name: 'First page' }).click();
    await first.getByText('ORDER-NEW').waitFor();
    // A person who reads very many pages is asked for the passkey, and may decline to use it.
    const asking = { error: { code: 'proof_needed', message: 'Confirm that it is you.' } };
    let refusals = 0;
    // The list that is still shown may refresh meanwhile.
    const received = /\/api\/checkouts\?.*status=received/;
    await page.route(received, (route) => {
      refusals += 1;
      return route.fulfill({ status: 403, json: asking });
    });
    const close = page.getByRole('dialog').getByRole('button', { name: 'Close', exact: true });
    await go(page, '/checkouts?status=received');
    await close.click();
    await page.getByText('This needs your passkey').waitFor();
    // The page does not ask again by itself.
    await page.clock.fastForward(61_000);
    await page.evaluate(`window.dispatchEvent(new Event('visibilitychange'))`);
    await page.getByRole('button', { name: 'Try again' }).click();
    await close.click();
    assert.equal(refusals, 2);
    // A later version of the service does not have the files of an earlier one.
    await page.route('**/assets/overdue-*.js', (route) => route.fulfill({ status: 404 }));
    await go(page, '/overdue');
    await page.getByText('This page could not be loaded').waitFor();
    await page.unroute(received);
    // Each part of a page also says why it cannot be read.
    const parts = /\/api\/(sessions|passkeys)$/;
    await page.route(parts, (route) => route.fulfill({ status: 409, json: refusal }));
    await go(page, '/me');
    await page.getByText('The database is away.').nth(1).waitFor();
    assert.equal(await page.getByRole('status', { name: 'Loading' }).count(), 0);
  });

  test('keys go to pages, rows and the search, which finds an order', async (t) => {
    const { page } = await console.withSession(t, ['viewer']);
    // The second of two keys counts only if it comes soon after the first.
    await fixClock(page);
    await page.goto(console.url);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    const figures = page.getByRole('region', { name: 'Waiting' });
    await figures.getByText('Callbacks given up').waitFor();
    // A viewer may read neither alerts nor differences, so nothing says that there are none.
    assert.equal(await figures.getByText(/^(Alerts|Books)$/).count(), 0);
    await painted(page);
    await page.keyboard.press('g');
    await page.keyboard.press('c');
    await page.getByRole('link', { name: 'ORDER-1', exact: true }).waitFor();
    await painted(page);
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.getByText('What happened').waitFor();
    // Going back leads to the row that was opened.
    await page.goBack();
    await page.locator('tbody tr:first-child a.open:focus').waitFor();
    await page.keyboard.press('Enter');
    await page.getByText('What happened').waitFor();
    await page.keyboard.press('/');
    await page.getByRole('combobox').fill('ORDER-1');
    await page.getByRole('option').first().waitFor();
    assert.deepEqual(await axeViolations(page), []);
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/checkouts/${shopper.id}`);
    await page.getByRole('heading', { name: 'ORDER-1' }).waitFor();
    await page.keyboard.press('?');
    const keys = page.getByRole('dialog', { name: 'Keys' });
    await keys.getByText('Go to Refunds').waitFor();
    assert.deepEqual(await axeViolations(page), []);
    // The shortcut keys can be turned off, which this browser remembers.
    const on = keys.getByRole('checkbox', { name: 'These keys work in this browser' });
    await on.uncheck();
    await page.reload();
    await page.getByRole('heading', { name: 'ORDER-1' }).waitFor();
    for (const key of ['/', '?', 'g', 'r']) await page.keyboard.press(key);
    await page.getByRole('button', { name: /^Person \d+/ }).click();
    await page.getByRole('menuitem', { name: 'Keys', exact: true }).click();
    await keys.waitFor();
    assert.equal(await page.getByRole('dialog').count(), 1);
    assert.equal(new URL(page.url()).pathname, `/checkouts/${shopper.id}`);
    await on.check();
    await page.keyboard.press('Escape');
    await keys.waitFor({ state: 'detached' });
    // A dialog returns the focus to the row that it was opened from.
    await go(page, '/callbacks?view=all');
    const row = page.getByRole('link', { name: 'ORDER-1', exact: true });
    await row.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Callback' }).getByText('Attempt 1').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.locator('a.open:focus', { hasText: 'ORDER-1' }).waitFor();
    // Going back skips a dialog that was closed.
    await page.goBack();
    await page.getByRole('heading', { name: 'ORDER-1' }).waitFor();
  });
});

const excessScript = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
const excessWidth = (page: Page) => page.evaluate(excessScript);
