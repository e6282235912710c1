import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import type pg from 'pg';
import type { Clock } from '#platform/shared/clock.ts';
import { timestamp } from '#platform/shared/clock.ts';
import type { Logger } from '#platform/shared/logger.ts';
import { guardTables } from './append-only.ts';
import { type Database, isPooled } from './database.ts';
import { isDistributed, placeTables, schemaLock } from './distribute-database.ts';
import { listOlderNodes } from './nodes.ts';
import { isLockTimeout } from './transaction.ts';

const folder = new URL('../../../migrations/', import.meta.url);

/** PostgreSQL's code for a query in a database that was never migrated. */
export const undefinedTable = '42P01';

export type Migration = { version: number; name: string; file: URL };

export async function listMigrations(): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort();
  return names.map((name) => ({
    version: Number(name.slice(0, 4)),
    name,
    file: new URL(name, folder),
  }));
}

/** The role may use the tables but not change them (decision 0060). */
class MayNotMigrate extends Error {
  constructor(cause: unknown) {
    super(
      'The database lacks migrations, and this role may not apply them. Run `tranche database ' +
        'migrate` and `tranche database grant` as the owner of the tables.',
      { cause },
    );
  }
}

/**
 * Through a pooler, other clients would get the timeouts that a migration sets for its session.
 */
class MigrateDirectly extends Error {
  constructor() {
    super(
      'The database lacks migrations, and DATABASE_URL goes through a connection pooler. Run ' +
        '`tranche database migrate` with a DATABASE_URL that names the server itself.',
    );
  }
}

export class DatabaseNewer extends Error {
  constructor({ version, oldestProgram }: Versions, codeVersion: number) {
    super(
      `The database is at migration ${version}, which needs a version of Tranche that knows ` +
        `migration ${oldestProgram}. This one knows only migration ${codeVersion} and older ones. ` +
        'Run a newer version.',
    );
  }
}

/** A migration is history: once applied anywhere, it is never edited (decision 0032). */
export class MigrationChanged extends Error {
  constructor(name: string) {
    super(
      `The migration ${name} was changed after this database had applied it. Restore the file ` +
        'and put the change into a new migration.',
    );
  }
}

/** A migration would break programs that still run. */
class OlderNodesAlive extends Error {
  constructor(name: string, nodes: string[]) {
    super(
      `The migration ${name} breaks older programs, and some still run: ${nodes.join(', ')}. ` +
        'Replace them with the release before this one, then migrate again.',
    );
  }
}

/** Other statements kept a table locked for a long time. */
class TablesBusy extends Error {
  constructor(name: string, cause: unknown) {
    super(
      `The migration ${name} waited ${waitMaxMilliseconds / 60_000} minutes for a table that ` +
        'other statements use, perhaps a backup. It changed nothing. Migrate again later.',
      { cause },
    );
  }
}

/**
 * A statement that waits for a table lock makes every later statement on that table wait too. A
 * migration gives up after this time, lets the others pass, and retries.
 */
const lockMilliseconds = 2_000;

/** How long a migration keeps retrying. */
const waitMaxMilliseconds = 30 * 60_000;

/** The pause between two attempts, and between two checks whether another node has finished. */
const pauseMilliseconds = 500;

/** A database's version, and the oldest program that can use it. */
type Versions = { version: number; oldestProgram: number };

/**
 * How a migration runs, as comment lines of its file say (decision 0032):
 * - `-- concurrently`: its statements run one by one outside a transaction, so that indexes can be
 *   built while the service writes. Each must be safe to repeat after a crash.
 * - `-- contract 0021`: programs older than migration 21 cannot use the database any more.
 */
export type Manner = { isConcurrent: boolean; oldestProgram: number | null };

export function mannerOf(text: string): Manner {
  const contract = /^-- contract (\d{4})$/m.exec(text)?.[1];
  return {
    isConcurrent: /^-- concurrently$/m.test(text),
    oldestProgram: contract === undefined ? null : Number(contract),
  };
}

type MigrateDeps = { clock: Clock; log: Logger };

/**
 * Brings the database to this program's version, and returns the database's version. If two nodes
 * start together, one migrates and the other waits. Each migration is applied as a whole, and a
 * crash between two leaves the database at the earlier one. On Citus its new tables are distributed
 * in the same transaction. A database that a newer program migrated stays as it is.
 */
