// Plays stories on a PostgreSQL server of their own, and shrinks those that fail.
//
//   npm run stories -- --count 10000            from today's seed
//   npm run stories -- --count 1 --seed 17      one of them again
//   npm run stories -- --replay FILE            a shrunk story from a file
//   npm run stories -- … --json                 for programs
//
// A shrunk failure is kept in `test/stories/cases/`, and `npm test` plays it from then on.

import { spawn } from 'node:child_process';
import os from 'node:os';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { quickStart } from '../../scripts/quick-start.ts';
import { startTestServer } from '../../scripts/test-server.ts';
import { addTold, findUnseen, seedOfToday, type Told } from './told.ts';

const { values } = parseArgs({
  options: {
    count: { type: 'string' },
    seed: { type: 'string' },
    replay: { type: 'string' },
    json: { type: 'boolean' },
  },
});
const count = Number(values.count ?? 1);
const seed = values.seed === undefined ? seedOfToday() : Number(values.seed);
const { replay = null } = values;
/** A process plays this many stories, and prints a line when it begins, to show the progress. */
const partStories = 200;
const print = (line: string) => void process.stderr.write(`${line}\n`);

// A process with this variable plays one part of a run, on the PostgreSQL server of the whole run.
if (process.env.TRANCHE_STORIES_PART === undefined) await playAll();
else {
  const { playStories } = await import('./tell.ts');
  const told = await playStories({ count, seed, replay, print });
  process.stdout.write(`${JSON.stringify(told)}\n`);
}

async function playAll(): Promise<void> {
  const server = await startTestServer();
  const env = {
    ...process.env,
    ...quickStart(),
    ...{ NODE_ENV: 'test', TEST_DATABASE_URL: server.url, TRANCHE_STORIES_PART: '1' },
  };
  // A story and its database take turns and wait for each other, so a core plays three at a time.
  const atOnce = count < 50 ? 1 : Math.min(8, 3 * os.availableParallelism());
  let seconds = 0;
  const ended = await playParts(share(atOnce), atOnce, env).finally(async () => {
    seconds = await server.stop();
  });
  const told = ended.reduce(addTold);
  const unseen = findUnseen(told);
  if (unseen.length > 0) print(`Never seen: ${unseen.join('; ')}`);
  const answer = { ...told, unseen, cpu_seconds: Math.round(seconds * 10) / 10 };
  const { stories, failures, faults } = told;
  process.stdout.write(
    values.json
      ? `${JSON.stringify(answer)}\n`
      : `${stories} stories, ${failures} failures, ${faults} faults, ${answer.cpu_seconds} s of processor time.\n`,
  );
  process.exitCode = failures > 0 || unseen.length > 0 ? 1 : 0;
}

type Part = { seed: number; count: number };

/** Divides the seeds into parts that are small enough for all processes to end together. */
function share(atOnce: number): Part[] {
  const parts = Math.max(atOnce, Math.ceil(count / partStories));
  const ends = Array.from({ length: parts + 1 }, (_, part) => Math.round((part * count) / parts));
  return ends.slice(1).map((end, part) => {
    const begin = ends[part] ?? 0;
    return { seed: seed + begin, count: end - begin };
  });
}

/** Plays all parts, and waits for every one even if one fails, because they share a server. */
async function playParts(parts: Part[], atOnce: number, env: NodeJS.ProcessEnv): Promise<Told[]> {
  const left = parts.values();
  const told: Told[] = [];
  const play = async () => {
    for (const part of left) told.push(await playPart(part, env));
  };
  const ended = await Promise.allSettled(Array.from({ length: atOnce }, play));
  for (const one of ended) if (one.status === 'rejected') throw one.reason;
  return told;
}

async function playPart(part: Part, env: NodeJS.ProcessEnv): Promise<Told> {
  const numbers = ['--seed', String(part.seed), '--count', String(part.count)];
  const given = replay === null ? numbers : ['--replay', replay];
  const child = spawn(process.execPath, [import.meta.filename, ...given], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env,
  });
  const answer = await text(child.stdout);
  if (answer === '') throw new Error(`stories from ${part.seed} on were not played`);
  return JSON.parse(answer);
}
