import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { findViolations } from '#checks/invariants/invariants.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '#hosting/embedded-postgres/server.ts';
import { openDatabase } from '#platform/database/database.ts';
import { commandLine } from '../support/cli.ts';
import { onDatabase, temporaryFolder } from '../support/sandbox-process.ts';
import { isLong, log } from '../support/service.ts';

// The embedded database is backed up while it is written, and restored.

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let dataDir: string;
let server: EmbeddedPostgres | null = null;
const tranche = () => commandLine({ DATA_DIR: dataDir });
const start = async () => {
  server = await startEmbeddedPostgres({ dataDir, log });
  return server;
};
const stop = async () => {
  await server?.stop();
  server = null;
};
before(async () => {
  folder = await temporaryFolder();
  dataDir = path.join(folder.path, 'data');
});
after(async () => {
  await stop();
  await folder.remove();
});

const bands = '[{"from_amount":10000,"to_amount":99999,"terms":[1,3]}]';

async function createMerchant(name: string): Promise<string> {
  const options = ['--name', name, '--territory', 'ZA', '--rules', bands];
  return (await tranche().json('merchants', 'create', ...options)).id;
}

async function merchants(): Promise<string[]> {
  const { data } = await tranche().json('merchants', 'list');
  return data.map(({ name }: { name: string }) => name);
}

/** Commits numbers one after the other until it is stopped. */
function startWriting(url: string) {
  let stopping = false;
  let committed = 0;
  const written = onDatabase(url, async (client) => {
    await client.query('create table numbers (number integer primary key, filler text)');
    while (!stopping) {
      await client.query(`insert into numbers values ($1, repeat('x', 2000))`, [committed + 1]);
      committed += 1;
    }
  });
  return {
    committed: () => committed,
    async stop() {
      stopping = true;
      await written;
    },
  };
}

test('a backup made under load is restored as it was, and a damaged one is refused', async () => {
  const { url } = await start();
  await tranche().json('database', 'migrate');
  await createMerchant('Before');
  const writing = startWriting(url);
  while (writing.committed() < 50) await new Promise((resolve) => setTimeout(resolve, 5));
  const acknowledged = writing.committed();
  const target = path.join(folder.path, 'backup');
  const made = await tranche().json('database', 'backup', target);
  assert.ok(made.files > 500 && made.bytes > 10_000_000, JSON.stringify(made));
  await writing.stop();
  await createMerchant('After');
  await tranche().refused(1, /exists/, 'database', 'backup', target);

  const manifest = path.join(target, 'manifest.json');
  const text = await fs.readFile(manifest, 'utf8');
  const [name = ''] = Object.keys(JSON.parse(text).files).filter((one) => /PG_VERSION/.test(one));
  await fs.appendFile(path.join(target, name), 'x');
  await tranche().refused(1, /damaged: .* was changed/, 'database', 'restore', target);
  await fs.rename(path.join(target, name), path.join(folder.path, 'away'));
  await tranche().refused(1, /damaged: .* is missing/, 'database', 'restore', target);
  await fs.writeFile(path.join(target, name), '18\n');
  await fs.rm(manifest);
  await tranche().refused(1, /not a whole backup/, 'database', 'restore', target);
  await fs.writeFile(manifest, text);
  await tranche().refused(1, /in use by process/, 'database', 'restore', target);
  assert.deepEqual(await merchants(), ['Before', 'After']);
  await stop();

  // A whole backup on which PostgreSQL does not start: the former files come back.
  const control = path.join(target, 'data/global/pg_control');
  const bytes = await fs.readFile(control);
  const broken = Buffer.alloc(bytes.length);
  await fs.writeFile(control, broken);
  const hash = createHash('sha256').update(broken).digest('hex');
  const { files } = JSON.parse(text);
  const changed = { ...JSON.parse(text), files: { ...files, 'data/global/pg_control': hash } };
  await fs.writeFile(manifest, JSON.stringify(changed));
  await tranche().refused(1, /did not start|could not start/, 'database', 'restore', target);
  await start();
  assert.deepEqual(await merchants(), ['Before', 'After']);
  const home = await fs.realpath(path.join(dataDir, 'postgres'));
  const left = (await fs.readdir(home)).filter((one) => /^data\./.test(one));
  assert.deepEqual(left, [], 'nothing of the failed restore stays');
  await stop();
  await fs.writeFile(control, bytes);
  await fs.writeFile(manifest, text);

  const { kept } = await tranche().json('database', 'restore', target);
  assert.match(kept, /data\.before-/);
  await start();
  assert.deepEqual(await merchants(), ['Before']);
  const { data } = await tranche().json('audit', 'list');
  assert.equal(data[0].action, 'database restore');
  await onDatabase(url, async (client) => {
    const { rows } = await client.query('select count(*), max(number) from numbers');
    const [{ count, max }] = rows;
    assert.equal(Number(count), max, 'no number is missing in the middle');
    assert.ok(max >= acknowledged, `${max} of ${acknowledged} acknowledged`);
    assert.ok(max <= writing.committed());
  });
  const database = openDatabase(url, { log, maxConnections: 2 });
  try {
    assert.deepEqual(await findViolations(database, new Date().toISOString()), []);
  } finally {
    await database.close();
  }
  await stop();

  if (!isLong) return;
  // A backup of a stopped server starts it for a moment.
  const second = path.join(folder.path, 'second');
  await tranche().json('database', 'backup', second);
  await fs.access(path.join(second, 'manifest.json'));
});

test('both commands refuse a database that is not embedded', async () => {
  const other = commandLine({ DATABASE_URL: 'postgres://127.0.0.1/tranche', DATA_DIR: dataDir });
  await other.refused(1, /for the embedded database/, 'database', 'backup', folder.path);
  await other.refused(1, /for the embedded database/, 'database', 'restore', folder.path);
});
