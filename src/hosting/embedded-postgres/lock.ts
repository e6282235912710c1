import fs from 'node:fs/promises';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { isRoot } from './account.ts';
import { dataDirUnusable, EmbeddedPostgresError, messageOf } from './error.ts';
import { readIfPresent } from './files.ts';
import { isAlive, until } from './server-processes.ts';

// The lock on a data folder: only its holder starts a server there.

export type DataDirLock = { release(): Promise<void> };

// Keeps the open databases referenced, because a garbage-collected one would lose its lock.
const heldLocks = new Set<DatabaseSync>();

export async function lockDataDir(dataDir: string): Promise<DataDirLock> {
  const holderFile = path.join(dataDir, 'lock.holder');
  let held: DatabaseSync;
  try {
    // If we are root, the server's account must be able to enter the folder. Every secret inside
    // has its own mode.
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
    throw dataDirUnusable(`The data folder ${dataDir} cannot be used: ${messageOf(error)}.`, error);
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
 * Uses SQLite only for its file lock. This is the only portable lock in Node that the operating
 * system releases when the holder is killed, so it can never be stale.
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

/** The holder writes its id just after it takes the lock, so the id may appear a moment later. */
async function readHolder(holderFile: string): Promise<number | null> {
  let holder: number | null = null;
  await until(async () => {
    const pid = Number.parseInt(await readIfPresent(holderFile), 10);
    holder = pid > 0 && isAlive(pid) ? pid : null;
    return holder !== null;
  }, 500);
  return holder;
}
