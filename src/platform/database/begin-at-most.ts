import { NotBegun } from './transaction.ts';

/**
 * Begins work only while fewer than `max` pieces of work are in progress in this process. More work
 * is refused at once, before any of it is done: it would be late, and would delay what has begun.
 */
export function beginAtMost(max: number): <T>(work: () => Promise<T>) => Promise<T> {
  let inProgress = 0;
  return async (work) => {
    if (inProgress >= max) throw new NotBegun(`${max} others are in progress`);
    inProgress += 1;
    try {
      return await work();
    } finally {
      inProgress -= 1;
    }
  };
}