export async function migrate(
  database: Database,
  deps: MigrateDeps,
  migrations?: Migration[],
): Promise<number> {
  migrations ??= await listMigrations();
  const codeVersion = migrations.at(-1)?.version ?? 0;
  const lock = await database.pool.connect();
  try {
    await takeSchemaLock(lock, deps);
    const client = await database.pool.connect();
    try {
      await createVersions(client);
      const found = await readVersions(client);
      refuseNewer(found, codeVersion);
      const applied = await readHashes(client);
      for (const migration of migrations) {
        const text = await readFile(migration.file, 'utf8');
        const hash = createHash('sha256').update(text).digest('hex');
        if (migration.version <= found.version) {
          if (applied.get(migration.version) !== hash) throw new MigrationChanged(migration.name);
          continue;
        }
        if (isPooled(client)) throw new MigrateDirectly();
        const isLast = migration.version === codeVersion;
        await apply(client, deps, { ...migration, text, hash, isLast });
        deps.log.info({ migration: migration.name }, 'migrated');
      }
      return Math.max(found.version, codeVersion);
    } finally {
      // Nothing else should use a connection on which a migration may have failed.
      client.release(true);
    }
  } catch (error) {
    throw (error as { code?: string }).code === '42501' ? new MayNotMigrate(error) : error;
  } finally {
    // Closing the connection ends its transaction, and with it the lock.
    lock.release(true);
  }
}

/** Waits while another node migrates. */
async function takeSchemaLock(client: pg.PoolClient, { clock, log }: MigrateDeps): Promise<void> {
  await client.query('begin');
  await client.query('set local idle_in_transaction_session_timeout = 0');
  for (let isFirst = true; ; isFirst = false) {
    // This statement has no parameters: with parameters it would keep its snapshot as long as the
    // transaction, and an index that is built concurrently waits for every older snapshot.
    const { rows } = await client.query(`select pg_try_advisory_xact_lock(${schemaLock}) as taken`);
    if (rows[0].taken) return;
    if (isFirst) log.warn({}, 'another process is migrating the database: waiting for it');
    await clock.sleep(pauseMilliseconds);
  }
}

async function createVersions(client: pg.ClientBase): Promise<void> {
  // Look first, because a role that may not migrate can still use a database that is already
  // migrated.
  const { rows } = await client.query(
    `select to_regclass('schema_migrations') is not null as found`,
  );
  if (rows[0].found) return;
  await client.query(
    `create table schema_migrations (
     version integer primary key, name text not null, hash text not null,
     applied_at timestamptz(3) not null, oldest_program integer)`,
  );
}

type Pending = Migration & { text: string; hash: string; isLast: boolean };

/** Applies one migration. Retries while other statements use its tables. */
async function apply(client: pg.PoolClient, deps: MigrateDeps, migration: Pending): Promise<void> {
  const { isConcurrent, oldestProgram } = mannerOf(migration.text);
  if (oldestProgram !== null) await refuseOlderNodes(client, migration, oldestProgram);
  const start = deps.clock.monotonic();
  for (let isFirst = true; ; isFirst = false) {
    try {
      if (isConcurrent) return await applyConcurrently(client, deps, migration, oldestProgram);
      return await applyInTransaction(client, deps, migration, oldestProgram);
    } catch (error) {
      await client.query('rollback');
      if (!isLockTimeout(error)) throw error;
      if (deps.clock.monotonic() - start > waitMaxMilliseconds) {
        throw new TablesBusy(migration.name, error);
      }
      const about = { migration: migration.name };
      if (isFirst) deps.log.warn(about, 'a migration is waiting for a table that is in use');
    }
    await deps.clock.sleep(pauseMilliseconds);
  }
}

async function refuseOlderNodes(
  client: pg.ClientBase,
  { name }: Migration,
  oldestProgram: number,
): Promise<void> {
  const nodes = await listOlderNodes(client, oldestProgram);
  if (nodes.length > 0) throw new OlderNodesAlive(name, nodes);
}

async function applyInTransaction(
  client: pg.PoolClient,
  deps: MigrateDeps,
  migration: Pending,
  oldestProgram: number | null,
): Promise<void> {
  await client.query('begin');
  await client.query(`set local lock_timeout = ${lockMilliseconds}`);
  await client.query('set local statement_timeout = 0');
  const isOnCitus = await isDistributed(client);
  const text = isOnCitus ? separateChecks(migration.text) : migration.text;
  for (const statement of statementsOf(text)) {
    await client.query(statement);
    // Citus refuses a foreign key between a table that is not in its place yet and one that is.
    if (isOnCitus && /^create table/m.test(statement)) await placeTables(client);
  }
  await recordMigration(client, deps.clock, migration, oldestProgram);
  if (!isOnCitus && migration.isLast) await guardTables(client);
  await client.query('commit');
}

const builtIndex = /create\s+(?:unique\s+)?index\s+concurrently\s+if\s+not\s+exists\s+(\w+)/i;

