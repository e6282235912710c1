// Runs the tests on one PostgreSQL server of their own.
//
//   npm test                          everything
//   npm test -- refunds               the files whose path contains "refunds"
//   npm test -- --test-name-pattern=… options go to Node's test runner
//   npm run test:quick                pure rules and one happy path per endpoint, in half a minute
//   npm run test:long                 the same tests with more seeds and rounds

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { BrowserServer } from 'playwright-core';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '#hosting/embedded-postgres/server.ts';
import { readProcessorSeconds } from './processor-time.ts';
import type { TestRun } from './run-test-files.ts';
import { slowFiles, usesBrowser } from './test-files.ts';

const root = path.dirname(import.meta.dirname);
const args = process.argv.slice(2);
const long = args.includes('--long');
const quick = args.includes('--quick');
const options = args.filter((arg) => arg.startsWith('-') && !['--long', '--quick'].includes(arg));
const filters = args.filter((arg) => !arg.startsWith('-'));

const everything = ['{src,test,web}/**/*.test.ts'];
// The tests beside the code are of pure rules, except for one that starts PostgreSQL servers.
const quickest = [
  '{src,web}/**/*.test.ts',
  'test/api/happy-paths.test.ts',
  'test/payments/pay-page-budget.test.ts',
  'test/callbacks/destinations.test.ts',
  'test/sdk/types.test.ts',
];
const notQuick = ['src/hosting/embedded-postgres/server.test.ts'];

const found = fs
  .globSync(quick ? quickest : everything, { cwd: root, exclude: quick ? notQuick : [] })
  .filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)))
  .sort();
// A file that starts last and takes long would run on alone, so the slow files start first.
const files = [
  ...slowFiles.filter((file) => found.includes(file)),
  ...found.filter((file) => !slowFiles.includes(file)),
];

const unknown =
  quick || filters.length > 0 ? [] : slowFiles.filter((file) => !found.includes(file));
if (unknown.length > 0) {
  process.stderr.write(`scripts/test-files.ts names ${unknown.join(', ')}, which is not there.\n`);
  process.exit(1);
}

if (files.length === 0) {
  process.stderr.write(`No test file's path contains ${filters.join(' or ')}.\n`);
  process.exit(1);
}

// Pass signals on to the tests; this process stays to clean up after them.
let interruption: NodeJS.Signals | null = null;
let interrupt: (signal: NodeJS.Signals) => void = () => {};
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    interruption = signal;
    interrupt(signal);
  });
}

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tranche-test-'));
// Under root the server and some tests run as another user, who must be able to enter the folder.
fs.chmodSync(folder, 0o711);
const notes = path.join(folder, 'notes');
fs.mkdirSync(notes);
// The files of an interrupted test are deleted with this folder.
process.env.TMPDIR = folder;
const start = performance.now();
let server: EmbeddedPostgres | null = null;
let browser: BrowserServer | null = null;
/** Processor time is counted when a process has ended, so it is read after each part. */
const parts: string[] = [];
let counted = 0;
const count = (part: string) => {
  const seconds = readProcessorSeconds() - counted;
  counted += seconds;
  parts.push(`${part} ${minutes(seconds)}`);
};
try {
  if (!process.env.TEST_DATABASE_URL) server = await startServer();
  const url = server?.url ?? process.env.TEST_DATABASE_URL ?? '';
  if (files.some(usesBrowser)) browser = await startBrowser();
  process.exitCode = interruption === null ? await runTests(url) : 1;
} finally {
  count('tests');
  await browser?.close();
  count('browser');
  await server?.stop();
  count('PostgreSQL');
  if (interruption === null && (await stopStrays()) > 0) process.exitCode = 1;
  // A server whose parent was killed may still be writing its last files.
  fs.rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}
if (interruption !== null) process.exitCode = 128 + os.constants.signals[interruption];
process.stdout.write(
  `\nProcessor time: ${minutes(counted)} minutes (${parts.join(', ')}). Waiting: ${minutes((performance.now() - start) / 1000)} minutes.\n`,
);

function minutes(seconds: number): string {
  return (seconds / 60).toFixed(1);
}

function startServer(): Promise<EmbeddedPostgres> {
  const report = (fields: object, message: string) =>
    process.stderr.write(`${message} ${JSON.stringify(fields)}\n`);
  return startEmbeddedPostgres({
    dataDir: path.join(folder, 'data'),
    database: 'postgres',
    log: { info: () => {}, warn: report, error: report },
    // This server is deleted after the run, so it need not survive a power cut. The tests of
    // crashes start servers of their own.
    settings: { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' },
  });
}

/** One Chromium for all files, if there is one on this machine. */
async function startBrowser(): Promise<BrowserServer | null> {
  const { launchBrowserServer, noBrowser } = await import('../test/support/browser.ts');
  return noBrowser ? null : launchBrowserServer();
}

/** Stops and reports the processes that tests left behind. Only Linux shows which these are. */
async function stopStrays(): Promise<number> {
  let strays = findStrays();
  // A program that has just been told to stop may need a moment.
  for (let looks = 0; strays.length > 0 && looks < 50; looks += 1) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    strays = findStrays();
  }
  for (const { pid, command } of strays) {
    process.stderr.write(`A test left a process behind: ${pid} ${command}\n`);
    process.kill(pid, 'SIGKILL');
  }
  return strays.length;
}

function findStrays(): { pid: number; command: string }[] {
  if (process.platform !== 'linux') return [];
  return fs
    .readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && pid !== process.pid)
    .flatMap((pid) => {
      try {
        const place = fs.readlinkSync(`/proc/${pid}/cwd`);
        const environment = fs.readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
        const isOurs = place.startsWith(folder) || environment.includes(`TMPDIR=${folder}`);
        const command = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
        // A process that has ended and was not waited for has no command line any more.
        return isOurs && command !== '' ? [{ pid, command: command.trim() }] : [];
      } catch {
        // It has ended meanwhile, or belongs to another user.
        return [];
      }
    });
}

function runTests(url: string): Promise<number> {
  const minutes = long ? 120 : 10;
  const asked: TestRun = {
    files,
    // Tests wait about as long as they compute: for the database, a browser, a program, a deadline.
    // With one process per core and one more, two cores were idle for about a fifth of a run.
    workers: Math.min(files.length, Math.max(2, os.availableParallelism()) + 2),
    timeoutMilliseconds: minutes * 60_000,
    options,
    notes,
  };
  const child = spawn(
    process.execPath,
    [path.join(import.meta.dirname, 'run-test-files.ts'), JSON.stringify(asked)],
    {
      cwd: root,
      stdio: 'inherit',
      env: {
        ...process.env,
        NODE_ENV: 'test',
        // The processes of the run and the programs that tests start load the same modules.
        NODE_COMPILE_CACHE: path.join(root, 'node_modules/.cache/compiled'),
        TEST_DATABASE_URL: url,
        ...(browser && { TEST_BROWSER_URL: browser.wsEndpoint() }),
        ...(long ? { TRANCHE_TEST_LONG: '1' } : {}),
      },
    },
  );
  interrupt = (signal) => child.kill(signal);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });
}
