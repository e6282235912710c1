import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { type Clock, within } from '#platform/shared/clock.ts';

type Unit = 'rows' | 'seconds' | 'cents';

/** The sources of the figures that are read for each scrape. */
export type MetricSources = {
  clock: Clock;
  listTableBytes(): Promise<{ table: string; bytes: number }[]>;
  /** The age of the oldest due row of each kind of due work. */
  listDueAges(): Promise<{ work: string; seconds: number }[]>;
  /** Today's sums over all merchants, from the rollups. */
  readToday(): Promise<{ measure: string; unit: Unit; value: number }[]>;
  /** Rows that wait for an operator, and the time since the books were last checked. */
  readStates(): Promise<{ state: string; unit: Unit; value: number }[]>;
  connections(): Record<'open' | 'idle' | 'wanted', number>;
  clockSkewMilliseconds(): number;
};

export type Metrics = {
  registry: Registry;
  observeRequest(method: string, route: string, status: number, milliseconds: number): void;
  observeGateway(gateway: string, operation: string, outcome: string, milliseconds: number): void;
  observeBatch(commit: string, items: number): void;
  countDeliveries(outcome: 'delivered' | 'failed', attempts: number): void;
  countCollection(kind: string, outcome: string): void;
  countMail(outcome: string): void;
  countUnknownOutcome(): void;
  countSecurityEvent(event: string): void;
};

/**
 * How long figures from the database are reused: several scrapers must not multiply the queries.
 */
const reuseMilliseconds = 10_000;

/**
 * How long a scrape waits for the database. The other metrics matter most while it does not answer.
 */
const readMilliseconds = 1_000;

/** How long the last figures are shown while new ones cannot be read. After that none are shown. */
const staleMilliseconds = 60_000;

/** Counted for this process, which has one log. */
export const droppedLogLines = new Counter({
  name: 'tranche_log_lines_dropped_total',
  help: 'Log lines that could not be written, or for which the reader was too slow.',
  registers: [],
});

/**
 * Node's own figures. Each call of `collectDefaultMetrics` starts a timer that never ends, so all
 * registries share the figures of one call.
 */
let node: Registry | null = null;
function collectNode(): Registry {
  if (node === null) {
    node = new Registry();
    collectDefaultMetrics({ register: node });
    node.registerMetric(droppedLogLines);
  }
  return node;
}

export function createMetrics(sources: MetricSources): Metrics {
  const registry = Registry.merge([collectNode()]);
  const events = createEventMetrics(registry);
  addDatabaseGauges(registry, sources);
  addProcessGauges(registry, sources);
  return {
    registry,
    observeRequest(method, route, status, milliseconds) {
      events.requests.observe({ method, route, status: String(status) }, milliseconds / 1000);
    },
    observeGateway(gateway, operation, outcome, milliseconds) {
      events.gatewayCalls.observe({ gateway, operation, outcome }, milliseconds / 1000);
    },
    countDeliveries(outcome, attempts) {
      events.deliveries.inc({ outcome }, attempts);
    },
    countCollection(kind, outcome) {
      events.collections.inc({ kind, outcome });
    },
    countMail(outcome) {
      events.mails.inc({ outcome });
    },
    countUnknownOutcome() {
      events.unknownOutcomes.inc();
    },
    countSecurityEvent(event) {
      events.securityEvents.inc({ event });
    },
    observeBatch(commit, items) {
      events.batches.observe({ commit }, items);
    },
  };
}

/** Events of this process, counted when they happen. */
function createEventMetrics(registry: Registry) {
  const registers = [registry];
  return {
    requests: new Histogram({
      name: 'tranche_http_request_seconds',
      help: 'Time to answer a request, by method, route and status.',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
      registers,
    }),
    gatewayCalls: new Histogram({
      name: 'tranche_gateway_call_seconds',
      help: 'Time of a call to the card gateway, by gateway, operation and outcome.',
      labelNames: ['gateway', 'operation', 'outcome'],
      buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers,
    }),
    deliveries: new Counter({
      name: 'tranche_callback_attempts_total',
      help: 'Attempts to deliver a callback, by outcome.',
      labelNames: ['outcome'],
      registers,
    }),
    collections: new Counter({
      name: 'tranche_collections_total',
      help: 'Attempts to collect a payment of a plan, by kind (capture, charge) and outcome.',
      labelNames: ['kind', 'outcome'],
      registers,
    }),
    mails: new Counter({
      name: 'tranche_messages_total',
      help: 'Attempts to send a mail (to shoppers, merchants and people), by outcome.',
      labelNames: ['outcome'],
      registers,
    }),
    // This counter has no labels, so it begins at zero, and the first event shows as an increase.
    unknownOutcomes: new Counter({
      name: 'tranche_http_unknown_outcomes_total',
      help: 'Connections closed without an answer, because the request changed something or may have.',
      registers,
    }),
    securityEvents: new Counter({
      name: 'tranche_security_events_total',
      help: 'Sign-ins and permissions refused at the console and authentications refused by the API, by event.',
      labelNames: ['event'],
      registers,
    }),
    batches: new Histogram({
      name: 'tranche_commit_batch_items',
      help: 'How many items share one commit.',
      labelNames: ['commit'],
      buckets: [1, 2, 5, 10, 20, 50, 100, 200],
      registers,
    }),
  };
}

