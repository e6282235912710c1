import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import type pg from 'pg';
import type { Clock } from '../shared/clock.ts';
import { timestamp } from '../shared/clock.ts';
import type { Logger } from '../shared/logger.ts';
import { guardTables } from './append-only.ts';
import type { Database } from './database.ts';
import { isDistributed, placeTables, schemaLock } from './distribute-database.ts';

const folder = new URL('../../migrations/', import.meta.url);

/** PostgreSQL's code for a query in a database that was never migrated. */
export const undefinedTable = '42P01';

export type Migration = { version: number; name: string };

export async function listMigrations(): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort();
  return names.map((name) => ({ version: Number(name.slice(0, 4)), name }));
}

/** The role may use the tables and not change them (decision 0060). */
class MayNotMigrate extends Error {
  constructor(cause: unknown) {
    super(
      'The database lacks migrations, and this role may not apply them. Run `tranche database ' +
        'migrate` and `tranche database grant` as the owner of the tables.',
      { cause },
    );
  }
}

export class DatabaseNewer extends Error {
  constructor(databaseVersion: number, codeVersion: number) {
    super(
      `The database is at migration ${databaseVersion}, newer than this program (${codeVersion}). ` +
        'Run the version of Tranche that migrated it, or a newer one.',
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

/**
 * Brings the database to this program's version. If two nodes start together, one migrates and the
 * other waits. All pending migrations run in one transaction, so a crash leaves the database as it
 * was. On Citus the new tables are distributed in the same transaction.
 */
export async function migrate(
  database: Database,
  deps: { clock: Clock; log: Logger },
  migrations?: Migration[],
): Promise<number> {
  // Tests stop at an earlier version, which may lack what the guards refer to.
  const isPartial = migrations !== undefined;
  migrations ??= await listMigrations();
  const codeVersion = migrations.at(-1)?.version ?? 0;
  const client = await database.pool.connect();
  try {
    await client.query('begin');
    await client.query('set local lock_timeout = 0');
    await client.query('set local statement_timeout = 0');
    await client.query('select pg_advisory_xact_lock($1)', [schemaLock]);
    // A role that may not migrate can still find the database migrated.
    const known = await client.query(
      `select to_regclass('schema_migrations') is not null as found`,
    );
    if (!known.rows[0].found) {
      await client.query(
        `create table schema_migrations (
         version integer primary key, name text not null, hash text not null,
         applied_at timestamptz(3) not null)`,
      );
    }
    const databaseVersion = await readVersion(client);
    if (databaseVersion > codeVersion) throw new DatabaseNewer(databaseVersion, codeVersion);
    const applied = await readHashes(client);
    for (const { version, name } of migrations) {
      const text = await readFile(new URL(name, folder), 'utf8');
      const hash = createHash('sha256').update(text).digest('hex');
      if (version <= databaseVersion) {
        if (applied.get(version) !== hash) throw new MigrationChanged(name);
        continue;
      }
      for (const statement of statementsOf(text)) await client.query(statement);
      await client.query('insert into schema_migrations values ($1, $2, $3, $4)', [
        version,
        name,
        hash,
        timestamp(deps.clock.now()),
      ]);
      deps.log.info({ migration: name }, 'migrated');
    }
    if (databaseVersion < codeVersion) {
      if (await isDistributed(client)) await placeTables(client);
      else if (!isPartial) await guardTables(client);
    }
    await client.query('commit');
    return codeVersion;
  } catch (error) {
    await client.query('rollback').catch(() => {});
    throw (error as { code?: string }).code === '42501' ? new MayNotMigrate(error) : error;
  } finally {
    client.release();
  }
}

/**
 * Sends one statement at a time, because Citus passes a whole message to its workers even if only
 * one statement in it is meant for them. A statement ends where a line ends in a semicolon.
 */
function statementsOf(text: string): string[] {
  return text.split(/(?<=;)[ \t]*$/m).filter((statement) => statement.trim() !== '');
}

async function readHashes(client: pg.ClientBase): Promise<Map<number, string>> {
  const { rows } = await client.query<{ version: number; hash: string }>(
    'select version, hash from schema_migrations',
  );
  return new Map(rows.map(({ version, hash }) => [version, hash]));
}

async function readVersion(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query<{ version: number | null }>(
    'select max(version) as version from schema_migrations',
  );
  return rows[0]?.version ?? 0;
}

/** Read once, at the start: a file that an upgrade adds later belongs to the next program. */
const migrationsAtStart = listMigrations();

/** Whether the database is at exactly this program's version. */
export async function isMigrated(database: Database): Promise<boolean> {
  const codeVersion = (await migrationsAtStart).at(-1)?.version ?? 0;
  const client = await database.pool.connect();
  try {
    return (await readVersion(client)) === codeVersion;
  } catch (error) {
    if ((error as { code?: string }).code === undefinedTable) return false;
    throw error;
  } finally {
    client.release();
  }
}
