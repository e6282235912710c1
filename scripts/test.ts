// Runs the tests on one PostgreSQL server of their own.
//
//   npm test                          everything
//   npm test -- refunds               the files whose path contains "refunds"
//   npm test -- --costs               prints the processor time of every file
//   npm test -- --bail                stops at the first test that fails
//   npm test -- --indexes             prints the indexes that no statement of the tests used
//   npm test -- --test-name-pattern=… options go to Node's test runner
//   npm run test:quick                pure rules and one happy path per endpoint, in half a minute
//   npm run test:long                 the same tests with more seeds and rounds

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { BrowserServer } from 'playwright-core';
import { readProcessorSeconds, readProgramSeconds } from './processor-time.ts';
import { compiledFolder, quickStart } from './quick-start.ts';
import type { TestRun } from './run-test-files.ts';
import { slowFiles, usesBrowser } from './test-files.ts';
import { findMemory, runsPrograms, startServer } from './test-server.ts';

const root = path.dirname(import.meta.dirname);
const args = process.argv.slice(2);
const long = args.includes('--long');
const quick = args.includes('--quick');
const costs = args.includes('--costs');
const bail = args.includes('--bail');
const ours = ['--long', '--quick', '--costs', '--bail', '--indexes'];
const options = args.filter((arg) => arg.startsWith('-') && !ours.includes(arg));
const filters = args.filter((arg) => !arg.startsWith('-'));

const everything = ['{src,test,web}/**/*.test.ts'];
// The tests beside the code test pure rules, except for one that starts PostgreSQL servers.
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
// A slow file that starts last would run alone at the end, so the slow files start first.
const files = [
  ...slowFiles.filter((file) => found.includes(file)),
  ...found.filter((file) => !slowFiles.includes(file)),
];

const unknown =
  quick || filters.length > 0 ? [] : slowFiles.filter((file) => !found.includes(file));
if (unknown.length > 0) {
  process.stderr.write(`scripts/test-files.ts names ${unknown.join(', ')}, which is missing.\n`);
  process.exit(1);
}

if (files.length === 0) {
  process.stderr.write(`No test file's path contains ${filters.join(' or ')}.\n`);
  process.exit(1);
}

// Signals are passed on to the tests; this process stays to clean up after them.
let interruption: NodeJS.Signals | null = null;
let interrupt: (signal: NodeJS.Signals) => void = () => {};
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    interruption = signal;
    interrupt(signal);
  });
}

const memory = findMemory();
const folder =
  memory !== null && runsPrograms(memory)
    ? memory
    : fs.mkdtempSync(path.join(os.tmpdir(), 'tranche-test-'));
// If we are root, the server and some tests run as another user, who must be able to enter the
// folder.
fs.chmodSync(folder, 0o711);
const databases = memory ?? folder;
const notes = path.join(folder, 'notes');
fs.mkdirSync(notes);
// Tests put their files into this folder, so those of an interrupted test are deleted with it.
process.env.TMPDIR = folder;
const scans = path.join(folder, 'index-scans');
if (args.includes('--indexes')) {
  fs.writeFileSync(scans, '', { mode: 0o666 });
  process.env.TRANCHE_INDEX_SCANS = scans;
}
const start = performance.now();
// The processes of the run and the programs that tests start load the same modules, so they share a
// cache.
Object.assign(process.env, quickStart());
let server: Awaited<ReturnType<typeof startServer>> | null = null;
let browser: BrowserServer | null = null;
/** Processor time is counted only once a process has ended, so it is read after each part. */
const parts: string[] = [];
let read = 0;
let counted = 0;
const count = (part: string, known: number | null = null) => {
  const ended = readProcessorSeconds() - read;
  read += ended;
  const seconds = known ?? ended;
  counted += seconds;
  parts.push(`${part} ${minutes(seconds)}`);
};
try {
  const filled = fillCompileCache();
  if (!process.env.TEST_DATABASE_URL) server = await startServer(databases);
  const url = server?.url ?? process.env.TEST_DATABASE_URL ?? '';
  if (files.some(usesBrowser)) browser = await startBrowser();
  await filled;
  process.exitCode = interruption === null ? await runTests(url) : 1;
} finally {
  count('tests');
  // Chromium does not wait for most of its processes, so they are counted while they run.
  const browserSeconds = browser && readProgramSeconds(browser.process().pid);
  await browser?.close();
  count('browser', browserSeconds);
  await server?.stop();
  count('PostgreSQL');
  if (interruption === null && (await stopStrays()) > 0) process.exitCode = 1;
  if (args.includes('--indexes')) printUnusedIndexes();
  // A server whose parent was killed may still be writing its last files.
  for (const made of new Set([folder, databases])) {
    fs.rmSync(made, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}
if (interruption !== null) process.exitCode = 128 + os.constants.signals[interruption];
process.stdout.write(
  `\nProcessor time: ${minutes(counted)} minutes (${parts.join(', ')}). Elapsed: ${minutes((performance.now() - start) / 1000)} minutes.\n`,
);

function printUnusedIndexes(): void {
  const sums = new Map<string, number>();
  for (const line of fs.readFileSync(scans, 'utf8').trim().split('\n')) {
    const [index = '', count] = line.split(' ');
    sums.set(index, (sums.get(index) ?? 0) + Number(count));
  }
  const unused = [...sums].filter(([, sum]) => sum === 0).map(([index]) => index);
  const text = `${sums.size - unused.length} of ${sums.size} indexes were used. Unused:`;
  process.stdout.write(`\n${[text, ...unused.sort()].join('\n  ')}\n`);
}

function minutes(seconds: number): string {
  return (seconds / 60).toFixed(2);
}

/**
 * In a new clone the first processes would all compile the same modules at once. Instead one
 * compiles them while PostgreSQL starts.
 */
async function fillCompileCache(): Promise<void> {
  if (fs.existsSync(compiledFolder)) return;
  const child = spawn(process.execPath, [path.join(root, 'test/support/payments.ts')]);
  await new Promise((resolve) => child.once('close', resolve));
}

/** Starts one Chromium for all files, if there is one on this machine. */
async function startBrowser(): Promise<BrowserServer | null> {
  const { launchBrowserServer, noBrowser } = await import('../test/support/browser.ts');
  return noBrowser ? null : launchBrowserServer();
}

/** Stops and reports the processes that tests left behind. Only Linux shows which ones they are. */
async function stopStrays(): Promise<number> {
  let strays = findStrays();
  // A program that has just been told to stop may need a moment, or a minute on a loaded machine.
  for (let looks = 0; strays.length > 0 && looks < 600; looks += 1) {
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
        // A process that has ended and was not waited for has no command line.
        return isOurs && command !== '' ? [{ pid, command: command.trim() }] : [];
      } catch {
        // The process has ended in the meantime, or belongs to another user.
        return [];
      }
    });
}

function runTests(url: string): Promise<number> {
  // The stories take ten minutes beside other files, and a slow machine may need several times that.
  const minutes = long ? 180 : 60;
  const asked: TestRun = {
    files,
    // Tests spend most of their time waiting for the database, a browser, a program or a deadline.
    // With one process per core and two more, two cores were idle for a quarter of a run.
    workers: Math.min(files.length, Math.max(2, os.availableParallelism()) + 4),
    timeoutMilliseconds: minutes * 60_000,
    options,
    costs,
    bail,
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
