import assert from 'node:assert/strict';
import cluster, { type Worker } from 'node:cluster';
import fs from 'node:fs/promises';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { after, afterEach, before, describe, type TestContext, test } from 'node:test';
import { pino } from 'pino';
import { explainStart, settlePort } from '#cli/running.ts';
import { readConfig } from '#config.ts';
import { startService as startSupervised } from '#hosting/running/supervisor.ts';
import { type ReadyConfig, startProcess } from '#main.ts';
import { schemaLock } from '#platform/database/distribute-database.ts';
import { listMigrations } from '#platform/database/migrate.ts';
import { queueCallbacks } from '../support/callbacks.ts';
import { onDatabase } from '../support/database-server.ts';
import { type GatewayUnderTest, startGateway } from '../support/gateway.ts';
import { authorised, post, request } from '../support/http.ts';
import { loopbackAddresses, loopbackSettings } from '../support/loopback.ts';
import { gatewayEnv } from '../support/payments.ts';
import { startReceiver } from '../support/receiver.ts';
import {
  findDamage,
  kill,
  launch,
  type Program,
  type ServeReady,
  startLoad,
  startServe,
  stop,
} from '../support/sandbox-process.ts';
import {
  type Account,
  checkoutBody,
  createAccount,
  createEmptyDatabase,
  createTestDatabase,
  isLong,
  log,
  productionSettings,
  startService,
} from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const masterKey = Buffer.alloc(32, 7).toString('base64');
/** All nodes share one gateway. Otherwise each would start its own. */
let gateway: GatewayUnderTest;
const programs: Program[] = [];

before(async () => {
  gateway = await startGateway();
});
after(() => gateway.close());
const databases: { drop(): Promise<void> }[] = [];

afterEach(async () => {
  for (const program of programs.splice(0)) await kill(program);
  for (const database of databases.splice(0)) await database.drop();
});

async function emptyDatabase(): Promise<string> {
  const database = await createEmptyDatabase();
  databases.push(database);
  return database.url;
}

async function migratedDatabase(): Promise<string> {
  const database = await createTestDatabase();
  databases.push(database);
  return database.url;
}

const envFor = (databaseUrl: string) => ({
  DATABASE_URL: databaseUrl,
  MASTER_KEY: masterKey,
  ...gatewayEnv(gateway),
});

/** The settings of a node as a container gets them, with its secrets in files. */
async function withFiles(t: TestContext, databaseUrl: string): Promise<NodeJS.ProcessEnv> {
  const folder = await temporaryFolder();
  t.after(folder.remove);
  const settings: NodeJS.ProcessEnv = {};
  for (const [name, value] of Object.entries(envFor(databaseUrl))) {
    if (!/DATABASE_URL|MASTER_KEY|SECRET_KEY/.test(name) || value === '') continue;
    const file = path.join(folder.path, name);
    await fs.writeFile(file, `${value}\n`);
    Object.assign(settings, { [name]: '', [`${name}_FILE`]: file });
  }
  return settings;
}

async function serve(
  databaseUrl: string,
  args: string[] = [],
  settings: NodeJS.ProcessEnv = {},
): Promise<ServeReady> {
  const program = await startServe(args, { ...envFor(databaseUrl), ...settings });
  programs.push(program);
  return program;
}

async function account(databaseUrl: string): Promise<Account> {
  const here = await startService({ databaseUrl });
  try {
    return await createAccount(here);
  } finally {
    await here.close();
  }
}

/** The processes that answered requests, according to the log lines from `from` on. */
const answering = (program: Program, from = 0) =>
  new Set(
    program
      .lines()
      .slice(from)
      .filter(({ msg }) => msg === 'request')
      .map(({ pid }) => Number(pid)),
  );

/** Waits until two processes have answered. Each request has a connection of its own. */
async function bothAnswer(service: ServeReady, from = 0): Promise<void> {
  await until('two processes to answer', async () => {
    await request(`${service.baseUrl}/healthz`);
    return answering(service, from).size === 2;
  });
}

async function readMetrics({ metricsUrl }: ServeReady): Promise<string> {
  const { status, body } = await request(metricsUrl);
  assert.equal(status, 200);
  return String(body);
}

