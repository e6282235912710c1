import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs/promises';
import type net from 'node:net';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { programIn } from './binaries.ts';
import type { Cluster, EmbeddedPostgresLog } from './cluster.ts';
import { EmbeddedPostgresError, messageOf } from './error.ts';
import { nullIfAbsent } from './files.ts';
import { serverEnvironment } from './run-program.ts';
import { clearForeignPid, killStragglers, readPidFile, shutDown } from './server-processes.ts';

// Runs the server process once, and waits until it accepts connections.

const startMilliseconds = 10 * 60_000;
const stragglerMilliseconds = 30_000;
const logFileLimitBytes = 8 * 1024 * 1024;

export type Server = {
  pid: number;
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  isGone(): boolean;
  stop(): Promise<void>;
  /** Returns the lines that the server has written to its log since it was started. */
  readLog(): Promise<string>;
};

/** Starts the server. Returns once it accepts connections. */
export async function launchServer(
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
    const output = await server.readLog();
    const waited = performance.now() - begun;
    // Children of a killed postmaster exit as soon as they notice that it is gone. Until then
    // PostgreSQL rightly refuses to start beside them.
    if (!output.includes('is still in use') || waited >= stragglerMilliseconds) {
      throw new EmbeddedPostgresError(
        output.includes('could not create any TCP/IP sockets') ? 'port_taken' : 'start_failed',
        `PostgreSQL did not start: ${output.trim().split('\n').slice(-6).join('\n') || 'it printed nothing'}`,
      );
    }
    if (waited > 500) await killStragglers(cluster, log);
    await sleep(50, undefined, { signal: stopping });
  }
}

async function spawnServer(cluster: Cluster): Promise<Server> {
  const { data, home, account, binaries } = cluster;
  const logFile = path.join(cluster.dataDir, 'postgres.log');
  const written = (await fs.stat(logFile).catch(nullIfAbsent))?.size ?? 0;
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
      // The server gets its own session, so that Ctrl-C in the terminal reaches only us, and we
      // stop the server.
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

/** Stops the server if this process ends without stopping it, for example by SIGKILL. */
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
  // Without a watcher, the next start stops the orphan.
  watcher.on('error', () => {});
  watcher.stdin?.on('error', () => {});
  watcher.unref();
  (watcher.stdin as net.Socket | null)?.unref();
  return watcher;
}

/** Returns false if the server ended, took too long, or is being stopped. */
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
