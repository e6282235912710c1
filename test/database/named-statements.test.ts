import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import { type Database, openDatabase } from '#platform/database/database.ts';
import { createStatementNames, names } from '#platform/database/name-statements.ts';
import { snapshot, transaction } from '#platform/database/transaction.ts';
import { systemClock } from '#platform/shared/clock.ts';
import { createEmptyDatabase, log } from '../support/service.ts';

let database: Database;
let drop: () => Promise<void>;
before(async () => {
  // Earlier test files in this process may have used up the names of statements.
  names.renew();
  const created = await createEmptyDatabase();
  drop = created.drop;
  database = openDatabase(created.url, { log, maxConnections: 1 });
  await database.pool.query('create table things (id int)');
  await database.pool.query('insert into things values (1)');
});
after(async () => {
  await database.close();
  await drop();
});

async function times(count: number, work: () => Promise<unknown>): Promise<void> {
  for (let round = 0; round < count; round += 1) await work();
}

/** The prepared texts, without the number that distinguishes a renewed one. */
async function listPrepared(): Promise<string[]> {
  const { rows } = await database.pool.query<{ statement: string }>(
    'select statement from pg_prepared_statements',
  );
  return rows.map(({ statement }) => statement.replace(/ \/\* \d+ \*\/$/, ''));
}

test('a statement that is sent again and again is prepared once on its connection', async () => {
  await times(5, () => sql`select id from things where id = ${1}`.execute(database.db));
  const own = (await listPrepared()).filter((text) => text.includes('from things where id'));
  assert.deepEqual(own, ['select id from things where id = $1']);
});

test('a snapshot that is planned once makes no plans for values, except on Citus', async () => {
  await database.pool.query('set plan_cache_mode = force_custom_plan');
  const read = (db: Database['db']) =>
    sql`select id from things where id between ${1} and ${2}`.execute(db);
  const deps = { database, clock: systemClock };
  await times(5, () => snapshot(deps, read, { isPlannedOnce: true }));
  const { rows: before } = await database.pool.query('show plan_cache_mode');
  await database.pool.query('reset plan_cache_mode');
  assert.deepEqual(before, [{ plan_cache_mode: 'force_custom_plan' }]);
  const { rows } = await database.pool.query(
    `select generic_plans, custom_plans,
       current_setting('shared_preload_libraries') like '%citus%' as has_citus
     from pg_prepared_statements where statement like '%between%'`,
  );
  const [generic_plans, custom_plans] = rows[0]?.has_citus ? [0, 3] : [3, 0];
  assert.deepEqual(rows, [{ generic_plans, custom_plans, has_citus: rows[0]?.has_citus }]);
});

test('the columns of a named statement are described once on its connection', async () => {
  const list = () =>
    sql<object>`select id, null as nothing, now() as at from things`.execute(database.db);
  const client = await database.pool.connect();
  const { connection } = client as unknown as { connection: { describe(): void } };
  const { describe } = connection;
  let descriptions = 0;
  connection.describe = (...args) => {
    descriptions += 1;
    describe.apply(connection, args);
  };
  client.release();
  const read: object[] = [];
  await times(6, async () => read.push(...(await list()).rows));
  // Before the statement gets its name, it is sent without asking for its columns.
  assert.equal(descriptions, 1);
  const form = (row: object) => Object.entries(row).map(([name, value]) => [name, typeof value]);
  assert.deepEqual(read.map(form), Array(6).fill(form({ id: 1, nothing: null, at: '' })));
});

test('a statement runs again if a migration changed the columns that it returns', async () => {
  const list = () => sql<object>`select * from things`.execute(database.db);
  await times(5, list);
  await database.pool.query('alter table things add column name text');
  assert.deepEqual((await list()).rows, [{ id: 1, name: null }]);
  // The changed statement gets another name.
  await times(5, list);
  const prepared = await listPrepared();
  assert.equal(prepared.filter((text) => text === 'select * from things').length, 2);
});

test('a transaction runs again if a migration changed the columns of its statement', async () => {
  let runs = 0;
  const read = () =>
    transaction({ database, clock: systemClock }, async ({ db }) => {
      runs += 1;
      await sql`insert into things (id) values (${runs})`.execute(db);
      return (await sql<object>`select * from things where id = ${1}`.execute(db)).rows;
    });
  await database.pool.query('delete from things');
  await times(5, read);
  await database.pool.query('alter table things add column size int');
  runs = 10;
  assert.deepEqual(await read(), [{ id: 1, name: null, size: null }]);
  assert.equal(runs, 12);
  const { rows } = await database.pool.query('select id from things order by id');
  assert.deepEqual(
    rows.map(({ id }) => id),
    [1, 2, 3, 4, 5, 12],
  );
});

test('texts that keep changing get no names, and at most 200 texts do', () => {
  const names = createStatementNames();
  const name = (text: string) => names.of(text).name;
  for (let at = 0; at < 10_000; at += 1) {
    assert.equal(name(`select ${at}`), undefined);
    assert.equal(name(`select ${at}`), undefined);
  }
  const often = (text: string) => [1, 2, 3].map(() => name(text)).at(-1);
  assert.ok(often('select'));
  assert.equal(often(`select '${'x'.repeat(8_000)}'`), undefined);
  const others = Array.from({ length: 300 }, (_, at) => often(`select 'often', ${at}`));
  assert.equal(new Set(others.filter(Boolean)).size, 199);
  // After a migration the texts are counted again, under other names.
  const before = often('select');
  names.renew();
  assert.notEqual(often('select'), before);
});
