import { randomInt } from 'node:crypto';
import { isPortFree } from '#platform/shared/free-ports.ts';

/**
 * A port that can be left and taken again: neither programs that take any free port nor those that
 * call `freePorts` are given one of this range.
 */
export async function quietPort(): Promise<number> {
  for (;;) {
    const port = randomInt(11_000, 20_000);
    if (await isPortFree(port)) return port;
  }
}
