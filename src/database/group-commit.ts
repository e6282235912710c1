import { FateUnknown } from './transaction.ts';

/**
 * Lets everything that arrives while a commit is in flight share the next one. A commit costs a
 * flush of the disk whether it carries one row or two hundred, so under load this is what makes
 * the service as fast as the database; without load an item is written at once and alone.
 */
export function groupCommit<Item, Result>(
  write: (items: Item[]) => Promise<Result[]>,
  options: { maxItems: number; maxFlights: number },
): (item: Item) => Promise<Result> {
  type Waiting = { item: Item; resolve(result: Result): void; reject(error: unknown): void };
  let waiting: Waiting[] = [];
  let flights = 0;

  async function fly(): Promise<void> {
    flights += 1;
    const group = waiting.splice(0, options.maxItems);
    try {
      await writeGroup(group);
    } finally {
      flights -= 1;
      depart();
    }
  }

  async function writeGroup(group: Waiting[]): Promise<void> {
    try {
      const results = await write(group.map((one) => one.item));
      group.forEach((one, index) => {
        one.resolve(results[index] as Result);
      });
    } catch (error) {
      if (group.length === 1 || error instanceof FateUnknown) {
        for (const one of group) one.reject(error);
      } else {
        // The group was rolled back. One that cannot be written must not fail its neighbours.
        for (const one of group) await writeGroup([one]);
      }
    }
  }

  function depart(): void {
    while (waiting.length > 0 && flights < options.maxFlights) void fly();
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      // Everything that this turn of the event loop brings in leaves together.
      if (waiting.length === 1 && flights < options.maxFlights) setImmediate(depart);
    });
}
