import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { type Database, openDatabase } from '#platform/database/database.ts';
import { listMigrations, type Migration, migrate } from '#platform/database/migrate.ts';
import { announceNode } from '#platform/database/nodes.ts';
import { systemClock } from '#platform/shared/clock.ts';
import { systemRandom } from '#platform/shared/random.ts';
import { createEmptyDatabase, log } from '../support/service.ts';
import { until } from '../support/until.ts';

let database: Database;
let drop: () => Promise<void>;
let folder: string;
let known: Migration[];
before(async () => {
  const created = await createEmptyDatabase();
  drop = created.drop;
  database = openDatabase(created.url, { log, maxConnections: 6 });
  folder = await mkdtemp(join(tmpdir(), 'tranche-migrations-'));
  known = await listMigrations();
  await migrate(database, deps);
});
after(async () => {
  await database.close();
  await drop();
  await rm(folder, { recursive: true });
});

const deps = { clock: systemClock, log, random: systemRandom };

/** Adds a migration after those that were added before. */
async function add(text: string): Promise<Migration> {
  const version = (known.at(-1)?.version ?? 0) + 1;
  const name = `${String(version).padStart(4, '0')}_test.sql`;
  const file = join(folder, name);
  await writeFile(file, text);
  const migration = { version, name, file: pathToFileURL(file) };
  known.push(migration);
  return migration;
}

async function isApplied({ version }: Migration): Promise<boolean> {
  const { rowCount } = await database.pool.query(
    'select from schema_migrations where version = $1',
    [version],
  );
  return rowCount === 1;
}

test('a migration behind a backup lets requests pass, and is applied when the backup ends', async () => {
  const migration = await add('alter table checkouts add column test_note text;');
  const backup = await database.pool.connect();
  await backup.query('begin');
  await backup.query('lock table checkouts in access share mode');
  const migrated = migrate(database, deps, known);
  const isWaiting = async () => {
    const { rowCount } = await database.pool.query(
      `select from pg_locks where relation = 'checkouts'::regclass and not granted`,
    );
    return rowCount !== 0;
  };
  await until('the migration waits for the table', isWaiting);
  // The statement waits only until the migration gives up, not until the backup ends.
  await database.pool.query('select from checkouts');
  assert.equal(await isApplied(migration), false);
  await backup.query('commit');
  backup.release();
  await migrated;
  assert.equal(await isApplied(migration), true);
});

describe('the guards of history behind a backup', () => {
  const addIndex = (name: string) =>
    add(`-- concurrently\ncreate index concurrently if not exists ${name} on nodes (id);`);

  /** Runs `work` while a backup reads the attempts. */
  async function duringBackup(work: () => Promise<void>): Promise<void> {
    const backup = await database.pool.connect();
    try {
      await backup.query('begin');
      await backup.query('lock table callback_attempts in access share mode');
      await work();
    } finally {
      backup.release(true);
    }
  }

  test('a migration leaves the guards that are right, and does not wait', async () => {
    const migration = await addIndex('test_nodes_first');
    const list = async () => {
      const { rows } = await database.pool.query(
        `select tgname, oid, xmin from pg_trigger where tgname like '%guard' order by 1`,
      );
      return rows;
    };
    const before = await list();
    assert.ok(before.length > 10);
    await duringBackup(async () => {
      await migrate(database, deps, known);
    });
    assert.equal(await isApplied(migration), true);
    assert.deepEqual(await list(), before);
  });

  test('a migration that has to replace one lets writes pass until the backup ends', async () => {
    const migration = await addIndex('test_nodes_second');
    await database.pool.query(
      'drop trigger callback_attempts_delete_guard on callback_attempts; drop trigger postings_update_guard on postings',
    );
    await database.pool.query(`create trigger callback_attempts_delete_guard
      before delete on callback_attempts for each row execute function refuse_change()`);
    let migrated: Promise<number> | undefined;
    await duringBackup(async () => {
      migrated = migrate(database, deps, known);
      await until('the migration waits for the table', async () => {
        const { rowCount } = await database.pool.query(
          `select from pg_locks where relation = 'callback_attempts'::regclass and not granted`,
        );
        return rowCount !== 0;
      });
      await database.pool.query('insert into postings select * from postings where false');
      assert.equal(await isApplied(migration), false);
    });
    await migrated;
    assert.equal(await isApplied(migration), true);
    const { rows } = await database.pool.query(
      `select tgname, tgdeferrable from pg_trigger
       where tgname in ('callback_attempts_delete_guard', 'postings_update_guard') order by 1`,
    );
    assert.deepEqual(rows, [
      { tgname: 'callback_attempts_delete_guard', tgdeferrable: true },
      { tgname: 'postings_update_guard', tgdeferrable: false },
    ]);
  });
});

