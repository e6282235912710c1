import type { CompiledQuery } from 'kysely';
import type pg from 'pg';

/**
 * Runs a statement whose text is always the same: the server reads and plans it once for each
 * connection. For what is run all the time.
 */
export async function runPrepared<Row>(
  client: pg.ClientBase,
  name: string,
  { sql, parameters }: CompiledQuery<Row>,
): Promise<Row[]> {
  const { rows } = await client.query({ name, text: sql, values: [...parameters] });
  return rows;
}
