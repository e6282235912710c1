import type { Clock } from './clock.ts';

/**
 * Caches look-ups for a short, fixed time. Nothing is ever invalidated: a change is in force
 * everywhere once that time has passed, without a message that could be lost. Concurrent look-ups
 * of one key are one look-up. Failures are not cached.
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
      // A map iterates in insertion order, so the first key is the oldest.
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

/** Callers that come while a call is in flight share its answer. */
export function sharing<T>(call: () => Promise<T>): () => Promise<T> {
  let inFlight: Promise<T> | null = null;
  return () => {
    inFlight ??= call().finally(() => {
      inFlight = null;
    });
    return inFlight;
  };
}
