import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { openDatabase } from '#platform/database/database.ts';
import { distributeDatabase, distribution } from '#platform/database/distribute-database.ts';
import { claimInstallation } from '#platform/database/installation.ts';
import { listMigrations, migrate } from '#platform/database/migrate.ts';
import { systemClock } from '#platform/shared/clock.ts';
import { commandLine, unknownId } from '../support/cli.ts';
import { findNodes, onDatabase } from '../support/database-server.ts';
import {
  commandSettings,
  createEmptyCluster,
  createEmptyDatabase,
  createTestDatabase,
  log,
} from '../support/service.ts';

const { hasCitus } = await findNodes();

async function withEmptyDatabase(work: (url: string) => Promise<void>): Promise<void> {
  const { url, drop } = await createEmptyDatabase();
  try {
    await work(url);
  } finally {
    await drop();
  }
}

/** A migrated database that is not distributed, even on a Citus server. */
async function withPlainDatabase(work: (url: string) => Promise<void>): Promise<void> {
  await withEmptyDatabase(async (url) => {
    const database = openDatabase(url, { log, maxConnections: 2 });
    await migrate(database, { clock: systemClock, log });
    await database.close();
    await work(url);
  });
}

async function withMigratedDatabase(work: (url: string) => Promise<void>): Promise<void> {
  const { url, drop } = await createTestDatabase();
  try {
    await work(url);
  } finally {
    await drop();
  }
}

test('every command refuses an empty database until it is migrated', async () => {
  await withEmptyDatabase(async (url) => {
    const tranche = commandLine({ DATABASE_URL: url });
    await tranche.refused(1, /Run `tranche database migrate`/, 'merchants', 'list');
    await tranche.refused(1, /Run `tranche database migrate`/, 'database', 'distribute');
    const migrated = await tranche.json('database', 'migrate');
    assert.deepEqual(Object.keys(migrated), ['version', 'environment']);
    assert.equal(migrated.environment, 'sandbox');
    assert.deepEqual(await tranche.json('database', 'migrate'), migrated);
    assert.deepEqual(await tranche.json('merchants', 'list'), { data: [], next: null });
  });
});

test('a newer database is used, unless it says that it needs a newer program', async () => {
  await withMigratedDatabase(async (url) => {
    const query = (text: string) => onDatabase(url, (client) => client.query(text));
    const tranche = commandLine({ DATABASE_URL: url });
    await query(
      `insert into schema_migrations (version, name, hash, applied_at)
       values (9999, '9999_future.sql', 'x', '2030-01-01Z')`,
    );
    assert.deepEqual(await tranche.json('merchants', 'list'), { data: [], next: null });
    await query('update schema_migrations set oldest_program = 9999 where version = 9999');
    await tranche.refused(1, /the newer version/, 'merchants', 'list');
    await tranche.refused(1, /Run a newer version/, 'database', 'migrate');
  });
});

test('a database belongs to the environment that first used it, and refuses the other', async () => {
  await withMigratedDatabase(async (url) => {
    const production = {
      ...commandSettings,
      DATABASE_URL: url,
      STRIPE_SECRET_KEY: '',
      STRIPE_PUBLISHABLE_KEY: '',
    };
    await commandLine(production).json('merchants', 'list');
    const wrong = /belongs to the production environment, and TRANCHE_ENV is sandbox/;
    const sandbox = commandLine({ DATABASE_URL: url });
    await sandbox.refused(1, wrong, 'merchants', 'list');
    await sandbox.refused(1, wrong, 'database', 'migrate');
    const rules = '[{"from_amount":1000,"to_amount":2000,"terms":[1]}]';
    await sandbox.refused(1, wrong, 'merchants', 'create', '--name', 'A', '--rules', rules);

    const tranche = commandLine(production);
    const { id } = await tranche.json('merchants', 'create', '--name', 'A', '--rules', rules);
    const issued = await tranche.json('integrations', 'create', '--merchant', id);
    assert.match(issued.client_secret, /^cs_production_/);
    assert.match(issued.signing_key, /^sig_production_/);
    const shown = await tranche.json('integrations', 'show', issued.id);
    assert.notEqual(shown.signing_required_at, null);
  });
});

