// Changes a module in hundreds of small ways, and says which changes no test notices.
//
//   npm run mutants -- src/platform/shared/fees.ts …    these modules; without names, all of them
//   npm run mutants -- --concurrency 4 …                several mutants at a time
//
// `modules.ts` names the tests of each module, and `explained.json` the mutants that may survive,
// each with its reason.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { type Explained, judge, type Mutant } from './judge.ts';
import { modules } from './modules.ts';

const root = path.join(import.meta.dirname, '../..');
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { concurrency: { type: 'string', default: '1' } },
});
const unknown = positionals.filter((file) => !(file in modules));
if (unknown.length > 0) {
  process.stderr.write(
    `test/mutants/modules.ts names no tests of ${unknown.join(' and ')}. It has:\n${Object.keys(modules).join('\n')}\n`,
  );
  process.exit(2);
}

// Stryker is installed outside of this folder, because packages bring tests of their own, and the
// test runner would find them here.
const installed = path.join(root, 'node_modules/.cache/mutants');
const program = path.join(installed, 'node_modules/@stryker-mutator/core/bin/stryker.js');
installStryker();

const explained: Explained[] = JSON.parse(
  fs.readFileSync(path.join(import.meta.dirname, 'explained.json'), 'utf8'),
);
let hasFailed = false;
/** Ends what is running. */
let stop = () => {};
let interrupted: NodeJS.Signals | null = null;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    interrupted = signal;
    stop();
  });
}
for (const file of positionals.length > 0 ? positionals : Object.keys(modules)) {
  const { killed, survivors, excused, stale } = judge(file, await mutate(file), explained);
  process.stdout.write(
    `${file}: ${killed} killed, ${survivors.length} survived, ${excused} explained\n`,
  );
  for (const { line, mutator, from, to } of survivors) {
    process.stdout.write(`- survived at line ${line} (${mutator}): ${from} → ${to}\n`);
  }
  for (const one of stale) {
    const of = one.from === undefined ? '' : `${one.from} → ${one.to}`;
    const about = [of, one.within].filter((part) => part).join(' in ');
    process.stdout.write(`- explained, but killed or gone: ${about}\n`);
  }
  if (survivors.length + stale.length > 0) hasFailed = true;
}
process.exitCode = hasFailed ? 1 : 0;

function installStryker(): void {
  const lock = fs.readFileSync(path.join(import.meta.dirname, 'package-lock.json'), 'utf8');
  const copy = path.join(installed, 'package-lock.json');
  if (fs.existsSync(program) && fs.readFileSync(copy, 'utf8') === lock) return;
  fs.mkdirSync(installed, { recursive: true });
  fs.copyFileSync(path.join(root, '.npmrc'), path.join(installed, '.npmrc'));
  for (const name of ['package.json', 'package-lock.json']) {
    fs.copyFileSync(path.join(import.meta.dirname, name), path.join(installed, name));
  }
  const { status } = spawnSync('npm', ['ci', `--prefix=${installed}`], {
    ...{ cwd: installed, stdio: ['ignore', 'ignore', 'inherit'] },
    shell: process.platform === 'win32',
  });
  if (status !== 0) throw new Error('npm ci failed: see above');
}

/** Runs the tests of a module with each of its mutants. */
async function mutate(file: string): Promise<Mutant[]> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tranche-mutants-'));
  const report = path.join(folder, 'report.json');
  const config = path.join(folder, 'stryker.json');
  const tests = (modules[file] ?? []).map((test) => JSON.stringify(test)).join(' ');
  fs.writeFileSync(
    config,
    JSON.stringify({
      testRunner: 'command',
      commandRunner: {
        command: `${JSON.stringify(process.execPath)} --test --test-isolation=none ${tests}`,
      },
      mutate: [file],
      // Pure modules need nothing else.
      ignorePatterns: ['**', '!package.json', '!src/**', '!node_modules'],
      reporters: ['json'],
      jsonReporter: { fileName: report },
      tempDirName: path.join(folder, 'copy'),
      plugins: [],
      concurrency: Number(values.concurrency),
      // Only a loop without an end should run out of time, even on a busy machine.
      timeoutMS: 20_000,
      timeoutFactor: 4,
      logLevel: 'error',
    }),
  );
  try {
    const env = { ...process.env, NODE_COMPILE_CACHE: path.join(folder, 'compiled') };
    // Stryker ends without ending the tests that it started, so all of them are one group.
    const run = spawn(process.execPath, [program, 'run', config], {
      ...{ cwd: root, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] },
    });
    stop = () => void (run.pid && process.kill(-run.pid, 'SIGKILL'));
    if (interrupted) stop();
    const [said] = await Promise.all([
      Promise.all([text(run.stdout), text(run.stderr)]),
      once(run, 'close'),
    ]);
    stop = () => {};
    if (interrupted) throw new Error(`interrupted by ${interrupted}`);
    if (!fs.existsSync(report)) throw new Error(said.join(''));
    const { files } = JSON.parse(fs.readFileSync(report, 'utf8'));
    return Object.values<{ source: string; mutants: object[] }>(files).flatMap(
      ({ source, mutants }) => mutants.map((one) => read(source, one as Reported)),
    );
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

type Place = { line: number; column: number };
type Reported = {
  mutatorName: string;
  replacement?: string;
  status: string;
  location: { start: Place; end: Place };
};

/** A mutant with the text that it replaces. */
function read(source: string, { mutatorName, replacement, status, location }: Reported): Mutant {
  const { start, end } = location;
  const lines = source.split('\n').slice(start.line - 1, end.line);
  const last = lines.length - 1;
  lines[last] = (lines[last] ?? '').slice(0, end.column - 1);
  lines[0] = (lines[0] ?? '').slice(start.column - 1);
  const squeeze = (text: string) => text.replace(/\s+/g, ' ');
  return {
    line: start.line,
    within: findDeclaration(source.split('\n').slice(0, start.line)),
    mutator: mutatorName,
    from: squeeze(lines.join(' ')),
    to: squeeze(replacement ?? ''),
    isKilled: status === 'Killed' || status === 'Timeout',
  };
}

/** The name of the top-level declaration that a line is part of. */
function findDeclaration(linesBefore: string[]): string {
  const names = linesBefore.map(
    (one) => /^(?:export )?(?:const|function|class) (\w+)/.exec(one)?.[1],
  );
  return names.findLast((name) => name !== undefined) ?? '';
}
