import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import {
  digestOf,
  findEqualNumbers,
  findStaleGuards,
  findUnsafe,
  findUnsafeMigrations,
} from '../../scripts/check-migrations.ts';

const root = path.join(import.meta.dirname, '../..');

const unsafe: [string, RegExp][] = [
  ['create index a on checkouts (id);', /blocks writes/],
  ['create unique index a on checkouts (id);', /blocks writes/],
  ['alter table checkouts alter column id type text;', /whole table/],
  ['alter table checkouts alter id set not null;', /whole table/],
  ['alter table checkouts add column a text not null;', /whole table/],
  ['alter table checkouts add column a uuid default gen_random_uuid();', /whole table/],
  // COLUMN is optional.
  ['alter table checkouts add a text not null;', /whole table/],
  ['alter table checkouts add a uuid default gen_random_uuid();', /whole table/],
  ['alter table checkouts add if not exists a timestamptz default now();', /whole table/],
  ['alter table checkouts add column a uuid default uuidv7();', /whole table/],
  ["alter table checkouts add column a bigint default nextval('numbers');", /whole table/],
  ['alter table checkouts add column a text default current_user;', /whole table/],
  ["alter table checkouts add a text default 'x, y', add b text not null;", /whole table/],
  ['alter table checkouts add column a uuid references merchants;', /whole table/],
  ['alter table "checkouts"\n  -- why\n  add a bigserial;', /whole table/],
  ['alter table checkouts set tablespace slow;', /whole table/],
  ['alter table checkouts add constraint a check (amount > 0);', /whole table/],
  ['alter table checkouts add constraint a unique (id);', /whole table/],
  ['alter table checkouts add primary key (id);', /whole table/],
  ['alter table checkouts add constraint a exclude using gist (id with =);', /whole table/],
  ['alter table checkouts add column a text check (a <> id);', /whole table/],
  ['alter table rate_limits set logged;', /whole table/],
  ['vacuum full checkouts;', /rewrite it/],
  ['vacuum (full, analyze) checkouts;', /rewrite it/],
  ['cluster checkouts using checkouts_pkey;', /rewrite it/],
  ['reindex table checkouts;', /rewrite it/],
  ['update checkouts set amount = 1;', /every row/],
  ['alter table checkouts drop column amount;', /older programs/],
  ['alter table checkouts drop amount;', /older programs/],
  ['alter table checkouts drop if exists amount;', /older programs/],
  ['alter table checkouts add a text, drop amount;', /older programs/],
  ['alter table checkouts rename amount to sum;', /older programs/],
  // Migration 0044 is this one. It is not released yet, so no release has stopped using the column.
  ['-- contract 0044\nalter table checkouts drop amount;', /in a later one/],
  ['-- contract 0042\nalter table checkouts drop amount;', /the last release has 41/],
  ['alter table checkouts rename column amount to sum;', /older programs/],
  ['drop table checkouts;', /older programs/],
  ['create index concurrently if not exists a on checkouts (id);', /does not begin with/],
  ['-- concurrently\ncreate table a (id integer);', /mixes/],
  ['-- concurrently\ncreate index concurrently a on checkouts (id);', /repeated after a crash/],
  ['-- concurrently\nCREATE UNIQUE INDEX CONCURRENTLY a ON checkouts (id);', /repeated/],
  ['-- concurrently\ndrop index concurrently a;', /repeated after a crash/],
];

/** The number of these migrations, and that of the last one in the newest release. */
const number = 44;
const released = 41;

const safe = [
  'create table a (id integer not null);\ncreate index a_id on a (id);',
  'alter table checkouts add column a text;',
  "alter table checkouts add column a text not null default '';",
  "alter table checkouts add a numeric(12, 2) default 0::numeric(12, 2), add b text default 'now (x)';",
  'alter table checkouts drop constraint a, alter amount drop not null;',
  'alter table checkouts add constraint a check (amount > 0) not valid;',
  'alter table checkouts add constraint a unique using index a;',
  '-- concurrently\nreindex index concurrently checkouts_pkey;',
  '-- concurrently\ncreate index concurrently if not exists a on checkouts (id);',
  '-- concurrently\ncreate unique index concurrently if not exists a on checkouts (id);',
  '-- concurrently\ndrop index concurrently if exists a;',
  '-- contract 0031\nalter table checkouts drop column amount;',
  '-- drop table checkouts;\nupdate checkouts set amount = 1 where amount is null;',
];

test('a migration that would stop the running service is refused', () => {
  for (const [text, problem] of unsafe) {
    assert.match(findUnsafe(text, number, released).join(), problem, text);
  }
});

test('a migration that adds is accepted', () => {
  for (const text of safe) {
    assert.deepEqual(findUnsafe(text, number, released), [], text);
  }
});

test('nothing contracts before the first release', () => {
  const text = '-- contract 0031\nalter table checkouts drop amount;';
  assert.match(findUnsafe(text, number, null).join(), /no program is released/);
});

test('triggers that changed since the release need a migration that renews them', () => {
  const release = { migration: 41, guards: digestOf('before') };
  assert.deepEqual(findStaleGuards('before', 41, release), []);
  assert.match(findStaleGuards('after', 41, release).join(), /^src\/.* Add a migration\b/);
  assert.deepEqual(findStaleGuards('after', 42, release), []);
  assert.deepEqual(findStaleGuards('after', 15, null), []);
});

test('two migrations with the same number are refused', () => {
  assert.deepEqual(findEqualNumbers(['0001_a.sql', '0002_b.sql', '0002_c.sql']), [
    'migrations 0002_b.sql and 0002_c.sql have the same number.',
  ]);
});

test('the migrations of the repository are safe, and all of them are read', (t) => {
  assert.deepEqual(findUnsafeMigrations(root), []);
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tranche-migrations-'));
  t.after(() => fs.rmSync(folder, { recursive: true }));
  fs.mkdirSync(path.join(folder, 'migrations'));
  for (const [name, text] of [
    ['0001_first.sql', 'drop table checkouts;'],
    ['0002_second.sql', 'create table a (id integer);'],
  ] as const) {
    fs.writeFileSync(path.join(folder, 'migrations', name), text);
  }
  assert.match(
    findUnsafeMigrations(folder).join(),
    /^migrations\/0001_first.sql takes away[^;]*;[^.]*\.$/,
  );
});