/** Waits until the metrics of a node say how many of its two processes answer. */
async function untilAnswering(service: ServeReady, count: number): Promise<void> {
  await until(`${count} processes to answer the supervisor`, async () => {
    const metrics = await readMetrics(service);
    assert.match(metrics, /^tranche_processes\{state="wanted"\} 2$/m);
    return metrics.includes(`tranche_processes{state="answering"} ${count}\n`);
  });
}

/** How many requests the metrics of a node count, on all routes. */
async function countRequests(service: ServeReady): Promise<number> {
  const metrics = await readMetrics(service);
  const counts = metrics.matchAll(/^tranche_http_request_seconds_count\{.*\} (\d+)$/gm);
  return [...counts].reduce((sum, [, number]) => sum + Number(number), 0);
}

/** The service at each address of `localhost`. */
const addressesOf = (baseUrl: string) =>
  loopbackAddresses.map((address) => `http://${address}:${new URL(baseUrl).port}`);

/** Asserts that the service refuses to start with these settings, and says why. */
const refused = (settings: NodeJS.ProcessEnv, message: RegExp, processes = 1) =>
  assert.rejects(async () => {
    const config = readConfig({ PORT: '0', ...settings });
    await startSupervised(config, { role: 'all', processes, log });
  }, message);

async function shareCounts(service: ServeReady, url: string): Promise<void> {
  const caller = await account(url);
  await onDatabase(url, (client) =>
    client.query(
      `update integration_limits set max_requests = 25, window_seconds = 3600
       where endpoint = 'POST /api/checkouts'`,
    ),
  );
  // Each request has its own connection, so that both processes get some of them.
  const answers = await Promise.all(
    Array.from({ length: 100 }, () =>
      post(`${service.baseUrl}/api/checkouts`, caller, checkoutBody()),
    ),
  );
  const byStatus = Map.groupBy(answers, ({ status }) => status);
  assert.equal(byStatus.get(200)?.length, 25);
  assert.equal(byStatus.get(429)?.length, 75);
  await bothAnswer(service);

  // One answer, on a separate port, has the metrics of both processes.
  const count = /^tranche_http_request_seconds_count\{.*route="\/api\/checkouts".*\} (\d+)$/gm;
  await until('the metrics of both', async () => {
    const counts = [...(await readMetrics(service)).matchAll(count)].map(([, number]) =>
      Number(number),
    );
    return counts.reduce((sum, number) => sum + number, 0) === 100;
  });
  assert.equal(new URL(service.metricsUrl).hostname, '127.0.0.1');
  assert.equal((await request(`${service.baseUrl}/metrics`)).status, 404);
  const ready = service.lines().find(({ msg }) => msg === 'the service is ready');
  assert.equal((await request(`${ready?.console_url}/api/session`)).status, 401);
}

async function replaceOne(t: TestContext, service: ServeReady, url: string): Promise<void> {
  const caller = await account(url);
  const target = { baseUrl: () => service.baseUrl, callers: [caller] };
  const load = startLoad(target, 4, isLong ? 20 : 250);
  t.after(load.stop);
  await bothAnswer(service);
  await untilAnswering(service, 2);
  const [victim] = answering(service);
  assert.ok(victim !== undefined && victim !== service.pid);
  let counted = await until('the metrics', () => countRequests(service));
  const get = () => request(`${service.baseUrl}/healthz`);
  process.kill(victim, 'SIGSTOP');
  // Each request has its own connection. They come one after the other, then all at once.
  for (let count = 0; count < 10; count += 1) assert.equal((await get()).status, 200);
  await untilAnswering(service, 1);
  const answers = Promise.all(Array.from({ length: 50 }, get));
  process.kill(victim, 'SIGKILL');
  assert.ok((await answers).every(({ status }) => status === 200));
  await until('the supervisor to replace it', () =>
    service.lines().some(({ msg, signal }) => /replaced/.test(String(msg)) && signal === 'SIGKILL'),
  );
  const from = service.lines().length;
  // The load reuses its connections, so only new connections reach the new process.
  await until('two processes to answer again', async () => {
    await get();
    // To Prometheus a sum that falls means a restart, so it would count the whole sum once more.
    const count = await countRequests(service);
    assert.ok(count >= counted, `${counted} requests, then ${count}`);
    counted = count;
    return answering(service, from).size === 2;
  });
  assert.ok(!answering(service, from).has(victim));
  await untilAnswering(service, 2);
  await load.stop();
  await until('the metrics to continue', async () => {
    await get();
    return (await countRequests(service)) > counted;
  });
  assert.deepEqual(await findDamage(url, load.attempts), []);
}

