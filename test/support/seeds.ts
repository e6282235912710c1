import type { TestContext } from 'node:test';
import { seededNumbers } from '#platform/shared/seeded-numbers.ts';
import { isLong } from './service.ts';

// Helpers for seeded tests. A seed stands for a story that can be repeated.

export type Chance = {
  /** A number of at least 0 and below 1. */
  next(): number;
  /** An integer in a range, including both ends. */
  between(from: number, to: number): number;
  isLucky(probability: number): boolean;
  pick<T>(list: readonly T[]): T;
  /** Picks one of several things according to their weights. */
  weigh<T>(list: readonly (readonly [weight: number, thing: T])[]): T;
  /** An independent source of chance, for a part of a story whose length differs between runs. */
  fork(): Chance;
};

export type Story = {
  seed: number;
  chance: Chance;
  /** Counts an event, and prints it if the story fails. */
  note(kind: string, text?: string): void;
};

/** How many seeds a run plays; `npm run test:long` plays more. */
export type SeedCounts = { usual: number; long: number };

/**
 * Plays many seeds and returns how many times each event happened. Each scene plays one story at a
 * time; while one scene waits for its database or gateway, another continues. With TRANCHE_SEED it
 * plays only that seed and prints every event.
 */
export async function playSeeds<Scene>(
  t: TestContext,
  { usual, long }: SeedCounts,
  scenes: Scene[],
  play: (story: Story, scene: Scene) => Promise<void>,
): Promise<Record<string, number>> {
  const only = Number(process.env.TRANCHE_SEED ?? 0);
  const seeds = only
    ? [only]
    : Array.from({ length: isLong ? long : usual }, (_, index) => index + 1);
  const count: Record<string, number> = {};
  let failure: Error | null = null;
  const playOne = async (seed: number, scene: Scene): Promise<void> => {
    const told: string[] = [];
    const note = (kind: string, text = '') => {
      told.push(`${kind} ${text}`);
      count[kind] = (count[kind] ?? 0) + 1;
    };
    try {
      await play({ seed, chance: chanceOf(seed), note }, scene);
    } catch (error) {
      const end = (only ? told : told.slice(-80)).join('\n');
      failure ??= new Error(`TRANCHE_SEED=${seed} shows it again:\n${end}`, { cause: error });
    }
  };
  await Promise.all(
    scenes.map(async (scene) => {
      for (let seed = seeds.shift(); seed && !failure; seed = seeds.shift()) {
        await playOne(seed, scene);
      }
    }),
  );
  if (failure) throw failure;
  t.diagnostic(JSON.stringify(count));
  return count;
}

/** Whether this run plays a single seed, which need not reach every state. */
export const isReplay = () => process.env.TRANCHE_SEED !== undefined;

function chanceOf(seed: number): Chance {
  const next = seededNumbers(seed);
  return {
    next,
    between: (from, to) => from + Math.floor(next() * (to - from + 1)),
    isLucky: (probability) => next() < probability,
    fork: () => chanceOf(Math.floor(next() * 2 ** 31)),
    pick: <T>(list: readonly T[]) => list[Math.floor(next() * list.length)] as T,
    weigh<T>(list: readonly (readonly [number, T])[]) {
      let at = next() * list.reduce((sum, [weight]) => sum + weight, 0);
      const chosen = list.find(([weight]) => {
        at -= weight;
        return at < 0;
      });
      return (chosen ?? list.at(-1))?.[1] as T;
    },
  };
}
