import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { pino } from 'pino';
import { startEmbeddedPostgres } from '#hosting/embedded-postgres/server.ts';
import { createDeps } from '#main.ts';
import { claimInstallation } from '#platform/database/installation.ts';
import { migrate } from '#platform/database/migrate.ts';
import { timestamp } from '#platform/shared/clock.ts';
import { onEveryNode, urlOf } from './database-server.ts';
import { copySandboxModel } from './sandbox-model.ts';
import { testConfig } from './service.ts';
import { temporaryFolder } from './temporary-folder.ts';

// A backup of a test's database. PostgreSQL's own `create database … template …` stands in for
// pg_dump and pg_restore, which the embedded distribution lacks: both give a database with the rows
// of one moment.

/** Copies a database as it is now. Its connections are closed; a pool opens new ones. */
export async function backUp(databaseUrl: string): Promise<{ url: string; drop(): Promise<void> }> {
  const source = new URL(databaseUrl).pathname.slice(1);
  const name = `test_${randomBytes(8).toString('hex')}`;
  // PostgreSQL does not copy a database that has connections.
  await onEveryNode(`alter database ${source} with allow_connections false`);
  await onEveryNode(
    `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = '${source}'`,
  );
  await onEveryNode(`create database ${name} template ${source} strategy file_copy`);
  await onEveryNode(`alter database ${source} with allow_connections true`);
  return {
    url: urlOf(name),
    drop: () => onEveryNode(`drop database if exists ${name} with (force)`),
  };
}

/**
 * Replaces a database with a copy of it, as a restore does. Connections are closed; a pool opens
 * new ones.
 */
export async function putBack(databaseUrl: string, backup: { url: string }): Promise<void> {
  const name = new URL(databaseUrl).pathname.slice(1);
  const copy = new URL(backup.url).pathname.slice(1);
  await onEveryNode(`drop database ${name} with (force)`);
  await onEveryNode(`create database ${name} template ${copy} strategy file_copy`);
}

export type Restorable = {
  url: string;
  /** Copies the data folder, as a backup of the disk would. The server stops in the meantime. */
  save(): Promise<void>;
  /** Replaces the data folder with the copy. The server stops in the meantime. */
  restore(): Promise<void>;
  stop(): Promise<void>;
};

/** Starts a separate PostgreSQL server whose data folder can be saved and restored. */
export async function startRestorable(): Promise<Restorable> {
  const folder = await temporaryFolder();
  const dataDir = path.join(folder.path, 'server');
  const log = pino({ level: 'silent' });
  await copySandboxModel(dataDir);
  let server = await startEmbeddedPostgres({ dataDir, log });
  const { url } = server;
  const deps = await createDeps(testConfig(url), log);
  await migrate(deps.database, deps);
  await claimInstallation(deps.database.db, 'sandbox', timestamp(deps.clock.now()));
  await deps.close();
  const data = path.join(await fs.realpath(path.join(dataDir, 'postgres')), 'data');
  const copy = `${data}.copy`;
  const whileStopped = async (work: () => Promise<void>) => {
    await server.stop();
    await work();
    server = await startEmbeddedPostgres({ dataDir, log });
  };
  // As root, the server runs as another user, so owners must be preserved.
  const copyTo = async (from: string, to: string) => {
    await promisify(execFile)('cp', ['-a', from, to]);
  };
  return {
    url,
    save: () =>
      whileStopped(async () => {
        await fs.rm(copy, { recursive: true, force: true });
        await copyTo(data, copy);
      }),
    restore: () =>
      whileStopped(async () => {
        await fs.rm(data, { recursive: true });
        await copyTo(copy, data);
      }),
    async stop() {
      await server.stop();
      await folder.remove();
    },
  };
}