test('a migration that was edited after it was applied is refused by its name', async () => {
  const migration = await add('-- Nothing.\nselect 1;');
  await migrate(database, deps, known);
  await writeFile(migration.file, '-- Nothing at all.\nselect 1;');
  await assert.rejects(
    migrate(database, deps, known),
    new RegExp(`The migration ${migration.name} was changed after`),
  );
  await writeFile(migration.file, '-- Nothing.\nselect 1;');
});

test('a migration that fails changes nothing, and those before it stay', async () => {
  const first = await add('create table test_first (id integer);');
  const broken = await add('create table test_second (id integer);\nselect 1 / 0;');
  await assert.rejects(migrate(database, deps, known), /division by zero/);
  assert.deepEqual([await isApplied(first), await isApplied(broken)], [true, false]);
  const { rows } = await database.pool.query(`select to_regclass('test_second') as found`);
  assert.equal(rows[0].found, null);
  known.pop();
});

test('an index is built while others write, also after a build that was interrupted', async () => {
  const migration = await add(
    '-- concurrently\ncreate index concurrently if not exists test_index on test_first (id);',
  );
  await database.pool.query('insert into test_first values (1), (1)');
  // A unique index over equal values cannot be completed, and stays behind like an interrupted one.
  await assert.rejects(
    database.pool.query('create unique index concurrently test_index on test_first (id)'),
  );
  await migrate(database, deps, known);
  assert.equal(await isApplied(migration), true);
  const { rows } = await database.pool.query(
    `select indisvalid, indisunique from pg_index where indexrelid = 'test_index'::regclass`,
  );
  assert.deepEqual(rows, [{ indisvalid: true, indisunique: false }]);
});

test('a migration that breaks older programs waits until none of them runs', async () => {
  const newest = known.at(-1)?.version ?? 0;
  const older = await announceNode({ ...deps, database }, newest - 1);
  const current = await announceNode({ ...deps, database }, newest);
  const contract = await add(
    `-- contract ${String(newest).padStart(4, '0')}\ndrop table test_first;`,
  );
  await assert.rejects(
    migrate(database, deps, known),
    new RegExp(`some still run: process ${process.pid} on .* \\(migration ${newest - 1}\\)`),
  );
  assert.equal(await isApplied(contract), false);
  await older.stop();
  await migrate(database, deps, known);
  assert.equal(await isApplied(contract), true);
  await current.stop();
});

test('a migration that breaks older programs refuses if one is announced while it runs', async () => {
  const newest = known.at(-1)?.version ?? 0;
  await add('create table test_third (id integer);');
  await migrate(database, deps, known);
  const contract = await add(
    `-- contract ${String(newest).padStart(4, '0')}\ndrop table test_third;`,
  );
  const reader = await database.pool.connect();
  await reader.query('begin');
  await reader.query('select from test_third');
  const migrated = assert.rejects(migrate(database, deps, known), /some still run: process/);
  await until('the migration waits for the table', async () => {
    const { rowCount } = await database.pool.query(
      `select from pg_locks where relation = 'test_third'::regclass and not granted`,
    );
    return rowCount !== 0;
  });
  const older = await announceNode({ ...deps, database }, newest - 1);
  await reader.query('commit');
  reader.release();
  await migrated;
  assert.equal(await isApplied(contract), false);
  await older.stop();
  await migrate(database, deps, known);
  assert.equal(await isApplied(contract), true);
});
