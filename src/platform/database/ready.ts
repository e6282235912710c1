import type { Database } from './database.ts';
import { compareVersions } from './migrate.ts';

/** Why the database cannot serve requests now, or null. Throws if it does not answer. */
export async function findDatabaseProblem(database: Database): Promise<string | null> {
  const version = await compareVersions(database);
  if (version === 'older') return 'the database lacks migrations';
  if (version === 'newer') return 'the database needs a newer version of this program';
  const { rows } = await database.pool.query<{ read_only: string }>(
    `select current_setting('transaction_read_only') as read_only`,
  );
  return rows[0]?.read_only === 'off' ? null : 'the database is read only';
}
