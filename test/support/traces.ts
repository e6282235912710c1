import type { Database } from '../../src/database/database.ts';

/** The columns of the whole database that contain one of the texts, bytes included. */
export async function findTraces(database: Database, texts: string[]): Promise<string[]> {
  const { rows: columns } = await database.pool.query(
    `select table_name as table, column_name as column, data_type as type
     from information_schema.columns
     where table_schema = 'public' and data_type in ('text', 'json', 'jsonb', 'bytea')`,
  );
  const found: string[] = [];
  for (const { table, column, type } of columns) {
    const value = type === 'bytea' ? `encode(${column}, 'escape')` : `${column}::text`;
    for (const text of texts) {
      const { rowCount } = await database.pool.query(
        `select 1 from ${table} where position(lower($1) in lower(${value})) > 0 limit 1`,
        [text],
      );
      if (rowCount) found.push(`${table}.${column}: ${text}`);
    }
  }
  return found;
}
