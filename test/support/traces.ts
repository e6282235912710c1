import type { Database } from '#platform/database/database.ts';

/**
 * Types that cannot contain text. Every other type is searched, including types that a later
 * migration adds.
 */
const typesWithoutText = [
  'bigint',
  'boolean',
  'date',
  'double precision',
  'integer',
  'numeric',
  'smallint',
  'timestamp with time zone',
  'uuid',
];

/**
 * The columns of the whole database that contain one of the texts, bytes included. A text of four
 * digits is searched for as a word, because random IDs contain any digits.
 */
export async function findTraces(database: Database, texts: string[]): Promise<string[]> {
  const { rows: columns } = await database.pool.query(
    `select c.table_name as table, c.column_name as column, c.data_type as type
     from information_schema.columns c
     join information_schema.tables t using (table_schema, table_name)
     where c.table_schema not in ('pg_catalog', 'information_schema')
       and t.table_type = 'BASE TABLE' and c.data_type <> all($1)
     order by c.table_name, c.ordinal_position`,
    [typesWithoutText],
  );
  const found: string[] = [];
  for (const { table, column, type } of columns) {
    const value = type === 'bytea' ? `encode("${column}", 'escape')` : `"${column}"::text`;
    for (const text of texts) {
      const isWord = /^\d{4}$/.test(text);
      const { rowCount } = await database.pool.query(
        `select 1 from "${table}" where ${isWord ? `${value} ~ $1` : `position(lower($1) in lower(${value})) > 0`} limit 1`,
        [isWord ? `(^|[\\s"'])${text}($|[\\s"'.,<])` : text],
      );
      if (rowCount) found.push(`${table}.${column}: ${text}`);
    }
  }
  return found;
}
