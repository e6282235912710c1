import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { freePorts } from '#platform/shared/free-ports.ts';
import type { GatewayUnderTest } from '../support/gateway.ts';
import type { Receiver } from '../support/receiver.ts';
import { tranche } from '../support/sandbox-process.ts';
import type { Child, Children } from './children.ts';
import { signalAll } from './events.ts';
import { figuresOf, findFailures, pauseOf, type Row, report } from './figures.ts';
import { type Call, type Paid, refundAtOnce, startLoad } from './load.ts';
import { createMerchant, payCheckouts, type TestMerchant } from './merchants.ts';
import type { Parts } from './parts.ts';
import { childrenOf, eventually } from './servers.ts';
import { type Service, startNodes } from './service.ts';
import { findDamage } from './verdict.ts';

// A coordinator of Citus and two workers, one of which dies and returns under load.

const coordinator = 0;
const workers = [1, 2];
const awayMilliseconds = 20_000;

/** The deadline of a request. A crashed Citus worker replays its log before it answers again. */
const deadlineSeconds = '40';

/**
 * The merchants of one Citus worker notice the loss of the other, but do not wait for its return.
 */
const othersPauseSecondsMax = 10;

type Servers = {
  url: string;
  /** Sends SIGKILL to all processes of a server. */
  kill(server: number): Promise<void>;
  /** Ends a server as an administrator does. */
  stop(server: number): Promise<void>;
  start(server: number): Promise<void>;
  /** The server with the rows of a merchant or an integration. */
  serverOf(table: 'checkouts' | 'idempotency_keys', id: string): Promise<number>;
  /** Transactions on Citus workers that are neither committed nor rolled back. */
  countPrepared(): Promise<number>;
  casualties(): string[];
};

type Event = {
  name: string;
  run(servers: Servers): Promise<void>;
};

export const citusEvents: Event[] = [
  {
    name: 'Citus worker killed',
    async run(servers) {
      await servers.kill(1);
      await sleep(awayMilliseconds);
      await servers.start(1);
    },
  },
  {
    name: 'Citus coordinator restart',
    async run(servers) {
      await servers.stop(coordinator);
      await servers.start(coordinator);
    },
  },
  {
    name: 'Citus coordinator killed',
    async run(servers) {
      await servers.kill(coordinator);
      await sleep(5_000);
      await servers.start(coordinator);
    },
  },
];

