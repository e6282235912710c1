import type { Clock } from '#platform/shared/clock.ts';
import { inSpan, outsideSpans } from '#platform/tracing/trace.ts';
import {
  chooseAfterFailure,
  earliestDeadline,
  hasTime,
  isLate,
  lateMilliseconds,
  lockMilliseconds,
  mayStartFlight,
  queuedMax,
  tenantWritesMax,
  type Wait,
} from './choose-commits.ts';
import { type Deadline, recordingDeadline, withDeadline } from './deadline.ts';
import { isLockTimeout, NotBegun } from './transaction.ts';

export type GroupCommit<Item, Result> = {
  (item: Item): Promise<Result>;
  /** Resolves when no write is in flight, not even one whose caller has gone. */
  settled(): Promise<void>;
};

/**
 * Writes a batch as a whole or not at all. If `lockMilliseconds` is given, the write must fail when
 * it waits longer than that for a lock, or needs a Citus worker that does not answer.
 */
type Write<Item, Result> = (items: Item[], lockMilliseconds?: number) => Promise<Result[]>;

/** A tenant's queue waits this long after its Citus worker did not answer. */
const awayMilliseconds = 250;

/** The pause between two searches for waiting items whose deadline has passed. */
const sweepMilliseconds = 250;

type Queued<Item, Result> = {
  item: Item;
  deadline: Deadline;
  resolve(result: Result): void;
  reject(error: unknown): void;
};

type Batch<Item, Result> = Queued<Item, Result>[];

/** One group commit: what waits and what is in flight. */
type Commits<Item, Result> = {
  readonly clock: Clock;
  readonly observeBatch: ((items: number) => void) | undefined;
  readonly write: Write<Item, Result>;
  readonly batchSize: number;
  readonly tenantOf: ((item: Item) => string) | undefined;
  /** The items that share the next batch. `commit` and `requeue` add to it, `fly` takes from it. */
  readonly queue: Batch<Item, Result>;
  /** The queues of tenants that were separated. `separate` adds them, `drain` removes them. */
  readonly tenantQueues: Map<string, Batch<Item, Result>>;
  /** All lists of items that are not being written: the queues, and batches without a permit. */
  readonly waiting: Set<Batch<Item, Result>>;
  /** The work that `settled` waits for. Only `run` writes it. */
  readonly running: Set<Promise<void>>;
  readonly quick: Permit;
  readonly patient: Permit;
  /** Loops that write the shared queue. `startFlight` adds one, `fly` removes itself. */
  flights: number;
  /** Flights whose batch is late. Only `fly` writes it. */
  lateFlights: number;
  /** Items without an answer. `commit` adds one, `settle` removes them. */
  queued: number;
  /** Whether `sweepLater` has a timer. */
  isSweeping: boolean;
};

/**
 * Lets all items that arrive while a commit is in flight share the next one. A commit costs a flush
 * of the disk whether it carries one row or two hundred, so under load this makes the service as
 * fast as the database. Without load an item is written at once and alone.
 *
 * With `tenantOf`, one tenant's locked rows do not delay the others (decision 0012). A batch that
 * waits too long for a lock is rolled back, and each of its tenants gets a queue of its own, whose
 * batches wait for locks as `Wait` describes. New items of a tenant join its queue while it has
 * one; all others continue to share commits. Likewise, tenants whose Citus worker does not answer
 * do not stop those on other Citus workers (decision 0020): their queues ask again until it
 * answers, and hold no connection in the meantime.
 *
 * An item keeps the deadline of the request that brought it. A batch that the database did not
 * accept ends at its earliest deadline, and the items that have time left join the next batch. An
 * item whose deadline passes while it waits for its turn is refused and not written (decision
 * 0013).
 */
export function groupCommit<Item, Result>(
  { clock, observeBatch }: { clock: Clock; observeBatch?: (items: number) => void },
  write: Write<Item, Result>,
  batchSize: number,
  tenantOf?: (item: Item) => string,
): GroupCommit<Item, Result> {
  const queue: Batch<Item, Result> = [];
  const commits: Commits<Item, Result> = {
    clock,
    observeBatch,
    write,
    batchSize,
    tenantOf,
    queue,
    tenantQueues: new Map(),
    waiting: new Set([queue]),
    running: new Set(),
    quick: permits(tenantWritesMax),
    patient: permits(tenantWritesMax),
    flights: 0,
    lateFlights: 0,
    queued: 0,
    isSweeping: false,
  };
  const { running } = commits;
  return Object.assign((item: Item) => commit(commits, item), {
    async settled() {
      while (running.size > 0) await Promise.all(running);
    },
  });
}

