import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { changeRules } from '#merchants/change-rules.ts';
import { createIntegration } from '#merchants/integrations/create-integration.ts';
import { manageMerchants } from '#merchants/integrations/manage-merchants.ts';
import { changeAccess } from '#operating/people/manage-people.ts';
import { offerPaymentLink } from '#purchases/payment-links/offer-payment-link.ts';
import { axeViolations } from '../support/axe.ts';
import { installClock, noBrowser } from '../support/browser.ts';
import { addPerson } from '../support/console.ts';
import type { ConsoleBrowser } from '../support/console-browser.ts';
import { hostile, startConsoleScene } from '../support/console-scene.ts';
import { openDispute, refundNow } from '../support/money.ts';
import type { Shopper } from '../support/payments.ts';
import { createAccount, isLong } from '../support/service.ts';

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

  test('one person proposes a bank account, and only another one can confirm it', async (t) => {
    const { paying, url } = console;
    const { merchant } = await createAccount(paying.service);
    const first = await console.signedIn(t, ['finance'], 'First Person');
    await first.page.goto(`${url}/merchants/${merchant.id}`);
    await first.page.getByText('Without a confirmed account').waitFor();
    paying.clock.advance({ minutes: 6 });
    await first.page.getByRole('button', { name: 'Propose an account…' }).click();
    await first.page.getByLabel('Account holder').fill(hostile('holder').slice(0, 90));
    await first.page.getByLabel('Bank', { exact: true }).fill('A Bank');
    await first.page.getByLabel('Branch code').fill('051001');
    await first.page.getByLabel('Account number').fill('01234 56789');
    assert.deepEqual(await axeViolations(first.page), []);
    await first.page.getByRole('button', { name: 'Propose the account … 6789' }).click();
    await first.page.getByRole('button', { name: 'Use the passkey' }).click();
    await first.page.getByText('You proposed it. Another person has to confirm it.').waitFor();
    assert.equal(await first.page.getByRole('button', { name: /^Confirm/ }).count(), 0);
    const second = await console.signedIn(t, ['finance'], 'Second Person');
    await second.page.goto(first.page.url());
    await second.page.getByText('by First Person').waitFor();
    await second.page.getByRole('button', { name: 'Confirm the account…' }).click();
    await second.page.getByText('by a telephone number that you already had').waitFor();
    assert.deepEqual(await axeViolations(second.page), []);
    await second.page.getByLabel('Account number').fill('012 345 6789');
    await second.page.getByRole('button', { name: /^Pay Bean There to account … 6789$/ }).click();
    await second.page.getByText('by Second Person').waitFor();
    await second.page.getByText('Proposed, not in use yet').waitFor({ state: 'detached' });
    const { rows } = await paying.service.deps.database.pool.query(
      'select last4, proposed_by <> confirmed_by as by_two from bank_accounts where merchant_id = $1',
      [merchant.id],
    );
    assert.deepEqual(rows, [{ last4: '6789', by_two: true }]);
    assert.equal(await second.page.evaluate('window.broken'), undefined);
    assert.deepEqual([...first.complaints, ...second.complaints], []);
  });

  test('an administrator changes bands in a form, and requires signatures', async (t) => {
    const { paying, url } = console;
    const account = await createAccount(paying.service);
    const { page, complaints } = await console.signedIn(t, ['admin']);
    await page.goto(`${url}/merchants/${account.merchant.id}`);
    await page.getByRole('button', { name: 'Change the rules' }).click();
    await page.getByText(/^For refunds above R.10.000,00, the default of all merchants$/).waitFor();
    await page.getByRole('combobox', { name: 'Two people approve refunds' }).click();
    await page.getByRole('option', { name: 'Above an amount of this merchant' }).click();
    await page.getByLabel('Two people approve refunds above').fill('750,00');
    await page.getByLabel('Payments, band 1').fill('1, 2');
    await page.getByRole('button', { name: /^Change Bean There$/ }).click();
    await page.getByText('New checkouts follow the new rules.').waitFor();
    const { rows } = await paying.service.deps.database.pool.query(
      'select rules, four_eyes_above from merchants where id = $1',
      [account.merchant.id],
    );
    assert.deepEqual([rows[0].rules[0].terms, rows[0].four_eyes_above], [[1, 2], 75_000]);
    // The tests' integrations have limits of their own. This one has those of the contract.
    const { pool } = paying.service.deps.database;
    await pool.query('delete from integration_limits where integration_id = $1', [account.id]);
    await page.goto(`${url}/integrations/${account.id}`);
    await page.getByRole('button', { name: 'Require signatures…' }).click();
    await page.getByRole('button', { name: /^Require signatures of Bean There$/ }).click();
    await page.getByText(/^Required since/).waitFor();
    await page.getByRole('button', { name: 'Change who approves refunds' }).click();
    await page.getByRole('combobox', { name: 'Refunds' }).click();
    await page.getByRole('option', { name: 'Approved at once' }).click();
    await page.getByRole('button', { name: 'Approve refunds of Bean There at once' }).click();
    await page.getByText('New refunds are approved at once.').waitFor();
    await page.getByRole('main').getByText('Approved at once').waitFor();
    const change = page.getByRole('button', { name: 'Change the limit of POST /api/refunds' });
    const limit = page.locator('.limit', { has: change });
    await limit.getByText('1 request in 1 s, as in the contract').waitFor();
    await change.click();
    await page.getByLabel('Maximum requests').fill('7');
    await page.getByRole('button', { name: 'Allow 7 requests in 1 second' }).click();
    await page.getByText('The limit is changed.').waitFor();
    await limit.getByText('7 requests in 1 s, set by an operator').waitFor();

    // An administrator of this merchant alone can only make the review stricter.
    await pool.query(
      `update people set merchant_ids = $1
       where id = (select person_id from console_sessions order by created_at desc limit 1)`,
      [[account.merchant.id]],
    );
    await pool.query(`update integrations set refund_mode = 'manual' where id = $1`, [account.id]);
    await page.goto(page.url());
    await page.getByRole('button', { name: 'Change who approves refunds' }).click();
    await page.getByText('Only an administrator of all merchants can end the review.').waitFor();
    await page.getByRole('combobox', { name: 'Refunds' }).click();
    const auto = page.getByRole('option', { name: 'Approved at once', disabled: true });
    await auto.waitFor();
    await page.goto(`${url}/merchants/${account.merchant.id}`);
    await page.getByRole('button', { name: 'Change the rules' }).click();
    const threshold = page.getByLabel('Two people approve refunds above');
    const send = page.getByRole('button', { name: /^Change Bean There$/ });
    for (const [amount, isAllowed] of [
      ['750,01', false],
      ['500,00', true],
    ] as const) {
      await threshold.fill(amount);
      const refusal = page.getByText('Only an administrator of all merchants can raise');
      await refusal.waitFor({ state: isAllowed ? 'detached' : 'visible' });
      assert.equal(await send.isEnabled(), isAllowed, amount);
    }
    await send.click();
    await page.getByText('New checkouts follow the new rules.').waitFor();
    assert.deepEqual(complaints, []);
  });

  test('a dialog sends only what its person changed, whatever others changed while it was open', async (t) => {
    const { paying, url } = console;
    const { deps } = paying.service;
    const { pool } = deps.database;
    const { merchant } = await createAccount(paying.service);
    const { id } = merchant;
    const { page, complaints } = await console.withSession(t, ['admin']);
    await installClock(page);
    /** The page reads everything again while the dialog is open. */
    const refresh = () => page.clock.fastForward(31_000);
    await page.goto(`${url}/merchants/${id}`);
    const change = page.getByRole('button', { name: 'Change the rules' });
    const send = page.getByRole('button', { name: /^Change Bean There$/ });
    await change.click();
    assert.equal(await send.isDisabled(), true);
    await changeRules(deps, 'Sam Naidoo', { id, four_eyes_above: 75_000 });
    await refresh();
    await page.getByText(/^For refunds above R.750,00, set for this merchant$/).waitFor();
    assert.equal(await send.isDisabled(), true);
    await page.getByLabel('Name on card statements').fill('BEANS');
    await send.click();
    await page.getByText('New checkouts follow the new rules.').waitFor();
    // If both change the same value, the second has to read it again.
    await change.click();
    await page.getByLabel('Two people approve refunds above').fill('900,00');
    await changeRules(deps, 'Sam Naidoo', { id, four_eyes_above: 80_000 });
    await send.click();
    await page
      .getByText('This was changed by Sam Naidoo meanwhile. Reload and try again.')
      .waitFor();
    const changed = await pool.query(
      'select short_name, four_eyes_above from merchants where id = $1',
      [id],
    );
    assert.deepEqual(changed.rows, [{ short_name: 'BEANS', four_eyes_above: 80_000 }]);
    const colleague = await addPerson(paying.service, { roles: ['viewer'], name: 'Kim Jacobs' });
    await page.goto(`${url}/people?person=${colleague.id}`);
    await page.getByRole('button', { name: 'Change roles…' }).click();
    await changeAccess(deps, 'Sam Naidoo', colleague.id, { roles: ['support'] });
    await page.getByLabel('Name', { exact: true }).fill('Kim Jacobs-Zulu');
    await page.getByRole('button', { name: 'Change Kim Jacobs' }).click();
    await page.getByText('Kim Jacobs-Zulu is changed.').waitFor();
    const { rows } = await pool.query('select name, roles from people where id = $1', [
      colleague.id,
    ]);
    assert.deepEqual(rows, [{ name: 'Kim Jacobs-Zulu', roles: ['support'] }]);
    const wanted = { refund_mode: 'manual' as const, managed_merchant_ids: [id] };
    const intermediary = await createIntegration(deps, 'test', wanted);
    await page.goto(`${url}/integrations/${intermediary.id}`);
    await page.getByRole('button', { name: 'Change…' }).click();
    const added = { id: intermediary.id, add: [paying.account.merchant.id], remove: [] };
    await manageMerchants(deps, 'Sam Naidoo', added);
    await refresh();
    await page.locator('.plain li').nth(1).waitFor();
    await page.getByRole('button', { name: 'Add 0, remove 0' }).waitFor();
    const more = [];
    for (let count = 0; count < 10; count += 1)
      more.push((await createAccount(paying.service)).merchant.id);
    await manageMerchants(deps, 'Sam Naidoo', { id: intermediary.id, add: more, remove: [] });
    await page.getByRole('combobox', { name: 'Act for', exact: true }).click();
    await page.getByRole('option').first().click();
    await page.getByRole('button', { name: 'Add 1, remove 0' }).press('Enter');
    await page.getByRole('button', { name: 'All merchants…' }).click();
    const all = page.getByRole('dialog', { name: 'All merchants that it acts for' });
    await all.locator('li').nth(11).waitFor();
    assert.deepEqual(complaints, []);
  });

  test('an administrator rotates a signing key, and sees the new one once', async (t) => {
    const { paying, url } = console;
    const { page, complaints } = await console.withSession(t, ['admin']);
    await installClock(page, { time: paying.clock.now().epochMilliseconds });
    await page.goto(`${url}/integrations/${paying.account.id}`);
    await page.getByRole('button', { name: 'Rotate the signing key…' }).click();
    await page.getByRole('button', { name: /^Rotate the signing key of Bean There$/ }).click();
    const value = String(await page.locator('[data-secret="Signing key"]').textContent());
    assert.ok(value.length > 20 && value !== paying.account.signing_key);
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'I have stored it' }).click();
    // The old key counts down to its end, a day later.
    const old = page.locator('.line', { hasText: 'Older' });
    await old.getByText(/^Ends in 24 h/).waitFor();
    assert.equal(await page.getByText(value).count(), 0);
    await page.reload();
    await page.clock.fastForward('06:00:00');
    await old.getByText(/^Ends in 18 h/).waitFor();
    const { rows } = await paying.service.deps.database.pool.query(
      'select expires_at from signing_keys where integration_id = $1 and expires_at is not null',
      [paying.account.id],
    );
    const shown = await old.getByText(/^in 18/).getAttribute('datetime');
    assert.deepEqual(
      [shown],
      rows.map(({ expires_at }) => expires_at),
    );
    assert.equal(await page.getByText(value).count(), 0);
    assert.deepEqual(complaints, []);
  });

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
    await page.goto(`${url}/people`);
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

  test('a list keeps its rows when it refreshes, shows zones, and says when it cannot be read', async (t) => {
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
    // Each part of a page says so, too.
    const parts = /\/api\/(sessions|passkeys)$/;
    await page.route(parts, (route) => route.fulfill({ status: 409, json: refusal }));
    await page.goto(`${url}/me`);
    await page.getByText('The database is away.').nth(1).waitFor();
    assert.equal(await page.getByRole('status', { name: 'Loading' }).count(), 0);
  });

  test('a list and a page show their shape while they are read', async (t) => {
    const { page, complaints } = await console.withSession(t, ['viewer']);
    await page.setViewportSize({ width: 390, height: 844 });
    const held = [
      ['/checkouts', 'Checkouts', 'table.bones .bone', 'ORDER-1'],
      [`/checkouts/${shopper.id}`, 'Checkout', '.bone', 'What happened'],
    ] as const;
    for (const [path, title, bones, text] of held) {
      const answer = Promise.withResolvers<void>();
      const address = new RegExp(`/api${path}([?]|$)`);
      await page.route(address, async (route) => {
        await answer.promise;
        await route.continue();
      });
      await page.goto(`${console.url}${path}`);
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
    const links = page.getByRole('region', { name: 'What waits' }).getByRole('link');
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
    await page.goto(`${url}/?merchant=${id}`);
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
    assert.notEqual(own, all, 'some alerts are of no merchant');
    await alerts.click();
    await page.getByText(new RegExp(`^${own} rows?$`)).waitFor();
    assert.deepEqual(await axeViolations(page), []);
    assert.deepEqual(complaints, []);
  });

  test('keys go to pages, rows and the search, which finds an order', async (t) => {
    const { page } = await console.withSession(t, ['viewer']);
    // The second of two keys counts only if it comes soon after the first.
    await page.clock.setFixedTime(Date.now());
    await page.goto(console.url);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    const figures = page.getByRole('region', { name: 'What waits' });
    await figures.getByText('Books').waitFor();
    // A viewer may not read alerts, so nothing says that none is open.
    assert.equal(await figures.getByText('Alerts').count(), 0);
    await page.keyboard.press('g');
    await page.keyboard.press('c');
    await page.getByRole('link', { name: 'ORDER-1', exact: true }).waitFor();
    await page.keyboard.press('j');
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
    await page.getByRole('dialog', { name: 'Keys' }).getByText('Go to Refunds').waitFor();
    assert.deepEqual(await axeViolations(page), []);
    await page.keyboard.press('Escape');
    // A dialog gives the focus back to the row that it was opened from.
    await page.goto(`${console.url}/callbacks?view=all`);
    const row = page.getByRole('link', { name: 'ORDER-1', exact: true });
    await row.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Callback' }).getByText('Attempt 1').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.locator('a.open:focus', { hasText: 'ORDER-1' }).waitFor();
  });

  // Axe sees each page at one of the three widths here, and at all of them in the long run.
  test('every page fits a phone, a desktop and a wide one, passes axe, and runs no foreign script', async (t) => {
    const { paying, url } = console;
    const { page, complaints } = await console.signedIn(
      t,
      ['admin'],
      hostile('person').slice(0, 90),
    );
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
      ['/callbacks?view=destinations', /127[.]0[.]0[.]1|in 7 days/],
      ['/disputes', 'ORDER-3'],
      [`/disputes/${dispute}`, 'The disputed payment is number 1'],
      ['/payouts', /^TR/],
      [`/payouts/${payout}`, '3 lines'],
      ['/statements', /2026$/],
      [`/statements/${statement}`, 'Tax invoice'],
      [`/balance?merchant=${paying.account.merchant.id}`, 'Next payout, as it stands'],
      ['/money', 'Money of a day'],
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
      const excess = await excessWidth(page);
      if (excess !== 0) found.push(`${path} on ${on}: ${excess} px too wide`);
      const violations = withAxe || isLong ? await axeViolations(page) : [];
      for (const violation of violations) found.push(`${path} on ${on}: ${violation}`);
      const broken = await page.evaluate('window.broken');
      if (broken !== undefined) found.push(`${path}: the script of ${broken} ran`);
    };
    for (const [index, [path, text]] of pages.entries()) {
      await page.setViewportSize({ width: 390, height: 844 });
      await page.emulateMedia({ colorScheme: 'light' });
      await page.goto(`${url}${path}`);
      await page.locator('#main').getByText(text).first().waitFor();
      await look(path, 'a light phone', index % 3 === 0);
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.emulateMedia({ colorScheme: 'dark' });
      await page.locator('html[data-mantine-color-scheme="dark"]').waitFor();
      await look(path, 'a dark desktop', index % 3 === 1);
      await page.setViewportSize({ width: 1920, height: 1080 });
      await look(path, 'a wide desktop', index % 3 === 2);
    }
    assert.deepEqual(found, []);
    assert.deepEqual(complaints, []);
  });
});

const excessWidth = (page: Page) =>
  page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');
