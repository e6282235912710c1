import { readFileSync } from 'node:fs';
import pg from 'pg';
import { has, listScripts, load, run, writeScript } from './load.ts';
import { serverMilliseconds } from './processor-time.ts';
import { type Account, createAccount, serve, signedCheckout, startDatabase } from './service.ts';
import { startStripeMock } from './stripe-mock.ts';

const connections = 64;

/**
 * V8 still compiles during the first tens of thousands of requests of a process. A process in
 * production serves for days, so this time is not measured.
 */
const warmingSeconds = 12;

export type CreateResult = {
  bare: number;
  bareTool: string;
  service: number;
  processes: number;
  p50: number;
  p99: number;
  /** Our ratio of p99 to p50, divided by that of the bare inserts in the same round. */
  tail: number;
  bareTail: number;
  memory: number;
  failures: number;
  /**
   * Our rate divided by that of stripe-mock's payment intents in the same round, if it is
   * installed.
   */
  toStripeMock: number | null;
  /** Processor time of one create, and of the database for one bare insert, in microseconds. */
  cost: { service: number; database: number; bare: number };
};

/**
 * Compares checkouts created over HTTP (signed, authenticated, counted, validated, committed with
 * fsync) with the same row inserted by a bare client, alternately on the same server.
 */
export async function benchCreate(
  options: { seconds: number; processes: number; rounds: number },
  progress: (text: string) => void,
): Promise<CreateResult> {
  const { server, deps, stop } = await startDatabase();
  try {
    const account = await createAccount(deps);
    const insertion = await bareInsertion(server.url, account);
    const service = await serve(server.url, options.processes);
    const stripeMock = await startStripeMock();
    try {
      const request = signedCheckout(account, service.url);
      progress('create: warming up');
      await load(request, { connections, seconds: warmingSeconds });
      await insertion.run(1);
      const bare: Bare[] = [];
      const served: Awaited<ReturnType<typeof load>>[] = [];
      const toMock: number[] = [];
      const sending = { connections, seconds: options.seconds };
      const costs: CreateResult['cost'][] = [];
      const database = () => serverMilliseconds(server.pid, []);
      for (let round = 1; round <= options.rounds; round += 1) {
        progress(`create: round ${round} of ${options.rounds}, bare inserts`);
        const before = database();
        const inserted = await insertion.run(options.seconds);
        bare.push(inserted);
        const between = { service: service.processorTime(), database: database() };
        progress(`create: round ${round} of ${options.rounds}, over HTTP`);
        const made = await load(request, sending);
        served.push(made);
        const each = (milliseconds: number, { perSecond }: { perSecond: number }) =>
          (1_000 * milliseconds) / (perSecond * options.seconds);
        costs.push({
          service: each(service.processorTime() - between.service, made),
          database: each(database() - between.database, made),
          bare: each(between.database - before, inserted),
        });
        if (!stripeMock) continue;
        progress(`create: round ${round} of ${options.rounds}, stripe-mock`);
        const { perSecond } = await load(stripeMock.request, sending);
        toMock.push(made.perSecond / perSecond);
      }
      return {
        bare: median(bare.map((one) => one.perSecond)),
        bareTool: insertion.tool,
        service: median(served.map((one) => one.perSecond)),
        processes: options.processes,
        p50: median(served.map((one) => one.p50)),
        p99: median(served.map((one) => one.p99)),
        tail: median(
          served.map((one, round) => one.p99 / one.p50 / tailOf(bare[round] ?? noInserts)),
        ),
        bareTail: median(bare.map(tailOf)),
        memory: Math.max(...service.memory()),
        failures: served.reduce((sum, one) => sum + one.failures, 0),
        toStripeMock: stripeMock ? median(toMock) : null,
        cost: {
          service: median(costs.map((cost) => cost.service)),
          database: median(costs.map((cost) => cost.database)),
          bare: median(costs.map((cost) => cost.bare)),
        },
      };
    } finally {
      stripeMock?.stop();
      await service.stop();
    }
  } finally {
    await stop();
  }
}

type Bare = { perSecond: number; p50: number; p99: number };
const noInserts: Bare = { perSecond: 0, p50: 1, p99: 1 };
const tailOf = ({ p50, p99 }: Bare) => p99 / p50;

function percentilesOf(milliseconds: number[]): { p50: number; p99: number } {
  const sorted = milliseconds.toSorted((a, b) => a - b);
  const at = (part: number) => sorted[Math.floor(sorted.length * part)] ?? 0;
  return { p50: at(0.5), p99: at(0.99) };
}

export function median(values: number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

const columns = `merchant_id, id, number, integration_id, status, amount, currency,
  client_reference_id, notify_url, success_url, cancel_url, customer, line_items, terms, signed,
  created_at, expires_at`;

/**
 * Inserts one row per transaction with a prepared statement, from as many clients as the load over
 * HTTP has.
 */
async function bareInsertion(
  url: string,
  account: Account,
): Promise<{ tool: string; run(seconds: number): Promise<Bare> }> {
  const { checkout } = JSON.parse(signedCheckout(account, '').body);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  // These numbers are higher than any that the service will assign.
  await client.query('create sequence bench_numbers start 1000000000');
  await client.end();
  const literal = (value: unknown) =>
    `'${(typeof value === 'string' ? value : JSON.stringify(value)).replaceAll("'", "''")}'`;
  const statement = `insert into checkouts (${columns}) values (${literal(account.merchant.id)},
    gen_random_uuid(), nextval('bench_numbers'), ${literal(account.id)}, 'received',
    ${checkout.amount}, 'ZAR', ${literal(checkout.client_reference_id)},
    ${literal(checkout.notify_url)}, ${literal(checkout.success_url)},
    ${literal(checkout.cancel_url)}, ${literal(checkout.customer)},
    ${literal(checkout.line_items)}, '{1,3,6,12}', true, now(), now() + interval '30 minutes')`;
  if (!has('pgbench')) {
    return { tool: 'pg client', run: (seconds) => insertWithClients(url, statement, seconds) };
  }
  const script = writeScript('insert.sql', `${statement.replaceAll(/\s+/g, ' ')};\n`);
  return {
    tool: 'pgbench',
    async run(seconds) {
      // pgbench writes one file per thread and one line per transaction: client, number,
      // microseconds, and more.
      const log = writeScript('log', '');
      const stdout = await run('pgbench', [
        ...['-n', '-M', 'prepared', '-c', String(connections), '-j', '2'],
        ...['-T', String(seconds), '-l', '--log-prefix', log, '-f', script, url],
      ]);
      const times = listScripts(`${log}.`).flatMap((file) =>
        readFileSync(file, 'utf8')
          .split('\n')
          .slice(0, -1)
          .map((line) => Number(line.split(' ')[2]) / 1_000),
      );
      return { perSecond: Number(/tps = ([\d.]+)/.exec(stdout)?.[1]), ...percentilesOf(times) };
    },
  };
}

async function insertWithClients(url: string, text: string, seconds: number): Promise<Bare> {
  const clients = await Promise.all(
    Array.from({ length: connections }, async () => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      return client;
    }),
  );
  const start = performance.now();
  const times: number[] = [];
  await Promise.all(
    clients.map(async (client) => {
      while (performance.now() - start < seconds * 1000) {
        const begun = performance.now();
        await client.query({ name: 'insert', text });
        times.push(performance.now() - begun);
      }
    }),
  );
  const elapsed = (performance.now() - start) / 1000;
  await Promise.all(clients.map((client) => client.end()));
  return { perSecond: times.length / elapsed, ...percentilesOf(times) };
}
