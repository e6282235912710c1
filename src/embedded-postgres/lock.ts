import fs from 'node:fs/promises';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Binaries,
  type Cluster,
  EmbeddedPostgresError,
  type EmbeddedPostgresLog,
  isRoot,
  messageOf,
  programIn,
  readIfPresent,
  run,
  unusable,
  writeOwned,
} from './cluster.ts';

// Who holds the data folder: the lock between those who start a server in it, and the processes
// that an earlier holder of the lock left behind.

export type Lock = { release(): Promise<void> };

const fastShutdownMilliseconds = 4_000;
const immediateShutdownMilliseconds = 2_000;
const killedMilliseconds = 5_000;

// An open database that nobody refers to would be collected, and its lock with it.
const heldLocks = new Set<DatabaseSync>();

export async function takeLock(dataDir: string): Promise<Lock> {
  const holderFile = path.join(dataDir, 'lock.holder');
  let held: DatabaseSync;
  try {
    // Root must let the server's account pass; every secret inside has a mode of its own.
    await fs.mkdir(dataDir, { recursive: true, mode: isRoot() ? 0o711 : 0o700 });
    const lockFile = path.join(dataDir, 'lock');
    await fs.writeFile(lockFile, '', { flag: 'a', mode: 0o600 });
    held = openExclusively(lockFile);
  } catch (error) {
    const busy = 5;
    if (error instanceof Error && 'errcode' in error && error.errcode === busy) {
      const holderPid = await readHolder(holderFile);
      const holder = holderPid === null ? 'another process' : `process ${holderPid}`;
      throw new EmbeddedPostgresError(
        'data_dir_in_use',
        `The data folder ${dataDir} is in use by ${holder}. Stop it first, or set DATA_DIR to another folder.`,
        { cause: error, holderPid },
      );
    }
    throw unusable(`The data folder ${dataDir} cannot be used: ${messageOf(error)}.`, error);
  }
  heldLocks.add(held);
  await fs.writeFile(holderFile, `${process.pid}\n`, { mode: 0o600 });
  return {
    async release() {
      if (!heldLocks.delete(held)) return;
      await fs.rm(holderFile, { force: true });
      held.close();
    },
  };
}

/**
 * SQLite is used for nothing but its file lock: it is the one portable lock within Node that the
 * operating system itself takes back when the holder is killed, so nothing can be stale.
 */
function openExclusively(lockFile: string): DatabaseSync {
  const database = new DatabaseSync(lockFile);
  try {
    database.exec('pragma journal_mode = off; begin exclusive');
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** The holder writes its id just after it took the lock, so a fresh one may need a moment. */
async function readHolder(holderFile: string): Promise<number | null> {
  let holder: number | null = null;
  await until(async () => {
    const pid = Number.parseInt(await readIfPresent(holderFile), 10);
    holder = pid > 0 && isAlive(pid) ? pid : null;
    return holder !== null;
  }, 500);
  return holder;
}

/** The server's own note of who runs it: the process id on line 1, its state on line 8. */
export async function readPidFile(
  cluster: Cluster,
): Promise<{ pid: number; status: string; lines: string[] }> {
  const lines = (await readIfPresent(cluster.pidFile)).split('\n');
  return { pid: Number.parseInt(lines[0] ?? '', 10) || 0, status: (lines[7] ?? '').trim(), lines };
}

/** A server that outlived its starter: the lock is ours, so it serves nobody any more. */
export async function stopOrphan(cluster: Cluster, log: EmbeddedPostgresLog): Promise<void> {
  const { pid } = await readPidFile(cluster);
  // Where nobody collects orphans its id stays taken after its end, but it no longer is a server.
  const isGone = async () => !isAlive(pid) || !(await isPostmasterOf(cluster, pid));
  if (pid === 0 || (await isGone())) return;
  log.warn({ pid }, 'Stopping the PostgreSQL server that an earlier process left running');
  await shutDown(pid, isGone, cluster.binaries);
}

/**
 * After a crash the noted process id may belong to a stranger by now (in a container it often
 * does), and PostgreSQL would take it for a running server. It accepts its own parent's id there,
 * and goes on to the check that matters: whether the noted shared memory is still in use.
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
  if (process.platform === 'win32') return true;
  try {
    const { stdout } = await run('ps', ['-ww', '-o', 'args=', '-p', String(pid)]);
    return stdout.trim().endsWith(` -D ${cluster.data}`);
  } catch {
    return false;
  }
}

/**
 * A child whose postmaster was killed in the middle of a long statement goes on until its end.
 * Nothing it does counts any more, and the log is replayed anyway, so it may be killed. Only Linux
 * shows whose it is (every child works in the cluster's folder); elsewhere we wait for it.
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

/** What Linux shows of a process: its command line and the folder that it works in. */
async function readProcess(pid: number): Promise<{ args: string[]; folder: string | null }> {
  const args = (await readIfPresent(`/proc/${pid}/cmdline`)).split('\0');
  const folder = await fs.readlink(`/proc/${pid}/cwd`).catch(() => null);
  return { args, folder };
}

/** Fast shutdown first (clients are cut off, everything is written), then harder means. */
export async function shutDown(
  pid: number,
  isGone: () => boolean | Promise<boolean>,
  binaries: Binaries,
): Promise<void> {
  if (await isGone()) return;
  if (process.platform === 'win32') {
    await run(programIn(binaries, 'pg_ctl'), ['kill', 'INT', String(pid)]).catch(() => {});
  } else {
    signalIfAlive(pid, 'SIGINT');
  }
  if (await until(isGone, fastShutdownMilliseconds)) return;
  signalIfAlive(pid, 'SIGQUIT');
  if (await until(isGone, immediateShutdownMilliseconds)) return;
  signalIfAlive(pid, 'SIGKILL');
  await until(isGone, killedMilliseconds);
}

async function until(
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
    // It ended by itself in the meantime.
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
