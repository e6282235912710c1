import fs from 'node:fs/promises';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Binaries, programIn } from './binaries.ts';
import type { Cluster, EmbeddedPostgresLog } from './cluster.ts';
import { readIfPresent, writeOwned } from './files.ts';
import { runProgram } from './run-program.ts';

// Stops the processes of a cluster's server: our own, and those that an earlier holder of the lock
// left behind.

const fastShutdownMilliseconds = 4_000;
const immediateShutdownMilliseconds = 2_000;
const killedMilliseconds = 5_000;

/** The server's own file: its process id is on line 1, its state on line 8. */
export async function readPidFile(
  cluster: Cluster,
): Promise<{ pid: number; status: string; lines: string[] }> {
  const lines = (await readIfPresent(cluster.pidFile)).split('\n');
  return { pid: Number.parseInt(lines[0] ?? '', 10) || 0, status: (lines[7] ?? '').trim(), lines };
}

/** Stops a server that outlived its starter. We hold the lock, so no other process uses it. */
export async function stopOrphan(cluster: Cluster, log: EmbeddedPostgresLog): Promise<void> {
  const { pid } = await readPidFile(cluster);
  // Where no init process reaps it, a dead orphan keeps its process id, but is no longer a server.
  const isGone = async () => !isAlive(pid) || !(await isPostmasterOf(cluster, pid));
  if (pid === 0 || (await isGone())) return;
  log.warn({ pid }, 'Stopping the PostgreSQL server that an earlier process left running');
  await shutDown(pid, isGone, cluster.binaries);
}

/**
 * After a crash, the process id in the file may belong to another program (in a container it often
 * does), which PostgreSQL would mistake for a running server. PostgreSQL accepts its own parent's
 * id there, and then checks whether the shared memory in the file is still in use.
 */
export async function clearForeignPid(cluster: Cluster): Promise<void> {
  const { pid, lines } = await readPidFile(cluster);
  if (pid === 0 || pid === process.pid || !isAlive(pid)) return;
  if (await isPostmasterOf(cluster, pid)) return;
  const text = [String(process.pid), ...lines.slice(1)].join('\n');
  await writeOwned(cluster.pidFile, text, cluster.account);
}

async function isPostmasterOf(cluster: Cluster, pid: number): Promise<boolean> {
  if (process.platform === 'linux') {
    const { args, folder } = await readProcess(pid);
    return args.includes('-D') && (args.includes(cluster.data) || folder === cluster.data);
  }
  if (process.platform === 'win32') {
    // Each PostgreSQL process has a pipe for its signals. Its process id alone proves nothing,
    // because Windows soon reuses ids.
    return (await fs.readdir('\\\\.\\pipe\\')).includes(`pgsignal_${pid}`);
  }
  try {
    const { stdout } = await runProgram('ps', ['-ww', '-o', 'args=', '-p', String(pid)]);
    return stdout.trim().endsWith(` -D ${cluster.data}`);
  } catch {
    return false;
  }
}

/**
 * Kills children whose postmaster was killed in the middle of a long statement. They would run that
 * statement to its end, although its result is lost. Only Linux shows which cluster a child belongs
 * to, by its working directory. Elsewhere we wait.
 */
export async function killStragglers(cluster: Cluster, log: EmbeddedPostgresLog): Promise<void> {
  if (process.platform !== 'linux') return;
  for (const entry of await fs.readdir('/proc')) {
    const pid = Number(entry);
    if (!(pid > 0) || pid === process.pid) continue;
    const { args, folder } = await readProcess(pid);
    if (folder !== cluster.data || !args[0]?.startsWith('postgres:')) continue;
    log.warn({ pid }, 'Killing a PostgreSQL process that outlived its server');
    signalIfAlive(pid, 'SIGKILL');
  }
}

/** A process's command line and working directory, on Linux. */
async function readProcess(pid: number): Promise<{ args: string[]; folder: string | null }> {
  const args = (await readIfPresent(`/proc/${pid}/cmdline`)).split('\0');
  const folder = await fs.readlink(`/proc/${pid}/cwd`).catch(() => null);
  return { args, folder };
}

/**
 * Requests a fast shutdown first, which disconnects clients and writes everything to disk. If that
 * takes too long, requests an immediate shutdown, and then kills the server.
 */
export async function shutDown(
  pid: number,
  isGone: () => boolean | Promise<boolean>,
  binaries: Binaries,
): Promise<void> {
  if (await isGone()) return;
  if (process.platform === 'win32') {
    await runProgram(programIn(binaries, 'pg_ctl'), ['kill', 'INT', String(pid)]).catch(() => {});
  } else {
    signalIfAlive(pid, 'SIGINT');
  }
  if (await until(isGone, fastShutdownMilliseconds)) return;
  signalIfAlive(pid, 'SIGQUIT');
  if (await until(isGone, immediateShutdownMilliseconds)) return;
  signalIfAlive(pid, 'SIGKILL');
  await until(isGone, killedMilliseconds);
}

export async function until(
  condition: () => boolean | Promise<boolean>,
  milliseconds: number,
): Promise<boolean> {
  const deadline = performance.now() + milliseconds;
  while (!(await condition())) {
    if (performance.now() > deadline) return false;
    await sleep(10);
  }
  return true;
}

function signalIfAlive(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // The process has ended in the meantime.
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