/** The commit with a span for each item, from its arrival to its answer. */
export function traceCommit<Item, Result>(
  commit: GroupCommit<Item, Result>,
): GroupCommit<Item, Result> {
  const traced = (item: Item) => inSpan('commit', 'client', () => commit(item));
  return Object.assign(traced, { settled: commit.settled });
}

function commit<Item, Result>(commits: Commits<Item, Result>, item: Item): Promise<Result> {
  return new Promise((resolve, reject) => {
    if (commits.queued >= queuedMax) {
      reject(new NotBegun('too many writes are queued for the database'));
      return;
    }
    commits.queued += 1;
    const { queue, tenantQueues, tenantOf } = commits;
    const deadline = recordingDeadline(commits.clock);
    const own = tenantQueues.size > 0 && tenantOf ? tenantQueues.get(tenantOf(item)) : undefined;
    (own ?? queue).push({ item, deadline, resolve, reject });
    if (!own) startFlight(commits);
  });
}

function startFlight<Item, Result>(commits: Commits<Item, Result>): void {
  if (!mayStartFlight(commits.flights, commits.lateFlights)) return;
  commits.flights += 1;
  // Everything that arrives in this turn of the event loop leaves together.
  const turn = () => new Promise<void>((begin) => setImmediate(begin));
  run(
    commits,
    outsideSpans(() => turn().then(() => fly(commits))),
  );
}

/** Writes the shared queue, batch by batch, until it is empty. */
async function fly<Item, Result>(commits: Commits<Item, Result>): Promise<void> {
  const { clock, queue } = commits;
  try {
    while (queue.length > 0) {
      // The queue is nearly in the order of the deadlines, so it is enough to look at the first.
      if (isLate(queue[0], clock.monotonic())) {
        sweep(commits);
        continue;
      }
      const batch = queue.splice(0, commits.batchSize);
      commits.observeBatch?.(batch.length);
      let isOverdue = false;
      const cancel = clock.after(lateMilliseconds, () => {
        isOverdue = true;
        commits.lateFlights += 1;
        if (queue.length > 0) startFlight(commits);
        sweepLater(commits);
      });
      try {
        const outcome = await writeBatch(commits, batch, commits.tenantOf ? 'shared' : 'patient');
        if (outcome !== 'settled') separate(commits, batch);
      } finally {
        cancel();
        if (isOverdue) commits.lateFlights -= 1;
      }
    }
  } finally {
    // This must run in the turn in which the queue was found empty: an item that arrives in between
    // would rely on this flight, and no flight would write it.
    commits.flights -= 1;
  }
}

/** Settles or requeues all items of a batch, or returns why its tenants must be separated. */
async function writeBatch<Item, Result>(
  commits: Commits<Item, Result>,
  batch: Batch<Item, Result>,
  wait: Wait,
): Promise<'settled' | { separable: unknown }> {
  try {
    const items = batch.map(({ item }) => item);
    const results = await withDeadline(earliestDeadline(batch), () =>
      commits.write(items, lockMilliseconds[wait]),
    );
    settle(commits, batch, ({ resolve }, index) => resolve(results[index] as Result));
  } catch (error) {
    switch (chooseAfterFailure(error, wait, batch.length)) {
      case 'separate':
        return { separable: error };
      case 'requeue':
        requeue(commits, commits.queue, batch, error);
        if (commits.queue.length > 0) startFlight(commits);
        break;
      case 'reject':
        settle(commits, batch, ({ reject }) => reject(error));
        break;
      case 'write alone':
        for (const one of batch) {
          const outcome = await writeBatch(commits, [one], wait === 'patient' ? wait : 'shared');
          if (outcome !== 'settled') separate(commits, [one]);
        }
    }
  }
  return 'settled';
}

