import type { Clock } from '#platform/shared/clock.ts';

/**
 * Runs work by key: one run at a time for each key, and runs at least `spacingMs` apart. Callers
 * that come during a run or its pause share the next run, which sees what happened before they came.
 */
export function spacedRuns(clock: Clock, spacingMs: number) {
  /** The run in flight of each key, with the pause after it. */
  const current = new Map<string, Promise<void>>();
  /** The run after that. */
  const next = new Map<string, Promise<void>>();

  async function run(
    key: string,
    work: () => Promise<void>,
    before: Promise<void> | undefined,
  ): Promise<void> {
    await before;
    next.delete(key);
    const running = work();
    const paused = running
      .catch(() => {})
      .then(() => clock.sleep(spacingMs))
      .then(() => {
        if (current.get(key) === paused) current.delete(key);
      });
    current.set(key, paused);
    await running;
  }

  return (key: string, work: () => Promise<void>): Promise<void> => {
    const shared = next.get(key);
    if (shared) return shared;
    const running = run(key, work, current.get(key));
    next.set(key, running);
    return running;
  };
}
