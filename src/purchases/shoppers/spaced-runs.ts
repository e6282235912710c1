import type { Clock } from '#platform/shared/clock.ts';

/**
 * Runs work by key: one run at a time for each key, and runs at least `spacingMs` apart. Callers
 * that come during a run or its pause share the next run, which sees what happened before they
 * came.
 */
export function spacedRuns<Result>(clock: Clock, spacingMs: number) {
  /** The run in flight for each key, with the pause after it. */
  const current = new Map<string, Promise<void>>();
  /** The run after the one in flight, for each key. */
  const next = new Map<string, Promise<Result>>();

  async function run(
    key: string,
    work: () => Promise<Result>,
    before: Promise<void> | undefined,
  ): Promise<Result> {
    await before;
    next.delete(key);
    const running = work();
    const paused = running
      .then(
        () => {},
        () => {},
      )
      .then(() => clock.sleep(spacingMs))
      .then(() => {
        if (current.get(key) === paused) current.delete(key);
      });
    current.set(key, paused);
    return await running;
  }

  return (key: string, work: () => Promise<Result>): Promise<Result> => {
    const shared = next.get(key);
    if (shared) return shared;
    const running = run(key, work, current.get(key));
    next.set(key, running);
    return running;
  };
}
