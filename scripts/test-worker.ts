// One of the processes that run the test files. It takes file after file from the list until none is
// left, so that a file does not load the service's 2,000 modules again. `run-test-files.ts` starts it.

import fs from 'node:fs';
import path from 'node:path';
import { describe } from 'node:test';
import { readProcessorSeconds } from './processor-time.ts';
import { usesBrowser } from './test-files.ts';

export type WorkList = {
  files: string[];
  timeoutMilliseconds: number;
  /** A folder in which workers note the files that they take and what these cost. */
  notes: string;
};

export type Note = { file: string; seconds: number; processorSeconds: number };

const list: WorkList = JSON.parse(process.argv[2] ?? '');
/** Browsers keep both cores of a small machine busy, so only some workers take files that use them. */
const takesBrowsers = process.argv[3] === 'browsers';
const root = path.dirname(import.meta.dirname);

for (const [index, file] of list.files.entries()) {
  if (usesBrowser(file) && !takesBrowsers) continue;
  const note = path.join(list.notes, String(index));
  if (!take(note)) continue;
  const start = performance.now();
  const before = readProcessorSeconds();
  // The file's hooks become those of this suite.
  await describe(file, { timeout: list.timeoutMilliseconds }, async () => {
    await import(path.join(root, file));
  });
  const cost: Note = {
    file,
    seconds: (performance.now() - start) / 1000,
    processorSeconds: readProcessorSeconds() - before,
  };
  fs.writeFileSync(note, JSON.stringify(cost));
}

function take(note: string): boolean {
  try {
    fs.closeSync(fs.openSync(note, 'wx'));
    return true;
  } catch {
    return false;
  }
}
