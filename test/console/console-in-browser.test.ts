import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { Provider } from 'oidc-provider';
import { invitePerson } from '#operating/people/invite-person.ts';
import { createSignInLink } from '#operating/people/sandbox-link.ts';
import { axeViolations } from '../support/axe.ts';
import { noBrowser } from '../support/browser.ts';
import { addPerson, ask } from '../support/console.ts';
import { type ConsoleBrowser, startConsoleBrowser } from '../support/console-browser.ts';
import { createAccount } from '../support/service.ts';
import { until } from '../support/until.ts';

describe('the console in a browser', { skip: noBrowser }, () => {
  let console: ConsoleBrowser;
  before(async () => {
    console = await startConsoleBrowser();
  });
  after(() => console?.close());

  test('an invited person registers a passkey, signs out, and signs in with it', async (t) => {
    const { page, complaints } = await console.openDevice(t);
    const { service, account } = console.paying;
    const wanted = { email: 'nomsa@example.com', roles: ['merchant-admin'], name: 'Nomsa Radebe' };
    const merchant_ids = [account.merchant.id];
    const { url } = await invitePerson(service.deps, 'test', { ...wanted, merchant_ids });
    const answer = await page.goto(url);
    // No style element may be inserted, so there is no nonce either.
    const policy = answer?.headers()['content-security-policy'] ?? '';
    assert.match(policy, /script-src 'self'; style-src 'self';/);
    await page.getByText('nomsa@example.com').waitFor();
    assert.equal(new URL(page.url()).hash, '', 'the token does not stay in the address');
    // A page that is loaded again has lost the token, and the invitation has not ended.
    await page.reload();
    await page.getByText('Open the link in your invitation again.').waitFor();
    assert.equal(await page.getByText('This invitation has ended').count(), 0);
    const busy = { error: { code: 'too_many_requests', message: 'Try again in 60 seconds.' } };
    const address = '**/api/invitation';
    await page.route(address, (route) => route.fulfill({ status: 429, json: busy }), { times: 1 });
    await page.goto('about:blank');
    await page.goto(url);
    await page.getByText('Try again in 60 seconds.').waitFor();
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('nomsa@example.com').waitFor();
    assert.deepEqual(await axeViolations(page), []);
    await page.getByRole('button', { name: 'Create the passkey' }).click();
    await page.getByRole('button', { name: /Nomsa Radebe/ }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    const signIn = page.getByRole('button', { name: 'Sign in with a passkey' });
    await signIn.waitFor();
    assert.deepEqual(await axeViolations(page), []);
    await signIn.click();
    await page.getByRole('button', { name: /Nomsa Radebe/ }).waitFor();
    // Another shop invites her too. She accepts in her session, and chooses where she works.
    const { merchant } = await createAccount(service);
    const body = { ...wanted, name: 'N. Radebe', merchant_ids: [merchant.id] };
    const by = await addPerson(service, { roles: ['merchant-admin'], merchant_ids: [merchant.id] });
    await ask({ app: console.app, deps: service.deps }, by, 'POST', '/api/people', { body });
    await page.goto(await console.mailedLink(wanted.email));
    await page.getByRole('button', { name: 'Accept the invitation' }).click();
    await page.getByRole('button', { name: /N\. Radebe/ }).click();
    await page.getByRole('menuitem', { name: account.merchant.name, disabled: false }).click();
    await page.getByRole('button', { name: /Nomsa Radebe/ }).waitFor();
    assert.deepEqual(complaints, []);
  });

  test('an administrator invites a person, whose mail has a link that works once', async (t) => {
    const admin = await console.withSession(t, ['admin']);
    await admin.page.goto(`${console.url}/people`);
    await admin.page.getByRole('button', { name: 'Invite a person' }).click();
    await admin.page.getByLabel('E-mail').fill('sam@example.com');
    await admin.page.getByLabel('Name').fill('Sam Naidoo');
    await admin.page.getByRole('checkbox', { name: 'Refunds' }).check();
    await admin.page.getByRole('button', { name: 'Invite sam@example.com' }).click();
    await admin.page.getByText('The link is on its way to sam@example.com').waitFor();
    const link = await console.mailedLink('sam@example.com');
    const guest = await console.openDevice(t);
    await guest.page.goto(link);
    await guest.page.getByRole('button', { name: 'Create the passkey' }).click();
    await guest.page.getByRole('button', { name: /Sam Naidoo/ }).waitFor();
    await guest.page.context().clearCookies();
    await guest.page.goto(link);
    await guest.page.getByText('This invitation has ended').waitFor();
    assert.deepEqual([...admin.complaints, ...guest.complaints], []);
  });

  test('a session that an administrator ends shows the way back in, to what was typed', async (t) => {
    const admin = await console.withSession(t, ['admin']);
    const other = await console.withPasskey(t, ['support'], 'Kim Jacobs');
    await other.page.goto(`${console.url}/me`);
    await other.page.getByText('This session').waitFor();
    const field = other.page.getByLabel('Name of the new passkey');
    await field.fill('The blue key');
    await admin.page.goto(`${console.url}/people`);
    await admin.page.getByRole('link', { name: 'Kim Jacobs' }).click();
    await admin.page.getByRole('button', { name: /^End the session of Kim Jacobs/ }).click();
    await admin.page.getByText('None are open.').waitFor();
    const ended = other.page.getByText('Your session has ended');
    // When the person returns to it, the page asks whether the session has ended, unless it has
    // just asked or knows already.
    await until('the page to know', async () => {
      await other.page.evaluate('dispatchEvent(new Event("visibilitychange"))');
      return (await ended.count()) > 0;
    });
    assert.equal(await field.count(), 0);
    await other.page.getByRole('button', { name: 'Sign in with a passkey' }).click();
    await other.page.getByText('This session').waitFor();
    assert.equal(await field.inputValue(), 'The blue key');
  });

  test('the last of more than a hundred people is revoked, after the passkey was used again', async (t) => {
    const { pool } = console.paying.service.deps.database;
    const { rows } = await pool.query(
      `insert into people (id, email, name, roles, created_at, access_since)
       select gen_random_uuid(), 'z' || n || '@example.com', 'Colleague ' || n, '{viewer}', now(), now()
       from generate_series(100, 200) n returning id, name`,
    );
    t.after(async () => {
      await pool.query('delete from person_mails');
      await pool.query(`delete from people where name like 'Colleague %'`);
    });
    const last = rows.find(({ name }) => name === 'Colleague 200');
    const { page } = await console.withPasskey(t, ['admin']);
    // An action that changes people asks for the passkey again after five minutes.
    console.paying.clock.advance({ minutes: 6 });
    await page.goto(`${console.url}/people`);
    await page.getByRole('button', { name: 'Next page' }).click();
    await page.getByRole('button', { name: 'First page' }).waitFor();
    await page.locator('section[aria-busy=false]').waitFor();
    await page.getByRole('button', { name: 'Next page' }).click();
    await page.getByRole('link', { name: 'Colleague 200' }).click();
    const dialog = page.getByRole('dialog', { name: 'Colleague 200' });
    await dialog.getByText('z200@example.com').waitFor();
    await dialog.getByRole('button', { name: 'Revoke Colleague 200' }).click();
    const proof = page.getByRole('dialog', { name: 'Confirm that it is you' });
    await proof.getByText('Revoke Colleague 200').waitFor();
    assert.deepEqual(await axeViolations(page), []);
    await proof.getByRole('button', { name: 'Use the passkey' }).click();
    await page.getByText('Colleague 200 can no longer sign in').waitFor();
    const revoked = await pool.query('select id from people where revoked_at is not null');
    assert.ok(revoked.rows.some(({ id }) => id === last?.id));
  });

  test('a person without the permission reads why, and has no link to the page', async (t) => {
    const { page } = await console.withSession(t, ['viewer']);
    await page.goto(`${console.url}/people`);
    await page.getByText('Your roles do not include this page').waitFor();
    assert.equal(await page.getByRole('link', { name: 'People' }).count(), 0);
    assert.deepEqual(await axeViolations(page), []);
  });

  test('a sandbox link signs in once as the demo administrator', async (t) => {
    const { deps } = console.paying.service;
    const link = await createSignInLink(deps, 'test');
    const { page, complaints } = await console.openDevice(t);
    const address = '**/api/sign-in/link';
    const error = { code: 'rate_limited', message: 'Too many requests. Wait a minute.' };
    await page.route(address, (route) => route.fulfill({ status: 429, json: { error } }));
    await page.goto(link);
    await page.getByRole('heading', { name: 'You could not be signed in' }).waitFor();
    await page.getByText(error.message).waitFor();
    await page.unroute(address);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('button', { name: /Demo administrator/ }).waitFor();
    assert.equal(new URL(page.url()).hash, '', 'the token does not stay in the address');
    await page.context().clearCookies();
    await page.goto(link);
    await page.getByRole('heading', { name: 'This link no longer works' }).waitFor();
    assert.deepEqual(await axeViolations(page), []);
    assert.deepEqual(complaints, []);
  });

  test('an invited person signs in at the company, and a stranger reads why not', async (t) => {
    const { deps } = console.paying.service;
    const people: Record<string, string> = {
      lindiwe: 'lindiwe@example.com',
      eve: 'eve@example.com',
    };
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
    const issuer = `http://localhost:${(server.address() as AddressInfo).port}`;
    const client = {
      clientId: 'tranche-console',
      acr: [],
      amr: [],
      clientSecret: 'a-secret-of-the-tests',
    };
    const provider = new Provider(issuer, {
      clients: [
        {
          client_id: client.clientId,
          client_secret: client.clientSecret,
          redirect_uris: [`${console.url}/api/sign-in/oidc/callback`],
          token_endpoint_auth_method: 'client_secret_post',
        },
      ],
      claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
      cookies: { keys: ['a key of the tests'] },
      findAccount: (_context, sub) => ({
        accountId: sub,
        claims: async () => ({ sub, email: people[sub], email_verified: true }),
      }),
    });
    server.on('request', provider.callback());
    deps.console.oidc = { issuer, ...client };
    t.after(async () => {
      deps.console.oidc = null;
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });
    await console.invitationOf('lindiwe@example.com', ['viewer'], 'Lindiwe Zulu');
    const { page } = await console.openDevice(t);
    const signIn = async (login: string) => {
      await page.context().clearCookies();
      await page.goto(`${console.url}/refunds`);
      await page.getByRole('link', { name: 'Use the company sign-in' }).click();
      await page.locator('input[name="login"]').fill(login);
      await page.locator('input[name="password"]').fill('x');
      await page.getByRole('button').first().click();
      await page.getByRole('button', { name: /continue/i }).click();
    };
    await signIn('lindiwe');
    await page.getByRole('button', { name: /Lindiwe Zulu/ }).waitFor();
    // The sign-in leads on to the page that the person wanted.
    await page.waitForURL(`${console.url}/refunds`);
    await signIn('eve');
    await page.getByText(/did not let you in/).waitFor();
    assert.deepEqual(await axeViolations(page), []);
  });
});
