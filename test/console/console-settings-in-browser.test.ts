import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { changeRules } from '#merchants/change-rules.ts';
import { createIntegration } from '#merchants/integrations/create-integration.ts';
import { manageMerchants } from '#merchants/integrations/manage-merchants.ts';
import { setEvents } from '#merchants/integrations/set-events.ts';
import { changeAccess } from '#operating/people/manage-people.ts';
import { axeViolations } from '../support/axe.ts';
import { installClock, noBrowser } from '../support/browser.ts';
import { addPerson } from '../support/console.ts';
import { type ConsoleBrowser, go, startConsoleBrowser } from '../support/console-browser.ts';
import { hostile } from '../support/console-scene.ts';
import { createAccount } from '../support/service.ts';

describe('settings at the console in a browser', { skip: noBrowser }, () => {
  let console: ConsoleBrowser;
  before(async () => {
    console = await startConsoleBrowser();
  });
  after(() => console?.close());

  test('one person proposes a bank account, and only another one can confirm it', async (t) => {
    const { paying, url } = console;
    const { merchant } = await createAccount(paying.service);
    const first = await console.withPasskey(t, ['finance'], 'First Person');
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
    const second = await console.withSession(t, ['finance'], 'Second Person');
    await second.page.goto(first.page.url());
    await second.page.getByText('by First Person').waitFor();
    await second.page.getByRole('button', { name: 'Confirm the account…' }).click();
    await second.page.getByText('on a telephone number that you already had').waitFor();
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
    const { page, complaints } = await console.withSession(t, ['admin'], 'Busi Mabaso');
    await page.goto(`${url}/merchants/${account.merchant.id}`);
    await page.getByRole('button', { name: 'Change the rules' }).click();
    await page
      .getByText(/^For refunds above R.10.000,00, the default for all merchants$/)
      .waitFor();
    await page.getByRole('combobox', { name: 'Two people approve refunds' }).click();
    await page.getByRole('option', { name: 'Above an amount set for this merchant' }).click();
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
    await go(page, `/integrations/${account.id}`);
    await page.getByRole('button', { name: 'Require signatures…' }).click();
    await page.getByRole('button', { name: /^Require signatures from Bean There$/ }).click();
    await page.getByText(/^Required since/).waitFor();
    await page.getByRole('button', { name: 'Change who approves refunds' }).click();
    await page.getByRole('combobox', { name: 'Refunds' }).click();
    await page.getByRole('option', { name: 'Approved at once' }).click();
    await page.getByRole('button', { name: 'Approve refunds of Bean There at once' }).click();
    await page.getByText('New refunds are approved at once.').waitFor();
    await page.getByRole('main').getByText('Approved at once').waitFor();
    const change = page.getByRole('button', { name: 'Change the limit for POST /api/refunds' });
    const limit = page.locator('.limit', { has: change });
    await limit.getByText('1 request in 1 s, as in the contract').waitFor();
    await change.click();
    await page.getByLabel('Maximum requests').fill('7');
    await page.getByRole('button', { name: 'Allow 7 requests in 1 second' }).click();
    await page.getByText('The limit was changed.').waitFor();
    await limit.getByText('7 requests in 1 s, set by an operator').waitFor();

    // An administrator of this merchant alone can only make the review stricter.
    await pool.query(`update people set merchant_ids = $1 where name = 'Busi Mabaso'`, [
      [account.merchant.id],
    ]);
    await pool.query(`update integrations set refund_mode = 'manual' where id = $1`, [account.id]);
    await page.goto(page.url());
    await page.getByRole('button', { name: 'Change who approves refunds' }).click();
    await page
      .getByText('Only an administrator of the payment service can end the review.')
      .waitFor();
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
      const refusal = page.getByText('Only an administrator of the payment service can raise');
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
      .getByText('This was changed in the meantime by Sam Naidoo. Reload and try again.')
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
    await page.getByText('Kim Jacobs-Zulu was changed.').waitFor();
    const { rows } = await pool.query('select name, roles from people where id = $1', [
      colleague.id,
    ]);
    assert.deepEqual(rows, [{ name: 'Kim Jacobs-Zulu', roles: ['support'] }]);
    const wanted = { refund_mode: 'manual' as const, managed_merchant_ids: [id] };
    const intermediary = await createIntegration(deps, 'test', wanted);
    await go(page, `/integrations/${intermediary.id}`);
    await page.getByRole('button', { name: 'Change events…' }).click();
    await page.getByRole('checkbox', { name: 'Refunds' }).check();
    const others = { id: intermediary.id, enable: ['disputes' as const], disable: [] };
    await setEvents(deps, 'Sam Naidoo', others);
    await refresh();
    await page.getByText('Payments, disputes').waitFor();
    await page.getByRole('button', { name: 'Change the events' }).click();
    await page.getByText(/^Payments, (refunds, disputes|disputes, refunds)$/).waitFor();
    await page.getByRole('button', { name: 'Change…', exact: true }).click();
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
    // The page counts down the day until the old key ends.
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
});
