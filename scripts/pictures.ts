import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { type Browser, chromium, type Page } from 'playwright-core';
import { rewritePng } from '#platform/shared/rewrite-png.ts';
import { Tranche } from '../sdk/src/index.ts';
import { findChromium } from './chromium.mjs';

// Remakes the pictures in README and the guides: plays the story in a new sandbox, opens each page
// in Chromium, and writes docs/pictures/.

const root = path.join(import.meta.dirname, '..');
const folder = path.join(root, 'docs/pictures');
const bytesMax = 150_000;

type Sandbox = {
  base_url: string;
  console_sign_in_url: string;
  console_url: string;
  mailbox_url: string;
  integration: { client_secret: string; signing_key: string };
};

type Mailbox = { data: { text: string }[] };

const phone = { width: 390, height: 844 };
const desktop = { width: 1200, height: 700 };

const pictures: Record<string, (browser: Browser, sandbox: Sandbox) => Promise<Page>> = {
  async 'payment-page'(browser, sandbox) {
    const page = await open(browser, phone, await createOrder(sandbox));
    await page.getByRole('radio', { name: /3 payments/ }).check();
    return page;
  },
  async 'plan-page'(browser, { mailbox_url }) {
    const { data } = (await (await fetch(`${mailbox_url}/messages`)).json()) as Mailbox;
    const paid = data.find(({ text }) => /^Payment 2 of 3 .* paid\n.* next$/m.test(text));
    const link = /^http\S+\/pay\/\S+$/m.exec(paid?.text ?? '')?.[0] ?? '';
    return await open(browser, phone, link);
  },
  async overview(browser, { console_url }) {
    const page = await open(browser, desktop, console_url);
    await page.locator('.uplot').first().waitFor();
    await page.getByText(/^Checked /).waitFor();
    return page;
  },
  async 'checkout-timeline'(browser, { console_url }) {
    const page = await open(browser, desktop, `${console_url}/overdue`);
    await page.locator('tbody a').first().click();
    await page.getByRole('heading', { name: 'What happened' }).waitFor();
    return page;
  },
  async 'refund-review'(browser, { console_url }) {
    const page = await open(browser, desktop, `${console_url}/refunds`);
    await page
      .getByRole('link', { name: /^Review the refund/ })
      .first()
      .click();
    await page.getByText('What it will be taken from').waitFor();
    return page;
  },
  async payout(browser, { console_url }) {
    const page = await open(browser, desktop, `${console_url}/payouts`);
    await page.locator('tbody a').first().click();
    await page.getByRole('heading', { name: 'Lines' }).waitFor();
    return page;
  },
};

/**
 * Opens a page and waits until everything is loaded. The console keeps its session in the browser's
 * context.
 */
async function open(browser: Browser, viewport: typeof phone, url: string): Promise<Page> {
  const [console = await browser.newContext()] = browser.contexts();
  const page = await console.newPage();
  await page.setViewportSize(viewport);
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
  await page.goto(url);
  return page;
}

/** Saves what the window shows once nothing is loading any more. */
async function save(page: Page, name: string): Promise<void> {
  await page.waitForLoadState('networkidle');
  await page.locator('.skeleton').first().waitFor({ state: 'detached' });
  const file = path.join(folder, `${name}.png`);
  const bounds = { bytesMax: 1_000_000, sideMin: 1, widthMax: 4_000, heightMax: 4_000 };
  const small = rewritePng(await page.screenshot(), bounds);
  if ('problem' in small) throw new Error(`${name}: ${small.problem}`);
  if (small.content.length > bytesMax) throw new Error(`${name} has ${small.content.length} bytes`);
  await writeFile(file, small.content);
  process.stdout.write(
    `docs/pictures/${name}.png  ${Math.ceil(small.content.length / 1_000)} kB\n`,
  );
}

/** Creates an unpaid order in the demo shop. */
async function createOrder({ base_url, integration }: Sandbox): Promise<string> {
  const { client_secret: clientSecret, signing_key: signingKey } = integration;
  const tranche = new Tranche({ baseUrl: base_url, clientSecret, signingKey });
  const { payment_url } = await tranche.checkouts.create({
    amount: 359_700,
    currency: 'ZAR',
    client_reference_id: 'KO-1301',
    notify_url: 'http://localhost:9/callback',
    success_url: 'http://localhost:9/paid',
    cancel_url: 'http://localhost:9/cart',
    customer: { email: 'thandi@example.com', first_name: 'Thandi' },
    line_items: [
      { name: 'Cederberg hiking boots', amount: 219_900, quantity: 1 },
      { name: 'Merino socks', amount: 24_900, quantity: 2 },
      { name: 'Rain jacket', amount: 90_000, quantity: 1 },
    ],
  });
  return payment_url;
}

const command = (args: string[], env: NodeJS.ProcessEnv) =>
  spawn(process.execPath, [path.join(root, 'src/cli/main.ts'), ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });

/** The first line that a program prints. */
async function firstLine(program: ReturnType<typeof command>): Promise<string> {
  for await (const line of createInterface({ input: program.stdout })) return line;
  throw new Error('The program printed nothing.');
}

const executablePath = findChromium();
if (executablePath === null) throw new Error('There is no Chromium. Set CHROME_PATH.');
const dataDir = await mkdtemp(path.join(tmpdir(), 'tranche-pictures-'));
const env = { DATA_DIR: dataDir, PORT: '0' };
const running = command(['sandbox', '--json'], env);
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
try {
  const sandbox: Sandbox = JSON.parse(await firstLine(running));
  const story = JSON.parse(await firstLine(command(['sandbox', 'story', '--json'], env)));
  if (story.books !== 'sound') throw new Error(`The books have ${story.books}.`);
  const entrance = await open(browser, desktop, sandbox.console_sign_in_url);
  await entrance.getByRole('heading', { name: 'Overview' }).waitFor();
  for (const [name, make] of Object.entries(pictures)) {
    await save(await make(browser, sandbox), name);
  }
} finally {
  await browser.close();
  if (running.exitCode === null) {
    const closed = new Promise((resolve) => running.once('close', resolve));
    running.kill('SIGTERM');
    await closed;
  }
  await rm(dataDir, { recursive: true, force: true });
}
