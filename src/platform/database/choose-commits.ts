import { isWorkerAway } from './database.ts';
import { type Deadline, lockEndOf } from './deadline.ts';
import { FateUnknown, isLockTimeout, isTransient } from './transaction.ts';

// The choices of a group commit: when to write, how long to wait for a lock, and what to do after a
// write failed. They are pure; group-commit.ts carries them out.

/**
 * How long a batch waits for a lock before it is rolled back.
 *
 * - `shared` is for a batch of several tenants. It is longer than a commit on another node takes:
 *   a lock that another node holds only while it commits does not roll the batch back.
 * - `brief` is the first attempt of a batch from a tenant's queue. These queues take turns, so a
 *   locked one must not delay the others for long. The second attempt waits like a shared batch.
 * - `patient` waits as long as a transaction may. It is the last attempt of a tenant's batch, and
 *   the only one if batches are not separated by tenant.
 */
export type Wait = 'shared' | 'brief' | 'patient';

/** `undefined` means that we set no limit of our own. */
export const lockMilliseconds: Readonly<Record<Wait, number | undefined>> = {
  shared: 300,
  brief: 50,
  patient: undefined,
};

/** While this many items have no answer yet, further ones fail at once. */
export const queuedMax = 10_000;

/**
 * This many tenants' queues write at once, and as many more write with a `patient` wait. The pool
 * has more connections than both need together.
 */
export const tenantWritesMax = 3;

/** After this time a batch no longer keeps the next one waiting: its connection may be dead. */
export const lateMilliseconds = 1_000;

/** At most this many shared batches are in flight; another one starts only while all are late. */
const flightsMax = 3;

/** An item with less time left than this is not retried. */
const millisecondsMin = 500;

/** A queued item waits for a batch that is on time, and never for one that is late. */
export function mayStartFlight(flights: number, lateFlights: number): boolean {
  return flights <= lateFlights && flights < flightsMax;
}

/**
 * The next step of a batch that was not written.
 *
 * - `separate`: it was rolled back because a row is locked or a Citus worker does not answer. Its
 *   tenants continue separately. Only a batch with a limit on its wait can be separated.
 * - `requeue`: nothing was written, and the earliest deadline has passed. The items that have time
 *   left join the next batch.
 * - `write alone`: it was rolled back. An item that cannot be written must not fail the others.
 * - `reject`: all items fail with the error.
 */
export type AfterFailure = 'separate' | 'requeue' | 'write alone' | 'reject';

export function chooseAfterFailure(error: unknown, wait: Wait, items: number): AfterFailure {
  const isSeparable = isLockTimeout(error) || isWorkerAway(error);
  if (isSeparable && lockMilliseconds[wait] !== undefined) return 'separate';
  if (error instanceof FateUnknown) return 'reject';
  if (isTransient(error)) return 'requeue';
  return items > 1 ? 'write alone' : 'reject';
}

type Due = { deadline: Deadline };

/** Whether the deadline of a waiting item has passed. Such an item is refused. */
export function isLate(one: Due | undefined, now: number): boolean {
  return one !== undefined && lockEndOf(one.deadline) <= now;
}

/** Whether an item has time for another attempt after one failed. */
export function hasTime({ deadline }: Due, now: number): boolean {
  return deadline.endsAt - millisecondsMin >= now;
}

/**
 * The batch may be retried until its first item runs out of time. Whether a COMMIT in doubt took
 * effect may be looked up until its last item runs out of time.
 */
export function earliestDeadline(batch: readonly Due[]): Deadline {
  return {
    endsAt: Math.min(...batch.map(({ deadline }) => deadline.endsAt)),
    lockEndsAt: Math.min(...batch.map(({ deadline }) => lockEndOf(deadline))),
    lookUpEndsAt: Math.max(...batch.map(({ deadline }) => deadline.lookUpEndsAt)),
  };
}
