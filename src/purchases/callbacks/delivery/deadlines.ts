import type { Clock } from '#platform/shared/clock.ts';

/** Ends exchanges that have run out of time. */
export type Deadlines = {
  add(cutOff: () => void): void;
  /** Call this when the exchange has ended in time. */
  remove(cutOff: () => void): void;
  close(): void;
};

/**
 * Every exchange has the same time limit, so exchanges reach it in the order in which they began.
 * One timer is enough for all of them.
 */
export function createDeadlines(clock: Clock, milliseconds: number): Deadlines {
  /** When each exchange is cut off, the earliest first. */
  const ends = new Map<() => void, number>();
  const closing = new AbortController();
  let isWatching = false;

  async function watch(): Promise<void> {
    isWatching = true;
    for (const [cutOff, end] of ends) {
      const left = end - clock.monotonic();
      if (left > 0) await clock.sleep(left, closing.signal);
      if (closing.signal.aborted) break;
      if (ends.delete(cutOff)) cutOff();
    }
    isWatching = false;
  }

  return {
    add(cutOff) {
      ends.set(cutOff, clock.monotonic() + milliseconds);
      if (!isWatching) void watch();
    },
    remove: (cutOff) => void ends.delete(cutOff),
    close: () => closing.abort(),
  };
}
