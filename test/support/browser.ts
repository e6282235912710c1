import {
  type Browser,
  type BrowserContext,
  type BrowserServer,
  chromium,
  type Page,
} from 'playwright-core';
import { findChromium } from '../../scripts/chromium.mjs';

const executablePath = findChromium();

/** Why browser tests cannot run, or false. In CI they are not skipped but fail. */
export const noBrowser: string | false =
  executablePath !== null || process.env.CI
    ? false
    : 'no Chromium on this machine: install Chromium or Google Chrome, or name one in CHROME_PATH';

/**
 * After this time an action of the browser counts as hanging. A loaded machine may need half a
 * minute for a page, which must not fail a test.
 */
export const hangMilliseconds = 120_000;

/**
 * Chromium uses only the last list of features, so this one repeats what Playwright turns off and
 * these tests depend on: no upgrade to HTTPS, no requests by the browser itself, no delayed first
 * paint.
 */
const disabledFeatures = [
  // This would start an empty process for the next site. Each page of a test needs only its own.
  'SpareRendererForSitePerProcess',
  // This would open two hidden pages per context, for an address bar that tests do not use, and
  // double the cost of a context.
  'WebUIOmniboxPopup',
  'WebUIOmniboxAimPopup',
  'WebUIOmniboxFullPopup',
  'AimEnabled',
  'AvoidUnnecessaryBeforeUnloadCheckSync',
  'DestroyProfileOnBrowserClose',
  'HttpsFirstBalancedModeAutoEnable',
  'HttpsUpgrades',
  'LensOverlay',
  'MediaRouter',
  'NetworkTimeServiceQuerying',
  'OptimizationHints',
  'PaintHolding',
  'PreconnectToSearch',
  'ThirdPartyStoragePartitioning',
];

/** Starts the Chromium that all files of a run share. */
export async function launchBrowserServer(): Promise<BrowserServer> {
  if (executablePath === null) throw new Error(noBrowser || 'there is no Chromium on this machine');
  return chromium.launchServer({
    executablePath,
    host: '127.0.0.1',
    timeout: hangMilliseconds,
    args: [
      // Chromium's sandbox does not start for root, the usual user in containers.
      ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-first-run',
      `--disable-features=${disabledFeatures.join(',')}`,
    ],
  });
}

/**
 * Pages have time limits: a message of the console disappears after six seconds, and a card form
 * counts as missing after fifteen. A loaded machine may take that long, so pages wait longer here.
 * The messages stay, and what they cover can be clicked. An animation that would repeat until an
 * answer comes runs once, because each of its frames would cost as much as many tests do.
 */
const waitLonger = `{
  const setTimer = window.setTimeout;
  window.setTimeout = (run, milliseconds, ...given) => {
    const isLimit = milliseconds === 6_000 || milliseconds >= 15_000;
    const longer = Math.max(milliseconds, ${2 * hangMilliseconds});
    return setTimer(run, isLimit ? longer : milliseconds, ...given);
  };
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(\`
    .mantine-Notifications-root { pointer-events: none }
    *, ::before, ::after { animation-iteration-count: 1 !important }\`);
  document.adoptedStyleSheets.push(sheet);
}`;

/** Connects to the run's Chromium. Closing the connection closes the contexts opened over it. */
export async function connectBrowser(): Promise<Browser> {
  const browser = await chromium.connect(process.env.TEST_BROWSER_URL ?? '');
  browser.on('context', (context) => {
    context.setDefaultTimeout(hangMilliseconds);
    void context.addInitScript(waitLonger);
  });
  return browser;
}

/** Waits for a frame. A browser may drop a key that is pressed before the first one of a page. */
export async function painted(page: Page): Promise<void> {
  await page.evaluate(
    'new Promise((paint) => requestAnimationFrame(() => requestAnimationFrame(paint)))',
  );
}

const withClock = new WeakSet<BrowserContext>();

/** Whether a test moved the clock of this context, which cannot be reset. */
export const hasClock = (context: BrowserContext): boolean => withClock.has(context);

/** Installs a clock that the test moves. Its timers replace the browser's and wait longer too. */
export async function installClock(
  page: Page,
  options?: Parameters<Page['clock']['install']>[0],
): Promise<void> {
  withClock.add(page.context());
  await page.clock.install(options);
  await page.addInitScript(waitLonger);
}

/** Stops the page's time. Its timers keep running. */
export async function fixClock(page: Page): Promise<void> {
  withClock.add(page.context());
  await page.clock.setFixedTime(Date.now());
}
