import { setTimeout as sleep } from 'node:timers/promises';

/** Polls until the condition holds. Throws an error that says what it waited for. */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  // A loaded machine may need half a minute to start a program.
  seconds = 120,
): Promise<NonNullable<Exclude<T, false>>> {
  const deadline = performance.now() + seconds * 1000;
  // It polls less and less often, because polling takes processor time from what it waits for.
  for (let pause = 5; ; pause = Math.min(pause * 1.3, 150)) {
    const value = await condition();
    if (value) return value as NonNullable<Exclude<T, false>>;
    if (performance.now() > deadline) throw new Error(`waited ${seconds} seconds for ${what}`);
    await sleep(pause);
  }
}
