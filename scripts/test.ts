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
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../src/embedded-postgres/server.ts';

const root = path.dirname(import.meta.dirname);
const args = process.argv.slice(2);
const long = args.includes('--long');
const quick = args.includes('--quick');
const options = args.filter((arg) => arg.startsWith('-') && !['--long', '--quick'].includes(arg));
const filters = args.filter((arg) => !arg.startsWith('-'));

const everything = ['src/**/*.test.ts', 'test/**/*.test.ts'];
// The tests beside the code are of pure rules, except for one that starts PostgreSQL servers.
const quickest = [
  'src/**/*.test.ts',
  'test/api/happy-paths.test.ts',
  'test/browser/pay-page-budget.test.ts',
  'test/callbacks/destinations.test.ts',
  'test/sdk/types.test.ts',
];
const notQuick = ['src/embedded-postgres/server.test.ts'];

const files = fs
  .globSync(quick ? quickest : everything, { cwd: root, exclude: quick ? notQuick : [] })
  .filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)))
  .sort();

if (files.length === 0) {
  process.stderr.write(`No test file's path contains ${filters.join(' or ')}.\n`);
  process.exit(1);
}

// While the tests run a signal is theirs to obey; this process stays to clear up after them.
let interruption: NodeJS.Signals | null = null;
let interrupt: (signal: NodeJS.Signals) => void = () => {};
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    interruption = signal;
    interrupt(signal);
  });
}

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tranche-test-'));
// As root the server and some tests run as another user, who has to get to the data in it.
fs.chmodSync(folder, 0o711);
let server: EmbeddedPostgres | null = null;
try {
  if (!process.env.TEST_DATABASE_URL) server = await startServer();
  const url = server?.url ?? process.env.TEST_DATABASE_URL ?? '';
  process.exitCode = interruption === null ? await runTests(url) : 1;
} finally {
  await server?.stop();
  // A server that lost its starter may be writing its last files.
  fs.rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}
if (interruption !== null) process.exitCode = 128 + os.constants.signals[interruption];

function startServer(): Promise<EmbeddedPostgres> {
  const report = (fields: object, message: string) =>
    process.stderr.write(`${message} ${JSON.stringify(fields)}\n`);
  return startEmbeddedPostgres({
    dataDir: path.join(folder, 'data'),
    database: 'postgres',
    log: { info: () => {}, warn: report, error: report },
    // This server is thrown away after the run, so it need not survive a power cut. What a crash
    // does to a real one is tested on servers that those tests start themselves.
    settings: { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' },
  });
}

function runTests(url: string): Promise<number> {
  const minutes = long ? 120 : 10;
  const child = spawn(
    process.execPath,
    [
      '--test',
      '--test-reporter=spec',
      // Tests wait as much as they compute: for the database, a browser, a deadline. So every core
      // gets a file, and one more is there to go on while the others wait.
      `--test-concurrency=${Math.max(2, os.availableParallelism()) + 1}`,
      `--test-timeout=${minutes * 60_000}`,
      ...options,
      ...files,
    ],
    {
      cwd: root,
      stdio: 'inherit',
      env: {
        ...process.env,
        NODE_ENV: 'test',
        // Every file is a process of its own and most import the whole service.
        NODE_COMPILE_CACHE: path.join(root, 'node_modules/.cache/compiled'),
        // What a test that was interrupted leaves behind goes away with our own folder.
        TMPDIR: folder,
        TEST_DATABASE_URL: url,
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