/**
 * Building an index concurrently does not block writes, so it may wait as long as it needs.
 * Creating the triggers may not wait that long. If it has to, everything is repeated; by then the
 * indexes are built.
 */
async function applyConcurrently(
  client: pg.PoolClient,
  deps: MigrateDeps,
  migration: Pending,
  oldestProgram: number | null,
): Promise<void> {
  await client.query('set lock_timeout = 0');
  await client.query('set statement_timeout = 0');
  for (const statement of statementsOf(migration.text)) {
    const [, name] = builtIndex.exec(statement) ?? [];
    // An interrupted build leaves an index that nothing uses but every write maintains.
    if (name !== undefined && (await isInvalid(client, name))) {
      await client.query(`drop index concurrently ${name}`);
    }
    await client.query(statement);
  }
  await client.query('begin');
  await client.query(`set local lock_timeout = ${lockMilliseconds}`);
  await recordMigration(client, deps.clock, migration, oldestProgram);
  if (migration.isLast && !(await isDistributed(client))) await guardTables(client);
  await client.query('commit');
}

async function isInvalid(client: pg.ClientBase, index: string): Promise<boolean> {
  const { rowCount } = await client.query(
    'select from pg_index where indexrelid = to_regclass($1) and not indisvalid',
    [index],
  );
  return rowCount !== 0;
}

async function recordMigration(
  client: pg.ClientBase,
  clock: Clock,
  migration: Pending,
  oldestProgram: number | null,
): Promise<void> {
  const { version, name, hash } = migration;
  if (oldestProgram !== null) {
    // A process that started in the meantime is in the list, or announces itself after the commit.
    // In the second case it then compares versions, and refuses to serve.
    await client.query('lock table nodes in share mode');
    await refuseOlderNodes(client, migration, oldestProgram);
  }
  await client.query(
    `insert into schema_migrations (version, name, hash, applied_at, oldest_program)
     values ($1, $2, $3, $4, $5)`,
    [version, name, hash, timestamp(clock.now()), oldestProgram],
  );
}

/**
 * Splits a migration, because Citus passes a whole message to the Citus workers even if only one
 * statement in it is meant for them. A statement ends where a line ends in a semicolon.
 */
function statementsOf(text: string): string[] {
  return text.split(/(?<=;)[ \t]*$/m).filter((statement) => statement.trim() !== '');
}

/**
 * Citus cannot add a column together with a constraint. So the check on a new column follows in a
 * separate statement, under the name that PostgreSQL gives it.
 */
function separateChecks(text: string): string {
  return text.replace(
    /(alter table (\w+) add column (\w+) [^;]*?) (check \([^;]*\));$/gm,
    '$1;\nalter table $2 add constraint $2_$3_check $4;',
  );
}

async function readHashes(client: pg.ClientBase): Promise<Map<number, string>> {
  const { rows } = await client.query<{ version: number; hash: string }>(
    'select version, hash from schema_migrations',
  );
  return new Map(rows.map(({ version, hash }) => [version, hash]));
}

export async function readVersions(client: pg.ClientBase | pg.Pool): Promise<Versions> {
  const { rows } = await client.query<{ version: number | null; oldest: number | null }>(
    'select max(version) as version, max(oldest_program) as oldest from schema_migrations',
  );
  return { version: rows[0]?.version ?? 0, oldestProgram: rows[0]?.oldest ?? 0 };
}

function refuseNewer(found: Versions, codeVersion: number): void {
  if (found.oldestProgram > codeVersion) throw new DatabaseNewer(found, codeVersion);
}

/**
 * The list is read once, at the start: a file that an upgrade adds later belongs to the next
 * program.
 */
const migrationsAtStart = listMigrations();

/** This program's version: the last migration that it knows. */
export const programVersion = async () => (await migrationsAtStart).at(-1)?.version ?? 0;

/**
 * Each process calls this once it is announced. While it started, another program may have applied
 * a migration that breaks this one.
 */
export async function refuseNewerDatabase({ pool }: Database): Promise<void> {
  refuseNewer(await readVersions(pool), await programVersion());
}

/**
 * Compares the database with this program. An `older` one lacks migrations. A `newer` one has a
 * migration that breaks this program; without such a migration, a newer database is `usable`.
 */
export async function compareVersions(database: Database): Promise<'usable' | 'older' | 'newer'> {
  const codeVersion = await programVersion();
  try {
    const found = await readVersions(database.pool);
    if (found.version < codeVersion) return 'older';
    return found.oldestProgram > codeVersion ? 'newer' : 'usable';
  } catch (error) {
    if ((error as { code?: string }).code === undefinedTable) return 'older';
    throw error;
  }
}
