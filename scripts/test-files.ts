import fs from 'node:fs';
import path from 'node:path';

/**
 * The test files that take longest, in the order in which a whole run starts them. A browser keeps
 * both cores of a small machine busy, so files that mostly wait for programs or for the database
 * stand between those with a browser. A whole run prints its longest files, so that this list can
 * be updated.
 */
export const slowFiles = [
  'test/stories/stories.test.ts',
  'test/console/console-pages-in-browser.test.ts',
  'test/browser/pay-page-states.test.ts',
  'test/docs/guides.test.ts',
  'test/console/identity-matrix.test.ts',
  'test/money/restore.test.ts',
  'test/console/bounds.test.ts',
  'test/faults/processes.test.ts',
  'test/money/payouts.test.ts',
  'test/faults/stopping.test.ts',
  'test/console/console-work-in-browser.test.ts',
  'test/money/disputes.test.ts',
  'test/browser/shop-browser.test.ts',
  'test/payments/payment-faults.test.ts',
  'test/docs/docs-pages-in-browser.test.ts',
  'test/callbacks/kills.test.ts',
  'test/faults/secrets.test.ts',
  'test/console/console-in-browser.test.ts',
  'test/console/insider.test.ts',
  'test/money/refund-processing.test.ts',
  'test/console/api-actions.test.ts',
  'test/console/console-settings-in-browser.test.ts',
  'test/cli/sandbox-pay-and-drill.test.ts',
  'test/house/release.test.ts',
  'test/payments/payments.test.ts',
  'test/money/settlement-years.test.ts',
  'test/faults/service-killed.test.ts',
  'test/console/api-lists.test.ts',
  'src/hosting/embedded-postgres/server.test.ts',
  'test/money/collections.test.ts',
  'test/browser/pay-in-browser-cards.test.ts',
  'test/shoppers/plan.test.ts',
  'test/shoppers/plan-attempts.test.ts',
  'test/callbacks/delivery.test.ts',
  'test/faults/failover.test.ts',
  'test/money/clock.test.ts',
  'test/browser/plan-in-browser.test.ts',
  'test/faults/dead-connection.test.ts',
  'test/callbacks/many-due.test.ts',
  'test/faults/rolling.test.ts',
  'test/payments/no-late-holds.test.ts',
  'test/browser/pay-in-browser-page.test.ts',
  'test/browser/pay-in-browser-races.test.ts',
  'test/api/idempotency.test.ts',
  'test/api/payment-limits.test.ts',
];

/** The name of a test file or of its folder tells whether it uses the shared browser. */
export function usesBrowser(file: string): boolean {
  return file.includes('browser');
}

/**
 * Matches code that affects its whole process: workers, the environment, signals, and mocked
 * modules or timers. (A mocked method is restored after its test.) It also matches code that starts
 * programs which keep running, because such a file takes long.
 */
const ofProcess =
  /\bspawn\b|node:(cluster|worker_threads)|process\.env\S* = |process\.(on|once|chdir)\(|\.mock\.(module|timers)|embedded-postgres\//;

/**
 * Whether a test file can share a process with others: neither it nor a helper that it imports
 * touches what belongs to a process as a whole.
 */
export function sharesProcess(file: string, seen = new Set<string>()): boolean {
  if (seen.has(file) || !fs.existsSync(file)) return true;
  seen.add(file);
  const text = fs.readFileSync(file, 'utf8');
  if (ofProcess.test(text)) return false;
  return [...text.matchAll(/from '(\.[^']+\.ts)'/g)].every(([, helper = '']) =>
    sharesProcess(path.join(path.dirname(file), helper), seen),
  );
}
