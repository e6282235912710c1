import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { after, before, describe, type TestContext, test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import type { Browser, Page } from 'playwright-core';
import { invitePerson } from '../../src/operators/manage-people.ts';
import type { OperatorRole } from '../../src/operators/permission.ts';
import { axeFindings } from '../support/axe.ts';
import { launchBrowser, noBrowser } from '../support/browser.ts';
import { openConsole } from '../support/console.ts';
import { type Paying, startPaying } from '../support/payments.ts';

describe('the console in a browser', { skip: noBrowser }, () => {
  let browser: Browser;
  let paying: Paying;
  let app: FastifyInstance;
  let url: string;

  before(async () => {
    paying = await startPaying();
    app = await openConsole(paying.service);
    await app.listen({ host: '127.0.0.1', port: 0 });
    // Passkeys belong to a host name. An address is none.
    url = `http://localhost:${(app.server.address() as AddressInfo).port}`;
    paying.service.deps.console.url = url;
    browser = await launchBrowser();
  });
  after(async () => {
    await browser?.close();
    await app?.close();
    await paying?.close();
  });

  test('an invited person registers a passkey, signs out, and signs in with it', async (t) => {
    const { page, complaints } = await openDevice(t);
    await page.goto(await invitationOf('nomsa@example.com', ['admin']));
    await page.getByText('nomsa@example.com').waitFor();
    assert.equal(new URL(page.url()).hash, '', 'the token does not stay in the address');
    assert.deepEqual(await axeFindings(page), []);
    await page.getByLabel('Your name').fill('Nomsa Radebe');
    await page.getByRole('button', { name: 'Create the passkey' }).click();
    await page.getByRole('button', { name: /Nomsa Radebe/ }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    const signIn = page.getByRole('button', { name: 'Sign in with a passkey' });
    await signIn.waitFor();
    assert.deepEqual(await axeFindings(page), []);
    await signIn.click();
    await page.getByRole('button', { name: /Nomsa Radebe/ }).waitFor();
    assert.deepEqual(complaints, []);
  });

  test('an administrator invites a person by a link that works once', async (t) => {
    const admin = await signedIn(t, ['admin']);
    await admin.page.goto(`${url}/people`);
    await admin.page.getByRole('button', { name: 'Invite a person' }).click();
    await admin.page.getByLabel('E-mail').fill('sam@example.com');
    await admin.page.getByRole('combobox', { name: 'Roles' }).focus();
    await admin.page.keyboard.press('ArrowDown');
    await admin.page.getByRole('option', { name: 'Refunds' }).click();
    await admin.page.keyboard.press('Tab');
    await admin.page.getByRole('button', { name: 'Invite sam@example.com' }).click();
    const link = String(await admin.page.locator('[data-secret="Link"]').textContent());
    const guest = await openDevice(t);
    await guest.page.goto(link);
    await guest.page.getByLabel('Your name').fill('Sam Naidoo');
    await guest.page.getByRole('button', { name: 'Create the passkey' }).click();
    await guest.page.getByRole('button', { name: /Sam Naidoo/ }).waitFor();
    const late = await openDevice(t);
    await late.page.goto(link);
    await late.page.getByText('This invitation has ended').waitFor();
    assert.deepEqual([...admin.complaints, ...guest.complaints], []);
  });

  test('a session that an administrator ends shows the way back in', async (t) => {
    const admin = await signedIn(t, ['admin']);
    const other = await signedIn(t, ['support'], 'Kim Jacobs');
    await admin.page.goto(`${url}/people`);
    await admin.page.getByRole('button', { name: 'Kim Jacobs' }).click();
    await admin.page.getByRole('button', { name: /^End the session of Kim Jacobs/ }).click();
    await admin.page.getByText('None is open.').waitFor();
    await other.page.getByRole('button', { name: 'Kim Jacobs' }).click();
    await other.page.getByRole('menuitem', { name: 'Your passkeys and sessions' }).click();
    await other.page.getByText('Your session has ended').waitFor();
    await other.page.getByRole('button', { name: 'Sign in with a passkey' }).click();
    await other.page.getByText('This session').waitFor();
  });

  test('an act that changes people asks for the passkey once the proof is old', async (t) => {
    const admin = await signedIn(t, ['admin']);
    await signedIn(t, ['viewer'], 'Leaving Person');
    paying.clock.advance({ minutes: 6 });
    await admin.page.goto(`${url}/people`);
    await admin.page.getByRole('button', { name: 'Leaving Person' }).click();
    await admin.page.getByRole('button', { name: 'Revoke Leaving Person' }).click();
    const dialog = admin.page.getByRole('dialog', { name: 'Prove that it is you' });
    await dialog.getByText('Revoke Leaving Person').waitFor();
    assert.deepEqual(await axeFindings(admin.page), []);
    await dialog.getByRole('button', { name: 'Use the passkey' }).click();
    await admin.page.getByText('Leaving Person can no longer sign in').waitFor();
  });

  test('a person without the permission reads why, and has no link to the page', async (t) => {
    const { page } = await signedIn(t, ['viewer']);
    assert.equal(await page.getByRole('link', { name: 'People' }).count(), 0);
    await page.goto(`${url}/people`);
    await page.getByText('Your roles do not include this page').waitFor();
    assert.deepEqual(await axeFindings(page), []);
  });

  async function invitationOf(email: string, roles: OperatorRole[], name?: string) {
    const wanted = { email, roles, merchant_ids: null, ...(name && { name }) };
    return (await invitePerson(paying.service.deps, 'test', wanted)).url;
  }

  type Device = { page: Page; complaints: string[] };

  /** A browser profile of its own with an authenticator that verifies its user. */
  async function openDevice(t: TestContext): Promise<Device> {
    const context = await browser.newContext({
      viewport: { width: 1280, height: 800 },
      reducedMotion: 'reduce',
    });
    t.after(() => context.close());
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('dialog', (dialog) => {
      complaints.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on('console', (message) => {
      const text = message.text();
      // An answer of 4xx is no mistake of the page: it shows what was refused.
      if (message.type() === 'error' && !/the server responded with a status of 4/.test(text)) {
        complaints.push(text);
      }
    });
    const devtools = await context.newCDPSession(page);
    await devtools.send('WebAuthn.enable');
    await devtools.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    });
    return { page, complaints };
  }

  let people = 0;

  /** A person with roles, who registered a passkey in this browser and is signed in. */
  async function signedIn(t: TestContext, roles: OperatorRole[], name?: string): Promise<Device> {
    people += 1;
    const device = await openDevice(t);
    // The limits on sign-ins are not what these tests are about.
    paying.clock.advance({ minutes: 1 });
    const called = name ?? `Person ${people}`;
    await device.page.goto(await invitationOf(`person${people}@example.com`, roles, called));
    await device.page.getByRole('button', { name: 'Create the passkey' }).click();
    await device.page.getByRole('button', { name: called }).waitFor();
    return device;
  }
});
