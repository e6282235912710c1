import { OutcomeUnknown } from '#gateway/gateway.ts';
import type { Clock } from '#platform/shared/clock.ts';

const pausesMax = 6;

/**
 * Calls `read`. While the gateway answers that it gets too many requests, repeats the call up to
 * six times, after ever longer waits.
 */
export async function whenAllowed<T>(clock: Clock, read: () => Promise<T>): Promise<T> {
  for (let pauses = 0; ; pauses += 1) {
    try {
      return await read();
    } catch (error) {
      const isTooMany = error instanceof OutcomeUnknown && error.why === 'too_many';
      if (!isTooMany || pauses === pausesMax) throw error;
      await clock.sleep(500 * 2 ** pauses);
    }
  }
}
