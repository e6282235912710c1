/** An ISO 8601 time in UTC with milliseconds, as the API shows it and the database stores it. */
export type Timestamp = string;

/** The only source of time. A simulation passes its own. */
export type Clock = {
  now(): Temporal.Instant;
  /** A stopwatch in milliseconds. Changes of the wall clock do not affect it. */
  monotonic(): number;
  /** Resolves after the given time, or as soon as the signal aborts. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
  /**
   * Calls `run` after the given time unless it is cancelled. It is cheaper than `sleep` with a
   * signal. It is for the timeouts of other work, so it does not keep a process alive.
   */
  after(milliseconds: number, run: () => void): Cancel;
};

export type Cancel = () => void;

export const systemClock: Clock = {
  now: () => Temporal.Now.instant(),
  monotonic: () => performance.now(),
  // Node's own sleep makes an error with a stack for each signal that aborts.
  sleep: (milliseconds, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', end);
        resolve();
      };
      const timer = setTimeout(end, milliseconds);
      signal?.addEventListener('abort', end);
    }),
  after(milliseconds, run) {
    const timer = setTimeout(run, milliseconds).unref();
    return () => clearTimeout(timer);
  },
};

export function timestamp(instant: Temporal.Instant): Timestamp {
  return instant.toString({ fractionalSecondDigits: 3 });
}

export function secondsAfter(instant: Temporal.Instant, seconds: number): Temporal.Instant {
  return instant.add({ milliseconds: Math.round(seconds * 1000) });
}

/** Waits for the work, but at most for the given time. */
export async function within(
  clock: Clock,
  milliseconds: number,
  work: Promise<unknown>,
): Promise<void> {
  const done = new AbortController();
  try {
    await Promise.race([work, clock.sleep(milliseconds, done.signal)]);
  } finally {
    // Without a reason, `abort` would create an error with a stack.
    done.abort('done');
  }
}
