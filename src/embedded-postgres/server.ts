import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs/promises';
import type net from 'node:net';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import {
  absent,
  type Cluster,
  choosePort,
  EmbeddedPostgresError,
  type EmbeddedPostgresLog,
  makeCluster,
  messageOf,
  prepareCluster,
  programIn,
  readIfPresent,
  serverEnvironment,
  superuser,
  writeSettings,
} from './cluster.ts';
import {
  clearForeignPid,
  killStragglers,
  type Lock,
  readPidFile,
  shutDown,
  stopOrphan,
  takeLock,
} from './lock.ts';

export { EmbeddedPostgresError } from './cluster.ts';

/**
 * The PostgreSQL server that a sandbox brings along: real binaries from the registry, run as a
 * child of this process.
 *
 * What is in `dataDir`:
 *   lock, lock.holder   who uses the folder; the lock itself is held by the operating system
 *   postgres.password   the superuser's password, readable by the owner only
 *   postgres.port       the port of the last start, taken again while it is free
 *   postgres.log        the server's own log; it never contains statements or their values
 *   postgres/data       the cluster; `postgres` is a link when `dataDir` is closed to its account
 *
 * Invariants:
 *   - Only the holder of the lock touches the cluster, and the lock ends with its process, however
 *     that ends. So whatever still runs on the cluster after the lock was taken is an orphan.
 *   - `postmaster.pid` is never deleted by us: it names the shared memory by which PostgreSQL
 *     itself refuses to start beside a straggler of the last server.
 *   - The server does not outlive its starter: a watcher holds a pipe whose other end only this
 *     process has, and asks the server to stop when the pipe closes. Should the watcher be killed
 *     too, the next start finds the orphan and stops it.
 */
export type EmbeddedPostgres = {
  /** A superuser's address of the database; stays the same when the server is restarted. */
  readonly url: string;
  /** The postmaster's process id; changes when the server is restarted. */
  readonly pid: number;
  stop(): Promise<void>;
};

export type EmbeddedPostgresOptions = {
  dataDir: string;
  log: EmbeddedPostgresLog;
  /** The database that `url` names; created when it is missing. */
  database?: string;
  /** Server settings that replace or join the ones below. */
  settings?: Record<string, string>;
  onRestart?: (restart: { attempts: number; downMilliseconds: number }) => void;
  /** Called when the folder is ours, before anything is started in it. */
  whenLocked?: () => Promise<void>;
};

const defaultDatabase = 'tranche';
const startMilliseconds = 10 * 60_000;
const stragglerMilliseconds = 30_000;
const longestBackoffMilliseconds = 5_000;
const stableMilliseconds = 10_000;
const logFileLimitBytes = 8 * 1024 * 1024;