async function stopInFlight(service: ServeReady, url: string): Promise<void> {
  const caller = await account(url);
  // The caller needs a row, because an empty list is answered without reading the locked table.
  const created = await post(`${service.baseUrl}/api/checkouts`, caller, checkoutBody());
  assert.equal(created.status, 200);
  const { length } = service.lines();
  await bothAnswer(service, length);
  const pids = answering(service, length);
  await onDatabase(url, async (holder) => {
    await holder.query('begin');
    await holder.query('lock table checkouts');
    const headers = authorised(caller);
    const listings = addressesOf(service.baseUrl).map((address) =>
      request(`${address}/api/checkouts`, { headers }).then(
        ({ status }) => status,
        () => 'no answer',
      ),
    );
    await onDatabase(url, (client) =>
      until('the lists to wait', async () => {
        const { rowCount } = await client.query(
          `select from pg_stat_activity
           where datname = current_database() and wait_event_type = 'Lock'
             and query like '%order by "number" desc%'`,
        );
        return rowCount === listings.length;
      }),
    );
    const stopping = stop(service, 'SIGINT');
    const begun = performance.now();
    await until('more than two seconds', () => performance.now() - begun > 3_000);
    await holder.query('rollback');
    for (const status of await Promise.all(listings)) {
      assert.equal(status, 200, 'a request in flight gets its answer');
    }
    assert.equal((await stopping).code, 0);
  });
  for (const pid of pids) assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
  // No request was cut off and no process was killed: idle connections are not waited for.
  const lines = service.lines().slice(length);
  assert.deepEqual(
    // The next process does due work that a busy machine cut off at the stop.
    lines.filter(({ level, msg }) => level !== 30 && !/was cut off by the stop/.test(String(msg))),
    [],
  );
  assert.equal(lines.at(-1)?.msg, 'stopped');
  assert.equal(service.stderr(), '');
}

describe('several processes on one port', () => {
  test('take their secrets from files, share their counts, answer for one that hangs under load, replace it without a loss once it is killed, and answer what is in flight before they stop', async (t) => {
    const url = await migratedDatabase();
    const settings = { ...loopbackSettings, ...(await withFiles(t, url)) };
    const service = await serve(url, ['--processes', '2'], settings);
    await shareCounts(service, url);
    await replaceOne(t, service, url);
    await stopInFlight(service, url);
  });

  test('name the port that is in use on the last address of localhost', async (t) => {
    const holder = net.createServer();
    await new Promise<void>((resolve) => holder.listen(0, loopbackAddresses.at(-1), resolve));
    t.after(() => holder.close());
    const { port } = holder.address() as net.AddressInfo;
    const settings = {
      ...envFor(await migratedDatabase()),
      PORT: String(port),
      // The default ports next to this one may be in use by other tests.
      ...{ CONSOLE_PORT: '0', METRICS_PORT: '0' },
    };
    const config = await settlePort(readConfig(settings), settings);
    // This process is the supervisor. The processes that it starts inherit its environment, and
    // their output comes here.
    cluster.setupPrimary({ silent: true });
    let output = '';
    const outputs: Readable[] = [];
    const collect = ({ process: { stderr } }: Worker) => {
      assert.ok(stderr);
      outputs.push(stderr);
      stderr.on('data', (text) => {
        output += text;
      });
    };
    cluster.on('fork', collect);
    const { NODE_OPTIONS } = process.env;
    Object.assign(process.env, loopbackSettings);
    try {
      await assert.rejects(startSupervised(config, { role: 'all', processes: 2, log }), (error) => {
        assert.match(explainStart(error).message, new RegExp(`^Port ${port} is in use\\..*$`));
        return true;
      });
      assert.ok(outputs.length > 0);
      await until('all output', () => outputs.every((one) => one.closed));
      assert.equal(output, '');
    } finally {
      cluster.off('fork', collect);
      if (NODE_OPTIONS === undefined) delete process.env.NODE_OPTIONS;
      else process.env.NODE_OPTIONS = NODE_OPTIONS;
    }
  });

  test('have one line in the log for each end, also for replacements that do not start; and stop when their supervisor is gone', async (t) => {
    const ports = { PORT: '0', CONSOLE_PORT: '0', METRICS_PORT: '0' };
    const settings = { ...envFor(await migratedDatabase()), ...ports };
    const config = await settlePort(readConfig(settings), settings);
    const lines: string[] = [];
    const write = (line: string) => void lines.push(JSON.parse(line).msg);
    const log = pino({ level: 'error' }, { write });
    cluster.setupPrimary({ silent: true });
    const service = await startSupervised(config, { role: 'worker', processes: 2, log });
    t.after(service.stop);
    cluster.setupPrimary({ exec: 'missing' });
    const [victim, survivor] = Object.values(cluster.workers ?? {});
    assert.ok(victim && survivor);
    victim.process.kill('SIGKILL');
    await until('two replacements to fail', () => lines.length >= 3);
    const failed = 'a process could not be started';
    assert.deepEqual(lines.slice(0, 3), ['a process died and is replaced', failed, failed]);
    survivor.process.disconnect();
    await until('its end', () => survivor.isDead());
    assert.equal(survivor.process.exitCode, 0);
  });

  test('stop when they are told to before they serve', async (t) => {
    const { pathname: exec } = new URL('../../src/hosting/running/process.ts', import.meta.url);
    cluster.setupPrimary({ exec, args: ['web'], silent: true });
    const ports = { PORT: '0', CONSOLE_PORT: '0' };
    const env = { ...envFor(await migratedDatabase()), ...ports, RATE_LIMIT_STORE: 'postgres' };
    const worker = cluster.fork(env);
    t.after(() => worker.process.kill('SIGKILL'));
    worker.send({ graceMilliseconds: 1_000 });
    await until('its end', () => worker.isDead());
    assert.equal(worker.process.exitCode, 0);
  });

  test('refuse to count requests in memory', async () => {
    const settings = { ...envFor(await migratedDatabase()), RATE_LIMIT_STORE: 'memory' };
    await refused(settings, /RATE_LIMIT_STORE is memory/, 2);
  });
});

