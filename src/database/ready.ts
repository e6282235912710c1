import type { Database } from './database.ts';
import { isMigrated } from './migrate.ts';

/** Why the database cannot serve requests now, or null. Throws if it does not answer. */
export async function findDatabaseProblem(database: Database): Promise<string | null> {
  if (!(await isMigrated(database))) return 'migrations are not current';
  const { rows } = await database.pool.query<{ read_only: string }>(
    `select current_setting('transaction_read_only') as read_only`,
  );
  return rows[0]?.read_only === 'off' ? null : 'the database is read only';
}
