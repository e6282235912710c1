import { execFileSync } from 'node:child_process';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { startEmbeddedPostgres } from '#hosting/embedded-postgres/server.ts';
import { openDatabase } from '#platform/database/database.ts';
import { migrate } from '#platform/database/migrate.ts';
import { systemClock } from '#platform/shared/clock.ts';
import { onDatabase, serverUrl } from './database-server.ts';
import { log } from './service.ts';

// A data folder with a migrated cluster, which is made once per run. Making one takes a sandbox
// longer than the rest of its start.

const model = path.join(os.tmpdir(), 'sandbox-model');

/** Gives a sandbox that has not started yet a copy of the model as its data folder. */
export async function copySandboxModel(dataDir: string): Promise<void> {
  await onDatabase(serverUrl, async (client) => {
    // When two files start together, one makes the model and the other waits.
    await client.query('select pg_advisory_lock(hashtext($1))', [model]);
    const isMade = await fs.stat(model).catch(() => null);
    if (isMade === null) await makeModel();
  });
  const cluster = await fs.lstat(path.join(model, 'postgres'));
  // As root the cluster may be in another folder behind a link, and copying the link would not copy
  // the cluster. Then the sandbox makes its own.
  if (!cluster.isSymbolicLink()) execFileSync('cp', ['-a', model, dataDir]);
}

async function makeModel(): Promise<void> {
  const making = `${model}.new`;
  const server = await startEmbeddedPostgres({ dataDir: making, log, settings: { fsync: 'off' } });
  try {
    const database = openDatabase(server.url, { log, maxConnections: 2 });
    await migrate(database, { clock: systemClock, log });
    await database.close();
    // Tests kill programs, not the machine, and what a program has written survives that.
    await onDatabase(server.url, (client) => client.query('alter system set fsync = off'));
  } finally {
    await server.stop();
  }
  for (const name of ['postgres.port', 'postgres.log', 'lock', 'lock.holder']) {
    await fs.rm(path.join(making, name), { force: true });
  }
  await fs.rename(making, model);
}