/** Sends bytes that need not be HTTP, and reads the answer. */
async function sendRaw(host: string, bytes: string): Promise<{ status: number; text: string }> {
  const { hostname, port } = new URL(host);
  const socket = net.connect(Number(port), hostname);
  socket.end(bytes);
  let answer = '';
  for await (const chunk of socket.setEncoding('utf8')) answer += chunk;
  const [head = '', text = ''] = answer.split('\r\n\r\n');
  return { status: Number(head.split(' ')[1]), text };
}

/**
 * Asserts that a node serves alike on both addresses of localhost, says that it stops, and goes on
 * serving for as long as it drains.
 */
async function drainEverywhere(node: ServeReady, caller: Account): Promise<void> {
  const ready = node.lines().find(({ msg }) => msg === 'the service is ready');
  const hosts = addressesOf(node.baseUrl);
  const consoles = addressesOf(String(ready?.console_url));
  for (const host of hosts) {
    const { status, text } = await sendRaw(host, 'no HTTP\r\n\r\n');
    assert.equal(status, 400);
    assert.equal(JSON.parse(text).errors[0].detail, 'The request is not valid HTTP.');
    const headers = { ...authorised(caller), expect: 'a miracle' };
    assert.equal((await request(`${host}/api/checkouts`, { headers })).status, 200);
    assert.equal((await request(`${host}/readyz`)).status, 200);
  }
  // Connections that were opened before must be closed as well.
  const agent = new http.Agent({ keepAlive: true });
  const look = async () => {
    const answers: unknown[] = [];
    for (const host of hosts) {
      const created = await post(`${host}/api/checkouts`, caller, checkoutBody(), { agent });
      answers.push([created.status, created.headers.connection]);
    }
    for (const host of consoles) {
      const { status, headers } = await request(`${host}/api/session`, { agent });
      answers.push([status, headers.connection]);
    }
    return answers;
  };
  const answersWith = (connection: string) => [
    ...hosts.map(() => [200, connection]),
    ...consoles.map(() => [401, connection]),
  ];
  assert.deepEqual(await look(), answersWith('keep-alive'));
  node.child.kill('SIGTERM');
  for (const host of hosts) {
    await until('the node to drain', async () => {
      const { status, body } = await request(`${host}/readyz`);
      return status === 503 && body.reason === 'the process is stopping';
    });
  }
  assert.deepEqual(await look(), answersWith('close'));
  agent.destroy();
}

