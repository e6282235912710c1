import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '#hosting/embedded-postgres/server.ts';
import { readProcessorSeconds } from './processor-time.ts';

/**
 * A folder in memory, if this machine has enough to spare. The tests clone and drop hundreds of
 * databases and start servers and sandboxes with their own, and creating and deleting files on a
 * disk takes long.
 */
export function findMemory(): string | null {
  const memory = '/dev/shm';
  if (process.platform !== 'linux' || !fs.existsSync(memory)) return null;
  const { bavail, bsize } = fs.statfsSync(memory);
  const spareBytes = Math.min(bavail * bsize, process.availableMemory());
  if (spareBytes < 6 * 2 ** 30) return null;
  const made = fs.mkdtempSync(path.join(memory, 'tranche-test-'));
  fs.chmodSync(made, 0o711);
  return made;
}

/** Whether a program can be started from a folder. Some systems forbid it for folders in memory. */
export function runsPrograms(folder: string): boolean {
  const program = path.join(folder, 'program');
  fs.writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 });
  const { status } = spawnSync(program);
  fs.rmSync(program);
  return status === 0;
}

/**
 * Starts the PostgreSQL server of a test run in this folder. Tests reach it through a socket file,
 * which takes a third off a statement's processor time.
 */
export async function startServer(
  databases: string,
): Promise<Pick<EmbeddedPostgres, 'url' | 'stop'>> {
  const sockets = makeSocketFolder(databases);
  const report = (fields: object, message: string) =>
    process.stderr.write(`${message} ${JSON.stringify(fields)}\n`);
  const started = await startEmbeddedPostgres({
    dataDir: path.join(databases, 'data'),
    database: 'postgres',
    log: { info: () => {}, warn: report, error: report },
    // This server is deleted after the run, so it need not survive a power cut. Tests of crashes
    // start their own servers.
    settings: {
      fsync: 'off',
      synchronous_commit: 'off',
      full_page_writes: 'off',
      max_wal_size: '256MB',
      // Autovacuum would go through hundreds of databases, most of which live for seconds. A test
      // with many rows analyses its tables itself, and has the same plans in every run.
      autovacuum: 'off',
      unix_socket_directories: sockets ?? '',
      // The tables of a test are so small that a statement takes longer to plan than to run. A
      // connection plans each named statement once. By default it would plan the first five runs
      // for their own values.
      plan_cache_mode: 'force_generic_plan',
    },
  });
  // By default a client computes 4,096 hashes to sign in, and the tests open thousands of
  // connections.
  const client = new pg.Client({ connectionString: started.url });
  await client.connect();
  const { username, password } = new URL(started.url);
  await client.query('set scram_iterations = 1');
  await client.query(`alter role ${username} password '${decodeURIComponent(password)}'`);
  await client.end();
  if (sockets === null) return started;
  const url = new URL(started.url);
  url.searchParams.set('host', sockets);
  return { url: url.href, stop: () => started.stop() };
}

/**
 * Returns null where no socket file can be used: on Windows, and if its path would be longer than
 * about a hundred characters.
 */
function makeSocketFolder(databases: string): string | null {
  const folder = path.join(databases, 'sockets');
  if (process.platform === 'win32' || folder.length > 80) return null;
  fs.mkdirSync(folder);
  // If we are root, the server runs as another user, who must be able to create its socket here.
  fs.chmodSync(folder, 0o777);
  return folder;
}

/** Starts a server for a program that runs tests on its own. */
export async function startTestServer(): Promise<{
  url: string;
  /** Stops the server. Returns the processor time of this program and of the server. */
  stop(): Promise<number>;
}> {
  const folder = findMemory() ?? fs.mkdtempSync(path.join(os.tmpdir(), 'tranche-test-'));
  fs.chmodSync(folder, 0o711);
  const server = await startServer(folder);
  return {
    url: server.url,
    async stop() {
      await server.stop();
      fs.rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
      return readProcessorSeconds();
    },
  };
}
