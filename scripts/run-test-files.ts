// Runs test files in the order in which they are given, several at once. Node's own runner would
// sort them by name and load the service for each. `scripts/test.ts` starts this program.

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { type EventData, run } from 'node:test';
import { spec } from 'node:test/reporters';
import { sharesProcess, slowFiles, usesBrowser } from './test-files.ts';
import type { Note, WorkList } from './test-worker.ts';

export type TestRun = WorkList & {
  workers: number;
  /** Options of Node's test runner. */
  options: string[];
  /** Whether to print the cost of every file, the most expensive first. */
  costs: boolean;
  /** Whether to stop at the first test that fails. */
  bail: boolean;
};

const { workers, options, costs, bail, ...list }: TestRun = JSON.parse(process.argv[2] ?? '');

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
/** Files whose process was killed because it did not end. */
const hung: string[] = [];
const reporter = new spec();
reporter.pipe(process.stdout);
const waiting = groupFiles();
await Promise.all(Array.from({ length: workers }, (_, worker) => work(worker)));
const { tests, ...others } = counts;
const failed = tests - Object.values(others).reduce((sum, count) => sum + count);
for (const [name, count] of Object.entries({ ...counts, failed })) diagnose(`${name} ${count}`);
reporter.end();
await new Promise((resolve) => reporter.once('end', resolve));
reportFiles();

/**
 * The files that run in one process. Groups are small, so that a failure can be repeated with few
 * files, and so that the last group does not run alone for long. The tests beside the code are
 * short, so they come last, when few files are left.
 */
function groupFiles(): string[][] {
  const alone = list.files.filter((file) => !sharesProcess(file));
  const shared = list.files.filter((file) => !alone.includes(file));
  const browser = shared.filter(usesBrowser);
  const slow = shared.filter((file) => !usesBrowser(file) && slowFiles.includes(file));
  const quick = shared.filter((file) => !browser.includes(file) && !slow.includes(file));
  const place = ([file = '']: string[]) => list.files.indexOf(file);
  const long = [...deal(alone, 1), ...deal(browser, 3), ...deal(slow, 4)];
  const isBesideCode = (file: string) => !file.startsWith('test/');
  return [
    ...long.sort((a, b) => place(a) - place(b)),
    ...deal(
      quick.filter((file) => !isBesideCode(file)),
      17,
    ),
    // These tests wait for nothing, so more processes than cores would only load more modules.
    ...deal(quick.filter(isBesideCode), 20, Math.min(workers, os.availableParallelism())),
  ];
}

/**
 * Deals files into groups of at most `filesMax`, and into at least `groupsMin` groups if there are
 * enough files. The slowest files come first, and the group with the slowest file gets the quickest
 * one of the next round.
 */
function deal(files: string[], filesMax: number, groupsMin = workers): string[][] {
  const count = Math.max(Math.ceil(files.length / filesMax), Math.min(groupsMin, files.length));
  const groups: string[][] = Array.from({ length: count }, () => []);
  for (const [index, file] of files.entries()) {
    const row = Math.floor(index / count);
    const place = row % 2 === 0 ? index % count : count - 1 - (index % count);
    groups[place]?.push(file);
  }
  return groups;
}

/** Takes group after group until none is left. */
async function work(worker: number): Promise<void> {
  // Browser pages keep both cores of a small machine busy, so half of the workers leave them until
  // nothing else is waiting.
  const prefersOthers = worker >= Math.ceil(workers / 2);
  for (;;) {
    const other = waiting.findIndex((files) => !prefersOthers || !files.some(usesBrowser));
    const [files] = waiting.splice(Math.max(0, other), 1);
    if (files === undefined || stopping.signal.aborted) return;
    await runGroup(files);
  }
}

/** If a process ends early, another one runs the remaining files. */
async function runGroup(files: string[]): Promise<void> {
  for (let rest = files; rest.length > 0; ) {
    const running = rest;
    const watch = setInterval(() => killHung(running), 1000);
    await runProcess(running).finally(() => clearInterval(watch));
    rest = running.filter((file) => readNote(file) === null);
    if (rest.length === running.length || stopping.signal.aborted) break;
  }
}

/**
 * Kills the process if one of its files takes too long, or if it does not end after the last file.
 */
function killHung(files: string[]): void {
  const begun = files.flatMap((file) => readNote(file) ?? []);
  const last = begun.find(({ cost }) => cost === null) ?? begun.at(-1);
  if (last === undefined || hung.includes(last.file)) return;
  // The runner ends a test that takes too long, unless the process computes without a pause.
  const limit = last.cost === null ? list.timeoutMilliseconds + 30_000 : 60_000;
  if (Date.now() - last.at < limit) return;
  hung.push(last.file);
  try {
    process.kill(last.pid, 'SIGKILL');
  } catch {
    // The process has ended in the meantime.
  }
}

/** Reports each file when it has ended, so that the tests of two files do not mix. */
async function runProcess(files: string[]): Promise<void> {
  const events = run({
    files: [path.join(import.meta.dirname, 'test-worker.ts')],
    argv: [JSON.stringify({ ...list, files })],
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
    if (bail && event.type === 'test:fail' && event.data.details.type !== 'suite') {
      stopping.abort();
      break;
    }
    const isResult = event.type === 'test:pass' || event.type === 'test:fail';
    if (!isResult || event.data.nesting !== 0) continue;
    // If a test awaits something that another file began, the runner may attribute the test to that
    // file's suite.
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

function readNote(file: string): (Note & { at: number }) | null {
  const place = path.join(list.notes, encodeURIComponent(file));
  if (!fs.existsSync(place)) return null;
  return { ...JSON.parse(fs.readFileSync(place, 'utf8')), at: fs.statSync(place).mtimeMs };
}

function reportFiles(): void {
  const done = list.files.flatMap((file) => {
    const note = readNote(file);
    return note?.cost ? [{ file, ...note.cost }] : [];
  });
  const missing = list.files.filter((file) => !done.some((cost) => cost.file === file));
  complain('Not run to their end', missing);
  complain('The process did not end, and was killed, after', hung);
  complain('Without a test', empty);
  if (done.length < 2) return;
  const byTime = done.toSorted((a, b) => b.seconds - a.seconds);
  const byProcessor = done.toSorted((a, b) => b.processorSeconds - a.processorSeconds);
  if (!costs && done.length > 15) print('Files that took longest', byTime.slice(0, 15));
  print('Files that used the most processor time', byProcessor.slice(0, costs ? undefined : 15));
}

function print(
  title: string,
  files: { file: string; seconds: number; processorSeconds: number }[],
) {
  const lines = files.map(
    ({ file, seconds, processorSeconds }) =>
      `  ${Math.round(seconds)} s, ${processorSeconds.toFixed(1)} s of processor time: ${file}\n`,
  );
  process.stdout.write(`\n${title}:\n${lines.join('')}`);
}
