import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '#platform/shared/clock.ts';
import type { Random } from '#platform/shared/random.ts';
import { seededNumbers } from '#platform/shared/seeded-numbers.ts';

/** The next statement follows a statement or an answer within this many turns of the event loop. */
export const turnsMin = 6;

/** A clock that only the story moves. It does not depend on real time. */
export type StoryClock = Clock & {
  advance(duration: Temporal.DurationLike): void;
  set(instant: string): void;
};

/**
 * `sleep` makes each sleep a step of the stage, which the schedule ends. Outside a play it returns
 * null, and a sleep ends once the service is idle: if it ended earlier, a callback would miss its
 * deadline.
 */
export function storyClock(
  sleep: (milliseconds: number, signal?: AbortSignal) => Promise<void> | null,
  busy: ReadonlySet<Promise<unknown>>,
): StoryClock {
  let now = Temporal.Instant.from('2026-01-01T00:00:00Z');
  let elapsed = 0;
  const timers = new Set<{ at: number; run: () => void }>();
  const pass = (milliseconds: number) => {
    elapsed += milliseconds;
    for (const timer of [...timers].filter(({ at }) => at <= elapsed)) {
      timers.delete(timer);
      timer.run();
    }
  };
  return {
    now: () => now,
    monotonic: () => elapsed,
    async sleep(milliseconds, signal) {
      await (sleep(milliseconds, signal) ?? turn());
      for (let turns = 0; turns < turnsMin; turns += 1) {
        if (busy.size > 0) turns = 0;
        await Promise.allSettled(busy);
        await turn();
      }
      if (!signal?.aborted) pass(milliseconds);
    },
    after(milliseconds, run) {
      const timer = { at: elapsed + milliseconds, run };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    advance(duration) {
      const next = now.toZonedDateTimeISO('UTC').add(duration).toInstant();
      const milliseconds = next.epochMilliseconds - now.epochMilliseconds;
      now = next;
      pass(milliseconds);
    },
    set(instant) {
      now = Temporal.Instant.from(instant);
    },
  };
}

/** Ids and bytes that depend only on the seed and on how many stories were played before. */
export function storyRandom(clock: Pick<Clock, 'now'>): Random & { begin(seed: number): void } {
  let plays = 0;
  let ids = 0;
  let next = seededNumbers(0);
  const hex = (value: number, digits: number) => value.toString(16).padStart(digits, '0');
  return {
    begin(seed) {
      plays += 1;
      ids = 0;
      next = seededNumbers(seed + plays * 7_919);
    },
    uuid() {
      ids += 1;
      const time = hex(clock.now().epochMilliseconds, 12);
      const play = hex(plays, 7);
      const tail = `${time.slice(0, 8)}-${time.slice(8)}-7${play.slice(0, 3)}-8${hex(ids % 4096, 3)}`;
      return `${tail}-${play.slice(3)}${hex(Math.floor(next() * 2 ** 32), 8)}`;
    },
    bytes: (length) => Buffer.from(Uint8Array.from({ length }, () => Math.floor(next() * 256))),
  };
}
