import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { changeRules } from '#merchants/change-rules.ts';
import { findMerchant } from '#merchants/merchant.sql.ts';
import { runBulkActions } from '#operating/bulk-actions/run-bulk-actions.ts';
import { readImage } from '#platform/shared/file-type.ts';
import { askMerchant } from '#purchases/conversations/ask-merchant.ts';
import { approveRefund, declineRefund } from '#purchases/refunds/review-refund.ts';
import { raiseAlert } from '#record/alerts/raise-alert.ts';
import { axeViolations } from '../support/axe.ts';
import { installClock, noBrowser } from '../support/browser.ts';
import { readCallback } from '../support/callbacks.ts';
import { type ConsoleBrowser, go } from '../support/console-browser.ts';
import { type ConsoleScene, hostile, startConsoleScene } from '../support/console-scene.ts';
import { pngFile } from '../support/files.ts';
import { askRefund, assertBalanced, openDispute, partsOf, statusOf } from '../support/money.ts';
import type { Shopper } from '../support/payments.ts';

describe('work at the console in a browser', { skip: noBrowser }, () => {
  let scene: ConsoleScene;
  let console: ConsoleBrowser;
  let shopper: Shopper;
  let unlucky: Shopper;
  let disputed: Shopper;

  before(async () => {
    scene = await startConsoleScene();
    ({ console, shopper, unlucky, disputed } = scene);
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
    assert.deepEqual(await axeViolations(page), []);
    await dialog.getByRole('button', { name: /^Approve R.600,00$/ }).click();
    await page.getByText(/600,00 is complete/).waitFor();
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
    await first.page.getByRole('button', { name: /^Approve R.200,00 as first approver$/ }).click();
    await first.page.getByText(/200,00 now needs a second approval/).waitFor();
    await paying.work();
    assert.equal(await statusOf(paying, refund), 'requested');
    await first.page.goto(`${url}/refunds?refund=${refund}`);
    await first.page.getByText('Another person has to approve it too').waitFor();
    const again = first.page.getByRole('button', { name: /as second approver$/ });
    assert.equal(await again.isDisabled(), true);
    const second = await console.withSession(t, ['refunds'], 'Second Reviewer');
    await second.page.goto(`${url}/refunds?refund=${refund}`);
    await second.page.getByText('Your approval starts the refund').waitFor();
    await second.page
      .getByRole('button', { name: /^Approve R.200,00 as second approver$/ })
      .click();
    await second.page.getByText(/200,00 is complete/).waitFor();
    await paying.work();
    assert.equal(await statusOf(paying, refund), 'complete');
    await assertBalanced(paying, shopper);
    // A person asked for this refund, so the approval of any other person starts it.
    const asked = await first.page.evaluate(async (path) => {
      const body = JSON.stringify({ amount: 15_000, request_id: crypto.randomUUID() });
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(path, { method: 'POST', headers, body });
      return ((await answer.json()) as { id: string }).id;
    }, `/api/checkouts/${shopper.id}/refunds`);
    await go(first.page, `/refunds?refund=${asked}`);
    await first.page.getByText('You asked for this refund').waitFor();
    const { page } = second;
    await go(page, `/refunds?refund=${asked}`);
    await page
      .getByText(/^First Reviewer \(\S+@\S+\) asked for it\. Your approval starts/)
      .waitFor();
    assert.equal(await page.getByText('two people have to approve it').count(), 0);
    await page.getByRole('button', { name: /^Approve R.150,00 as second approver$/ }).waitFor();
    // If it is approved together with a refund that needs two people, only this one starts.
    const other = await askRefund(paying, shopper, 11_000);
    await page.goto(`${url}/refunds`);
    await page.getByRole('checkbox', { name: 'Select all on this page' }).check();
    await page.getByText('1 then needs a second approval.').waitFor();
    const both = /^Approve 2 refunds of R.260,00 and start 1 of R.150,00$/;
    await page.getByRole('button', { name: both }).click();
    await page.getByText('Approving refunds').waitFor();
    while ((await runBulkActions(deps)) > 0);
    await paying.work();
    assert.equal(await statusOf(paying, asked), 'complete');
    assert.equal(await statusOf(paying, other), 'requested');
    await declineRefund(deps, 'test', other, 'No.');
    await assertBalanced(paying, shopper);
    assert.deepEqual([...first.complaints, ...second.complaints], []);
  });

  test('a first approval stays a first one while another person gives theirs', async (t) => {
    const { paying, url } = console;
    const { deps } = paying.service;
    const { id } = paying.account.merchant;
    await changeRules(deps, 'test', { id, four_eyes_above: 10_000 });
    t.after(() => changeRules(deps, 'test', { id, four_eyes_above: null }));
    const refund = await askRefund(paying, shopper, 13_000);
    const { page } = await console.withSession(t, ['refunds']);
    await installClock(page);
    await page.goto(`${url}/refunds`);
    const pick = page.getByRole('row', { name: /R.130,00/ }).getByRole('checkbox');
    await pick.check();
    await page.getByText('Each needs a second approval.').waitFor();
    await go(page, `/refunds?refund=${refund}`);
    const dialog = page.getByRole('dialog', { name: 'Refund' });
    const asFirst = dialog.getByRole('button', { name: /^Approve R.130,00 as first approver$/ });
    await asFirst.waitFor();
    await approveRefund(deps, 'thabo', refund);
    await page.clock.fastForward(21_000);
    await page.evaluate("window.dispatchEvent(new Event('visibilitychange'))");
    await dialog.getByText('Second approval').waitFor();
    assert.equal(await asFirst.count(), 1);
    await asFirst.click();
    await dialog.getByText(/This was changed in the meantime/).waitFor();
    assert.equal(await statusOf(paying, refund), 'requested');
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: /^Review the refund of R.130,00/ }).waitFor();
    assert.equal(await pick.isChecked(), false);
    assert.equal(await page.getByLabel('Selected refunds').count(), 0);
    await declineRefund(deps, 'test', refund, 'No.');
  });

  test('support refunds a checkout from its page after the passkey, once', async (t) => {
    const { paying, url } = console;
    const { page, complaints } = await console.withPasskey(t, ['support']);
    paying.clock.advance({ minutes: 6 });
    await page.goto(`${url}/checkouts/${shopper.id}`);
    // The id of the traces of the checkout.
    await page.getByText(shopper.id.replaceAll('-', ''), { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Refund…' }).click();
    await page.getByLabel('Amount').fill('10,50');
    await page.getByText('What it will be taken from').waitFor();
    const refund = page.getByRole('button', { name: /^Refund R.10,50$/ });
    await refund.click();
    const proof = page.getByRole('dialog', { name: 'Confirm that it is you' });
    await proof.getByText(/Refund R.10,50/).waitFor();
    // Escape closes only this dialog, and the focus is where it was.
    await page.keyboard.press('Escape');
    await proof.waitFor({ state: 'detached' });
    await page.locator('button:focus', { hasText: /^Refund R.10,50$/ }).waitFor();
    await refund.press('Enter');
    await proof.getByText(/Refund R.10,50/).waitFor();
    await proof.getByRole('button', { name: 'Use the passkey' }).click();
    await page.getByRole('dialog', { name: 'Refund ORDER-1' }).waitFor({ state: 'detached' });
    await page.locator('button:focus', { hasText: /^Refund…$/ }).waitFor();
    const requests = await shopper.rows('refund_requests');
    assert.equal(requests.filter(({ amount }) => amount === 1_050).length, 1);
    assert.deepEqual(complaints, []);
  });

  test('a callback that was given up is resent, and the page says what the receiver answered', async (t) => {
    const { paying, url } = console;
    const { page, complaints } = await console.withSession(t, ['support']);
    await page.goto(`${url}/callbacks`);
    await page.getByRole('button', { name: /^Resend the callback for/ }).click();
    await page.getByText(/^Not delivered/).waitFor();
    scene.receiver.isDown = false;
    // It is being retried again, and the list shows that at once.
    await page.getByText('No callback was given up').waitFor();
    await page.getByRole('button', { name: 'To send' }).click();
    await page.getByRole('link', { name: hostile('order') }).click();
    const dialog = page.getByRole('dialog', { name: 'Callback' });
    // The newest attempt is open.
    await dialog.getByText(hostile('body')).waitFor();
    await dialog.getByRole('button', { name: 'Resend the callback' }).click();
    await page.getByText('Delivered.', { exact: true }).waitFor();
    assert.equal((await readCallback(paying.service, unlucky.id)).status, 'delivered');
    assert.equal(await page.evaluate('window.broken'), undefined);
    assert.deepEqual(complaints, []);
  });

  test('an answer whose outcome was lost is sent once, and what is written next as another one', async (t) => {
    const { paying, url } = console;
    const { deps } = paying.service;
    const { page } = await console.withSession(t, ['support']);
    const { id: merchant_id } = paying.account.merchant;
    const merchant = await findMerchant(deps.database.db, deps.clock, merchant_id);
    assert.ok(merchant);
    await askMerchant(deps, merchant, { merchant_id, id: disputed.id }, 'Where is it?');
    await page.goto(`${url}/messages/${disputed.id}`);
    const field = page.getByLabel(/^Answer as/);
    const press = async () => {
      paying.clock.advance({ seconds: 1 });
      await page.getByRole('button', { name: 'Answer and solve' }).click();
    };
    const lose = () =>
      page.route(
        '**/answer',
        async (route) => {
          await route.fetch();
          await route.abort();
        },
        { times: 1 },
      );
    const own = () => page.locator('.own .said').allTextContents();
    await lose();
    await field.fill('It left.');
    await press();
    await page.getByText('The service did not answer.').waitFor();
    await page.locator('.own', { hasText: 'It left.' }).waitFor();
    await press();
    // The retry succeeds and clears the field, so the button has nothing to send.
    await page.locator('button:disabled:not([data-loading])', { hasText: 'Answer and' }).waitFor();
    assert.deepEqual(await own(), ['It left.']);
    await lose();
    await field.fill('It comes on Monday.');
    await press();
    await page.locator('.own', { hasText: 'It comes on Monday.' }).waitFor();
    await field.fill('It comes on Monday, by noon.');
    await press();
    await page.locator('.own', { hasText: 'by noon.' }).waitFor();
    assert.deepEqual(await own(), [
      'It left.',
      'It comes on Monday.',
      'It comes on Monday, by noon.',
    ]);
  });

  test('on-call retries an overdue payment after the passkey, and reads the bank’s answer', async (t) => {
    const { paying, url } = console;
    const { page } = await console.withPasskey(t, ['on-call']);
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
    await raiseAlert(deps, deps.database.db, {
      kind: 'card_testing',
      detail: 'The shop is on fire.',
    });
    const { page } = await console.withSession(t, ['on-call']);
    await page.goto(`${url}/alerts`);
    await page.getByText('The shop is on fire.').click();
    const dialog = page.getByRole('dialog', { name: 'Card testing' });
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
      `select close_reason from alerts where kind = 'card_testing'`,
    );
    assert.deepEqual(rows, [{ close_reason: 'Water.' }]);
  });

  test('many alerts of a kind are closed together, and the list shows it at once', async (t) => {
    const { paying, url } = console;
    const { deps } = paying.service;
    const kind = 'gateway_currency';
    for (const detail of ['The first shop.', 'The second shop.']) {
      await raiseAlert(deps, deps.database.db, { kind, detail });
    }
    const { page } = await console.withSession(t, ['on-call']);
    await page.goto(`${url}/alerts?kind=${kind}`);
    await page.getByRole('checkbox', { name: 'Select all on this page' }).check();
    await page.getByRole('button', { name: 'Close 2 alerts' }).click();
    const dialog = page.getByRole('dialog', { name: 'Close 2 alerts' });
    await dialog.getByLabel('What was done').fill('Told both shops.');
    await dialog.getByRole('button', { name: 'Close 2 alerts' }).click();
    await page.getByText('No alert of this kind is open').waitFor();
    const { rows } = await deps.database.pool.query(
      'select close_reason from alerts where kind = $1',
      [kind],
    );
    assert.deepEqual(rows, Array(2).fill({ close_reason: 'Told both shops.' }));
  });

  test('a logo is made to fit in the browser, and pages have it afterwards', async (t) => {
    const { paying, url } = console;
    const { page, complaints } = await console.withSession(t, ['admin']);
    // Nothing listens at the shoppers' address in these tests, so the app answers for it here.
    const load = async (address: string) =>
      (await paying.service.app.inject(new URL(address).pathname)).rawPayload;
    await page.route('**/pay/logos/*', async (route) =>
      route.fulfill({ contentType: 'image/png', body: await load(route.request().url()) }),
    );
    await page.goto(`${url}/merchants/${paying.account.merchant.id}`);
    const card = page.locator('section', { hasText: 'Shown to shoppers' });
    await card.getByRole('button', { name: 'Change…' }).click();
    const dialog = page.getByRole('dialog', { name: /What shoppers read/ });
    const choose = (name: string, mimeType: string, buffer: Buffer) =>
      dialog.locator('input[type=file]').setInputFiles({ name, mimeType, buffer });
    await choose('logo.svg', 'image/svg+xml', Buffer.from('<svg/>'));
    await dialog.getByText('Choose a PNG or a JPEG.').waitFor();
    await choose('logo.png', 'image/png', Buffer.from('no image'));
    await dialog.getByText('Your browser cannot read this image. Choose another file.').waitFor();
    await choose('logo.png', 'image/png', pngFile(1_500, 500));
    await dialog.getByRole('img', { name: /^Logo of/ }).waitFor();
    assert.deepEqual(await axeViolations(page), []);
    await dialog.getByRole('button', { name: /^Change / }).click();
    await page.getByText('Pages, e-mails and receipts show it from now on.').waitFor();
    const src = await card.getByRole('img', { name: /^Logo of/ }).getAttribute('src');
    assert.deepEqual(readImage(await load(src ?? '')), {
      type: 'image/png',
      width: 432,
      height: 144,
    });
    assert.deepEqual(complaints, []);
  });

  test('two people approve payouts, in a list and on a page, and evidence is staged before it is submitted', async (t) => {
    const { paying, url } = console;
    const first = await console.withSession(t, ['finance'], 'First Approver');
    await first.page.goto(`${url}/payouts?status=draft`);
    await first.page.getByText('none confirmed').last().waitFor();
    await first.page.getByRole('checkbox', { name: 'Select all on this page' }).check();
    await first.page.getByRole('button', { name: /^Approve \d+ payouts?, R/ }).click();
    const doubts = first.page.getByRole('dialog', { name: 'Look at these first' });
    await doubts.getByRole('button', { name: /^Approve / }).click();
    await first.page.getByText('Approving payouts').waitFor();
    while ((await runBulkActions(paying.service.deps)) > 0);
    await first.page.getByText('Payouts approved').waitFor();
    await first.page.getByRole('link', { name: /^TR/ }).last().click();
    await first.page.getByText(/^First Approver \(\S+@\S+\) approved it first\./).waitFor();
    const viewer = await console.withSession(t, ['viewer']);
    await viewer.page.goto(first.page.url());
    await viewer.page.getByText('Another person has to approve it too.').waitFor();
    const shop = await console.withSession(t, ['merchant-admin'], 'Shop Admin');
    await paying.service.deps.database.pool.query(
      `update people set merchant_ids = $1 where name = 'Shop Admin'`,
      // They have another shop and have chosen none.
      [[paying.account.merchant.id, paying.service.deps.random.uuid()]],
    );
    await shop.page.goto(first.page.url());
    await shop.page.getByText('Being approved').waitFor();
    await shop.page.getByText('Account in use').waitFor();
    for (const text of [/approved it first/, 'Approvals', /Two people/]) {
      assert.equal(await shop.page.getByText(text).count(), 0, String(text));
    }
    const second = await console.withSession(t, ['finance']);
    await second.page.goto(first.page.url());
    await second.page.getByText(/^First Approver \(\S+@\S+\) approved it first\./).waitFor();
    await second.page.getByRole('button', { name: /as second approver$/ }).click();
    await second.page.getByText('Approvals').waitFor();
    await second.page.getByText('2 of 2').waitFor();
    const id = await openDispute(paying, disputed);
    const { page } = second;
    await go(page, `/disputes/${id}`);
    assert.equal(await page.getByRole('button', { name: 'Submit the evidence…' }).count(), 0);
    await page.getByRole('button', { name: 'Stage the evidence…' }).click();
    await page.getByRole('button', { name: /^Stage the evidence for R/ }).click();
    await page.getByRole('button', { name: 'Submit the evidence…' }).click();
    await page.getByRole('button', { name: /^Submit the evidence for R/ }).click();
    await page.getByText('The bank has the evidence. Until it decides').waitFor();
    assert.equal(await page.evaluate('window.broken'), undefined);
    assert.deepEqual([...first.complaints, ...second.complaints], []);
  });

  // A browser profile whose clock was moved is of no use to later tests, so these are last.
  test('several refunds are approved at once, with progress that survives a reload', async (t) => {
    const { paying, url } = console;
    const wanted = [
      await askRefund(paying, shopper, 1_100),
      await askRefund(paying, shopper, 1_200),
    ];
    const { page } = await console.withSession(t, ['refunds']);
    // The panel of an action disappears ten minutes after the action has ended, so the browser
    // needs the time of the service.
    await installClock(page, { time: paying.clock.now().epochMilliseconds });
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
    while ((await runBulkActions(paying.service.deps)) > 0);
    await page.getByText('Refunds approved').waitFor();
    await page.getByText('2 of 2 done').waitFor();
    await paying.work();
    for (const id of wanted) assert.equal(await statusOf(paying, id), 'complete');
    await assertBalanced(paying, shopper);
  });

  test('an answer that is being written outlives the shopper’s next text, and is not sent elsewhere', async (t) => {
    const { paying, url } = console;
    const { deps } = paying.service;
    const { page, complaints } = await console.withSession(t, ['support']);
    await installClock(page);
    const write = async (text: string) => {
      const { id: merchant_id } = paying.account.merchant;
      const merchant = await findMerchant(deps.database.db, deps.clock, merchant_id);
      assert.ok(merchant);
      await askMerchant(deps, merchant, { merchant_id, id: shopper.id }, text);
    };
    await write('Where is it?');
    await page.goto(`${url}/messages/${shopper.id}`);
    await page.getByLabel(/^Answer as/).fill('It left on Monday.');
    paying.clock.advance({ seconds: 1 });
    await write('It has come.');
    await page.clock.fastForward(31_000);
    await page.getByText('It has come.').waitFor();
    await page.getByText('There are newer messages above.').waitFor();
    await page.getByRole('button', { name: 'Answer and solve' }).click();
    await page.getByText(/^The answer is being sent/).waitFor();
    await page.locator('.own', { hasText: 'It left on Monday.' }).waitFor();
    // The field is cleared once the page has read the conversation again.
    await page.waitForFunction("document.querySelector('textarea')?.value === ''");
    // A note for one order must not stay in the form of another, which the browser has read before.
    await go(page, `/checkouts/${disputed.id}`);
    await page.getByRole('heading', { name: 'ORDER-3' }).waitFor();
    await go(page, `/checkouts/${shopper.id}`);
    await page.getByRole('heading', { name: 'ORDER-1' }).waitFor();
    await page.getByLabel('Add a note').fill('About ORDER-1 only.');
    await go(page, `/checkouts/${disputed.id}`);
    await page.getByRole('heading', { name: 'ORDER-3' }).waitFor();
    assert.equal(await page.getByLabel('Add a note').inputValue(), '');
    assert.deepEqual(complaints, []);
  });

  test('all callbacks that match are resent, as one bulk action with progress', async (t) => {
    const { paying, url } = console;
    const { page } = await console.withSession(t, ['support']);
    await installClock(page, { time: paying.clock.now().epochMilliseconds });
    const { pool } = paying.service.deps.database;
    const { rows } = await pool.query(
      `update callbacks set status = 'exhausted', due_at = null where checkout_id = $1
       returning host`,
      [unlucky.id],
    );
    const { host } = rows[0];
    await page.goto(`${url}/callbacks?host=${encodeURIComponent(host)}`);
    await page.getByRole('button', { name: 'Resend all that match…' }).click();
    await page
      .getByRole('button', { name: `Resend all callbacks to ${host} that were given up` })
      .click();
    await page.getByText('Resending callbacks').waitFor();
    // As if there were too many callbacks to count: then the panel says only how many are done.
    await pool.query('update bulk_actions set total = null where finished_at is null');
    await page.getByText('0 done', { exact: true }).waitFor();
    while ((await runBulkActions(paying.service.deps)) > 0);
    await page.getByText('Callbacks resent').waitFor();
    await page.getByText('1 done', { exact: true }).waitFor();
    assert.equal((await readCallback(paying.service, unlucky.id)).status, 'delivered');
    // Only this view has an index by host, so choosing another view drops the filter.
    await page.getByRole('button', { name: 'All', exact: true }).click();
    await page.getByRole('link', { name: 'ORDER-1', exact: true }).waitFor();
    assert.equal(new URL(page.url()).search, '?view=all');
  });
});

/** The text with plain spaces instead of those that keep an amount on one line. */
const plain = (text: string) => text.replaceAll(/\s/g, ' ');
