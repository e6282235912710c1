// A process that runs test files, one after another. Files that start no other programs share one
// process, so that the service's 2,000 modules load once for several files. `run-test-files.ts`
// starts it.

import fs from 'node:fs';
import path from 'node:path';
import { readProcessorSeconds } from './processor-time.ts';
import './test-scopes.ts';

export type WorkList = {
  files: string[];
  timeoutMilliseconds: number;
  /** A folder in which the process records the files that it begins and ends. */
  notes: string;
};

/** A file that has begun, and its cost if it has ended. */
export type Note = {
  file: string;
  pid: number;
  cost: { seconds: number; processorSeconds: number } | null;
};

const { files, timeoutMilliseconds, notes }: WorkList = JSON.parse(process.argv[2] ?? '');
const root = path.dirname(import.meta.dirname);
// The runner is imported only now, because a static import would load it before `test-scopes.ts`
// has run.
const { describe } = await import('node:test');

for (const file of files) {
  const start = performance.now();
  const before = readProcessorSeconds();
  writeNote({ file, pid: process.pid, cost: null });
  await fixSeed(file);
  // The file's hooks become those of this suite.
  await describe(file, { timeout: timeoutMilliseconds }, async () => {
    await import(path.join(root, file));
  });
  const seconds = (performance.now() - start) / 1000;
  const processorSeconds = readProcessorSeconds() - before;
  writeNote({ file, pid: process.pid, cost: { seconds, processorSeconds } });
}

/**
 * Gives the properties of a file the same examples in every run. An example that fails by chance
 * would stop a change that is not to blame. `npm run test:long` has new examples each time.
 */
async function fixSeed(file: string): Promise<void> {
  if (process.env.TRANCHE_TEST_LONG) return;
  if (!fs.readFileSync(path.join(root, file), 'utf8').includes("from 'fast-check'")) return;
  const { default: fc } = await import('fast-check');
  fc.configureGlobal({ seed: 1 });
}

function writeNote(note: Note): void {
  const place = path.join(notes, encodeURIComponent(note.file));
  fs.writeFileSync(`${place}.new`, JSON.stringify(note));
  fs.renameSync(`${place}.new`, place);
}