export async function playCitus(
  parts: Parts,
  children: Children,
  options: {
    events: Event[];
    rate: number;
    shoppers: number;
    env: NodeJS.ProcessEnv;
    gateway: GatewayUnderTest;
    receiver: Receiver;
    say(line: string): void;
  },
): Promise<string[]> {
  const { events, gateway, receiver, say } = options;
  const env = { ...options.env, REQUEST_DEADLINE_SECONDS: deadlineSeconds };
  const damage: string[] = [];
  say(`Starting Citus in ${children.folder}.`);
  const servers = await startServers(parts, children);
  const databaseEnv = { ...env, DATABASE_URL: servers.url };
  await tranche(['database', 'migrate'], databaseEnv);
  await tranche(['database', 'distribute'], databaseEnv);
  const databaseUrls = [servers.url, servers.url];
  const service = await startNodes(parts, children, { databaseUrls, env });
  const commandEnv = { ...databaseEnv, BASE_URL: service.url };
  const { merchants, others } = await placeMerchants(commandEnv, servers);
  const target = { url: service.url, gateway, receiver };
  const paid = await payCheckouts(commandEnv, merchants, target);
  const crowded = paid.pop() as Paid;

  const rows: Row[] = [];
  const load = startLoad({
    ...target,
    callers: merchants.map(({ caller }) => caller),
    rate: options.rate,
    shoppers: options.shoppers,
    refunds: { rate: 2, of: paid },
  });
  const isOther = ({ integration }: Call) => others.has(integration);
  const measure = async (name: string, work: () => Promise<void>) => {
    const from = load.calls.length;
    const begun = performance.now();
    await work();
    await sleep(5_000);
    const ended = performance.now();
    const row = { name, calls: load.calls.slice(from), pause: pauseOf(load.calls, begun, ended) };
    rows.push(row);
    const { failed, slowest } = figuresOf(row, []);
    const others = pauseOf(load.calls.filter(isOther), begun, ended);
    say(
      `${name}: ${failed.length} failed, paused ${row.pause.toFixed(1)} s (merchants on the second ` +
        `worker ${others.toFixed(1)} s), slowest ${slowest} s`,
    );
    if (others > othersPauseSecondsMax) {
      damage.push(`${name}: merchants on the second worker waited ${others.toFixed(1)} s`);
    }
  };
  try {
    await measure('Citus, no event', () => sleep(10_000));
    for (const event of events) await measure(event.name, () => event.run(servers));
  } finally {
    await load.stop();
  }
  damage.push(...(await tryManyRefunds(service, crowded, say)));
  await eventually('Citus to finish prepared transactions', async () => {
    return (await servers.countPrepared()) === 0;
  }).catch(async () => {
    damage.push(`${await servers.countPrepared()} transactions stay prepared on the workers`);
  });
  for (const name of [...servers.casualties(), ...service.casualties()]) {
    damage.push(`${name} has ended and needs a restart`);
  }
  damage.push(...(await findDamage(commandEnv, load, { gateway, receiver })));
  for (const row of rows) damage.push(...findFailures(row, []));
  for (const line of report(rows, [], load.calls)) say(line);
  return damage;
}

async function startServers(parts: Parts, children: Children): Promise<Servers> {
  const { folder } = children;
  const isRoot = process.getuid?.() === 0;
  if (isRoot) spawnSync('chown', ['postgres', folder]);
  const asUser = isRoot
    ? [parts.setpriv ?? '', '--reuid=postgres', '--regid=postgres', '--clear-groups']
    : [];
  const ports = await freePorts(1 + workers.length);
  const processes: Child[] = [];
  const urlOf = (server: number, database = 'tranche') =>
    `postgres://postgres@127.0.0.1:${ports[server]}/${database}`;

  const launch = (server: number) => {
    const settings = {
      port: ports[server],
      listen_addresses: '127.0.0.1',
      unix_socket_directories: folder,
      shared_preload_libraries: 'citus',
      shared_buffers: '64MB',
      max_connections: 200,
      max_prepared_transactions: 200,
      'citus.node_conninfo': 'sslmode=disable',
      // Processes are killed here, not machines: what they wrote is not lost.
      fsync: 'off',
      // A transaction that a worker prepared before it died keeps its locks until Citus finishes
      // it.
      'citus.recover_2pc_interval': '2s',
    };
    const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const data = path.join(folder, `data-${server}`);
    processes[server] = children.start(
      `server-${server}`,
      [...asUser, path.join(parts.postgres, 'postgres'), '-D', data, ...args],
      { HOME: folder },
    );
  };
  const answers = (server: number) => ask(urlOf(server, 'postgres'), 'select 1');
  const end = async (server: number, signal: 'SIGKILL' | 'SIGINT') => {
    const postmaster = processes[server] as Child;
    const pids = signal === 'SIGKILL' ? childrenOf(postmaster.pid) : [];
    signalAll([postmaster.pid, ...pids], signal);
    await postmaster.exited;
  };

  for (const server of ports.keys()) {
    const flags = ['-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync'];
    const [program = '', ...args] = [...asUser, path.join(parts.postgres, 'initdb')];
    const data = ['-D', path.join(folder, `data-${server}`)];
    const made = spawnSync(program, [...args, ...data, ...flags], { encoding: 'utf8' });
    if (made.status !== 0) throw new Error(made.stderr);
    launch(server);
  }
  for (const server of ports.keys()) {
    await eventually('a server', () => answers(server));
    await ask(urlOf(server, 'postgres'), 'create database tranche');
    await ask(urlOf(server), 'create extension citus');
  }
  const url = urlOf(coordinator);
  await ask(url, 'alter database tranche set citus.shard_count = 8');
  await ask(url, `select citus_set_coordinator_host('127.0.0.1', ${ports[coordinator]})`);
  for (const worker of workers) {
    await ask(url, `select citus_add_node('127.0.0.1', ${ports[worker]})`);
  }
  return {
    url,
    kill: (server) => end(server, 'SIGKILL'),
    stop: (server) => end(server, 'SIGINT'),
    async start(server) {
      launch(server);
      await eventually(`server ${server}`, () => answers(server));
    },
    async serverOf(table, id) {
      const [row] = await ask(
        url,
        `select nodeport as port from citus_shards
         where shardid = get_shard_id_for_distribution_column('${table}', '${id}'::uuid)`,
      );
      return ports.indexOf(Number(row?.port));
    },
    async countPrepared() {
      const all = await Promise.all(
        [coordinator, ...workers].map((server) => ask(urlOf(server), 'table pg_prepared_xacts')),
      );
      return all.flat().length;
    },
    casualties: () => processes.filter((one) => one.hasExited()).map(({ name }) => name),
  };
}

