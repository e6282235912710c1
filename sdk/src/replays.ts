/** Remembers callbacks that were accepted. Pass your own if several processes share an address. */
export type ReplayStore = {
  /**
   * Remembers a name until a time in milliseconds. Returns false if the name is already remembered.
   */
  add(name: string, until: number): boolean | Promise<boolean>;
  /** Forgets a name: its callback was not handled, and the same delivery may come again. */
  remove(name: string): unknown;
};

/** Callbacks are rare. The limit prevents a flood of genuine ones from filling the memory. */
const namesMax = 100_000;

export function memoryOfReplays(): ReplayStore {
  const names = new Map<string, number>();
  let nextSweep = 0;

  function sweep(now: number): void {
    if (now < nextSweep && names.size < namesMax) return;
    nextSweep = now + 60_000;
    for (const [name, until] of names) {
      if (until < now || names.size > namesMax) names.delete(name);
    }
  }

  return {
    add(name, until) {
      sweep(Date.now());
      if (names.has(name)) return false;
      names.set(name, until);
      return true;
    },
    remove: (name) => names.delete(name),
  };
}
