import type { Clock } from '#platform/shared/clock.ts';
import { inSpan, outsideSpans } from '#platform/tracing/trace.ts';
import { isWorkerAway } from './database.ts';
import { type Deadline, lockEndOf, recordingDeadline, withDeadline } from './deadline.ts';
import { FateUnknown, isLockTimeout, isTransient, NotBegun } from './transaction.ts';

export type GroupCommit<Item, Result> = {
  (item: Item): Promise<Result>;
  /** Resolves when no write is in flight, not even one whose caller has gone. */
  settled(): Promise<void>;
};

/**
 * Writes a batch as a whole or not at all. With a limit, a longer wait for a lock must fail, and so
 * must a batch that needs a worker which is away.
 */
type Write<Item, Result> = (items: Item[], lockMilliseconds?: number) => Promise<Result[]>;

/** Requests queue here while the database is away. Beyond this many, new ones fail at once. */
const queuedMax = 10_000;

/** How long a batch of several tenants waits for a lock. Commits of other nodes are quicker. */
const sharedLockMilliseconds = 300;

/** The first attempt of a lane. Lanes take turns, so the locked ones must not keep the others long. */
const laneLockMilliseconds = 50;

/** So many lanes write at once, and as many more wait for locks. The pool has more connections. */
const lanesMax = 3;

/** After this time a batch no longer keeps the next one waiting: its connection may be dead. */
const lateMilliseconds = 1_000;

/** So many shared batches may be in flight at once, and only while the others are late. */
const flightsMax = 3;

/** An item with less time than this is not worth another attempt. */
const leastMilliseconds = 500;

/** How often a lane asks for a worker that is away. */
const awayMilliseconds = 250;

/** How often the waiting items are searched for some whose deadline has passed. */
const sweepMilliseconds = 250;

type Queued<Item, Result> = {
  item: Item;
  deadline: Deadline;
  resolve(result: Result): void;
  reject(error: unknown): void;
};

/**
 * Lets all items that arrive while a commit is in flight share the next one. A commit costs a flush
 * of the disk whether it carries one row or two hundred, so under load this makes the service as
 * fast as the database. Without load an item is written at once and alone.
 *
 * With `tenantOf`, one tenant's locked rows do not delay the others (decision 0012). A batch that
 * waits too long for a lock is rolled back, and each of its tenants gets a lane of its own. A lane
 * tries with a shorter wait, then with the same one, and only then waits as long as a transaction
 * may. New items of a tenant join its lane while it has one; all others go on sharing commits.
 * Likewise, the tenants whose worker of Citus is away do not stop those of the other workers
 * (decision 0020): their lanes ask again until it is back, and hold no connection meanwhile.
 *
 * An item keeps the deadline of the request that brought it. A batch that the database did not take
 * ends with its earliest deadline, and the items that have time left join the next batch. An item
 * that still waits for its turn at its deadline is refused and not written (decision 0013).
 */
