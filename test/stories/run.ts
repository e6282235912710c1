// Plays stories on a PostgreSQL server of their own, and shrinks those that fail.
//
//   npm run stories -- --count 10000            from the seed of today
//   npm run stories -- --count 1 --seed 17      one of them again
//   npm run stories -- --replay FILE            a shrunk story from a file
//   npm run stories -- … --json                 for programs
//
// A shrunk failure is kept in `test/stories/cases/`, and `npm test` plays it from then on.

import { spawn } from 'node:child_process';
import os from 'node:os';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { startTestServer } from '../../scripts/test-server.ts';
import type { Told } from './tell.ts';

const { values } = parseArgs({
  options: {
    count: { type: 'string' },
    seed: { type: 'string' },
    replay: { type: 'string' },
    json: { type: 'boolean' },
  },
});
const count = Number(values.count ?? 1);
/** A process plays this many, and prints a line when it begins: that shows how far a run is. */
const partStories = 200;
/** Whether this process plays a part of a run, on the server of the whole run. */
const isPart = process.env.TRANCHE_STORIES_PART !== undefined;
const server = isPart ? null : await startTestServer();
if (server) process.env.TEST_DATABASE_URL = server.url;
process.env.NODE_ENV = 'test';
let isDone = false;
try {
  // The test support reads the address of the server when it is loaded.
  const { addTold, findUnseen, seedOfToday, playStories } = await import('./tell.ts');
  const seed = values.seed === undefined ? seedOfToday() : Number(values.seed);
  // A story and its database take turns and wait for each other, so a core plays three at a time.
  const atOnce = isPart || count < 50 ? 1 : Math.min(8, 3 * os.availableParallelism());
  const print = (line: string) => void process.stderr.write(`${line}\n`);
  const told =
    atOnce > 1
      ? (await playParts(share(seed, atOnce), atOnce)).reduce(addTold)
      : await playStories({ count, seed, replay: values.replay ?? null, print });
  const unseen = isPart ? [] : findUnseen(told);
  if (unseen.length > 0) print(`Never seen: ${unseen.join('; ')}`);
  const seconds = (await server?.stop()) ?? 0;
  isDone = true;
  const answer = { ...told, unseen, cpu_seconds: Math.round(seconds * 10) / 10 };
  const { stories, failures, faults } = told;
  process.stdout.write(
    values.json
      ? `${JSON.stringify(answer)}\n`
      : `${stories} stories, ${failures} failures, ${faults} faults, ${answer.cpu_seconds} s of processor time.\n`,
  );
  process.exitCode = failures > 0 || unseen.length > 0 ? 1 : 0;
} finally {
  if (!isDone) await server?.stop();
}

/** Divides the seeds into parts that are small enough for all processes to end together. */
function share(first: number, atOnce: number): { seed: number; count: number }[] {
  const parts = Math.max(atOnce, Math.ceil(count / partStories));
  const ends = Array.from({ length: parts + 1 }, (_, part) => Math.round((part * count) / parts));
  return ends.slice(1).map((end, part) => {
    const begin = ends[part] ?? 0;
    return { seed: first + begin, count: end - begin };
  });
}

/** Waits for all of them, because they share a server. */
async function playParts(
  parts: { seed: number; count: number }[],
  atOnce: number,
): Promise<Told[]> {
  const left = parts.values();
  const told: Told[] = [];
  const play = async () => {
    for (const part of left) told.push(await playPart(part));
  };
  const ended = await Promise.allSettled(Array.from({ length: atOnce }, play));
  for (const one of ended) if (one.status === 'rejected') throw one.reason;
  return told;
}

async function playPart(part: { seed: number; count: number }): Promise<Told> {
  const numbers = ['--seed', String(part.seed), '--count', String(part.count)];
  const child = spawn(process.execPath, [import.meta.filename, ...numbers, '--json'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, TRANCHE_STORIES_PART: '1' },
  });
  const answer = await text(child.stdout);
  if (answer === '') throw new Error(`stories from ${part.seed} on were not played`);
  return JSON.parse(answer);
}
