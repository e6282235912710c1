import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import type { FastifyInstance } from 'fastify';
import type {
  Browser,
  BrowserContext,
  CDPSession,
  ConsoleMessage,
  Dialog,
  Page,
} from 'playwright-core';
import { invitePerson } from '#operating/people/invite-person.ts';
import { insertPasskey } from '#operating/people/passkey.sql.ts';
import type { OperatorRole } from '#operating/people/permission.ts';
import { sendPersonMails } from '#operating/people/send-person-mails.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { createAuthenticator } from './authenticator.ts';
import { connectBrowser, hasClock } from './browser.ts';
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
  /** A person with roles and a session that needs no re-authentication yet. No page is open. */
  withSession(t: TestContext, roles: OperatorRole[], name?: string): Promise<Device>;
  /** Like `withSession`, for a person who also has a passkey in this browser. */
  withPasskey(t: TestContext, roles: OperatorRole[], name?: string): Promise<Device>;
  close(): Promise<void>;
};

/** Starts the service, the console on its own port, and a browser. */
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

  const idle: Profile[] = [];

  async function openDevice(t: TestContext): Promise<Device & Profile> {
    const profile = await takeProfile();
    t.after(async () => {
      if (hasClock(profile.context)) await profile.context.close();
      else idle.push(profile);
    });
    return { ...profile, complaints: listen(t, profile.page) };
  }

  /** Creating a profile takes as long as loading several pages, so tests reuse profiles. */
  async function takeProfile(): Promise<Profile> {
    const used = idle.pop();
    if (used === undefined) return await createProfile(browser);
    try {
      await emptyProfile(used, url);
      return used;
    } catch {
      // The earlier test left a page that does not answer.
      await used.context.close();
      return await takeProfile();
    }
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

  async function openSession(t: TestContext, roles: OperatorRole[], name?: string) {
    people += 1;
    const device = await openDevice(t);
    const { id, cookie } = await addPerson(paying.service, {
      roles,
      email: `person${people}@example.com`,
      name: name ?? `Person ${people}`,
    });
    const [key = '', value = ''] = cookie.split('=');
    await device.context.addCookies([{ name: key, value, url }]);
    return { device, id };
  }

  return {
    url,
    paying,
    mailedLink,
    app,
    browser,
    openDevice,
    invitationOf,
    async withSession(t, roles, name) {
      const { device } = await openSession(t, roles, name);
      return device;
    },
    async withPasskey(t, roles, name) {
      const { device, id } = await openSession(t, roles, name);
      const { deps } = paying.service;
      const { credential } = createAuthenticator();
      await insertPasskey(deps.database.db, {
        id: deps.random.uuid(),
        person_id: id,
        credential_id: credential.id.toString('base64url'),
        public_key: credential.publicKey,
        counter: 0,
        transports: ['internal'],
        name: 'A passkey',
        created_at: timestamp(deps.clock.now()),
        used_at: null,
      });
      await device.devtools.send('WebAuthn.addCredential', {
        authenticatorId: device.authenticatorId,
        credential: {
          credentialId: credential.id.toString('base64'),
          isResidentCredential: true,
          rpId: 'localhost',
          privateKey: credential.privateKey.toString('base64'),
          userHandle: Buffer.from(id.replaceAll('-', ''), 'hex').toString('base64'),
          signCount: 0,
        },
      });
      return device;
    },
    async close() {
      await browser.close();
      await app.close();
      await paying.close();
    },
  };
}

type Profile = {
  context: BrowserContext;
  page: Page;
  devtools: CDPSession;
  authenticatorId: string;
};

const viewport = { width: 1280, height: 800 };

async function createProfile(browser: Browser): Promise<Profile> {
  const context = await browser.newContext({ viewport, reducedMotion: 'reduce' });
  const page = await context.newPage();
  const devtools = await context.newCDPSession(page);
  await devtools.send('WebAuthn.enable');
  const { authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  return { context, page, devtools, authenticatorId };
}

/** Removes everything that the earlier test left, except the files that the browser has cached. */
async function emptyProfile(profile: Profile, url: string): Promise<void> {
  const { context, page, devtools, authenticatorId } = profile;
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  // An open console keeps sending requests and setting cookies. This address has the console's
  // storage, but no console.
  await page.goto(`${url}/assets/none`);
  await page.evaluate('localStorage.clear(); sessionStorage.clear()');
  await context.clearCookies();
  await devtools.send('WebAuthn.clearCredentials', { authenticatorId });
  await page.setViewportSize(viewport);
  await page.emulateMedia({ colorScheme: null });
}

/** Collects the page's faults until the test ends. */
function listen(t: TestContext, page: Page): string[] {
  const complaints: string[] = [];
  const onError = (error: Error) => complaints.push(String(error));
  const onDialog = (dialog: Dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  };
  const onConsole = (message: ConsoleMessage) => {
    const text = message.text();
    // A 4xx answer is not a fault of the page: it shows what was refused.
    if (message.type() === 'error' && !/the server responded with a status of 4/.test(text)) {
      complaints.push(text);
    }
  };
  page.on('pageerror', onError).on('dialog', onDialog).on('console', onConsole);
  t.after(() => {
    page.off('pageerror', onError).off('dialog', onDialog).off('console', onConsole);
  });
  return complaints;
}

/**
 * Goes to another page of the console through its router. Loading the page would start the console
 * again, which takes four times as long.
 */
export async function go(page: Page, path: string): Promise<void> {
  await page.evaluate(`history.pushState(null, '', ${JSON.stringify(path)})`);
}