/**
 * Creates merchants until each worker has one. The answers that idempotency keys replay are stored
 * on the worker of the integration, so each merchant gets an integration on its own worker.
 */
async function placeMerchants(
  env: NodeJS.ProcessEnv,
  servers: Servers,
): Promise<{ merchants: TestMerchant[]; others: Set<string> }> {
  const merchants: TestMerchant[] = [];
  const homes = new Map<string, number>();
  const isDone = () => workers.every((worker) => [...homes.values()].includes(worker));
  for (let count = 1; merchants.length < 3 || !isDone(); count += 1) {
    let home = -1;
    const fits = async (id: string, integration: string) => {
      home = await servers.serverOf('checkouts', id);
      return home === (await servers.serverOf('idempotency_keys', integration));
    };
    const merchant = await createMerchant(env, `Merchant ${count}`, { fits });
    merchants.push(merchant);
    homes.set(merchant.caller.id, home);
  }
  const others = [...homes].filter(([, server]) => server === 2).map(([id]) => id);
  return { merchants, others: new Set(others) };
}

/**
 * Requests two hundred refunds of one checkout at once. They queue, and the last ones find nothing
 * left.
 */
async function tryManyRefunds(
  service: Service,
  paid: Paid,
  say: (line: string) => void,
): Promise<string[]> {
  const begun = performance.now();
  // Requests go to each node directly, because how long the last ones wait depends on the machine.
  const half = { count: 100, amount: 1_000 };
  const answers = (
    await Promise.all(service.nodes.map(({ url }) => refundAtOnce(url, paid, half)))
  ).flat();
  const seconds = ((performance.now() - begun) / 1_000).toFixed(1);
  const counts = [...Map.groupBy(answers, ({ status }) => status)].map(
    ([status, all]) => `${all.length} × ${status}`,
  );
  say(`200 refunds of one checkout at once: ${counts.join(', ')} in ${seconds} s.`);
  const isRefusal = ({ status, body }: { status: number; body: unknown }) =>
    status === 422 && /exceeds the refundable remainder/.test(JSON.stringify(body));
  const created = answers.filter(({ status }) => status === 200).length;
  const wrong = answers.filter((answer) => answer.status !== 200 && !isRefusal(answer));
  return [
    ...(created === 150 ? [] : [`150 refunds of R 10,00 fit into R 1 500,00, not ${created}`]),
    ...wrong.slice(0, 3).map(({ status, body }) => `refund: ${status} ${JSON.stringify(body)}`),
  ];
}

async function ask(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(statement)).rows;
  } finally {
    await client.end();
  }
}