export function groupCommit<Item, Result>(
  { clock, observeBatch }: { clock: Clock; observeBatch?: (items: number) => void },
  write: Write<Item, Result>,
  batchSize: number,
  tenantOf?: (item: Item) => string,
): GroupCommit<Item, Result> {
  const queue: Queued<Item, Result>[] = [];
  const lanes = new Map<string, Queued<Item, Result>[]>();
  const running = new Set<Promise<void>>();
  const quick = permits(lanesMax);
  const patient = permits(lanesMax);
  /** The lists of items that are not being written: the queue, the lanes, batches without a permit. */
  const waiting = new Set<Queued<Item, Result>[]>([queue]);
  let flights = 0;
  let lateFlights = 0;
  let queued = 0;
  let isSweeping = false;

  function run(work: Promise<void>): void {
    const ended = work.finally(() => running.delete(ended));
    running.add(ended);
  }

  /** A queued item waits for a flight that is on time, and never for one that is late. */
  function startFlight(): void {
    if (flights > lateFlights || flights >= flightsMax) return;
    flights += 1;
    // Everything that arrives in this turn of the event loop leaves together.
    run(outsideSpans(() => new Promise<void>((begin) => setImmediate(begin)).then(fly)));
  }

  async function fly(): Promise<void> {
    try {
      while (queue.length > 0) {
        // Items arrive in the order of their deadlines, or nearly so.
        if (isLate(queue[0], clock.monotonic())) {
          sweep();
          continue;
        }
        const batch = queue.splice(0, batchSize);
        observeBatch?.(batch.length);
        let isOverdue = false;
        const cancel = clock.after(lateMilliseconds, () => {
          isOverdue = true;
          lateFlights += 1;
          if (queue.length > 0) startFlight();
          sweepLater();
        });
        try {
          if (!tenantOf) await writeBatch(batch);
          else if ((await writeShared(batch)) !== 'written') separate(batch, tenantOf);
        } finally {
          cancel();
          if (isOverdue) lateFlights -= 1;
        }
      }
    } finally {
      // In the same turn in which the queue was found empty: the next item starts a flight.
      flights -= 1;
    }
  }

  /** Refuses the items whose deadline passed while they waited for their turn. */
  function sweep(): void {
    const now = clock.monotonic();
    for (const list of waiting) {
      const late = list.filter((one) => isLate(one, now));
      if (late.length === 0) continue;
      list.splice(0, list.length, ...list.filter((one) => !isLate(one, now)));
      settle(late, ({ reject }) => reject(new NotBegun('a write waited until its deadline')));
    }
  }

  /** Sweeps again and again while something is queued. It begins only if a batch is late or locked. */
  function sweepLater(): void {
    if (isSweeping) return;
    isSweeping = true;
    clock.after(sweepMilliseconds, () => {
      isSweeping = false;
      sweep();
      if (queued > 0) sweepLater();
    });
  }

  /** Unless it is written, it was rolled back: it waited too long for a lock, or a worker is away. */
  async function writeShared(
    batch: Queued<Item, Result>[],
    lockMilliseconds = sharedLockMilliseconds,
  ): Promise<'written' | 'locked' | { away: unknown }> {
    try {
      await writeBatch(batch, lockMilliseconds);
      return 'written';
    } catch (error) {
      return isLockTimeout(error) ? 'locked' : { away: error };
    }
  }

  /** Settles all items of a batch. With a limit it throws if a row is locked or a worker is away. */
  async function writeBatch(
    batch: Queued<Item, Result>[],
    lockMilliseconds?: number,
  ): Promise<void> {
    try {
      const items = batch.map(({ item }) => item);
      const results = await withDeadline(earliest(batch), () => write(items, lockMilliseconds));
      settle(batch, ({ resolve }, index) => resolve(results[index] as Result));
    } catch (error) {
      const isSeparable = isLockTimeout(error) || isWorkerAway(error);
      if (lockMilliseconds !== undefined && tenantOf && isSeparable) throw error;
      if (error instanceof FateUnknown) {
        settle(batch, ({ reject }) => reject(error));
      } else if (isTransient(error)) {
        // Nothing was written, and the earliest deadline has passed.
        const open = rejectEnded(batch, error);
        queue.unshift(...open);
        if (open.length > 0) startFlight();
      } else if (batch.length === 1) {
        settle(batch, ({ reject }) => reject(error));
      } else {
        // The batch was rolled back. An item that cannot be written must not fail the others.
        for (const one of batch) {
          if (lockMilliseconds === undefined || !tenantOf) await writeBatch([one]);
          else if ((await writeShared([one])) !== 'written') separate([one], tenantOf);
        }
      }
    }
  }

  /** Rejects the items that have no time left, and returns the others. */
  function rejectEnded(batch: Queued<Item, Result>[], error: unknown): Queued<Item, Result>[] {
    const now = clock.monotonic();
    const { ended = [], open = [] } = Object.groupBy(batch, ({ deadline }) =>
      deadline.endsAt - leastMilliseconds < now ? 'ended' : 'open',
    );
    settle(ended, ({ reject }) => reject(error));
    return open;
  }

  function settle(
    batch: Queued<Item, Result>[],
    end: (one: Queued<Item, Result>, index: number) => void,
  ): void {
    queued -= batch.length;
    batch.forEach(end);
  }

  function separate(batch: Queued<Item, Result>[], tenantOf: (item: Item) => string): void {
    for (const [tenant, items] of Map.groupBy(batch, ({ item }) => tenantOf(item))) {
      const lane = lanes.get(tenant);
      if (lane) {
        lane.push(...items);
        continue;
      }
      lanes.set(tenant, items);
      waiting.add(items);
      run(drain(tenant, items));
    }
    sweepLater();
  }

  async function drain(tenant: string, lane: Queued<Item, Result>[]): Promise<void> {
    while (lane.length > 0) {
      const batch = lane.splice(0, batchSize);
      let outcome = await whenPermitted(quick, batch, () =>
        writeShared(batch, laneLockMilliseconds),
      );
      if (outcome === 'locked')
        outcome = await whenPermitted(quick, batch, () => writeShared(batch));
      if (outcome === 'locked') await whenPermitted(patient, batch, () => writeBatch(batch));
      else if (outcome !== 'written') {
        lane.unshift(...rejectEnded(batch, outcome.away));
        await clock.sleep(awayMilliseconds);
      }
    }
    lanes.delete(tenant);
    waiting.delete(lane);
  }

  /** Items of the batch may end before it is permitted. If all of them do, nothing is written. */
  async function whenPermitted<T>(
    permit: Permit,
    batch: Queued<Item, Result>[],
    work: () => Promise<T>,
  ): Promise<T | 'written'> {
    waiting.add(batch);
    return await permit(async () => {
      sweep();
      waiting.delete(batch);
      return batch.length === 0 ? 'written' : await work();
    });
  }

  function commit(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (queued >= queuedMax) {
        reject(new NotBegun('too many writes are queued for the database'));
        return;
      }
      queued += 1;
      const deadline = recordingDeadline(clock);
      const lane = lanes.size > 0 && tenantOf ? lanes.get(tenantOf(item)) : undefined;
      (lane ?? queue).push({ item, deadline, resolve, reject });
      if (!lane) startFlight();
    });
  }

  async function settled(): Promise<void> {
    while (running.size > 0) await Promise.all(running);
  }

  return Object.assign(commit, { settled });
}

/** The same commit with a span for each item, from its arrival to its answer. */
export function traceCommit<Item, Result>(
  commit: GroupCommit<Item, Result>,
): GroupCommit<Item, Result> {
  const traced = (item: Item) => inSpan('commit', 'client', () => commit(item));
  return Object.assign(traced, { settled: commit.settled });
}

/** The batch may be retried until its first item has no time left, and looked up until the last. */
function earliest(batch: { deadline: Deadline }[]): Deadline {
  return {
    endsAt: Math.min(...batch.map(({ deadline }) => deadline.endsAt)),
    lockEndsAt: Math.min(...batch.map(({ deadline }) => lockEndOf(deadline))),
    lookUpEndsAt: Math.max(...batch.map(({ deadline }) => deadline.lookUpEndsAt)),
  };
}

const isLate = (one: { deadline: Deadline } | undefined, now: number) =>
  one !== undefined && lockEndOf(one.deadline) <= now;

type Permit = <T>(work: () => Promise<T>) => Promise<T>;

/** Lets at most `max` pieces of work run at once. The others wait in their order. */
function permits(max: number): Permit {
  const waiting: (() => void)[] = [];
  let free = max;
  return async (work) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((go) => waiting.push(go));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free += 1;
    }
  };
}
