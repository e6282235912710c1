import fs from 'node:fs/promises';
import path from 'node:path';
import fc from 'fast-check';
import { faultsMin, type Played, play } from './play.ts';
import { type Choices, choices, choicesOf, type Story, storyOf } from './story.ts';
import type { Told } from './told.ts';
import { startWorld, type World } from './world.ts';

export const casesFolder = path.join(import.meta.dirname, 'cases');

/** A failing story is replayed for at most this long, each time with a part left out. */
const shrinkSeconds = 240;

export async function playStories(wanted: {
  count: number;
  seed: number;
  replay: string | null;
  print(text: string): void;
}): Promise<Told> {
  const { print, seed: first } = wanted;
  const told: Told = { stories: 0, failures: 0, faults: 0, transitions: {}, struck: {}, races: {} };
  let world = await startWorld();
  /** A story that failed leaves due rows behind, so the next one has a new database. */
  const again = async () => {
    const left = world;
    world = await startWorld();
    await left.close();
    return world;
  };
  try {
    if (wanted.replay !== null) {
      const played = await playFile(world, wanted.replay);
      count(told, played);
      if (played.failure) print(describe(played, `--replay ${wanted.replay}`));
      else print(`${played.steps.join('\n')}\nNothing failed.`);
      return told;
    }
    print(`Stories ${first} to ${first + wanted.count - 1}.`);
    for (let seed = first; seed < first + wanted.count; seed += 1) {
      const played = await playSeed(world, seed);
      count(told, played);
      if (!played.failure) continue;
      if (played.failure instanceof TooFewFaults) {
        print(describe(played, `--seed ${seed}`));
        continue;
      }
      print(`Story ${seed} fails: ${firstLine(played.failure)}. Shrinking …`);
      const shrunk = await shrink(seed, again);
      if (shrunk === null) {
        // The failure depends on the stories before it, or on how fast the machine was.
        print(`${describe(played, `--seed ${seed}`)}\nIt does not fail again by itself.`);
        continue;
      }
      const file = path.join(casesFolder, `${seed}.json`);
      await fs.mkdir(casesFolder, { recursive: true });
      await fs.writeFile(file, `${JSON.stringify({ seed, ...shrunk.story }, null, 2)}\n`);
      print(describe(shrunk.played, `--replay ${path.relative(process.cwd(), file)}`));
    }
    return told;
  } finally {
    await world.close();
  }
}

class TooFewFaults extends Error {}

/** Plays the story of a seed, which must have enough faults. */
export async function playSeed(world: World, seed: number): Promise<Played> {
  const played = await play(world, storyOf(choicesOf(seed)), seed);
  const { length } = played.faults;
  if (!played.failure && length < faultsMin) {
    played.failure = new TooFewFaults(`${length} faults struck, and a story has ${faultsMin}`);
  }
  return played;
}

export async function playFile(world: World, file: string): Promise<Played> {
  const { seed, ...story } = JSON.parse(await fs.readFile(file, 'utf8'));
  return await play(world, story as Story, seed);
}

/**
 * Leaves out as much of a story as possible while it still fails: moves first, then numbers.
 * Returns null if the story does not fail again.
 */
async function shrink(
  seed: number,
  again: () => Promise<World>,
): Promise<{ story: Story; played: Played } | null> {
  const found: { story: Story; played: Played }[] = [];
  const end = performance.now() + shrinkSeconds * 1000;
  let world = await again();
  const isFine = async (candidate: Choices): Promise<boolean> => {
    // Once the time is up, every smaller story counts as fine, which ends the search.
    if (found.length > 0 && performance.now() > end) return true;
    const story = storyOf(candidate);
    const played = await play(world, story, seed);
    if (played.failure === null) return true;
    found.push({ story, played });
    world = await again();
    return false;
  };
  let left = choicesOf(seed);
  if (await isFine(left)) return null;
  for (const list of [3, 4, 2] as const) left = await leaveOut(left, list, isFine);
  await fc.check(fc.asyncProperty(choices, isFine), { examples: [[left]], numRuns: 1 });
  return found.at(-1) as { story: Story; played: Played };
}

/** Leaves out ever smaller parts of one list of the choices. */
async function leaveOut(
  whole: Choices,
  list: 2 | 3 | 4,
  isFine: (candidate: Choices) => Promise<boolean>,
): Promise<Choices> {
  let left = whole;
  for (let size = left[list].length; size >= 1; size = Math.floor(size / 2)) {
    for (let at = 0; at < left[list].length; ) {
      const shorter = left.with(list, left[list].toSpliced(at, size)) as Choices;
      if (await isFine(shorter)) at += size;
      else left = shorter;
    }
  }
  return left;
}

function count(told: Told, played: Played): void {
  const add = (counts: Record<string, number>, names: string[]) => {
    for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  };
  told.stories += 1;
  told.failures += played.failure ? 1 : 0;
  told.faults += played.faults.length;
  add(told.transitions, played.transitions);
  add(told.struck, played.faults);
  add(told.races, played.races);
}

const firstLine = ({ message }: Error) => message.split('\n')[0];

/** The moves, how to see them again, and every statement. */
export function describe({ steps, log, failure }: Played, replay: string): string {
  return [
    ...steps.map((step, index) => (step.startsWith(' ') ? step : `${index + 1}. ${step}`)),
    `Then: ${failure?.message}`,
    `Again: npm run stories -- ${replay}`,
    'Every statement and call:',
    ...log.map((line) => `  ${line}`),
  ].join('\n');
}