describe('nodes on one database', () => {
  test('a worker delivers callbacks, and only its metrics have an address', async (t) => {
    const url = await migratedDatabase();
    const receiver = await startReceiver();
    t.after(receiver.close);
    const here = await startService({ databaseUrl: url });
    await queueCallbacks(here, await createAccount(here), [receiver.url]);
    await here.deps.database.pool.query('update callbacks set due_at = created_at');
    await here.close();
    const ports = { PORT: '0', CONSOLE_PORT: '0', METRICS_PORT: '0' };
    const listen = t.mock.method(net.Server.prototype, 'listen');
    const config = readConfig({ ...envFor(url), ...ports });
    const worker = await startSupervised(config, { role: 'worker', processes: 1, log });
    try {
      await until('the callback', () => receiver.received.length === 1);
      const listening = listen.mock.calls.map(
        (call) => (call.this as net.Server).address() as net.AddressInfo,
      );
      const { port } = new URL(worker.metricsUrl);
      assert.deepEqual([...new Set(listening.map((one) => String(one.port)))], [port]);
    } finally {
      await worker.stop();
    }
  });

  test('stop when they are told to while another one migrates the database', async () => {
    const url = await emptyDatabase();
    await onDatabase(url, async (other) => {
      await other.query('select pg_advisory_lock($1)', [schemaLock]);
      const node = launch(['serve'], { ...envFor(url), PORT: '0' });
      programs.push(node);
      await until('the node to wait', () =>
        node.lines().some(({ msg }) => /^another process is migrating/.test(String(msg))),
      );
      assert.equal((await stop(node)).code, 0, node.stderr());
      assert.equal(node.lines().at(-1)?.msg, 'stopped before it was ready');
    });
  });

  test('start together: one migrates, the other waits; both serve until a migration breaks this program; one serves on every address of localhost alike, and says that it stops before it does', async () => {
    const url = await emptyDatabase();
    const draining = { ...loopbackSettings, DRAIN_SECONDS: '300' };
    const nodes = await Promise.all([serve(url), serve(url, [], draining)]);
    const migrated = nodes.flatMap((node) => node.lines().filter(({ msg }) => msg === 'migrated'));
    const newest = (await listMigrations()).at(-1)?.version ?? 0;
    assert.equal(migrated.length, (await listMigrations()).length);

    const otherKey = { ...envFor(url), MASTER_KEY: Buffer.alloc(32, 8).toString('base64') };
    await refused(otherKey, /first used with another master key/);
    const caller = await account(url);
    await refused(otherKey, /sealed under another master key/);
    const production = { ...productionSettings, DATABASE_URL: url };
    await refused(production, /belongs to the sandbox environment/);

    for (const node of nodes) {
      assert.equal((await request(`${node.baseUrl}/readyz`)).status, 200);
      const created = await post(`${node.baseUrl}/api/checkouts`, caller, checkoutBody());
      assert.equal(created.status, 200);
      for (const other of nodes) {
        const where = `/api/checkouts/${created.body.data.id}`;
        const read = await request(`${other.baseUrl}${where}`, { headers: authorised(caller) });
        assert.equal(read.status, 200);
      }
    }
    const [staying, leaving] = nodes;
    assert.ok(staying && leaving);
    await drainEverywhere(leaving, caller);

    await onDatabase(url, (client) =>
      client.query("insert into schema_migrations values ($1, 'next', 'x', now(), $1)", [
        newest + 1,
      ]),
    );
    assert.equal((await request(`${staying.baseUrl}/readyz`)).status, 503);
    await refused(
      envFor(url),
      new RegExp(
        `knows migration ${newest + 1}. This one knows only migration ${newest} and older ones`,
      ),
    );
    // The migration came after a process was forked, and before it was announced.
    const settings = { PORT: '0', CONSOLE_PORT: '0', RATE_LIMIT_STORE: 'postgres' };
    const config = readConfig({ ...envFor(url), ...settings }) as ReadyConfig;
    await assert.rejects(startProcess(config, 'web', log), /Run a newer version/);
  });
});
