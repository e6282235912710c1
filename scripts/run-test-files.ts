// Runs test files in the order in which they are given, several at once; `node --test` would sort
// them by name. `scripts/test.ts` starts this program.

import fs from 'node:fs';
import path from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';

export type TestRun = {
  files: string[];
  concurrency: number;
  timeoutMilliseconds: number;
  /** Options of Node's test runner. */
  options: string[];
  /** Gets the path of each file with a failed test. */
  failedFiles: string;
};

const { files, concurrency, timeoutMilliseconds, options, failedFiles }: TestRun = JSON.parse(
  process.argv[2] ?? '',
);
const root = path.dirname(import.meta.dirname);
fs.writeFileSync(failedFiles, '');
const failed = new Set<string>();
const seconds = new Map<string, number>();

const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    process.exitCode = 1;
    stopping.abort();
  });
}

const events = run({
  files,
  cwd: root,
  concurrency,
  timeout: timeoutMilliseconds,
  execArgv: options,
  signal: stopping.signal,
});
events.on('test:fail', ({ nesting, entryFile, file, name }) => {
  // A failed test fails its suite. A file that cannot be run is reported as a test that has the
  // file's path for a name.
  if (nesting === 0) failed.add(path.relative(root, path.resolve(root, entryFile ?? file ?? name)));
});
events.on('test:summary', ({ file, success, duration_ms }) => {
  if (file !== undefined) seconds.set(path.relative(root, file), duration_ms / 1000);
  else if (!success) process.exitCode = 1;
});
events.on('end', () => {
  fs.writeFileSync(failedFiles, [...failed].map((file) => `${file}\n`).join(''));
  if (files.length < 20) return;
  const longest = [...seconds].sort(([, a], [, b]) => b - a).slice(0, 20);
  const lines = longest.map(([file, took]) => `  ${Math.round(took)} s ${file}\n`);
  process.stdout.write(`\nThe longest files:\n${lines.join('')}`);
});
events.compose(spec).pipe(process.stdout);
