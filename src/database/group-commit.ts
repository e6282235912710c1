import { FateUnknown, isTransient } from './transaction.ts';

export type GroupCommit<Item, Result> = {
  (item: Item): Promise<Result>;
  /** Resolves when no write is in flight, not even one whose caller has gone. */
  settled(): Promise<void>;
};

/** Requests queue here while the database is away. Beyond this many, new ones fail at once. */
const queuedMax = 10_000;

/**
 * Lets all items that arrive while a commit is in flight share the next one. A commit costs a flush
 * of the disk whether it carries one row or two hundred, so under load this makes the service as
 * fast as the database. Without load an item is written at once and alone.
 */
export function groupCommit<Item, Result>(
  write: (items: Item[]) => Promise<Result[]>,
  batchSize: number,
): GroupCommit<Item, Result> {
  type Queued = { item: Item; resolve(result: Result): void; reject(error: unknown): void };
  const queue: Queued[] = [];
  let flight: Promise<void> | null = null;

  async function fly(): Promise<void> {
    while (queue.length > 0) await writeBatch(queue.splice(0, batchSize));
    flight = null;
  }

  async function writeBatch(batch: Queued[]): Promise<void> {
    try {
      const results = await write(batch.map(({ item }) => item));
      batch.forEach(({ resolve }, index) => {
        resolve(results[index] as Result);
      });
    } catch (error) {
      if (batch.length === 1 || error instanceof FateUnknown || isTransient(error)) {
        for (const { reject } of batch) reject(error);
      } else {
        // The batch was rolled back. An item that cannot be written must not fail the others.
        for (const queued of batch) await writeBatch([queued]);
      }
    }
  }

  function commit(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (queue.length >= queuedMax) {
        reject(new Error('too many writes are queued for the database'));
        return;
      }
      queue.push({ item, resolve, reject });
      // Everything that arrives in this turn of the event loop leaves together.
      flight ??= new Promise<void>((begin) => setImmediate(begin)).then(fly);
    });
  }

  return Object.assign(commit, { settled: async () => void (await flight) });
}
