import { FateUnknown, isTransient } from './transaction.ts';

export type GroupCommit<Item, Result> = {
  (item: Item): Promise<Result>;
  /** Resolves when nothing is being written any more, also for whoever stopped listening. */
  settled(): Promise<void>;
};

/** While the database is away requests pile up here; past this many they are refused at once. */
const mostWaiting = 10_000;

/**
 * Lets everything that arrives while a commit is in flight share the next one. A commit costs a
 * flush of the disk whether it carries one row or two hundred, so under load this is what makes
 * the service as fast as the database; without load an item is written at once and alone.
 */
export function groupCommit<Item, Result>(
  write: (items: Item[]) => Promise<Result[]>,
  maxItems: number,
): GroupCommit<Item, Result> {
  type Waiting = { item: Item; resolve(result: Result): void; reject(error: unknown): void };
  const waiting: Waiting[] = [];
  let flight: Promise<void> | null = null;

  async function fly(): Promise<void> {
    while (waiting.length > 0) await writeGroup(waiting.splice(0, maxItems));
    flight = null;
  }

  async function writeGroup(group: Waiting[]): Promise<void> {
    try {
      const results = await write(group.map((one) => one.item));
      group.forEach((one, index) => {
        one.resolve(results[index] as Result);
      });
    } catch (error) {
      if (group.length === 1 || error instanceof FateUnknown || isTransient(error)) {
        for (const one of group) one.reject(error);
      } else {
        // The group was rolled back. One that cannot be written must not fail its neighbours.
        for (const one of group) await writeGroup([one]);
      }
    }
  }

  function commit(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (waiting.length >= mostWaiting) {
        reject(new Error('too many writes are waiting for the database'));
        return;
      }
      waiting.push({ item, resolve, reject });
      // Everything that this turn of the event loop brings in leaves together.
      flight ??= new Promise<void>((begin) => setImmediate(begin)).then(fly);
    });
  }

  return Object.assign(commit, { settled: async () => void (await flight) });
}
