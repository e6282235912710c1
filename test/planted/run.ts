// Plants faults in a copy of the program, one at a time, and says which test noticed each.
//
//   npm run planted                      all of them
//   npm run planted -- --only NAME       one of them
//   npm run planted -- --list            their names
//   npm run planted -- … --json          for programs

import { spawn } from 'node:child_process';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { type Fault, faults } from './faults.ts';
import { plant } from './plant.ts';

const root = path.join(import.meta.dirname, '../..');
const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    list: { type: 'boolean' },
    json: { type: 'boolean' },
  },
});
const print = (answer: object, text: string) =>
  process.stdout.write(`${values.json ? JSON.stringify(answer) : text}\n`);
const tell = (text: string) => void (values.json || process.stdout.write(`${text}\n`));

const unknown = (values.only ?? []).filter((name) => !faults.some((fault) => fault.name === name));
if (unknown.length > 0) {
  process.stderr.write(`No fault is named ${unknown.join(' or ')}. --list names them.\n`);
  process.exit(2);
}
const chosen = faults.filter(({ name }) => values.only?.includes(name) ?? true);
if (values.list) {
  const planted = chosen.map(({ name }) => name);
  print({ planted }, planted.join('\n'));
  process.exit(0);
}

/** Folders that are not part of the program, or that the copy shares. */
const left = new Set(['node_modules', '.git', '.tranche', '.ci']);

/** A fault may leave a request without an answer, and then the test would not end. */
const timeout = '--test-timeout=120000';

const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'tranche-planted-'));
// Under root some tests run as another user, who must be able to enter the folder.
await fs.chmod(folder, 0o755);
let isInterrupted = false;
let stop = () => {};
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    isInterrupted = true;
    stop();
  });
}
const missed: string[] = [];
/** Faults that a test noticed once, and then not again. */
const chance: string[] = [];
let noticed = 0;
try {
  for (const name of (await fs.readdir(root)).filter((one) => !left.has(one))) {
    // Whole folders: the demo shop has packages of its own, as links, and a sandbox starts the
    // shop.
    await fs.cp(path.join(root, name), path.join(folder, name), {
      recursive: true,
      verbatimSymlinks: true,
    });
  }
  await fs.symlink(path.join(root, 'node_modules'), path.join(folder, 'node_modules'));
  for (const [index, fault] of chosen.entries()) {
    const { seconds, test, isSure } = await tryFault(fault);
    if (isInterrupted) break;
    if (test === null) missed.push(fault.name);
    else noticed += 1;
    if (!isSure && test !== null) chance.push(fault.name);
    const verdict =
      test === null ? 'MISSED' : `noticed by "${test}"${isSure ? '' : ', but only by chance'}`;
    tell(`${index + 1}/${chosen.length} ${fault.name}: ${verdict}, after ${seconds} s`);
  }
} finally {
  await fs.rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}
const listed = (title: string, names: string[]) =>
  names.length > 0 ? `, ${title}: ${names.join('; ')}` : '';
print(
  { planted: chosen.length, noticed, missed, chance },
  `${chosen.length} planted, ${noticed} noticed${listed('missed', missed)}${listed('only by chance', chance)}.`,
);
process.exitCode = isInterrupted || missed.length + chance.length > 0 ? 1 : 0;

/**
 * Runs the tests of a fault in the copy, until the first of them fails. That test has noticed the
 * fault if it passes without the fault, and certainly if it then fails with the fault again.
 */
async function tryFault(
  fault: Fault,
): Promise<{ seconds: number; test: string | null; isSure: boolean }> {
  const file = path.join(folder, fault.file);
  const sound = await fs.readFile(file, 'utf8');
  const planted = plant(sound, fault);
  const start = performance.now();
  try {
    await fs.writeFile(file, planted);
    const failure = await findFailure(fault.tests);
    const seconds = Math.round((performance.now() - start) / 1000);
    if (failure === null || isInterrupted) return { test: null, seconds, isSure: false };
    const { test, file: place } = failure;
    const again = place === null ? fault.tests : [place];
    let isFair = false;
    // A test that needs those before it fails alone, so then the whole file runs.
    for (const only of [test, undefined]) {
      await fs.writeFile(file, sound);
      if ((await findFailure(again, only)) !== null || isInterrupted) continue;
      isFair = true;
      await fs.writeFile(file, planted);
      if ((await findFailure(again, only)) !== null) return { test, seconds, isSure: true };
    }
    if (!isFair) tell(`"${test}" fails without a fault`);
    return { test: isFair ? test : null, seconds, isSure: false };
  } finally {
    await fs.writeFile(file, sound);
  }
}

/**
 * The first test that fails, with its file if known. Null if all pass. `only` names the test to
 * run.
 */
function findFailure(
  tests: string[],
  only?: string,
): Promise<{ test: string; file: string | null } | null> {
  const pattern = only === undefined ? [] : [`--test-name-pattern=^${RegExp.escape(only)}$`];
  return new Promise((resolve, reject) => {
    const args = ['scripts/test.ts', '--bail', timeout, ...pattern, ...tests];
    const run = spawn(process.execPath, args, { cwd: folder });
    stop = () => run.kill('SIGTERM');
    let found: { test: string; file: string | null } | null = null;
    let file: string | null = null;
    let rest = '';
    run.stdout.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        file = /^▶ (\S+\.test\.ts)$/.exec(line)?.[1] ?? file;
        const [, name] = /^\s*✖ (.+) \([\d.]+ms\)$/.exec(line) ?? [];
        if (name !== undefined) found ??= { test: name, file };
      }
    });
    run.stderr.resume();
    run.on('error', reject);
    run.on('close', (code) => {
      if (found === null && code !== 0 && !isInterrupted)
        found = { test: 'a run that failed without a test', file: null };
      resolve(found);
    });
  });
}
