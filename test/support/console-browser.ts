import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import type { FastifyInstance } from 'fastify';
import type { Browser, Page } from 'playwright-core';
import { invitePerson } from '#operating/people/invite-person.ts';
import type { OperatorRole } from '#operating/people/permission.ts';
import { sendPersonMails } from '#operating/people/send-person-mails.ts';
import { connectBrowser } from './browser.ts';
import { addPerson, openConsole } from './console.ts';
import { type Paying, startPaying } from './payments.ts';

export type Device = {
  page: Page;
  /** The page's faults: exceptions, dialogs, violations of the content security policy. */
  complaints: string[];
};

export type ConsoleBrowser = {
  url: string;
  paying: Paying;
  app: FastifyInstance;
  browser: Browser;
  /** A separate browser profile with an authenticator that verifies its user. */
  openDevice(t: TestContext): Promise<Device>;
  invitationOf(email: string, roles: OperatorRole[], name?: string): Promise<string>;
  /** The link in the last invitation that was mailed to an address. */
  mailedLink(email: string): Promise<string>;
  /** A person with roles who has registered a passkey in this browser and is signed in. */
  signedIn(t: TestContext, roles: OperatorRole[], name?: string): Promise<Device>;
  /** A person with roles and a session with a fresh proof, but without a passkey or an open page. */
  withSession(t: TestContext, roles: OperatorRole[], name?: string): Promise<Device>;
  close(): Promise<void>;
};

/** The service, the console on its own port, and a browser. */
export async function startConsoleBrowser(
  options: Pick<Parameters<typeof startPaying>[0] & object, 'env'> = {},
): Promise<ConsoleBrowser> {
  const paying = await startPaying(options);
  const app = await openConsole(paying.service);
  await app.listen({ host: '127.0.0.1', port: 0 });
  // Passkeys belong to a host name, not to an IP address.
  const url = `http://localhost:${(app.server.address() as AddressInfo).port}`;
  paying.service.deps.console.url = url;
  // Merchants' people use the same console here.
  paying.service.deps.console.merchantUrl = null;
  const browser = await connectBrowser();
  let people = 0;

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
      // A 4xx answer is not a fault of the page: it shows what was refused.
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

  async function invitationOf(email: string, roles: OperatorRole[], name?: string) {
    const wanted = { email, roles, merchant_ids: null, ...(name && { name }) };
    return (await invitePerson(paying.service.deps, 'test', wanted)).url;
  }

  async function mailedLink(email: string): Promise<string> {
    const { deps } = paying.service;
    while ((await sendPersonMails(deps)) > 0);
    const { rows } = await deps.database.pool.query(
      'select text from mailbox where recipient = $1 order by sent_at desc, id desc limit 1',
      [email],
    );
    return String(/https?:\S+\/register#\S+/.exec(rows[0]?.text)?.[0]);
  }

  return {
    url,
    paying,
    mailedLink,
    app,
    browser,
    openDevice,
    invitationOf,
    async signedIn(t, roles, name) {
      people += 1;
      const device = await openDevice(t);
      // These tests are not about the limits on sign-ins.
      paying.clock.advance({ minutes: 1 });
      const called = name ?? `Person ${people}`;
      await device.page.goto(await invitationOf(`person${people}@example.com`, roles, called));
      await device.page.getByRole('button', { name: 'Create the passkey' }).click();
      await device.page.getByRole('button', { name: called }).waitFor();
      return device;
    },
    async withSession(t, roles, name) {
      people += 1;
      const device = await openDevice(t);
      const { cookie } = await addPerson(paying.service, {
        roles,
        email: `person${people}@example.com`,
        name: name ?? `Person ${people}`,
      });
      const [key = '', value = ''] = cookie.split('=');
      await device.page.context().addCookies([{ name: key, value, url }]);
      return device;
    },
    async close() {
      await browser.close();
      await app.close();
      await paying.close();
    },
  };
}
