import { setTimeout as sleep } from 'node:timers/promises';

/** An ISO 8601 time in UTC with milliseconds, as the API shows it and the database keeps it. */
export type Timestamp = string;

/** The only source of time. A simulation hands in one of its own. */
export type Clock = {
  now(): Temporal.Instant;
  /** A stopwatch in milliseconds that no change of the wall clock disturbs. */
  monotonic(): number;
  /** Resolves after the time has passed, or at once when the signal aborts. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
};

export const systemClock: Clock = {
  now: () => Temporal.Now.instant(),
  monotonic: () => performance.now(),
  sleep: async (milliseconds, signal) => {
    try {
      await sleep(milliseconds, undefined, signal ? { signal } : {});
    } catch (error) {
      if (!signal?.aborted) throw error;
    }
  },
};

export function timestamp(instant: Temporal.Instant): Timestamp {
  return instant.toString({ fractionalSecondDigits: 3 });
}

export function secondsAfter(instant: Temporal.Instant, seconds: number): Temporal.Instant {
  return instant.add({ milliseconds: Math.round(seconds * 1000) });
}

/** Waits for the work, but no longer than that. */
export async function within(
  clock: Clock,
  milliseconds: number,
  work: Promise<unknown>,
): Promise<void> {
  const done = new AbortController();
  try {
    await Promise.race([work, clock.sleep(milliseconds, done.signal)]);
  } finally {
    done.abort();
  }
}
