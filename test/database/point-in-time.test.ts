import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { findViolations } from '#checks/invariants/invariants.ts';
import { openDatabase } from '#platform/database/database.ts';
import { freePorts } from '#platform/shared/free-ports.ts';
import { commandLine } from '../support/cli.ts';
import { onDatabase } from '../support/database-server.ts';
import { isLong, log } from '../support/service.ts';
import { until } from '../support/until.ts';

// The recipe of docs/operators/running.md for your own PostgreSQL: a base backup, an archive of the
// log, and a restore to a point in time.

/** The folder of the system's own PostgreSQL programs, or null. */
function findPrograms(): string | null {
  const onPath = (process.env.PATH ?? '').split(path.delimiter);
  const debian = [18, 17, 16, 15].map((major) => `/usr/lib/postgresql/${major}/bin`);
  const has = (folder: string) => spawnSync(path.join(folder, 'pg_basebackup'), ['--version']);
  const hasServer = (folder: string) => spawnSync(path.join(folder, 'postgres'), ['--version']);
  return (
    [...onPath, ...debian].find((one) => has(one).status === 0 && hasServer(one).status === 0) ??
    null
  );
}

const programs = isLong ? findPrograms() : null;
const skip = !isLong
  ? 'only in npm run test:long'
  : programs === null && 'pg_basebackup and a server of the same version are not installed';

/** The user for PostgreSQL, which refuses to run as root. */
function account(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = (option: string) =>
    Number(execFileSync('id', [option, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

test('a base backup and the archived log restore the database to a point in time', {
  skip,
}, async (t) => {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'tranche-point-'));
  const owner = account();
  if (owner.uid !== undefined) await fs.chown(folder, owner.uid, owner.gid ?? 0);
  const run = (program: string, ...args: string[]) =>
    execFileSync(path.join(programs ?? '', program), args, {
      ...owner,
      cwd: folder,
      env: { PATH: process.env.PATH, LC_ALL: 'C' },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
  const [data, base, archive] = ['data', 'base', 'archive'].map((name) => path.join(folder, name));
  assert.ok(data && base && archive);
  const [port = 0] = await freePorts(1);
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const start = () => run('pg_ctl', '-D', data, '-w', '-l', path.join(folder, 'log'), 'start');
  const stop = () => run('pg_ctl', '-D', data, '-w', '-m', 'fast', 'stop');
  t.after(async () => {
    try {
      stop();
    } catch {
      // The server is not running.
    }
    await fs.rm(folder, { recursive: true, force: true });
  });
  run('initdb', '-D', data, '-U', 'postgres', '--auth=trust', '--encoding=UTF8', '--locale=C');
  await fs.mkdir(archive);
  if (owner.uid !== undefined) await fs.chown(archive, owner.uid, owner.gid ?? 0);
  await fs.appendFile(
    path.join(data, 'postgresql.conf'),
    `port = ${port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\n` +
      `archive_mode = on\narchive_command = 'test ! -f ${archive}/%f && cp %p ${archive}/%f'\n`,
  );
  start();
  const tranche = commandLine({ DATABASE_URL: url });
  await tranche.json('database', 'migrate');
  const create = (name: string) =>
    tranche.json(
      ...['merchants', 'create', '--name', name, '--territory', 'ZA', '--rules'],
      '[{"from_amount":10000,"to_amount":99999,"terms":[1,3]}]',
    );
  const names = async () =>
    (await tranche.json('merchants', 'list')).data.map((one: { name: string }) => one.name);
  await create('In the base backup');
  run('pg_basebackup', '-d', url, '-D', base, '--checkpoint=fast', '--wal-method=stream');
  await create('In the archived log');
  const moment = await onDatabase(url, async (client) => {
    const { rows } = await client.query('select clock_timestamp()::text as at');
    return rows[0].at as string;
  });
  await create('After the moment');
  const last = await onDatabase(url, async (client) => {
    const { rows } = await client.query('select pg_walfile_name(pg_switch_wal()) as file');
    return rows[0].file as string;
  });
  await until('the log to be archived', () =>
    fs.access(path.join(archive, last)).then(
      () => true,
      () => false,
    ),
  );
  stop();

  // The disk is lost. The base backup takes its place.
  await fs.rm(data, { recursive: true });
  await fs.rename(base, data);
  await fs.appendFile(
    path.join(data, 'postgresql.conf'),
    `restore_command = 'cp ${archive}/%f %p'\nrecovery_target_time = '${moment}'\n` +
      `recovery_target_action = 'promote'\n`,
  );
  await fs.writeFile(path.join(data, 'recovery.signal'), '');
  start();
  await until('the end of the recovery', () =>
    onDatabase(url, async (client) => {
      const { rows } = await client.query('select not pg_is_in_recovery() as done');
      return rows[0].done as boolean;
    }),
  );
  assert.deepEqual(await names(), ['In the base backup', 'In the archived log']);
  const database = openDatabase(url, { log, maxConnections: 2 });
  try {
    assert.deepEqual(await findViolations(database, new Date().toISOString()), []);
  } finally {
    await database.close();
  }
  await create('After the restore');
});
