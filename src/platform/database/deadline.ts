import { AsyncLocalStorage } from 'node:async_hooks';
import type { Clock } from '#platform/shared/clock.ts';

// How long work may wait for a database that does not answer. A request has one deadline, counted
// from its arrival, whatever code it runs through. The deadline travels in an async context,
// because a parameter would have to go through every use case.

/** Work that no request asked for gives up sooner than a request, because it is due again later. */
const graceMilliseconds = 8_000;

/**
 * Work that no request asked for waits longer for locked rows: the database works, and the wait is
 * only a queue.
 */
const lockGraceMilliseconds = 30_000;

/** Points on the monotonic clock. */
export type Deadline = {
  /** Until then a transaction that certainly did nothing is retried. */
  endsAt: number;
  /** Until then a COMMIT in doubt is looked up. Later than `endsAt` only for a shared commit. */
  lookUpEndsAt: number;
  /** Whether a transaction of this work was committed. A later failure must not deny that. */
  hasCommitted?: boolean;
  /** Until then the work waits for locks. Later than `endsAt` only for work without a request. */
  lockEndsAt?: number;
};

export const lockEndOf = ({ endsAt, lockEndsAt }: Deadline) => lockEndsAt ?? endsAt;

const deadlines = new AsyncLocalStorage<Deadline | undefined>();

/** From here on, the current request has this much time. */
export function startDeadline(clock: Clock, milliseconds: number): void {
  const endsAt = clock.monotonic() + milliseconds;
  deadlines.enterWith({ endsAt, lookUpEndsAt: endsAt });
}

export function withDeadline<T>(deadline: Deadline, work: () => T): T {
  return deadlines.run(deadline, work);
}

/** Begins work that goes on after the current request, as work that no request asked for. */
export function withoutDeadline<T>(work: () => T): T {
  return deadlines.run(undefined, work);
}

/** The deadline of the current request. Work outside a request gets a new deadline. */
export function currentDeadline(clock: Clock): Deadline {
  return deadlines.getStore() ?? newDeadline(clock);
}

/**
 * The current deadline, except that work which begins after its request's deadline gets a new one:
 * what has already happened at the gateway or at a receiver must still be recorded.
 */
export function recordingDeadline(clock: Clock): Deadline {
  const current = currentDeadline(clock);
  return lockEndOf(current) > clock.monotonic() ? current : newDeadline(clock);
}

function newDeadline(clock: Clock): Deadline {
  const now = clock.monotonic();
  const endsAt = now + graceMilliseconds;
  return { endsAt, lookUpEndsAt: endsAt, lockEndsAt: now + lockGraceMilliseconds };
}

/**
 * Records that the current request changed something. A group commit does not record that by
 * itself.
 */
export function noteCommit(): void {
  const deadline = deadlines.getStore();
  if (deadline) deadline.hasCommitted = true;
}

/** Whether a transaction of the current request was committed. */
export function hasCommitted(): boolean {
  return deadlines.getStore()?.hasCommitted ?? false;
}
