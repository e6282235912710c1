import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import fs from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { type Cluster, type EmbeddedPostgresLog, prepareCluster } from './cluster.ts';
import { EmbeddedPostgresError } from './error.ts';
import { nullIfAbsent, readIfPresent } from './files.ts';
import { lockDataDir } from './lock.ts';
import { findEmbeddedAddress, startEmbeddedPostgres } from './server.ts';
import { stopOrphan } from './server-processes.ts';

// Base backups of the embedded server. Its package has neither pg_dump nor pg_basebackup, so this
// uses the functions that PostgreSQL offers for copying the files oneself: pg_backup_start, the copy,
// pg_backup_stop, and the log that was written meanwhile. The server goes on serving.
//
// What is in a backup:
//   data            the cluster's files, with backup_label and the log that makes them consistent
//   password        the superuser's password of this cluster
//   manifest.json   when it was made, and a hash of every file; written last

export type Manifest = {
  made_at: string;
  postgres_version: string;
  bytes: number;
  files: Record<string, string>;
};

const manifestName = 'manifest.json';

/** Folders whose contents the server makes anew; the folders themselves must exist. */
const emptyFolders = new Set([
  'pg_dynshmem',
  'pg_notify',
  'pg_replslot',
  'pg_serial',
  'pg_snapshots',
  'pg_stat_tmp',
  'pg_subtrans',
  'pg_wal',
]);
const isLeftOut = (name: string) =>
  /^(postmaster\.(pid|opts)|backup_label.*|tablespace_map.*|pgsql_tmp.*|current_logfiles)$/.test(
    name,
  );

const chunkBytes = 256 * 1024;

const failed = (message: string, cause?: unknown) =>
  new EmbeddedPostgresError('backup_failed', message, { cause });

/** Copies the cluster of a data folder into a new folder, whether or not its server runs. */
export async function backUpCluster(
  dataDir: string,
  target: string,
  log: EmbeddedPostgresLog,
): Promise<Manifest> {
  const data = path.join(dataDir, 'postgres/data');
  const version = await readIfPresent(path.join(data, 'PG_VERSION')).catch((error) => {
    throw failed(`The database in ${dataDir} cannot be read: run this as its owner.`, error);
  });
  if (version === '') throw failed(`There is no embedded database in ${dataDir}.`);
  const server = await startEmbeddedPostgres({ dataDir, log }).catch((error) => {
    if (error instanceof EmbeddedPostgresError && error.code === 'data_dir_in_use') return null;
    throw error;
  });
  try {
    const url = server?.url ?? (await findEmbeddedAddress(dataDir));
    if (url === null) throw failed(`The server in ${dataDir} has not started yet.`);
    await makeNewFolder(target);
    try {
      return await copyRunning(url, await fs.realpath(data), dataDir, target);
    } catch (error) {
      await fs.rm(target, { recursive: true, force: true });
      throw error;
    }
  } finally {
    await server?.stop();
  }
}

async function makeNewFolder(folder: string): Promise<void> {
  try {
    await fs.mkdir(folder, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') throw failed(`${folder} exists. Name a folder that does not.`, error);
    if (code === 'ENOENT') throw failed(`${path.dirname(folder)} does not exist.`, error);
    throw error;
  }
}

async function copyRunning(
  url: string,
  data: string,
  dataDir: string,
  target: string,
): Promise<Manifest> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  const copy = path.join(target, 'data');
  const files: Manifest['files'] = {};
  let bytes = 0;
  const keep = async (from: string, name: string) => {
    const copied = await copyFile(from, path.join(target, name));
    if (copied === null) return;
    files[name] = copied.hash;
    bytes += copied.bytes;
  };
  try {
    const one = async (text: string, values: unknown[] = []) =>
      (await client.query(text, values)).rows[0];
    const { version, made_at } = await one(
      `select current_setting('server_version') as version, now() as made_at`,
    );
    // A slot of this session keeps the log that is written from here on.
    const slot = `tranche_backup_${randomBytes(4).toString('hex')}`;
    await one('select pg_create_physical_replication_slot($1, true, true)', [slot]);
    const { first } = await one(
      `select pg_walfile_name(pg_backup_start('tranche', fast => true)) as first`,
    );
    const names = await makeFolders(data, copy);
    await inLanes(names, (name) => keep(path.join(data, name), path.join('data', name)));
    const { last, labelfile } = await one(
      `select pg_walfile_name(lsn) as last, labelfile
       from pg_backup_stop(wait_for_archive => false)`,
    );
    const label = path.join(copy, 'backup_label');
    await fs.writeFile(label, labelfile, { mode: 0o600, flush: true });
    files['data/backup_label'] = createHash('sha256').update(labelfile).digest('hex');
    const log = (await fs.readdir(path.join(data, 'pg_wal'))).filter(
      (name) => /^[0-9A-F]{24}$/.test(name) && name >= first && name <= last,
    );
    if (!log.includes(first) || !log.includes(last)) throw failed('The log was recycled too soon.');
    await inLanes(log, (name) =>
      keep(path.join(data, 'pg_wal', name), path.join('data/pg_wal', name)),
    );
    await keep(path.join(dataDir, 'postgres.password'), 'password');
    const manifest = {
      made_at: new Date(made_at).toISOString(),
      postgres_version: version,
      bytes,
      files,
    };
    // The manifest says that everything else is on the disk.
    await fs.writeFile(path.join(target, manifestName), JSON.stringify(manifest), {
      mode: 0o600,
      flush: true,
    });
    return manifest;
  } finally {
    // This ends the backup mode and the slot, too.
    await client.end();
  }
}