/** Rejects the items that have no time left. The others go to the front of the queue. */
function requeue<Item, Result>(
  commits: Commits<Item, Result>,
  queue: Batch<Item, Result>,
  batch: Batch<Item, Result>,
  error: unknown,
): void {
  const now = commits.clock.monotonic();
  const ended = batch.filter((one) => !hasTime(one, now));
  settle(commits, ended, ({ reject }) => reject(error));
  queue.unshift(...batch.filter((one) => hasTime(one, now)));
}

function settle<Item, Result>(
  commits: Commits<Item, Result>,
  batch: Batch<Item, Result>,
  end: (one: Queued<Item, Result>, index: number) => void,
): void {
  commits.queued -= batch.length;
  batch.forEach(end);
}

/** Gives each tenant of a batch a queue of its own, or adds to the one that it has. */
function separate<Item, Result>(commits: Commits<Item, Result>, batch: Batch<Item, Result>): void {
  const { tenantOf, tenantQueues, waiting } = commits;
  for (const [tenant, items] of Map.groupBy(batch, ({ item }) => tenantOf?.(item) ?? '')) {
    const queue = tenantQueues.get(tenant);
    if (queue) {
      queue.push(...items);
      continue;
    }
    tenantQueues.set(tenant, items);
    waiting.add(items);
    run(commits, drain(commits, tenant, items));
  }
  sweepLater(commits);
}

/** Writes the queue of a tenant until it is empty. Then the tenant shares commits again. */
async function drain<Item, Result>(
  commits: Commits<Item, Result>,
  tenant: string,
  queue: Batch<Item, Result>,
): Promise<void> {
  while (queue.length > 0) {
    const batch = queue.splice(0, commits.batchSize);
    const away = await writePatiently(commits, batch);
    if (away === null) continue;
    requeue(commits, queue, batch, away);
    await commits.clock.sleep(awayMilliseconds);
  }
  commits.tenantQueues.delete(tenant);
  commits.waiting.delete(queue);
}

/**
 * Retries with a longer wait while a row is locked. Returns the error if a Citus worker does not
 * answer.
 */
async function writePatiently<Item, Result>(
  commits: Commits<Item, Result>,
  batch: Batch<Item, Result>,
): Promise<unknown> {
  for (const wait of ['brief', 'shared', 'patient'] as const) {
    const outcome = await writeWhenPermitted(commits, batch, wait);
    if (outcome === 'settled') return null;
    if (!isLockTimeout(outcome.separable)) return outcome.separable;
  }
  return null;
}

/** Items may expire while the batch waits for a permit. If all of them do, nothing is written. */
async function writeWhenPermitted<Item, Result>(
  commits: Commits<Item, Result>,
  batch: Batch<Item, Result>,
  wait: Wait,
): Promise<'settled' | { separable: unknown }> {
  const { waiting } = commits;
  waiting.add(batch);
  const permit = wait === 'patient' ? commits.patient : commits.quick;
  return await permit(async () => {
    sweep(commits);
    waiting.delete(batch);
    return batch.length === 0 ? 'settled' : await writeBatch(commits, batch, wait);
  });
}

/** Refuses the items whose deadline passed while they waited for their turn. */
function sweep<Item, Result>(commits: Commits<Item, Result>): void {
  const now = commits.clock.monotonic();
  for (const list of commits.waiting) {
    const late = list.filter((one) => isLate(one, now));
    if (late.length === 0) continue;
    list.splice(0, list.length, ...list.filter((one) => !isLate(one, now)));
    settle(commits, late, ({ reject }) =>
      reject(new NotBegun('a write waited until its deadline')),
    );
  }
}

/** Sweeps repeatedly while something is queued. Called only when a batch is late or locked. */
function sweepLater<Item, Result>(commits: Commits<Item, Result>): void {
  if (commits.isSweeping) return;
  commits.isSweeping = true;
  commits.clock.after(sweepMilliseconds, () => {
    commits.isSweeping = false;
    sweep(commits);
    if (commits.queued > 0) sweepLater(commits);
  });
}

function run<Item, Result>({ running }: Commits<Item, Result>, work: Promise<void>): void {
  const ended = work.finally(() => running.delete(ended));
  running.add(ended);
}

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
