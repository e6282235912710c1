import cluster, { type Worker } from 'node:cluster';
import { fileURLToPath } from 'node:url';
import { listPlaintextHosts } from '#config/addresses.ts';
import type { Config, Role } from '#config.ts';
import { atTestGateway, environmentOf } from '#gateway/adapters/read-settings.ts';
import { type NamedSettings, protocols } from '#gateway/settings.ts';
import { startEmbeddedPostgres } from '#hosting/embedded-postgres/server.ts';
import { startTestGatewayProcess } from '#hosting/sandbox/test-gateway-process.ts';
import { type ReadyConfig, startProcess, stopMilliseconds } from '#main.ts';
import { openDatabase, verifyConnection } from '#platform/database/database.ts';
import { type DatabaseClock, followDatabaseClock } from '#platform/database/database-clock.ts';
import { claimInstallation, refuseOtherEnvironment } from '#platform/database/installation.ts';
import { migrate } from '#platform/database/migrate.ts';
import { isTransient } from '#platform/database/transaction.ts';
import { type Clock, systemClock, timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import { systemRandom } from '#platform/shared/random.ts';
import { checkMasterKeys, loadMasterKeys } from './master-key.ts';
import { gatherMetrics } from './process-metrics.ts';
import { serveMetrics } from './serve-metrics.ts';

export type Running = {
  config: ReadyConfig;
  metricsUrl: string;
  stop(): Promise<void>;
};

type ServiceOptions = {
  role: Role;
  processes: number;
  log: Logger;
  /**
   * Called before anything is started. With the embedded server, no other process can then be using
   * the data folder.
   */
  whenOwned?: () => Promise<void>;
  /** Resolves when the operator stops the service, perhaps before it is ready. */
  stopped?: Promise<void>;
};

/** The operator stopped the service while it was waiting for its database. */
export class StoppedEarly extends Error {}

/** The parts that have been started, each as the function that ends it. */
type Started = (() => Promise<void>)[];

/**
 * Starts the service with everything below it: a database, its migrations, and the configured
 * number of processes. `stop` ends them in reverse order. If a step fails, the parts that were
 * started end too.
 */
export async function startService(config: Config, options: ServiceOptions): Promise<Running> {
  const { role, processes, log } = options;
  const settings = listPlaintextHosts(config);
  if (settings.length > 0) {
    log.warn(
      { settings },
      'plain http from the proxy crosses a network: set TLS_CERTIFICATE and TLS_KEY',
    );
  }
  const started: Started = [];
  const stop = async () => {
    for (let end = started.pop(); end; end = started.pop()) {
      // If one part fails to stop, the others must still stop, above all the database.
      await end().catch((error) =>
        log.error({ err: error }, 'a part of the service did not stop cleanly'),
      );
    }
  };
  try {
    const ready: ReadyConfig = {
      ...config,
      databaseUrl: await startDatabase(config, options, started),
      masterKeys: await loadMasterKeys(config),
      gateways: config.gateways ?? (await startGateways(config, log, started)),
      rateLimitStore: chooseRateLimitStore(config, processes),
    };
    await unlessStopped(
      waitForDatabase(() => prepareDatabase(ready, role, log), log),
      options.stopped,
    );
    const start = processes === 1 ? startOne : startSeveral;
    const readMetrics = await start(ready, options, inFlightGrace(config), started);
    const metrics = await serveMetrics(config, readMetrics);
    started.push(metrics.close);
    return { config: ready, metricsUrl: metrics.url, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startDatabase(
  { databaseUrl, dataDir }: Config,
  { log, whenOwned }: ServiceOptions,
  started: Started,
): Promise<string> {
  if (databaseUrl !== null) {
    await whenOwned?.();
    return databaseUrl;
  }
  const server = await startEmbeddedPostgres({
    dataDir,
    log,
    ...(whenOwned && { whenLocked: whenOwned }),
  });
  started.push(() => server.stop());
  return server.url;
}

/** Starts the test gateways of a sandbox. The second one has its own port. */
async function startGateways(
  config: Config,
  log: Logger,
  started: Started,
): Promise<NamedSettings[]> {
  const { sandboxGateways, gatewayPort, secondGatewayPort } = config;
  const gateways: NamedSettings[] = [];
  for (const [index, { name, protocol, isClosed }] of sandboxGateways.entries()) {
    const gateway = await startTestGatewayProcess(
      { clock: systemClock, random: systemRandom, log },
      {
        dataDir: config.dataDir,
        port: index === 0 ? gatewayPort : secondGatewayPort,
        pageOrigin: new URL(config.baseUrl).origin,
        webhookUrl: `http://${localHost(config.host)}:${config.port}/gateway/events/${name}`,
        protocol,
        // Each protocol's gateway has its own books. A sandbox that returns to an earlier protocol
        // finds them again.
        files: protocol === protocols[0] ? 'gateway' : `gateway-${name}`,
      },
    );
    started.push(gateway.stop);
    gateways.push({
      ...{ name, protocol, environment: config.environment },
      ...(isClosed && { isClosed }),
      secretKey: gateway.secret_key,
      publicKey: gateway.publishable_key,
      webhookSecret: gateway.webhook_secret,
      ...atTestGateway(protocol, gateway.url),
    });
  }
  return gateways;
}

/** Runs the service in this process. Returns a function that reads its metrics. */
async function startOne(
  config: ReadyConfig,
  { role, log }: ServiceOptions,
  graceMilliseconds: number,
  started: Started,
): Promise<() => Promise<string>> {
  const process = await startProcess(config, role, log);
  started.push(() => process.stop(graceMilliseconds));
  return () => process.deps.metrics.registry.metrics();
}

/**
 * Runs the service in separate processes. Returns a function that reads the metrics of all of them.
 */
async function startSeveral(
  config: ReadyConfig,
  options: ServiceOptions,
  graceMilliseconds: number,
  started: Started,
): Promise<() => Promise<string>> {
  const gathered = gatherMetrics(systemClock, options.processes);
  const workers = await startProcesses(config, options, graceMilliseconds, gathered.add);
  started.push(workers.stop);
  return gathered.read;
}

/**
 * How long requests in flight may take once the service stops. A developer who stops a sandbox with
 * its own database need not wait for them.
 */
function inFlightGrace({ databaseUrl, requestDeadlineSeconds }: Config): number {
  return databaseUrl === null ? 2_000 : requestDeadlineSeconds * 1_000;
}

/** The host under which a program on this machine reaches us. */
function localHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}

/** One process may count in its own memory. Several must share their counts (decision 0007). */
function chooseRateLimitStore(config: Config, processes: number): ReadyConfig['rateLimitStore'] {
  if (config.rateLimitStore === 'memory' && processes > 1) {
    throw new Error('RATE_LIMIT_STORE is memory, which works only with a single process.');
  }
  if (config.rateLimitStore) return config.rateLimitStore;
  if (config.redisUrl !== null) return 'redis';
  return config.databaseUrl === null && processes === 1 ? 'memory' : 'postgres';
}

/**
 * Waits for the work, unless the operator stops the service first. A node may wait for minutes
 * until the database answers, and for hours until another node has migrated it. A migration that is
 * cut off leaves nothing behind.
 */
async function unlessStopped(work: Promise<void>, stopped?: Promise<void>): Promise<void> {
  const cut = stopped?.then(() => {
    throw new StoppedEarly('The service was stopped before it was ready.');
  });
  await (cut ? Promise.race([work, cut]) : work);
}

/** A node that starts during a failover waits for the new primary. */
const startGraceMilliseconds = 60_000;

async function waitForDatabase(prepare: () => Promise<void>, log: Logger): Promise<void> {
  const start = systemClock.monotonic();
  for (;;) {
    try {
      return await prepare();
    } catch (error) {
      const hasTime = systemClock.monotonic() - start < startGraceMilliseconds;
      if (!isTransient(error) || !hasTime) throw error;
      log.warn({ err: error }, 'the database does not answer yet: waiting');
      await systemClock.sleep(1_000);
    }
  }
}

/**
 * The locks of a reconciliation belong to a session, but a pooler switches sessions between
 * statements.
 */
const pooledWorker =
  'DATABASE_URL goes through a connection pooler, and the daily reconciliation needs a direct ' +
  'connection. Start this node with --role web, and workers (--role worker) with a DATABASE_URL ' +
  'that names the server itself.';

async function prepareDatabase(config: ReadyConfig, role: Role, log: Logger): Promise<void> {
  // A migration may take hours, and so may waiting for another node's migration.
  const queryTimeoutMilliseconds = 24 * 3_600_000;
  const database = openDatabase(config.databaseUrl, {
    log,
    maxConnections: 2,
    queryTimeoutMilliseconds,
  });
  let clock: DatabaseClock | null = null;
  try {
    clock = await followDatabaseClock({ database, log }, systemClock);
    const { isPooled } = await verifyConnection(database);
    if (isPooled && role !== 'web') log.warn(pooledWorker);
    await refuseOtherEnvironment(database.db, config.environment);
    await migrate(database, { clock, log });
    await claimInstallation(database.db, config.environment, timestamp(clock.now()));
    await checkMasterKeys(database.db, config);
  } finally {
    clock?.stop();
    await database.close();
  }
}

const processFile = fileURLToPath(new URL('./process.ts', import.meta.url));

/** Messages from a process to its supervisor: it is ready to serve, or it could not start. */
export const readyMessage = 'ready';
export type FailedMessage = { failed: { message: string; code?: string; port?: number } };
/** Sent by the supervisor to make a process finish its work and exit. */
export type StopMessage = { graceMilliseconds: number };

type Processes = {
  readonly env: NodeJS.ProcessEnv;
  readonly log: Logger;
  readonly clock: Clock;
  readonly whenReady: (worker: Worker) => void;
  /** The running processes. Only `fork` adds and removes them. */
  readonly live: Set<Worker>;
  /** Only `stopProcesses` sets this. Afterwards, no process is replaced. */
  isStopping: boolean;
};

async function startProcesses(
  config: ReadyConfig,
  { role, processes: count, log }: ServiceOptions,
  graceMilliseconds: number,
  whenReady: (worker: Worker) => void,
  clock: Clock = systemClock,
): Promise<{ stop(): Promise<void> }> {
  // The processes accept connections themselves. If the supervisor passed connections on, a
  // connection passed to a process that hangs or dies would be lost (decision 0134).
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  cluster.setupPrimary({ exec: processFile, args: [role] });
  const env = processEnvironment(config);
  const processes = { env, log, clock, whenReady, live: new Set<Worker>(), isStopping: false };
  const stop = () => stopProcesses(processes, config.drainSeconds * 1_000, graceMilliseconds);
  try {
    await Promise.all(Array.from({ length: count }, () => fork(processes, 0)));
  } catch (error) {
    await stop();
    throw error;
  }
  return { stop };
}

/**
 * The supervisor's decisions, as settings for a process. The process also inherits our environment,
 * which may name files with secrets (`MASTER_KEY_FILE`). A process refuses a setting that it gets
 * both ways, so the names of files are emptied.
 */
function processEnvironment(config: ReadyConfig): NodeJS.ProcessEnv {
  const [masterKey, previousKey] = config.masterKeys.map((key) => key.toString('base64'));
  const settings = {
    HOST: config.host,
    PORT: String(config.port),
    BASE_URL: config.baseUrl,
    CONSOLE_PORT: String(config.console.port),
    CONSOLE_URL: config.console.url,
    ...(config.merchantConsole !== null && {
      MERCHANT_CONSOLE_PORT: String(config.merchantConsole.port),
      MERCHANT_CONSOLE_URL: config.merchantConsole.url,
    }),
    DATABASE_URL: config.databaseUrl,
    RATE_LIMIT_STORE: config.rateLimitStore,
    MASTER_KEY: masterKey,
    ...(previousKey !== undefined && { MASTER_KEY_PREVIOUS: previousKey }),
    ...environmentOf(config.gateways),
  };
  const files = Object.keys(settings).map((name) => [`${name}_FILE`, '']);
  return { ...settings, ...Object.fromEntries(files) };
}

/**
 * Resolves when the process is ready to serve. If it dies later, it is replaced after a growing
 * pause.
 */
function fork(processes: Processes, pause: number): Promise<void> {
  const { env, log, clock, whenReady, live } = processes;
  const worker = cluster.fork(env);
  live.add(worker);
  return new Promise((resolve, reject) => {
    let served = false;
    worker.on('message', (message: typeof readyMessage | Partial<FailedMessage>) => {
      if (message === readyMessage) {
        served = true;
        whenReady(worker);
        resolve();
      } else if (message.failed) {
        const { message: text, ...about } = message.failed;
        reject(Object.assign(new Error(text), about));
      }
    });
    // A message may be sent to a process that has just been killed. Its `exit` event follows.
    worker.on('error', (error) => log.warn({ err: error }, 'a process cannot be reached'));
    worker.on('exit', (code, signal) => {
      live.delete(worker);
      if (!served) reject(new Error(`A process ended before it served (${signal ?? code}).`));
      if (processes.isStopping || (!served && pause === 0)) return;
      if (served) {
        const about = { process: worker.process.pid, code, signal };
        log.error(about, 'a process died and is replaced');
      }
      const next = served ? 100 : Math.min(pause * 2, 5_000);
      void clock
        .sleep(next)
        .then(() => (processes.isStopping ? undefined : fork(processes, next)))
        .catch((error) => log.error({ err: error }, 'a process could not be started'));
    });
  });
}

async function stopProcesses(
  processes: Processes,
  drainMilliseconds: number,
  graceMilliseconds: number,
): Promise<void> {
  const { live, clock, log } = processes;
  processes.isStopping = true;
  const ended = [...live].map(
    (worker) =>
      new Promise<void>((resolve) => {
        worker.on('exit', () => resolve());
        if (worker.isConnected()) worker.send({ graceMilliseconds } satisfies StopMessage);
      }),
  );
  const grace = new AbortController();
  const allowed = drainMilliseconds + graceMilliseconds + stopMilliseconds;
  const cutOff = clock.sleep(allowed, grace.signal).then(() => {
    if (grace.signal.aborted) return;
    for (const worker of live) {
      log.warn({ process: worker.process.pid }, 'a process did not stop in time and is killed');
      worker.process.kill('SIGKILL');
    }
  });
  await Promise.all(ended);
  grace.abort();
  await cutOff;
}
