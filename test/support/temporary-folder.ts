import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { until } from './until.ts';

/** A folder that is removed together with everything that was started in it. */
export async function temporaryFolder(): Promise<{ path: string; remove(): Promise<void> }> {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'tranche-faults-'));
  // As root, the embedded server runs as another user, which has to reach its data.
  await fs.chmod(folder, 0o711);
  return {
    path: folder,
    async remove() {
      for (const name of await fs.readdir(folder)) await removeCluster(path.join(folder, name));
      await fs.rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };
}

/** Waits for the server of a killed sandbox to end, and removes its files outside of the folder. */
async function removeCluster(dataDir: string): Promise<void> {
  const home = await fs.realpath(path.join(dataDir, 'postgres')).catch(() => null);
  if (home === null) return;
  await until('the orphaned PostgreSQL to stop', async () => {
    const pid = await postmasterPid(dataDir);
    return pid === null || !(await isServer(pid));
  });
  await fs.rm(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}

/** The process id of a sandbox's PostgreSQL server, from its postmaster.pid. */
export async function postmasterPid(dataDir: string): Promise<number | null> {
  const file = path.join(dataDir, 'postgres/data/postmaster.pid');
  const text = await fs.readFile(file, 'utf8').catch(() => '');
  const pid = Number.parseInt(text, 10);
  return pid > 0 ? pid : null;
}

async function isServer(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // Without an init process a dead orphan keeps its id, but it has no command line.
  const commandLine = await fs.readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => null);
  return commandLine === null ? process.platform !== 'linux' : commandLine.includes('postgres');
}
