/**
 * Spreads requests over time: at most `perSecond` on average, and `burst` at once. It only counts;
 * the caller waits. All times are in milliseconds on a monotonic clock.
 */
export function createPacer({ perSecond, burst }: { perSecond: number; burst: number }) {
  const interval = 1000 / perSecond;
  const lead = (burst - 1) * interval;
  /** When the next request would be due at a perfectly even pace. */
  let next = Number.NEGATIVE_INFINITY;
  return {
    waitMs: (now: number): number => Math.max(0, next - lead - now),
    take(now: number): void {
      next = Math.max(next, now) + interval;
    },
    /** Lets nothing pass for a while. */
    pause(now: number, milliseconds: number): void {
      next = Math.max(next, now + milliseconds + lead);
    },
  };
}

export type Pacer = ReturnType<typeof createPacer>;
