import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { runLongActs } from '../../src/acts/run-long-acts.ts';
import { changeRules } from '../../src/merchants/change-rules.ts';
import { createMerchant } from '../../src/merchants/create-merchant.ts';
import { raiseAlert } from '../../src/operators/raise-alert.ts';
import { setTerms } from '../../src/payouts/set-terms.ts';
import { rollUp } from '../../src/rollups/roll-up.ts';
import { axeFindings } from '../support/axe.ts';
import { noBrowser } from '../support/browser.ts';
import { readCallback } from '../support/callbacks.ts';
import { type ConsoleBrowser, startConsoleBrowser } from '../support/console-browser.ts';
import {
  askRefund,
  assertBalanced,
  cards,
  openDispute,
  partsOf,
  statusOf,
  wholeTerms,
} from '../support/money.ts';
import type { Shopper } from '../support/payments.ts';
import { createAccount, isLong, rules } from '../support/service.ts';

// What merchants, shoppers and receivers can write. The window would have a mark if one of these
// became markup or a script.
const hostile = (name: string) =>
  `<img src=x onerror="window.broken='${name}'"><script>window.broken='${name}'</script>`;

describe('work at the console in a browser', { skip: noBrowser }, () => {
  let console: ConsoleBrowser;
  let shopper: Shopper;
  let unlucky: Shopper;
  let disputed: Shopper;
  let isDown = true;

  before(async () => {
    console = await startConsoleBrowser();
    const { paying } = console;
    paying.receiver.answer = ({ path }) =>
      path === '/refuses' && isDown
        ? { status: 500, headers: { 'x-said': hostile('header') }, body: hostile('body') }
        : {};
    await setTerms(paying.service.deps, 'test', paying.account.merchant.id, wholeTerms);
    const customer = {
      email: 'thandi@example.com',
      first_name: hostile('first'),
      last_name: hostile('last'),
      billing_address: hostile('address'),
    };
    shopper = await paying.shopper({
      client_reference_id: 'ORDER-1',
      customer,
      line_items: [{ name: hostile('item'), amount: 150_000, quantity: 1 }],
    });
    await shopper.pay(3);
    unlucky = await paying.shopper({
      client_reference_id: hostile('order'),
      notify_url: `${paying.receiver.url}/refuses`,
      customer,
    });
    await unlucky.pay(3, { card: cards.laterInsufficientFunds });
    disputed = await paying.shopper({ client_reference_id: 'ORDER-3', customer });
    await disputed.pay(1);
    // The second payment of the unlucky one becomes overdue, and its callback is given up.
    await paying.pass({ days: 45 });
    const { deps } = paying.service;
    await createMerchant(deps, 'test', { name: hostile('merchant'), territory: 'ZA', rules });
    await raiseAlert(deps, deps.database.db, { kind: 'refund failed', detail: hostile('alert') });
    const finding = { kind: 'gateway_other_amount', detail: hostile('finding') };
    await raiseAlert(deps, deps.database.db, finding);
    while ((await rollUp(deps)) > 0);
  });
  after(() => console?.close());

  test('a reviewer sees what a refund is taken from, and approves exactly that', async (t) => {
    const { paying, url } = console;
    const refund = await askRefund(paying, shopper, 60_000);
    const { page, complaints } = await console.withSession(t, ['refunds']);
    await page.goto(`${url}/refunds`);
    await page.getByRole('link', { name: /^Review the refund of R.600,00 for ORDER-1/ }).click();
    const dialog = page.getByRole('dialog', { name: 'Refund' });
    await dialog.getByText('What it will be taken from').waitFor();
    const shown = (await dialog.getByRole('row').allTextContents()).map(plain);
    assert.equal(shown[0], 'Payment 3Not collected yet: it is cancelledR 500,00');
    assert.equal(shown[1], 'Payment 2Collected: it goes back to the cardR 100,00');
    assert.deepEqual(await axeFindings(page), []);
    await dialog.getByRole('button', { name: /^Approve R.600,00$/ }).click();
    await page.getByText(/600,00 is approved/).waitFor();
    await paying.work();
    assert.equal(await statusOf(paying, refund), 'complete');
    assert.deepEqual(await partsOf(shopper, refund), ['3 cancel 50000 done', '2 card 10000 done']);
    await assertBalanced(paying, shopper);
    assert.deepEqual(complaints, []);
  });

  test('above the threshold two people approve, and the first one cannot be the second', async (t) => {
    const { paying, url } = console;
    const { deps } = paying.service;
    const { id } = paying.account.merchant;
    await changeRules(deps, 'test', { id, four_eyes_above: 10_000 });
    t.after(() => changeRules(deps, 'test', { id, four_eyes_above: null }));
    const refund = await askRefund(paying, shopper, 20_000);
    const first = await console.withSession(t, ['refunds'], 'First Reviewer');
    await first.page.goto(`${url}/refunds?refund=${refund}`);
    await first.page.getByText('two people have to approve it').waitFor();
    await first.page.getByRole('button', { name: /^Approve R.200,00$/ }).click();
    await first.page.getByText('It now needs a second person').waitFor();
    await paying.work();
    assert.equal(await statusOf(paying, refund), 'requested');
    await first.page.goto(`${url}/refunds?refund=${refund}`);
    await first.page.getByText('Another person has to approve it too').waitFor();
    const again = first.page.getByRole('button', { name: /as second person$/ });
    assert.equal(await again.isDisabled(), true);
    const second = await console.withSession(t, ['refunds'], 'Second Reviewer');
    await second.page.goto(`${url}/refunds?refund=${refund}`);
    await second.page.getByText('Your approval starts the refund').waitFor();
    await second.page.getByRole('button', { name: /^Approve R.200,00 as second person$/ }).click();
    await second.page.getByText(/200,00 is approved/).waitFor();
    await paying.work();
    assert.equal(await statusOf(paying, refund), 'complete');
    await assertBalanced(paying, shopper);
  });

  test('support refunds a checkout from its page after the passkey, once', async (t) => {
    const { paying, url } = console;
    const { page, complaints } = await console.signedIn(t, ['support']);
    paying.clock.advance({ minutes: 6 });
    await page.goto(`${url}/checkouts/${shopper.id}`);
    await page.getByRole('button', { name: 'Refund…' }).click();
    await page.getByLabel('Amount').fill('10,50');
    await page.getByText('What it will be taken from').waitFor();
    await page.getByRole('button', { name: /^Refund R.10,50$/ }).click();
    const proof = page.getByRole('dialog', { name: 'Prove that it is you' });
    await proof.getByText(/Refund R.10,50/).waitFor();
    await proof.getByRole('button', { name: 'Use the passkey' }).click();
    await page.getByRole('dialog', { name: 'Refund ORDER-1' }).waitFor({ state: 'detached' });
    const requests = await shopper.rows('refund_requests');
    assert.equal(requests.filter(({ amount }) => amount === 1_050).length, 1);
    assert.deepEqual(complaints, []);
  });

  test('several refunds are approved at once, with progress that survives a reload', async (t) => {
    const { paying, url } = console;
    const wanted = [
      await askRefund(paying, shopper, 1_100),
      await askRefund(paying, shopper, 1_200),
    ];
    const { page } = await console.withSession(t, ['refunds']);
    await page.goto(`${url}/refunds`);
    await page
      .getByRole('row', { name: /R.11,00/ })
      .getByRole('checkbox')
      .check();
    await page
      .getByRole('row', { name: /R.12,00/ })
      .getByRole('checkbox')
      .check();
    await page.getByRole('button', { name: /^Approve 2 refunds of R.23,00$/ }).click();
    await page.getByText('Approving refunds').waitFor();
    await page.reload();
    await page.getByText('Approving refunds').waitFor();
    while ((await runLongActs(paying.service.deps)) > 0);
    await page.getByText('Refunds approved').waitFor();
    await page.getByText('2 of 2 done').waitFor();
    await paying.work();
    for (const id of wanted) assert.equal(await statusOf(paying, id), 'complete');
    await assertBalanced(paying, shopper);
  });

  test('a callback that was given up is resent, and the page says what the receiver answered', async (t) => {
    const { paying, url } = console;
    const { page, complaints } = await console.withSession(t, ['support']);
    await page.goto(`${url}/callbacks`);
    await page.getByRole('button', { name: /^Resend the callback for/ }).click();
    await page.getByText(/^Not delivered/).waitFor();
    isDown = false;
    await page.getByRole('link', { name: hostile('order') }).click();
    const dialog = page.getByRole('dialog', { name: 'Callback' });
    await dialog
      .getByText(/^Attempt/)
      .first()
      .click();
    await dialog.getByText(hostile('body')).waitFor();
    await dialog.getByRole('button', { name: 'Resend the callback' }).click();
    await page.getByText('Delivered.', { exact: true }).waitFor();
    assert.equal((await readCallback(paying.service, unlucky.id)).status, 'delivered');
    assert.equal(await page.evaluate('window.broken'), undefined);
    assert.deepEqual(complaints, []);
  });

  test('all callbacks that match are resent, as one act with progress', async (t) => {
    const { paying, url } = console;
    const { page } = await console.withSession(t, ['support']);
    const { pool } = paying.service.deps.database;
    const { rows } = await pool.query(
      `update callbacks set status = 'exhausted', due_at = null where checkout_id = $1
       returning host`,
      [unlucky.id],
    );
    const { host } = rows[0];
    await page.goto(`${url}/callbacks?host=${encodeURIComponent(host)}`);
    await page.getByRole('button', { name: 'Resend all that match…' }).click();
    await page.getByRole('button', { name: `Resend all given up to ${host}` }).click();
    await page.getByText('Resending callbacks').waitFor();
    // More than are counted: the panel says how many are done.
    await pool.query('update long_acts set total = null where finished_at is null');
    await page.getByText('0 done', { exact: true }).waitFor();
    while ((await runLongActs(paying.service.deps)) > 0);
    await page.getByText('Callbacks resent').waitFor();
    await page.getByText('1 done', { exact: true }).waitFor();
    assert.equal((await readCallback(paying.service, unlucky.id)).status, 'delivered');
    // No other view has an index by host, so the filter ends with the view.
    await page.getByRole('button', { name: 'All', exact: true }).click();
    await page.getByRole('link', { name: 'ORDER-1', exact: true }).waitFor();
    assert.equal(new URL(page.url()).search, '?view=all');
  });

  test('on-call retries an overdue payment after the passkey, and reads the bank’s answer', async (t) => {
    const { paying, url } = console;
    const { page } = await console.signedIn(t, ['on-call']);
    paying.clock.advance({ minutes: 6 });
    await page.goto(`${url}/overdue`);
    await page.getByRole('button', { name: /^Retry payment 2 of/ }).click();
    await page.getByRole('button', { name: /^Charge R.500,00 now$/ }).click();
    await page.getByRole('button', { name: 'Use the passkey' }).click();
    await page.getByText('The payment is overdue: insufficient funds.').waitFor();
  });

  test('an alert is opened by a click on its row, taken, and closed with a reason', async (t) => {
    const { paying, url } = console;
    const { deps } = paying.service;
    await raiseAlert(deps, deps.database.db, { kind: 'a_test', detail: 'The shop is on fire.' });
    const { page } = await console.withSession(t, ['on-call']);
    await page.goto(`${url}/alerts`);
    await page.getByText('The shop is on fire.').click();
    const dialog = page.getByRole('dialog', { name: 'A test' });
    await dialog.getByRole('button', { name: 'Take the alert' }).click();
    await dialog
      .getByText(/^Taken$/)
      .first()
      .waitFor();
    await dialog.getByLabel('What was done').fill('Water.');
    await dialog.getByRole('button', { name: 'Close the alert' }).click();
    await page.getByText('The alert is closed.').waitFor();
    await dialog.waitFor({ state: 'detached' });
    const { rows } = await deps.database.pool.query(
      `select close_reason from alerts where kind = 'a_test'`,
    );
    assert.deepEqual(rows, [{ close_reason: 'Water.' }]);
  });

  test('two people approve a payout, and evidence is staged before it is submitted', async (t) => {
    const { paying, url } = console;
    const first = await console.withSession(t, ['finance'], 'First Approver');
    await first.page.goto(`${url}/payouts`);
    await first.page.getByRole('link', { name: /^TR/ }).last().click();
    await first.page.getByRole('button', { name: /^Approve R/ }).click();
    await first.page.getByText('First Approver approved it first.').waitFor();
    const second = await console.withSession(t, ['finance']);
    await second.page.goto(first.page.url());
    await second.page.getByText('First Approver approved it first.').waitFor();
    await second.page.getByRole('button', { name: /as second person$/ }).click();
    await second.page.getByText('Approvals').waitFor();
    await second.page.getByText('2 of 2').waitFor();
    const id = await openDispute(paying, disputed);
    const { page } = second;
    await page.goto(`${url}/disputes/${id}`);
    assert.equal(await page.getByRole('button', { name: 'Submit the evidence…' }).count(), 0);
    await page.getByRole('button', { name: 'Stage the evidence…' }).click();
    await page.getByRole('button', { name: /^Stage the evidence for R/ }).click();
    await page.getByRole('button', { name: 'Submit the evidence…' }).click();
    await page.getByRole('button', { name: /^Submit the evidence for R/ }).click();
    await page.getByText('The bank has the evidence and decides.').waitFor();
    assert.equal(await page.evaluate('window.broken'), undefined);
    assert.deepEqual([...first.complaints, ...second.complaints], []);
  });

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
    assert.deepEqual(await axeFindings(first.page), []);
    await first.page.getByRole('button', { name: 'Propose the account … 6789' }).click();
    await first.page.getByRole('button', { name: 'Use the passkey' }).click();
    await first.page.getByText('You proposed it. Another person has to confirm it.').waitFor();
    assert.equal(await first.page.getByRole('button', { name: /^Confirm/ }).count(), 0);
    const second = await console.signedIn(t, ['finance'], 'Second Person');
    await second.page.goto(first.page.url());
    await second.page.getByText('by First Person').waitFor();
    await second.page.getByRole('button', { name: 'Confirm the account…' }).click();
    await second.page.getByText('by a telephone number that you already had').waitFor();
    assert.deepEqual(await axeFindings(second.page), []);
    await second.page.getByRole('button', { name: /^Pay Bean There to account … 6789$/ }).click();
    await second.page.getByText('by Second Person').waitFor();
    assert.equal(await second.page.getByText('Proposed, not in use yet').count(), 0);
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
    await page.getByLabel('Requests at most').fill('7');
    await page.getByRole('button', { name: 'Allow 7 requests in 1 second' }).click();
    await page.getByText('The limit is changed.').waitFor();
    await limit.getByText('7 requests in 1 s, set by an operator').waitFor();
    assert.deepEqual(complaints, []);
  });

  test('an administrator rotates a signing key, and sees the new one once', async (t) => {
    const { paying, url } = console;
    const { page, complaints } = await console.withSession(t, ['admin']);
    await page.goto(`${url}/integrations/${paying.account.id}`);
    await page.getByRole('button', { name: 'Rotate the signing key…' }).click();
    await page.getByRole('button', { name: /^Rotate the signing key of Bean There$/ }).click();
    const value = String(await page.locator('[data-secret="Signing key"]').textContent());
    assert.ok(value.length > 20 && value !== paying.account.signing_key);
    await page.getByRole('dialog').getByRole('button', { name: 'Close', exact: true }).click();
    await page.getByText(/^Ends/).waitFor();
    assert.equal(await page.getByText(value).count(), 0);
    await page.reload();
    await page.getByText(/^Ends/).waitFor();
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
    assert.deepEqual(await axeFindings(page), []);
    assert.deepEqual(complaints, []);
  });

  test('a list keeps its rows when it refreshes, shows zones, and says when it cannot be read', async (t) => {
    const { paying, url } = console;
    const { page } = await console.withSession(t, ['viewer']);
    await page.clock.install();
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
    assert.deepEqual(await axeFindings(page), []);
    await page.unroute(address);
    await page.getByRole('button', { name: 'Try again' }).click();
    await first.getByText('ORDER-NEW').waitFor();
  });

  test('keys go to pages, rows and the search, which finds an order', async (t) => {
    const { page } = await console.withSession(t, ['viewer']);
    await page.goto(console.url);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('c');
    await page.getByRole('link', { name: 'ORDER-1', exact: true }).waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.getByText('What happened').waitFor();
    await page.keyboard.press('/');
    await page.getByRole('combobox').fill('ORDER-1');
    await page.getByRole('option').first().waitFor();
    assert.deepEqual(await axeFindings(page), []);
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/checkouts/${shopper.id}`);
    await page.getByRole('heading', { name: 'ORDER-1' }).waitFor();
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).getByText('Go to Refunds').waitFor();
    assert.deepEqual(await axeFindings(page), []);
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
    const payout = (await pool.query('select id from payouts order by number')).rows[0].id;
    const pages: [string, string | RegExp][] = [
      ['/', 'From created to paid, 30 days'],
      ['/search?q=thandi@example.com', /^Found/],
      ['/checkouts', 'ORDER-1'],
      [`/checkouts/${unlucky.id}`, 'What happened'],
      ['/refunds', 'Nothing to review'],
      ['/refunds?view=complete', 'ORDER-1'],
      ['/overdue', 'May work'],
      ['/callbacks?view=all', 'ORDER-1'],
      ['/callbacks?view=destinations', /127[.]0[.]0[.]1|in 7 days/],
      ['/disputes', 'ORDER-3'],
      [`/disputes/${dispute}`, 'The disputed payment is number 1'],
      ['/payouts', /^TR/],
      [`/payouts/${payout}`, '3 lines'],
      ['/reconciliation', 'Other amount'],
      ['/merchants', 'Bean There'],
      [`/merchants/${paying.account.merchant.id}`, 'Bands'],
      ['/integrations', 'Bean There'],
      [`/integrations/${paying.account.id}`, 'Signing keys'],
      ['/alerts', 'Refund failed'],
      ['/audit', 'test'],
      ['/people', 'person1@example.com'],
      ['/me', 'Open sessions'],
      ['/nowhere', 'There is no such page'],
    ];
    const found: string[] = [];
    const look = async (path: string, on: string, withAxe: boolean) => {
      const excess = await excessWidth(page);
      if (excess !== 0) found.push(`${path} on ${on}: ${excess} px too wide`);
      const findings = withAxe || isLong ? await axeFindings(page) : [];
      for (const finding of findings) found.push(`${path} on ${on}: ${finding}`);
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

/** Without the spaces that keep an amount on one line. */
const plain = (text: string) => text.replaceAll(/\s/g, ' ');
