import fs from 'node:fs/promises';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import {
  type Cluster,
  choosePort,
  type EmbeddedPostgresLog,
  ensureCluster,
  prepareCluster,
  superuser,
  writeSettings,
} from './cluster.ts';
import { EmbeddedPostgresError } from './error.ts';
import { readIfPresent } from './files.ts';
import { launchServer, type Server } from './launch.ts';
import { type DataDirLock, lockDataDir } from './lock.ts';
import { stopOrphan } from './server-processes.ts';

export { EmbeddedPostgresError } from './error.ts';

/**
 * The PostgreSQL server that comes with a sandbox: real binaries from the registry, run as a child
 * of this process.
 *
 * What is in `dataDir`:
 *   lock, lock.holder   the lock, held by the operating system, and the id of its holder
 *   postgres.password   the superuser's password, readable by the owner only
 *   postgres.port       the port of the last start, used again if it is free
 *   postgres.log        the server's own log, without statements or their values
 *   postgres/data       the cluster; `postgres` is a link if its account cannot enter `dataDir`
 *
 * Invariants:
 *   - Only the holder of the lock touches the cluster, and the lock ends with the holder's process,
 *     however it ends. So any server that still runs after we have taken the lock is an orphan.
 *   - We never delete `postmaster.pid`. It names the shared memory by which PostgreSQL itself
 *     refuses to start beside a process of the last server.
 *   - The server does not outlive its starter. A watcher holds one end of a pipe, this process the
 *     other, and the watcher stops the server when the pipe closes. If the watcher is killed too,
 *     the next start finds the orphan and stops it.
 */
export type EmbeddedPostgres = {
  /** The URL of the database, for the superuser. A restart does not change the URL. */
  readonly url: string;
  /** The postmaster's process id. A restart changes it. */
  readonly pid: number;
  stop(): Promise<void>;
};

export type EmbeddedPostgresOptions = {
  dataDir: string;
  log: EmbeddedPostgresLog;
  /** The database that `url` names. It is created if it is missing. */
  database?: string;
  /** Server settings that add to the defaults or replace them. */
  settings?: Record<string, string>;
  onRestart?: (restart: { attempts: number; downMilliseconds: number }) => void;
  /** Called once we hold the lock, before anything is started in the folder. */
  whenLocked?: () => Promise<void>;
};

const defaultDatabase = 'tranche';
/** No network can lose the server's answer. If the answer is late, this machine is busy. */
const connectSeconds = 60;
const backoffMaxMilliseconds = 5_000;
const stableMilliseconds = 10_000;
const portAttemptsMax = 5;

const defaultSettings: Record<string, string> = {
  listen_addresses: '127.0.0.1',
  // There is no socket file: its path may be too long, and another account may not reach it.
  unix_socket_directories: '',
  max_connections: '200',
  shared_buffers: '128MB',
  max_wal_size: '1GB',
  // JIT compilation costs more than it saves on small statements.
  jit: 'off',
  max_parallel_workers_per_gather: '0',
  timezone: 'UTC',
  log_timezone: 'UTC',
  cluster_name: 'tranche',
  // `minimal` would be as safe in a crash, but rules out physical backups.
  wal_level: 'replica',
  // The client reports failed statements. In the server's log, a statement's text, its parameters
  // or the row in a DETAIL line would put secrets and shoppers' data on disk.
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
  log_parameter_max_length: '0',
  log_parameter_max_length_on_error: '0',
  log_statement: 'none',
  log_checkpoints: 'off',
  log_line_prefix: '%m [%p] ',
  logging_collector: 'off',
};

/**
 * Returns the last URL of a data folder's server, for a command that runs beside the service. Null
 * if no server was started there.
 */
export async function findEmbeddedAddress(dataDir: string): Promise<string | null> {
  const port = (await readIfPresent(path.join(dataDir, 'postgres.port'))).trim();
  const password = (await readIfPresent(path.join(dataDir, 'postgres.password'))).trim();
  return port === '' || password === '' ? null : addressOf(port, password, defaultDatabase);
}

function addressOf(port: number | string, password: string, database: string): string {
  const credentials = `${superuser}:${encodeURIComponent(password)}`;
  const name = encodeURIComponent(database);
  return `postgresql://${credentials}@127.0.0.1:${port}/${name}?connect_timeout=${connectSeconds}`;
}

