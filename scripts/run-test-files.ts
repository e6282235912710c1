// Runs test files in the order in which they are given, several at once. Node's own runner would
// sort them by name. `scripts/test.ts` starts this program.

import fs from 'node:fs';
import path from 'node:path';
import { type EventData, run } from 'node:test';
import { spec } from 'node:test/reporters';
import { usesBrowser } from './test-files.ts';
import type { Note, WorkList } from './test-worker.ts';

export type TestRun = WorkList & {
  workers: number;
  /** Options of Node's test runner. */
  options: string[];
};

const { workers, options, ...list }: TestRun = JSON.parse(process.argv[2] ?? '');

const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    process.exitCode = 1;
    stopping.abort();
  });
}

const counts = { tests: 0, passed: 0, cancelled: 0, skipped: 0, todo: 0 };
/** Files in which no test ran. */
const empty: string[] = [];
/** Files that a worker has begun. */
const taken = new Set<string>();
const reporter = new spec();
reporter.pipe(process.stdout);
await Promise.all(Array.from({ length: workers }, (_, worker) => work(worker)));
const { tests, ...others } = counts;
const failed = tests - Object.values(others).reduce((sum, count) => sum + count);
for (const [name, count] of Object.entries({ ...counts, failed })) diagnose(`${name} ${count}`);
reporter.end();
await new Promise((resolve) => reporter.once('end', resolve));
reportNotes();

/** Takes file after file until none is left. Each gets a process of its own, so that none can hang another. */
async function work(worker: number): Promise<void> {
  const takesBrowsers = worker < Math.ceil(workers / 2);
  for (const [index, file] of list.files.entries()) {
    if (taken.has(file) || (usesBrowser(file) && !takesBrowsers)) continue;
    taken.add(file);
    await runFile(file, path.join(list.notes, String(index)));
  }
}

/** Reports the file when it has ended, so that the tests of two files do not mix. */
async function runFile(file: string, notes: string): Promise<void> {
  fs.mkdirSync(notes);
  const events = run({
    files: [path.join(import.meta.dirname, 'test-worker.ts')],
    argv: [JSON.stringify({ ...list, files: [file], notes }), 'browsers'],
    concurrency: 1,
    execArgv: options,
    signal: stopping.signal,
  });
  let pending: Reported[] = [];
  const report = () => {
    for (const event of pending) reporter.write(event);
    pending = [];
  };
  for await (const event of events) {
    if (event.type === 'test:summary') {
      if (event.data.file === undefined) count(event.data);
      continue;
    }
    if (event.type === 'test:diagnostic' && event.data.nesting === 0) continue;
    pending.push(event);
    const isResult = event.type === 'test:pass' || event.type === 'test:fail';
    if (!isResult || event.data.nesting !== 0) continue;
    // A test that awaits what another file began may be lost to that file's suite.
    const { name } = event.data;
    const isFile = list.files.includes(name);
    if (isFile && options.length === 0 && !pending.some(isTest)) empty.push(name);
    report();
  }
  report();
}

type Reported = { type: string; data: { nesting?: number } };

function isTest({ type, data }: Reported): boolean {
  return type === 'test:start' && data.nesting === 1;
}

function count(summary: EventData.TestSummary): void {
  if (!summary.success) process.exitCode = 1;
  for (const name of Object.keys(counts) as (keyof typeof counts)[]) {
    counts[name] += summary.counts[name];
  }
}

function diagnose(message: string): void {
  reporter.write({ type: 'test:diagnostic', data: { nesting: 0, message, level: 'info' } });
}

function complain(what: string, files: string[]): void {
  if (files.length === 0) return;
  process.exitCode = 1;
  process.stdout.write(`\n${what}:\n${files.map((file) => `  ${file}\n`).join('')}`);
}

function reportNotes(): void {
  const notes = list.files.map((_, index) => path.join(list.notes, String(index), '0'));
  const done = notes.flatMap((note): Note[] => {
    const text = fs.existsSync(note) ? fs.readFileSync(note, 'utf8') : '';
    return text === '' ? [] : [JSON.parse(text)];
  });
  const missing = list.files.filter((file) => !done.some((note) => note.file === file));
  complain('Not run to their end', missing);
  complain('Without a test', empty);
  if (done.length < 20) return;
  const longest = done.sort((a, b) => b.seconds - a.seconds).slice(0, 20);
  const lines = longest.map(
    ({ file, seconds, processorSeconds }) =>
      `  ${Math.round(seconds)} s, ${Math.round(processorSeconds)} s of processor time: ${file}\n`,
  );
  process.stdout.write(`\nThe longest files:\n${lines.join('')}`);
}