/** Makes the folders of a base backup. Returns the names of the files that belong into it. */
async function makeFolders(from: string, to: string, below = ''): Promise<string[]> {
  await fs.mkdir(path.join(to, below), { mode: 0o700 });
  const names: string[] = [];
  for (const entry of await fs.readdir(path.join(from, below), { withFileTypes: true })) {
    const name = path.join(below, entry.name);
    if (isLeftOut(entry.name)) continue;
    if (entry.isFile()) names.push(name);
    if (!entry.isDirectory()) continue;
    if (emptyFolders.has(name)) await fs.mkdir(path.join(to, name), { mode: 0o700 });
    else names.push(...(await makeFolders(from, to, name)));
  }
  return names;
}

/** Several at once, because each waits for the disk. */
async function inLanes(names: string[], work: (name: string) => Promise<void>): Promise<void> {
  const left = names.values();
  const lane = async () => {
    for (const name of left) await work(name);
  };
  await Promise.all(Array.from({ length: 8 }, lane));
}

/** Copies a file to the disk. Null if the server has deleted it meanwhile: the log says so. */
async function copyFile(from: string, to: string): Promise<{ hash: string; bytes: number } | null> {
  const source = await fs.open(from).catch(nullIfAbsent);
  if (source === null) return null;
  try {
    const target = await fs.open(to, 'wx', 0o600);
    try {
      const hash = createHash('sha256');
      const chunk = Buffer.allocUnsafe(chunkBytes);
      let bytes = 0;
      for (;;) {
        const { bytesRead } = await source.read(chunk, 0, chunk.length, bytes);
        if (bytesRead === 0) break;
        hash.update(chunk.subarray(0, bytesRead));
        await target.write(chunk, 0, bytesRead, bytes);
        bytes += bytesRead;
      }
      await target.sync();
      return { hash: hash.digest('hex'), bytes };
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

async function hashOf(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}

/**
 * Puts a backup in the place of a data folder's cluster. The server must not run. The former files
 * stay beside the new ones, and come back if the server does not start on the backup.
 */
export async function restoreCluster(
  dataDir: string,
  backup: string,
  log: EmbeddedPostgresLog,
): Promise<{ manifest: Manifest; kept: string | null }> {
  const manifest = await verifyBackup(backup);
  const lock = await lockDataDir(path.resolve(dataDir));
  try {
    const cluster = await prepareCluster(await fs.realpath(dataDir));
    await stopOrphan(cluster, log);
    const [made, major] = [manifest.postgres_version, cluster.binaries.version].map(
      (version) => version.split('.')[0],
    );
    if (made !== major) {
      throw failed(`The backup is of PostgreSQL ${made}, and this is PostgreSQL ${major}.`);
    }
    return { manifest, kept: await exchange(cluster, backup, manifest) };
  } finally {
    await lock.release();
  }
}

/** Undoes a restore that did not lead to a server. */
export async function undoRestore(dataDir: string, kept: string): Promise<void> {
  const lock = await lockDataDir(path.resolve(dataDir));
  try {
    const data = path.join(path.dirname(kept), 'data');
    await fs.rm(data, { recursive: true, force: true });
    await fs.rename(path.join(kept, 'password'), path.join(dataDir, 'postgres.password'));
    await fs.rename(kept, data);
  } finally {
    await lock.release();
  }
}

async function exchange(
  cluster: Cluster,
  backup: string,
  { files }: Manifest,
): Promise<string | null> {
  const { dataDir, home, data, account } = cluster;
  const fresh = path.join(home, 'data.restored');
  await fs.rm(fresh, { recursive: true, force: true });
  await fs.cp(path.join(backup, 'data'), fresh, { recursive: true, verbatimSymlinks: true });
  const entries = await fs.readdir(fresh, { recursive: true, withFileTypes: true });
  for (const entry of entries) {
    const file = path.join(entry.parentPath, entry.name);
    const name = path.join('data', path.relative(fresh, file));
    if (!entry.isDirectory() && !(name in files)) throw failed(`${name} is not of this backup.`);
    await fs.chmod(file, entry.isDirectory() ? 0o700 : 0o600);
    if (account !== null) await fs.lchown(file, account.uid, account.gid);
  }
  await fs.chmod(fresh, 0o700);
  if (account !== null) await fs.lchown(fresh, account.uid, account.gid);
  const password = path.join(dataDir, 'postgres.password');
  let kept: string | null = null;
  if ((await fs.stat(data).catch(nullIfAbsent)) !== null) {
    kept = path.join(home, `data.before-${new Date().toISOString().replaceAll(/[:.]/g, '-')}`);
    await fs.rename(data, kept);
    await fs.rename(password, path.join(kept, 'password'));
  }
  await fs.rename(fresh, data);
  await fs.copyFile(path.join(backup, 'password'), password);
  await fs.chmod(password, 0o600);
  return kept;
}

/** Refuses a backup that is not whole. */
async function verifyBackup(backup: string): Promise<Manifest> {
  const text = await readIfPresent(path.join(backup, manifestName));
  if (text === '') throw failed(`${backup} is not a whole backup: it has no ${manifestName}.`);
  const manifest = JSON.parse(text) as Manifest;
  for (const [name, hash] of Object.entries(manifest.files)) {
    const found = await hashOf(path.join(backup, name)).catch(nullIfAbsent);
    if (found === null) throw failed(`The backup is damaged: ${name} is missing.`);
    if (found !== hash) throw failed(`The backup is damaged: ${name} was changed.`);
  }
  return manifest;
}
