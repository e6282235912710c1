import { NotBegun } from './transaction.ts';

/**
 * Begins work only while less than `max` of it is in progress in this process. Work beyond that is
 * refused at once, and nothing of it was done: it would be late, and make all that has begun later.
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