const defaultSettings: Record<string, string> = {
  listen_addresses: '127.0.0.1',
  // No socket file: its path may be too long, and another account could not reach it.
  unix_socket_directories: '',
  max_connections: '200',
  shared_buffers: '128MB',
  max_wal_size: '1GB',
  // Every statement is small and the cores are few.
  jit: 'off',
  max_parallel_workers_per_gather: '0',
  timezone: 'UTC',
  log_timezone: 'UTC',
  cluster_name: 'tranche',
  // `minimal` would be as safe in a crash but would rule out physical backups.
  wal_level: 'replica',
  // A failed statement is the client's to report. In the server's log its text, its parameters
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

/** Where the server of a data folder was last reached, for a command that runs beside it. */
export async function findEmbeddedAddress(dataDir: string): Promise<string | null> {
  const port = (await readIfPresent(path.join(dataDir, 'postgres.port'))).trim();
  const password = (await readIfPresent(path.join(dataDir, 'postgres.password'))).trim();
  return port === '' || password === '' ? null : addressOf(port, password, defaultDatabase);
}

function addressOf(port: number | string, password: string, database: string): string {
  const credentials = `${superuser}:${encodeURIComponent(password)}`;
  return `postgresql://${credentials}@127.0.0.1:${port}/${encodeURIComponent(database)}`;
}

export async function startEmbeddedPostgres(
  options: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres> {
  const { log, onRestart, database = defaultDatabase } = options;
  const startedAt = performance.now();
  const lock = await takeLock(path.resolve(options.dataDir));
  const stopping = new AbortController();
  let server: Server | null = null;
  try {
    await options.whenLocked?.();
    const cluster = await prepareCluster(await fs.realpath(options.dataDir));
    await stopOrphan(cluster, log);
    const settings = { ...defaultSettings, ...options.settings };
    const password = await makeCluster(cluster, settings, log);
    const port = await choosePort(cluster, log);
    await writeSettings(cluster, { ...settings, port: String(port) });
    server = await launch(cluster, stopping.signal, log);
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

/** Starts the server again whenever it dies, until `stop` is called. */
function supervise(
  first: Server,
  context: {
    url: string;
    cluster: Cluster;
    lock: Lock;
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
      log.error(exit, 'PostgreSQL stopped by itself; starting it again');
      reviving = revive();
    });
  };

  const revive = async () => {
    const downSince = performance.now();
    for (let attempts = 1; !stopping.signal.aborted; attempts += 1) {
      try {
        const delay =
          failures === 0 ? 0 : Math.min(longestBackoffMilliseconds, 100 * 2 ** (failures - 1));
        failures += 1;
        await sleep(delay, undefined, { signal: stopping.signal });
        server = await launch(cluster, stopping.signal, log);
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
  // The server may be killed at any moment; that must not become an unhandled event here.
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

type Server = {
  pid: number;
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  isGone(): boolean;
  stop(): Promise<void>;
  /** What the server has written to its log since it was started. */
  readLog(): Promise<string>;
};

/** Starts the server and returns when it accepts connections. */
async function launch(
  cluster: Cluster,
  stopping: AbortSignal,
  log: EmbeddedPostgresLog,
): Promise<Server> {
  const begun = performance.now();
  for (;;) {
    await clearForeignPid(cluster);
    const server = await spawnServer(cluster);
    if (await becomesReady(server, cluster, stopping, log)) return server;
    await server.stop();
    stopping.throwIfAborted();
    const said = await server.readLog();
    const waited = performance.now() - begun;
    // The children of a postmaster that was killed leave as soon as they notice, and PostgreSQL
    // rightly refuses to start beside them.
    if (!said.includes('is still in use') || waited >= stragglerMilliseconds) {
      throw new EmbeddedPostgresError(
        'start_failed',
        `PostgreSQL did not start: ${said.trim().split('\n').slice(-6).join('\n') || 'it said nothing'}`,
      );
    }
    if (waited > 500) await killStragglers(cluster, log);
    await sleep(50, undefined, { signal: stopping });
  }
}

async function spawnServer(cluster: Cluster): Promise<Server> {
  const { data, home, account, binaries } = cluster;
  const logFile = path.join(cluster.dataDir, 'postgres.log');
  const written = (await fs.stat(logFile).catch(absent))?.size ?? 0;
  if (written > logFileLimitBytes) await fs.rename(logFile, `${logFile}.old`);
  const output = await fs.open(logFile, 'a', 0o600);
  const from = (await output.stat()).size;
  let child: ChildProcess;
  let exited: Server['exited'];
  try {
    child = spawn(programIn(binaries, 'postgres'), ['-D', data], {
      cwd: home,
      env: serverEnvironment,
      stdio: ['ignore', output.fd, output.fd],
      // A session of its own: Ctrl-C in the terminal is for us, and we stop the server in order.
      detached: true,
      ...account,
    });
    exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => resolve({ code, signal }));
    });
    await once(child, 'spawn');
  } catch (error) {
    throw new EmbeddedPostgresError(
      'start_failed',
      `PostgreSQL could not be run: ${messageOf(error)}`,
      { cause: error },
    );
  } finally {
    await output.close();
  }
  child.unref();
  const pid = child.pid as number;
  const watcher = watchOver(cluster, pid);
  void exited.then(() => watcher?.kill('SIGKILL'));
  const isGone = () => child.exitCode !== null || child.signalCode !== null;
  return {
    pid,
    exited,
    isGone,
    stop: () => shutDown(pid, isGone, binaries),
    async readLog() {
      const text = await fs.readFile(logFile);
      return text.subarray(from).toString('utf8');
    },
  };
}

/** Stops the server when this process ends without having done so, SIGKILL included. */
function watchOver(cluster: Cluster, pid: number): ChildProcess | null {
  if (process.platform === 'win32') return null;
  const script = 'read -r _; [ "$(head -n 1 "$1")" = "$2" ] && kill -INT "$2"';
  const watcher = spawn('/bin/sh', ['-c', script, 'tranche-watch', cluster.pidFile, String(pid)], {
    cwd: cluster.home,
    env: serverEnvironment,
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
    ...cluster.account,
  });
  // Without a watcher the next start stops the orphan.
  watcher.on('error', () => {});
  watcher.stdin?.on('error', () => {});
  watcher.unref();
  (watcher.stdin as net.Socket | null)?.unref();
  return watcher;
}

/** False when the server ended, took too long, or is no longer wanted. */
async function becomesReady(
  server: Server,
  cluster: Cluster,
  stopping: AbortSignal,
  log: EmbeddedPostgresLog,
): Promise<boolean> {
  const begun = performance.now();
  let reported = begun;
  while (performance.now() - begun < startMilliseconds) {
    if (server.isGone() || stopping.aborted) return false;
    const { pid, status } = await readPidFile(cluster);
    if (pid === server.pid && status === 'ready') return true;
    if (performance.now() - reported > 5_000) {
      reported = performance.now();
      log.info({ seconds: Math.round((reported - begun) / 1000) }, 'PostgreSQL is recovering');
    }
    await sleep(10);
  }
  return false;
}
