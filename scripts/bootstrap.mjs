// Makes a fresh clone ready to run: `npm start`, `npm test` and `bin/tranche` call this first. It
// is plain JavaScript for Node 20, because neither the pinned Node nor any package is installed
// yet. It writes to stderr only: stdout belongs to the command that follows.
//
//   node scripts/bootstrap.mjs                   installs what runs Tranche and builds its pages
//   node scripts/bootstrap.mjs --dev             adds what checks it
//   node scripts/bootstrap.mjs --dev --browser   adds a Chromium for the tests

import process from 'node:process';
import { fetchBrowser, whyFetchBrowser } from './bootstrap/browser.mjs';
import { buildSdk, buildWeb, whyBuildSdk, whyBuildWeb } from './bootstrap/build.mjs';
import { Refusal, say } from './bootstrap/common.mjs';
import { install, whyInstall } from './bootstrap/install.mjs';
import { withLock } from './bootstrap/lock.mjs';

/** `why` returns the reason to perform a step, or null if there is nothing to do. */
const steps = [
  { why: whyInstall, perform: install },
  { why: whyBuildWeb, perform: buildWeb },
  { why: whyBuildSdk, perform: buildSdk },
  { why: whyFetchBrowser, perform: fetchBrowser },
];

try {
  if (steps.some((step) => step.why() !== null)) {
    await withLock(async () => {
      for (const step of steps) {
        // Ask again, because another start may have performed the step while this one waited for
        // the lock.
        const reason = step.why();
        if (reason !== null) await step.perform(reason);
      }
    });
  }
} catch (error) {
  if (!(error instanceof Refusal)) throw error;
  say(error.message);
  process.exitCode = 1;
}