test('a production command warns without the addresses and the mail server of its service', async () => {
  await withMigratedDatabase(async (url) => {
    const complete = { ...commandSettings, DATABASE_URL: url };
    for (const name of ['BASE_URL', 'CONSOLE_URL', 'MAIL_URL']) {
      const { stderr } = await commandLine({ ...complete, [name]: '' }).run('merchants', 'list');
      assert.match(stderr.replaceAll(/\s+/g, ' '), new RegExp(`Not set here: ${name}\\. `));
    }
    assert.equal((await commandLine(complete).run('merchants', 'list')).stderr, '');
    const withoutGateway = commandLine({ ...complete, STRIPE_SECRET_KEY: '' });
    const preview = ['refunds', 'preview', unknownId, '--amount', '100'];
    await withoutGateway.refused(1, /gateway's settings are missing/, ...preview);
  });
});

test('a database of the other environment is not migrated', async () => {
  await withEmptyDatabase(async (url) => {
    await onDatabase(url, (client) =>
      client.query(
        `create table installation (environment text); insert into installation values ('production')`,
      ),
    );
    await commandLine({ DATABASE_URL: url }).refused(
      1,
      /belongs to the production/,
      'database',
      'migrate',
    );
    const { rows } = await onDatabase(url, (client) =>
      client.query(`select to_regclass('merchants') as name`),
    );
    assert.deepEqual(rows, [{ name: null }]);
  });
});

test('when two environments first use a database at once, one gets it', async () => {
  await withMigratedDatabase(async (url) => {
    const database = openDatabase(url, { log, maxConnections: 6 });
    try {
      const now = '2026-11-15T08:00:00.000Z';
      const outcomes = await Promise.allSettled(
        (['sandbox', 'production', 'sandbox', 'production'] as const).map((environment) =>
          claimInstallation(database.db, environment, now),
        ),
      );
      const [first, second, third, fourth] = outcomes.map(({ status }) => status);
      assert.deepEqual([first, second], [third, fourth]);
      assert.notEqual(first, second);
    } finally {
      await database.close();
    }
  });
});

test('without the Citus extension distributing is refused and changes nothing', async () => {
  await withPlainDatabase(async (url) => {
    const tranche = commandLine({ DATABASE_URL: url });
    await tranche.refused(
      1,
      /does not have the Citus extension.*create extension citus/,
      'database',
      'distribute',
    );
    await onDatabase(url, async (client) => {
      const { rowCount } = await client.query('select from operator_actions');
      assert.equal(rowCount, 0);
    });
  });
});

/** A stand-in for the Citus functions that we call, which records its calls. */
const standIn = `
  insert into pg_extension values (99999, 'citus', 10, 'public'::regnamespace, false, 'stand-in');
  create schema stand_in;
  create table stand_in.calls (
    position serial, name text, by text, beside text, foreign_keys bigint);
  create table stand_in.pg_dist_partition (
    logicalrelid regclass, partmethod "char", repmodel "char");
  create function stand_in.note(name regclass, by text, beside text) returns void language sql as $$
    insert into stand_in.calls (name, by, beside, foreign_keys)
      select name::text, by, beside, count(*) from pg_constraint
      where contype = 'f' and name in (conrelid, confrelid);
    insert into stand_in.pg_dist_partition
      values (name, case when by is null then 'n' else 'h' end, case when by is null then 't' else 's' end);
  $$;
  create function stand_in.create_reference_table(name regclass) returns void language sql as $$
    select stand_in.note(name, null, null) $$;
  create function stand_in.create_distributed_table(name regclass, by text, colocate_with text)
    returns void language sql as $$ select stand_in.note(name, by, colocate_with) $$;
  create function stand_in.truncate_local_data_after_distributing_table(name regclass)
    returns void language sql as $$ select $$;
  do $$ begin
    execute format('alter database %I set search_path = public, stand_in', current_database());
  end $$;`;

const placed = distribution.filter((place) => !('stays' in place));

test('each table is distributed once as listed, and foreign keys are restored afterwards', async (t) => {
  await withPlainDatabase(async (url) => {
    const query = (text: string) =>
      onDatabase(url, async (client) => (await client.query(text)).rows);
    const isSuperuser = await query(
      'select from pg_roles where rolname = current_user and rolsuper',
    );
    if (isSuperuser.length === 0) return t.skip('needs a superuser');
    if (hasCitus) return t.skip('there is no need for a stand-in');
    await query(standIn);
    const foreignKeys = () =>
      query(`select conrelid::regclass::text as name, conname, convalidated,
               pg_get_constraintdef(oid) as definition
             from pg_constraint where contype = 'f' order by 1, 2`);
    const before = await foreignKeys();
    assert.ok(before.length > 10);

    const tranche = commandLine({ DATABASE_URL: url });
    const tables = placed.map(({ table }) => table);
    assert.deepEqual(await tranche.json('database', 'distribute'), { distributed: tables });
    assert.deepEqual(await tranche.json('database', 'distribute'), { distributed: [] });

    assert.deepEqual(
      await query(
        'select name, by, beside, foreign_keys::int from stand_in.calls order by position',
      ),
      placed.map((place) => ({
        name: place.table,
        by: place.by,
        beside: place.by === null ? null : (place.beside ?? 'none'),
        foreign_keys: 0,
      })),
    );
    assert.deepEqual(await foreignKeys(), before);
    assert.deepEqual(await query('select operator, action from operator_actions'), [
      { operator: 'nomsa', action: 'database distribute' },
    ]);
  });
});

/** Statements like those that later migrations will run on tables that are already distributed. */
const later = [
  'alter table checkouts add column test_note text check (length(test_note) < 9);',
  'alter table checkouts add constraint test_amount check (amount < 1000000000000) not valid;',
  '-- concurrently\ncreate index concurrently if not exists test_index on checkouts (test_note);',
];

test('a cluster that was distributed at an earlier version accepts later migrations', async (t) => {
  if (!hasCitus) return t.skip('needs Citus');
  const { url, drop } = await createEmptyCluster();
  const database = openDatabase(url, { log, maxConnections: 2 });
  const folder = await mkdtemp(join(tmpdir(), 'tranche-migrations-'));
  try {
    const known = await listMigrations();
    // Leave out the last migration, so that it creates its tables on a cluster that has tables
    // already.
    await migrate(database, { clock: systemClock, log }, known.slice(0, -1));
    await distributeDatabase(database);
    for (const text of later) {
      const version = (known.at(-1)?.version ?? 0) + 1;
      const file = pathToFileURL(join(folder, `${version}_test.sql`));
      await writeFile(file, text);
      known.push({ version, name: `${version}_test.sql`, file });
    }
    await migrate(database, { clock: systemClock, log }, known);
    assert.deepEqual(await distributeDatabase(database), [], 'new tables took their places');
    const checks = await database.pool.query(
      `select conname from pg_constraint
       where conname in ('checkouts_test_note_check', 'test_amount')`,
    );
    assert.equal(checks.rowCount, 2);
    // Citus marks an index invalid if it is created again, even with `if not exists`.
    const invalid = await database.pool.query(
      'select indexrelid::regclass::text as name from pg_index where not indisvalid',
    );
    assert.deepEqual(invalid.rows, []);
    const { rows } = await database.pool.query(
      `select table_name::text as name, nullif(distribution_column, '<none>') as by
       from citus_tables order by 1`,
    );
    assert.deepEqual(
      rows,
      placed
        .map(({ table, by }) => ({ name: table, by }))
        .toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    );
  } finally {
    await database.close();
    await drop();
    await rm(folder, { recursive: true });
  }
});

test('distributing leaves no copy of a row behind on the coordinator', async (t) => {
  if (!hasCitus) return t.skip('needs Citus');
  const { url, drop } = await createEmptyCluster();
  try {
    const tranche = commandLine({ DATABASE_URL: url });
    await tranche.json('database', 'migrate');
    const rules = '[{"from_amount":1000,"to_amount":2000,"terms":[1]}]';
    await tranche.json('merchants', 'create', '--name', 'A', '--rules', rules);
    await tranche.json('database', 'distribute');
    assert.equal((await tranche.json('merchants', 'list')).data.length, 1);
    const { rows } = await onDatabase(url, (client) =>
      client.query(
        `select name from unnest($1::text[]) as name where pg_relation_size(name::regclass) > 0`,
        [placed.map(({ table }) => table)],
      ),
    );
    assert.deepEqual(rows, []);
  } finally {
    await drop();
  }
});

test('every table is either distributed or copied to every node', async () => {
  await withPlainDatabase(async (url) => {
    const { rows } = await onDatabase(url, (client) =>
      client.query(
        `select table_name as name from information_schema.tables where table_schema = 'public'`,
      ),
    );
    assert.deepEqual(
      distribution.map(({ table }) => table).toSorted(),
      rows.map(({ name }) => name).toSorted(),
    );
  });
});

test('every key of a distributed table contains merchant_id, and every reference is possible', async () => {
  await withPlainDatabase(async (url) => {
    const { rows } = await onDatabase(url, (client) =>
      client.query<{ name: string; kind: string; columns: string[]; referenced: string | null }>(
        `select c.conrelid::regclass::text as name, c.contype as kind,
           array(select attname::text from pg_attribute
                 where attrelid = c.conrelid and attnum = any (c.conkey)) as columns,
           nullif(c.confrelid, 0)::regclass::text as referenced
         from pg_constraint c join pg_namespace n on n.oid = c.connamespace
         where n.nspname = 'public' and c.contype in ('p', 'u', 'f')`,
      ),
    );
    const order = distribution.map(({ table }) => table as string);
    const placeOf = (name: string | null) => distribution.find(({ table }) => table === name);
    for (const { name, kind, columns, referenced } of rows) {
      const place = placeOf(name);
      assert.ok(place, name);
      if (kind !== 'f') {
        assert.ok(place.by === null || columns.includes(place.by), `a key of ${name}`);
        continue;
      }
      const target = placeOf(referenced);
      assert.ok(target && referenced !== null);
      assert.ok(order.indexOf(referenced) <= order.indexOf(name), `${name} before ${referenced}`);
      if (target.by !== null) {
        assert.equal(place.by, target.by, `${name} refers to ${referenced}`);
        assert.ok(columns.includes(target.by), `${name} refers to ${referenced}`);
      }
    }
  });
});
