import type { Clock } from './clock.ts';

/**
 * Remembers what was looked up for a short, fixed time. Nothing is ever invalidated: what changed
 * is in force everywhere when the time has passed, with no message that could be lost.
 * Look-ups of the same key under way at once are one look-up; failures are not remembered.
 */
export function cached<T>(
  options: { clock: Clock; milliseconds: number; maxEntries: number },
  load: (key: string) => Promise<T>,
): (key: string) => Promise<T> {
  const entries = new Map<string, { value: Promise<T>; until: number }>();
  return (key) => {
    const now = options.clock.monotonic();
    const entry = entries.get(key);
    if (entry && entry.until > now) return entry.value;
    const value = load(key);
    entries.delete(key);
    if (entries.size >= options.maxEntries) {
      // A map iterates in the order of insertion: the first is the oldest.
      for (const oldest of entries.keys()) {
        entries.delete(oldest);
        break;
      }
    }
    const fresh = { value, until: now + options.milliseconds };
    entries.set(key, fresh);
    value.catch(() => {
      if (entries.get(key) === fresh) entries.delete(key);
    });
    return value;
  };
}
