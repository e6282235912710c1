// Fetches a Chromium for the tests, unless the machine has one.

import path from 'node:path';
import process from 'node:process';
import { findChromium } from '../chromium.mjs';
import { modules, pinnedNode, readText, say, withBrowser } from './common.mjs';
import { runQuietly } from './processes.mjs';

/** @returns {string | null} why a browser has to be fetched */
export function whyFetchBrowser() {
  return withBrowser && findChromium() === null ? 'none was found on this machine' : null;
}

/** @param {string} reason */
export async function fetchBrowser(reason) {
  const release = readText('/etc/os-release');
  if (process.getuid?.() === 0 && /^ID=debian$/m.test(release)) {
    say(`Installing Debian's chromium-headless-shell for the tests: ${reason}.`);
    await runQuietly('apt-get', ['update', '-q']);
    const apt = ['install', '-y', '-q', '--no-install-recommends', 'chromium-headless-shell'];
    await runQuietly('apt-get', apt, { DEBIAN_FRONTEND: 'noninteractive' });
  }
  if (findChromium() === null) {
    say(`Downloading Playwright's Chromium for the tests: ${reason}.`);
    const cli = path.join(modules, 'playwright-core', 'cli.js');
    await runQuietly(pinnedNode(), [cli, 'install', 'chromium']);
  }
  if (findChromium() !== null) return;
  say(
    'No Chromium was found, and none could be fetched: install Chromium or Google Chrome, or name one in CHROME_PATH. Until then the tests that need a browser are skipped (in CI they fail).',
  );
}
