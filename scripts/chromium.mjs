// Finds a Chromium on this machine. It is plain JavaScript for Node 20, because the bootstrap
// imports it.

import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import process from 'node:process';

// The headless shell comes first: tests use a quarter less processor time with it.
const names = [
  'chromium-headless-shell',
  'chromium',
  'chromium-browser',
  'google-chrome-stable',
  'google-chrome',
];

const applications = {
  darwin: [
    '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
    '/Applications/Chromium.app/Contents/MacOS/Chromium',
  ],
  win32: ['ProgramFiles', 'ProgramFiles(x86)', 'LocalAppData'].map((variable) =>
    path.join(process.env[variable] ?? '', 'Google', 'Chrome', 'Application', 'chrome.exe'),
  ),
};

/**
 * Uses CHROME_PATH, or else an installed browser, or else Playwright's own.
 * @returns {string | null}
 */
export function findChromium() {
  const folders = (process.env.PATH ?? '').split(path.delimiter);
  const candidates = [
    process.env.CHROME_PATH ?? '',
    ...names.flatMap((name) => folders.map((folder) => path.join(folder, name))),
    ...(applications[process.platform] ?? []),
  ];
  const found = candidates.find((file) => path.isAbsolute(file) && fs.existsSync(file));
  return found ?? findPlaywrights();
}

function findPlaywrights() {
  try {
    const file = createRequire(import.meta.url)('playwright-core').chromium.executablePath();
    return fs.existsSync(file) ? file : null;
  } catch {
    return null;
  }
}
