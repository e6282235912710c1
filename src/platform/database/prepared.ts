import type { CompiledQuery } from 'kysely';
import type pg from 'pg';

/**
 * Runs a statement whose text never changes as a prepared one: the server parses and plans it once
 * for each connection. Use it for statements that run all the time.
 */
export async function runPrepared<Row>(
  client: pg.ClientBase,
  name: string,
  { sql, parameters }: CompiledQuery<Row>,
): Promise<Row[]> {
  const { rows } = await client.query({ name, text: sql, values: [...parameters] });
  return rows;
}
