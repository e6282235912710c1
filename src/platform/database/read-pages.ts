import { type RawBuilder, type SelectQueryBuilder, sql } from 'kysely';
import type { Handle } from './database.ts';
import type { Tables } from './tables.ts';

/** Pages of rows that are read as they are asked for. */
export type Pages<Row> = AsyncIterable<Row[]>;

/**
 * Reads a query within a transaction, a page at a time, through a database cursor. Cursors that are
 * open at once need different names.
 */
export async function* readPages<Row>(
  db: Handle,
  name: string,
  // biome-ignore lint/suspicious/noExplicitAny: it reads a query over any tables.
  query: RawBuilder<Row> | SelectQueryBuilder<Tables, any, Row>,
  rowsMax: number,
): AsyncGenerator<Row[]> {
  const cursor = sql.id(name);
  await sql`declare ${cursor} no scroll cursor for ${query}`.execute(db);
  for (;;) {
    const { rows } = await sql<Row>`fetch ${sql.lit(rowsMax)} from ${cursor}`.execute(db);
    if (rows.length > 0) yield rows;
    if (rows.length < rowsMax) break;
  }
  await sql`close ${cursor}`.execute(db);
}
