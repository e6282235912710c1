import type { Worker } from 'node:cluster';
import { AggregatorRegistry, Gauge, Registry } from 'prom-client';
import { droppedLogLines } from '#platform/http/metrics.ts';
import { sharing } from '#platform/shared/cache.ts';
import { type Clock, within } from '#platform/shared/clock.ts';

// Combines the metrics of several processes in one answer. The library's own aggregation fails
// completely if one process hangs, dies or is starting, and its sums drop when a process ends
// (decision 0103).

type Readings = { name: string; type: string }[];

const askMessage = 'metrics';
type MetricsMessage = { readings: Readings };

/** How long a scrape waits for a process. Prometheus itself gives up after ten seconds. */
const answerMilliseconds = 3_000;

/** Makes this process answer its supervisor. */
export function answerMetrics(registry: Registry): void {
  process.on('message', async (message) => {
    if (message !== askMessage) return;
    // If there is no answer, the supervisor keeps using the last one.
    const readings = await readRegistry(registry).catch(() => null);
    if (readings === null || !process.connected) return;
    process.send?.({ readings } satisfies MetricsMessage);
  });
}

/** Counters and histograms only grow, so those of a process stay valid after it has ended. */
const isLasting = ({ type }: { type: string }) => type === 'counter' || type === 'histogram';

const sum = (all: Readings[]) => AggregatorRegistry.aggregate(all);

const readRegistry = async (registry: { getMetricsAsJSON(): Promise<unknown> }) =>
  (await registry.getMetricsAsJSON()) as Readings;

/**
 * Figures of the supervisor: how many processes there are, and how many lines its own log dropped.
 */
function countProcesses(wanted: number) {
  const registry = new Registry();
  registry.registerMetric(droppedLogLines);
  const processes = new Gauge({
    name: 'tranche_processes',
    help: 'Processes of this node: wanted, and those that answer this scrape.',
    labelNames: ['state'],
    registers: [registry],
  });
  processes.set({ state: 'wanted' }, wanted);
  return {
    read(answering: number): Promise<Readings> {
      processes.set({ state: 'answering' }, answering);
      return readRegistry(registry);
    },
  };
}

export function gatherMetrics(
  clock: Clock,
  wanted: number,
): {
  /** Call it when the process has begun to answer. */
  add(worker: Worker): void;
  read(): Promise<string>;
} {
  type Process = { worker: Worker; last: Readings; settle: () => void };
  const live = new Set<Process>();
  const processes = countProcesses(wanted);
  /** The counters of processes that ended. A scrape merges them into one sum. */
  const ended: Readings[] = [];

  /** Asks a process and waits for its answer or its end. */
  async function ask(one: Process): Promise<void> {
    const settled = new Promise<void>((resolve) => {
      one.settle = resolve;
    });
    one.worker.send(askMessage, () => {});
    await within(clock, answerMilliseconds, settled);
  }

  async function read(): Promise<string> {
    const before = new Map([...live].map((one) => [one, one.last]));
    await Promise.all([...live].map(ask));
    const isFresh = (one: Process) => one.last !== before.get(one);
    // Gauges of a process that does not answer may be out of date.
    const current = [...live].map((one) => (isFresh(one) ? one.last : one.last.filter(isLasting)));
    const own = await processes.read([...live].filter(isFresh).length);
    const text = await sum([...ended, ...current, own]).metrics();
    if (ended.length > 1) {
      const count = ended.length;
      const one = await readRegistry(sum(ended));
      ended.splice(0, count, one);
    }
    return text;
  }

  return {
    add(worker) {
      const one: Process = { worker, last: [], settle: () => {} };
      live.add(one);
      worker.on('message', (message: Partial<MetricsMessage>) => {
        if (message.readings === undefined) return;
        one.last = message.readings;
        one.settle();
      });
      worker.on('exit', () => {
        live.delete(one);
        ended.push(one.last.filter(isLasting));
        one.settle();
      });
    },
    // Concurrent scrapes share one reading.
    read: sharing(read),
  };
}