export async function startEmbeddedPostgres(
  options: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres> {
  const { log, onRestart, database = defaultDatabase } = options;
  const startedAt = performance.now();
  const lock = await lockDataDir(path.resolve(options.dataDir));
  const stopping = new AbortController();
  let server: Server | null = null;
  try {
    await options.whenLocked?.();
    const cluster = await prepareCluster(await fs.realpath(options.dataDir));
    await stopOrphan(cluster, log);
    const settings = { ...defaultSettings, ...options.settings };
    const password = await ensureCluster(cluster, settings, log);
    const launched = await launchOnFreePort(cluster, settings, stopping.signal, log);
    const { port } = launched;
    server = launched.server;
    await fs.writeFile(path.join(cluster.dataDir, 'postgres.port'), `${port}\n`, { mode: 0o600 });
    await ensureDatabase(addressOf(port, password, 'postgres'), database);
    log.info(
      { port, pid: server.pid, milliseconds: Math.round(performance.now() - startedAt) },
      'PostgreSQL is ready',
    );
    const url = addressOf(port, password, database);
    return supervise(server, { url, cluster, lock, stopping, log, onRestart });
  } catch (error) {
    await server?.stop();
    await lock.release();
    throw error;
  }
}

/**
 * Another program can take the port between our check that it is free and the server's use of it.
 * The server then ends, and we choose another port.
 */
async function launchOnFreePort(
  cluster: Cluster,
  settings: Record<string, string>,
  stopping: AbortSignal,
  log: EmbeddedPostgresLog,
): Promise<{ server: Server; port: number }> {
  for (let attempt = 1; ; attempt += 1) {
    const port = await choosePort(cluster, log);
    await writeSettings(cluster, { ...settings, port: String(port) });
    try {
      return { server: await launchServer(cluster, stopping, log), port };
    } catch (error) {
      const isTaken = error instanceof EmbeddedPostgresError && error.code === 'port_taken';
      if (!isTaken || attempt === portAttemptsMax) throw error;
      log.warn({ port }, 'The port was taken before PostgreSQL could use it. Choosing another');
    }
  }
}

/** Restarts the server whenever it dies, until `stop` is called. */
function supervise(
  first: Server,
  context: {
    url: string;
    cluster: Cluster;
    lock: DataDirLock;
    stopping: AbortController;
    log: EmbeddedPostgresLog;
    onRestart: EmbeddedPostgresOptions['onRestart'];
  },
): EmbeddedPostgres {
  const { cluster, lock, stopping, log, onRestart } = context;
  let server = first;
  let failures = 0;
  let reviving: Promise<void> = Promise.resolve();
  let stopped: Promise<void> | null = null;

  const watch = () => {
    const readyAt = performance.now();
    void server.exited.then((exit) => {
      if (stopping.signal.aborted) return;
      // A server that dies as soon as it is ready must not be restarted in a tight loop.
      if (performance.now() - readyAt > stableMilliseconds) failures = 0;
      log.error(exit, 'PostgreSQL stopped unexpectedly. Starting it again');
      reviving = revive();
    });
  };

  const revive = async () => {
    const downSince = performance.now();
    for (let attempts = 1; !stopping.signal.aborted; attempts += 1) {
      try {
        const delay =
          failures === 0 ? 0 : Math.min(backoffMaxMilliseconds, 100 * 2 ** (failures - 1));
        failures += 1;
        await sleep(delay, undefined, { signal: stopping.signal });
        server = await launchServer(cluster, stopping.signal, log);
        watch();
        const downMilliseconds = Math.round(performance.now() - downSince);
        log.info({ pid: server.pid, attempts, downMilliseconds }, 'PostgreSQL is back');
        onRestart?.({ attempts, downMilliseconds });
        return;
      } catch (error) {
        if (stopping.signal.aborted) return;
        log.error({ err: error, attempts }, 'PostgreSQL could not be started again');
      }
    }
  };

  const stop = async () => {
    stopping.abort();
    await reviving;
    await server.stop();
    await lock.release();
  };

  watch();
  return {
    url: context.url,
    get pid() {
      return server.pid;
    },
    stop() {
      stopped ??= stop();
      return stopped;
    },
  };
}

async function ensureDatabase(maintenanceUrl: string, name: string): Promise<void> {
  const client = new pg.Client({ connectionString: maintenanceUrl });
  // The server may be killed at any moment, and that must not raise an unhandled event here.
  client.on('error', () => {});
  await client.connect();
  try {
    const found = await client.query('select 1 from pg_database where datname = $1', [name]);
    if (found.rowCount === 0) {
      await client.query(`create database ${client.escapeIdentifier(name)}`);
    }
  } finally {
    await client.end();
  }
}