function addDatabaseGauges(registry: Registry, sources: MetricSources): void {
  const reading = createReadings(registry, sources.clock);
  const sizes = reading('table_bytes', sources.listTableBytes);
  addShared(registry, {
    name: 'tranche_table_bytes',
    help: 'Size of a table with its indexes.',
    label: 'table',
    rows: async () => (await sizes()).map(({ table, bytes }) => ({ table, value: bytes })),
  });
  const ages = reading('due_ages', sources.listDueAges);
  addShared(registry, {
    name: 'tranche_due_oldest_seconds',
    help: 'How long the oldest due row has been due, by kind of due work.',
    label: 'work',
    rows: async () => (await ages()).map(({ work, seconds }) => ({ work, value: seconds })),
  });
  // One metric for each unit, from one reading.
  const today = reading('today', sources.readToday);
  const states = reading('states', sources.readStates);
  for (const unit of ['rows', 'cents'] as const) {
    addShared(registry, {
      name: `tranche_today_${unit}`,
      help: `Sums over all merchants for the current local day, in ${unit}. About two minutes late.`,
      label: 'measure',
      rows: async () => (await today()).filter((row) => row.unit === unit),
    });
  }
  for (const unit of ['rows', 'seconds', 'cents'] as const) {
    addShared(registry, {
      name: `tranche_state_${unit}`,
      help: `What waits, and the time since the last check of the books, in ${unit}.`,
      label: 'state',
      rows: async () => (await states()).filter((row) => row.unit === unit),
    });
  }
}

/** Adds the metrics about the readings themselves. Returns a function that adds a reading. */
function createReadings(registry: Registry, clock: Clock) {
  const registers = [registry];
  const failures = new Counter({
    name: 'tranche_metric_readings_failed_total',
    help: 'Failed readings of the database for the metrics, by reading.',
    labelNames: ['reading'],
    registers,
  });
  const readings = new Map<string, BriefReading<unknown>>();
  new Gauge({
    name: 'tranche_metric_reading_age_seconds',
    help: 'How long ago the figures from the database were read, by reading.',
    labelNames: ['reading'],
    registers,
    aggregator: 'max',
    async collect() {
      await Promise.all([...readings.values()].map(({ rows }) => rows()));
      for (const [name, { ageMilliseconds }] of readings) {
        const age = ageMilliseconds();
        if (age !== null) this.set({ reading: name }, age / 1000);
      }
    },
  });
  return <Row>(name: string, read: () => Promise<Row[]>): (() => Promise<Row[]>) => {
    // Begin at zero, so that the first failure shows as an increase.
    failures.inc({ reading: name }, 0);
    const brief = readBriefly(clock, read, () => failures.inc({ reading: name }));
    readings.set(name, brief);
    return brief.rows;
  };
}

/**
 * Adds a gauge that is read from the database. Every process reports the same value, so do not sum
 * over processes.
 */
function addShared<Row extends { value: number }>(
  registry: Registry,
  gauge: {
    name: string;
    help: string;
    label: keyof Row & string;
    rows: () => Promise<Row[]>;
  },
): void {
  const { name, help, label } = gauge;
  new Gauge({
    name,
    help,
    labelNames: [label],
    registers: [registry],
    aggregator: 'max',
    async collect() {
      const read = await gauge.rows();
      this.reset();
      for (const row of read) {
        this.set({ [label]: String(row[label]) } as Record<typeof label, string>, row.value);
      }
    },
  });
}

function addProcessGauges(registry: Registry, sources: MetricSources): void {
  const registers = [registry];
  new Gauge({
    name: 'tranche_database_connections',
    help: "Connections of this node's pools: open, idle, and wanted by waiting statements.",
    labelNames: ['state'],
    registers,
    collect() {
      for (const [state, count] of Object.entries(sources.connections())) {
        this.set({ state }, count);
      }
    },
  });
  new Gauge({
    name: 'tranche_clock_skew_seconds',
    help: "How far this machine's clock is ahead of the database's.",
    registers,
    aggregator: 'max',
    collect() {
      this.set(sources.clockSkewMilliseconds() / 1000);
    },
  });
}

type BriefReading<Row> = {
  rows(): Promise<Row[]>;
  /** The age of the last rows. Null if there are no rows yet. */
  ageMilliseconds(): number | null;
};

/**
 * Reads rows for a scrape. Only one reading is in flight at a time, so it holds at most one
 * connection of the pool while the database hangs. A scrape that comes in the meantime gets the
 * last rows.
 */
function readBriefly<Row>(
  clock: Clock,
  read: () => Promise<Row[]>,
  countFailure: () => void,
): BriefReading<Row> {
  let last: { at: number; rows: Row[] } | null = null;
  let begun: { at: number; isDone: boolean; done: Promise<void> } | null = null;

  function begin(at: number) {
    const one = { at, isDone: false, done: Promise.resolve() };
    one.done = read()
      .then(
        (rows) => {
          last = { at, rows };
        },
        () => countFailure(),
      )
      .finally(() => {
        one.isDone = true;
      });
    return one;
  }

  return {
    async rows() {
      const now = clock.monotonic();
      if (begun === null || (begun.isDone && now - begun.at > reuseMilliseconds)) {
        begun = begin(now);
      }
      if (!begun.isDone) await within(clock, readMilliseconds, begun.done);
      return last !== null && now - last.at <= staleMilliseconds ? last.rows : [];
    },
    ageMilliseconds: () => last && clock.monotonic() - last.at,
  };
}
