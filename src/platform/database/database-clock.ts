import type { Clock } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import type { Database } from './database.ts';
import { retryTransient } from './transaction.ts';

// Every node takes its time from the shared database (decision 0017). One node with a wrong clock
// would damage rows for all of them: creation times must not go backwards, and leases and rate
// limit windows would end at the wrong time.

/** How far this machine's clock may be from the database's. */
const skewMaxMilliseconds = 5_000;

const measureEveryMilliseconds = 10_000;
const samplesMax = 3;
/** A sample with at most this uncertainty is precise enough: no more are taken. */
const preciseMilliseconds = 1;

/**
 * A jump of this machine's clock between two measurements is at least this long. NTP corrects a
 * clock more slowly.
 */
const jumpMilliseconds = 250;

export type DatabaseClock = Clock & {
  /** Why the time cannot be trusted, for an operator. Null if it can be trusted. */
  problem(): string | null;
  /** How far this machine's clock was ahead at the last comparison. */
  skewMilliseconds(): number;
  stop(): void;
};

/**
 * The clocks differ by too much at the start. No earlier comparison gives a time that could be
 * trusted, so the process must not serve.
 */
class ClockWrong extends Error {}

/**
 * Makes a clock that shows the database's time. It compares the database's clock with this
 * machine's clock at once, and then every ten seconds.
 *
 * - If the two agree within the precision that the round trip allows, it shows this machine's time.
 * - If they differ by less than the bound, it shows the database's time.
 * - If they differ by more, one of them is wrong, and there is no way to know which. At the start
 *   this function throws. Later the clock continues counting from the last time that it trusted,
 *   and reports a problem.
 *
 * A jump of this machine's clock between two comparisons is never shown.
 */
export async function followDatabaseClock(
  deps: { database: Database; log: Logger },
  machine: Clock,
): Promise<DatabaseClock> {
  const comparison: Comparison = {
    database: deps.database,
    machine,
    stopping: new AbortController(),
    offset: 0,
    showsMachineTime: false,
    problem: null,
    skew: 0,
    measuring: null,
  };
  await retryTransient(machine, () => measure(comparison));
  const { problem, stopping } = comparison;
  if (problem !== null) {
    throw new ClockWrong(
      `${problem} Set both clocks (for example by NTP), and then start again. If rows were written ` +
        'with a wrong time, run `tranche database repair-clock`.',
    );
  }
  void keepMeasuring(comparison, deps.log);
  return {
    now: () => timeNow(comparison),
    monotonic: () => machine.monotonic(),
    sleep: (milliseconds, signal) => machine.sleep(milliseconds, signal),
    after: (milliseconds, run) => machine.after(milliseconds, run),
    problem: () => comparison.problem,
    skewMilliseconds: () => comparison.skew,
    stop: () => stopping.abort(),
  };
}

/** The two clocks, and what the last comparison found. `measure` writes it. */
type Comparison = {
  readonly database: Database;
  readonly machine: Clock;
  readonly stopping: AbortController;
  /** The machine's stopwatch (`Clock.monotonic`) plus this offset gives the time. */
  offset: number;
  showsMachineTime: boolean;
  problem: string | null;
  skew: number;
  /** The comparison in flight. Only `measureSoon` writes it. */
  measuring: Promise<void> | null;
};

async function measure(comparison: Comparison): Promise<void> {
  const { database, machine } = comparison;
  const sample = await bestSample(database, machine);
  const machineOffset = machine.now().epochMilliseconds - machine.monotonic();
  const skew = machineOffset - sample.offset;
  comparison.skew = skew;
  if (Math.abs(skew) - sample.uncertainty > skewMaxMilliseconds) {
    comparison.problem = describe(skew);
    return;
  }
  comparison.problem = null;
  comparison.showsMachineTime = Math.abs(skew) <= sample.uncertainty + 1;
  comparison.offset = comparison.showsMachineTime ? machineOffset : sample.offset;
}

function measureSoon(comparison: Comparison): Promise<void> {
  comparison.measuring ??= measure(comparison)
    // The database does not answer. The stopwatch stays accurate for long enough.
    .catch(() => {})
    .finally(() => {
      comparison.measuring = null;
    });
  return comparison.measuring;
}

async function keepMeasuring(comparison: Comparison, log: Logger): Promise<void> {
  const { machine, stopping } = comparison;
  let reported: string | null = null;
  while (!stopping.signal.aborted) {
    await machine.sleep(measureEveryMilliseconds, stopping.signal);
    if (stopping.signal.aborted) return;
    await measureSoon(comparison);
    const { problem } = comparison;
    if (problem !== null && reported === null) log.error({ problem }, 'the clocks disagree');
    if (problem === null && reported !== null) log.info({}, 'the clocks agree again');
    reported = problem;
  }
}

function timeNow(comparison: Comparison): Temporal.Instant {
  const { machine, offset, showsMachineTime, stopping } = comparison;
  const time = machine.now();
  const expected = offset + machine.monotonic();
  const isJump = Math.abs(time.epochMilliseconds - expected) > jumpMilliseconds;
  if (showsMachineTime && !isJump) return time;
  // The machine was suspended, or its clock was set. The next comparison will tell.
  if (showsMachineTime && !stopping.signal.aborted) void measureSoon(comparison);
  return Temporal.Instant.fromEpochMilliseconds(Math.round(expected));
}

function describe(skew: number): string {
  const seconds = Math.round(Math.abs(skew) / 1000);
  const direction = skew > 0 ? 'ahead of' : 'behind';
  return `The clock of this machine is ${seconds} seconds ${direction} the database's.`;
}

/**
 * The sample with the shortest round trip is the most precise. On a quiet machine one is enough.
 */
async function bestSample(
  database: Database,
  machine: Clock,
): Promise<{ offset: number; uncertainty: number }> {
  let best = { offset: 0, uncertainty: Number.POSITIVE_INFINITY };
  for (let count = 0; count < samplesMax; count += 1) {
    if (best.uncertainty <= preciseMilliseconds) break;
    const sent = machine.monotonic();
    const { rows } = await database.pool.query<{ milliseconds: number }>(
      'select (extract(epoch from clock_timestamp()) * 1000)::float8 as milliseconds',
    );
    const received = machine.monotonic();
    const uncertainty = (received - sent) / 2;
    if (uncertainty >= best.uncertainty) continue;
    best = { offset: (rows[0]?.milliseconds ?? 0) - (sent + received) / 2, uncertainty };
  }
  return best;
}
